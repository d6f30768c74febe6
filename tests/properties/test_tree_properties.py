"""Invariants of partition trees that grow by random pulls under every rule, and of complexities whatever the inputs.

Hypothesis chooses seeds, shapes and rules; leaves that the tree does not store are worked out from their siblings, and
NumPy draws the entries, so that examples are generic and of all scales.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize

from moe_theory.merging import theory
from moe_theory.merging import tree as trees
from moe_theory.merging.params import EFFECTIVE_SPLIT, FILLED_POINT, RANDOM_POINT, Dims, Params

DIMS = Dims(max_experts=4, max_leaves=16)
NUM_SLOTS = 80


@jax.jit
def grown(key, params):
    """The tree before any pull, and the tree, what was pulled and what it did, after each."""

    def slot(tree, time):
        pick_key, pull_key = jax.random.split(jax.random.fold_in(key, time))
        scores = jnp.where(tree.active, jax.random.uniform(pick_key, tree.active.shape), -1)
        # One leaf in three is the deepest, so that small boxes come up.
        scores = jnp.where(time % 3 == 0, jnp.where(tree.active, tree.depth, -1).astype(scores.dtype), scores)
        leaf = jnp.argmax(scores)
        tree, split = trees.split_leaf(pull_key, tree, leaf, time, params)
        return tree, (tree, leaf, split)

    start = trees.begin(key, DIMS, params)
    return start, jax.lax.scan(slot, start, jnp.arange(1, NUM_SLOTS + 1))[1]


def random_params(rng, split_rule, point_rule):
    num_experts = int(rng.integers(2, DIMS.max_experts + 1))
    values = Params(
        num_experts=num_experts,
        max_active=int(rng.integers(1, num_experts + 1)) if rng.random() < 0.5 else num_experts,
        smoothness_ratio=float(rng.uniform(0.7, 0.99)),
        split_constant=float(rng.uniform(0.2, 0.8)),
        split_rule=split_rule,
        point_rule=point_rule,
    )
    return values, jax.tree.map(jnp.asarray, values)


def missing_child(parent_lower, parent_upper, lower, upper):
    """The half of a box that a stored half is not."""
    cut = np.flatnonzero((parent_lower != lower) | (parent_upper != upper))
    assert len(cut) == 1
    other_lower, other_upper = parent_lower.copy(), parent_upper.copy()
    if upper[cut[0]] < parent_upper[cut[0]]:
        other_lower[cut[0]] = upper[cut[0]]
    else:
        other_upper[cut[0]] = lower[cut[0]]
    return other_lower, other_upper


def has_feasible_point(lower, upper):
    bounds = list(zip(lower.astype(float), upper.astype(float), strict=True))
    return optimize.linprog(np.zeros(len(lower)), A_eq=np.ones((1, len(lower))), b_eq=[1.0], bounds=bounds).status == 0


@pytest.mark.parametrize("split_rule", range(3))
@given(seed=st.integers(0, 2**32 - 1), point_rule=st.integers(0, RANDOM_POINT))
@settings(max_examples=4, deadline=None)
def test_leaves_partition_the_simplex_whatever_is_pulled(split_rule, seed, point_rule):
    rng = np.random.default_rng(seed)
    values, params = random_params(rng, split_rule, point_rule)
    before, (after, pulls, splits) = jax.tree.map(np.asarray, grown(jax.random.key(seed), params))
    lost = []  # depths of leaves that miss the simplex
    for slot in range(NUM_SLOTS):
        tree, leaf = trees.Tree(*(part[slot] for part in after)), pulls[slot]
        split = trees.Split(*(part[slot] for part in splits))
        lost += check_pull(before, tree, leaf, split, slot + 1, values)
        before = tree
    check_leaves(rng, before, lost, values)


def check_pull(before, tree, leaf, split, time, values):
    """What a pull may change, and depths of the leaves off the simplex that it made."""
    count, depth = before.count[leaf] + 1, before.depth[leaf]
    threshold = theory.split_threshold(float(time), float(depth), values)
    is_due = count >= threshold if abs(count - threshold) > 1e-4 else bool(split.happened or split.was_left_out)
    assert split.happened + split.was_left_out == is_due
    assert tree.left_out - before.left_out == split.was_left_out
    changed = np.flatnonzero(np.any(before.lower != tree.lower, 1) | np.any(before.upper != tree.upper, 1))
    if not split.happened:
        assert len(changed) == 0
        assert tree.count[leaf] == count
        return []
    rows = [leaf] if split.other_row < 0 else [leaf, split.other_row]
    assert set(changed) <= set(rows)
    assert np.all(tree.count[rows] == 0)
    assert np.all(tree.depth[rows] == depth + 1)
    assert tree.active.sum() == before.active.sum() + len(rows) - 1
    assert tree.inactive - before.inactive == 2 - len(rows)
    if len(rows) == 2:
        assert not before.active[split.other_row]
        return []
    assert values.split_rule != EFFECTIVE_SPLIT
    other = missing_child(before.lower[leaf], before.upper[leaf], tree.lower[leaf], tree.upper[leaf])
    assert not has_feasible_point(*other)
    return [depth + 1]


def check_leaves(rng, tree, lost, values):
    lower, upper, points = (part[tree.active] for part in (tree.lower, tree.upper, tree.point))
    assert len(lost) == tree.inactive
    assert np.sum(2.0 ** -tree.depth[tree.active]) + sum(2.0**-depth for depth in lost) == 1
    assert all(has_feasible_point(*box) for box in zip(lower, upper, strict=True))
    assert np.all(upper[:, values.num_experts :] == 0)
    samples = np.zeros((400, DIMS.max_experts))
    samples[:, : values.num_experts] = rng.dirichlet(np.ones(values.num_experts), 400)
    inside = np.all((lower[:, None] <= samples) & (samples <= upper[:, None]), axis=2)
    np.testing.assert_array_equal(inside.sum(0), 1)
    np.testing.assert_allclose(points.sum(1), 1, atol=5e-7)
    assert np.all(points >= 0)
    assert np.all((points > 0).sum(1) <= values.max_active)
    if values.max_active == values.num_experts:
        assert np.all((points >= lower - 5e-7) & (points <= upper + 5e-7))
        if values.point_rule == FILLED_POINT:
            free = (points > lower + 1e-6) & (points < upper - 1e-6)
            levels = [point[mask] for point, mask in zip(points, free, strict=True) if mask.any()]
            assert all(np.ptp(level) < 1e-6 for level in levels)
