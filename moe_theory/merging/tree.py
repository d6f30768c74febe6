"""The binary tree of boxes in [0, 1]^K, cut with the simplex, in a fixed number of rows with one leaf each.

A row has a leaf's box, depth, count and candidate weights. A child that meets the simplex takes the split leaf's row,
and a second such child takes the first free row. A child that misses the simplex is counted, but not stored. Sums are
compared with 1 without tolerance, because edges are multiples of 2^-h and exact in the given precision.

Source: Sec. IV-B. A box meets the simplex exactly when sum(l) <= 1 <= sum(u).

Examples:
    >>> import jax
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import moe_theory as mt
    >>> from moe_theory.merging import Dims, Params, tree
    >>> from moe_theory.merging.params import LINE_POINT
    >>> params = Params(num_experts=2, max_active=2, confidence=1.0)
    >>> root = tree.begin(mt.root_key(0), Dims(max_experts=2, max_leaves=4), params)
    >>> root.point[0].tolist(), int(root.active.sum())
    ([0.5, 0.5], 1)
    >>> after, split = jax.jit(tree.split_leaf)(mt.root_key(1), root, leaf=0, time=1, params=params)
    >>> bool(split.happened), int(after.active.sum())
    (True, 2)
    >>> lower, upper = np.array([[0.0, 0.0], [0.75, 0.5]]), np.array([[0.5, 0.5], [1.0, 1.0]])
    >>> tree.is_feasible(lower, upper).tolist()  # sums from 0 to 1, and from 1.25 to 2
    [True, False]
    >>> low, high = tree.tightened(np.array([0.5, 0.0]), np.array([1.0, 1.0]))
    >>> low.tolist(), high.tolist()
    ([0.5, 0.0], [1.0, 0.5])
    >>> tree.feasible_point(jnp.zeros(4), jnp.ones(4), LINE_POINT, jnp.zeros(4)).tolist()
    [0.25, 0.25, 0.25, 0.25]
    >>> tree.truncated(jnp.array([0.375, 0.25, 0.375]), max_active=2).tolist()
    [0.5, 0.0, 0.5]
    >>> tree.leaf_terms(jnp.array([0, 1, 2]), Params(smoothness=2.0, smoothness_ratio=0.5)).tolist()
    [2.0, 1.0, 0.5]
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core.numerics import Numbers, Scalar, array_namespace
from moe_theory.merging import theory
from moe_theory.merging.params import CYCLIC_SPLIT, EFFECTIVE_SPLIT, FILLED_POINT, RANDOM_POINT, Dims, Params
from moe_theory.merging.weights import largest


class Tree(NamedTuple):
    """Leaves that meet the simplex, one per row, and the number of the other leaves."""

    lower: Float[Array, "C K"]  # l, corners of the boxes, l = u = 0 for experts beyond `Params.num_experts`
    upper: Float[Array, "C K"]  # u
    point: Float[Array, "C K"]  # candidates: on the simplex, at most B entries above 0
    depth: Int[Array, " C"]  # h
    count: Int[Array, " C"]  # P_{h,i}, pulls since the leaf was made  # pyright: ignore[reportIncompatibleMethodOverride]
    active: Bool[Array, " C"]  # rows that hold a leaf. Values of other rows mean nothing
    inactive: Int[Array, ""]  # leaves made so far that miss the simplex
    left_out: Int[Array, ""]  # splits without room. At every pull a leaf tries again, and is counted again


class Split(NamedTuple):
    """Outcome of a pull of a leaf."""

    happened: Bool[Array, ""]  # whether the leaf was split: its row now holds a child, with another box
    other_row: Int[Array, ""]  # the row of the second child, -1 if there is none
    dimension: Int[Array, ""]  # along which the leaf was halved, or would have been
    was_left_out: Bool[Array, ""]  # whether a split was due but had no room


def begin(key: Key[Array, ""], dims: Dims, params: Params) -> Tree:
    """Return the root alone, [0, 1]^K with its candidate. Source: Alg. 1, line 1, and Sec. IV-B."""
    dtype = jnp.result_type(float)
    shape = (dims.max_leaves, dims.max_experts)
    is_root = jnp.arange(dims.max_leaves) == 0
    lower = jnp.zeros((dims.max_experts,), dtype)
    upper = (jnp.arange(dims.max_experts) < params.num_experts).astype(dtype)
    uniforms = jax.random.uniform(key, lower.shape, dtype)
    point = truncated(feasible_point(lower, upper, params.point_rule, uniforms), params.max_active)
    return Tree(
        lower=jnp.zeros(shape, dtype),
        upper=_write(jnp.zeros(shape, dtype), is_root, upper),
        point=_write(jnp.zeros(shape, dtype), is_root, point),
        depth=jnp.zeros((dims.max_leaves,), jnp.int32),
        count=jnp.zeros((dims.max_leaves,), jnp.int32),
        active=is_root,
        inactive=jnp.zeros((), jnp.int32),
        left_out=jnp.zeros((), jnp.int32),
    )


def split_leaf(
    key: Key[Array, ""], tree: Tree, leaf: Int[Array, ""], time: Int[Array, ""], params: Params
) -> tuple[Tree, Split]:
    """Count a pull of the active row `leaf` in slot `time`, and split the leaf if P_{h,i} >= tau_h(t).

    The leaf's box is halved along one coordinate, which `Params.split_rule` chooses. Each child starts with count 0 and
    its own candidate. Source: Alg. 1, lines 9 to 12, and Eq. (2).
    """
    num_experts = tree.lower.shape[1]
    is_leaf = jnp.arange(tree.active.shape[0]) == leaf
    count = _read(tree.count, is_leaf) + 1
    depth = _read(tree.depth, is_leaf)
    dtype = tree.lower.dtype
    is_due = count.astype(dtype) >= theory.split_threshold(time.astype(dtype), depth.astype(dtype), params)
    # One draw for the split, and two for each expert. Those of expert k do not depend on `Dims.max_experts`.
    uniforms = jax.random.uniform(key, (1 + 2 * num_experts,), dtype)
    box = (_read(tree.lower, is_leaf), _read(tree.upper, is_leaf))
    lower, upper, dimension = _halves(*box, depth=depth, uniform=uniforms[0], params=params)
    low_active = is_feasible(lower[0], upper[0])
    high_active = is_feasible(lower[1], upper[1]) | ~low_active  # if a box meets the simplex, one of its halves does
    both_active = low_active & high_active
    has_room = ~jnp.all(tree.active)
    happened = is_due & (has_room | ~both_active)
    adds_row = happened & both_active

    feasible_points = jax.vmap(feasible_point, in_axes=(0, 0, None, 0))
    points = feasible_points(lower, upper, params.point_rule, uniforms[1:].reshape(num_experts, 2).T)
    points = jax.vmap(truncated, in_axes=(0, None))(points, params.max_active)
    is_first_child = is_leaf & happened
    free = jnp.argmax(~tree.active).astype(jnp.int32)
    is_new_row = (jnp.arange(tree.active.shape[0]) == free) & adds_row

    def write_children(rows: Float[Array, "C K"], halves: Float[Array, "2 K"]) -> Float[Array, "C K"]:
        first_child = jnp.where(low_active, halves[0], halves[1])
        return _write(_write(rows, is_first_child, first_child), is_new_row, halves[1])

    num_missed = (happened & ~both_active).astype(jnp.int32)  # children that miss the simplex
    was_left_out = is_due & ~happened
    tree = Tree(
        lower=write_children(tree.lower, lower),
        upper=write_children(tree.upper, upper),
        point=write_children(tree.point, points),
        depth=jnp.where(is_first_child | is_new_row, depth + 1, tree.depth),
        count=jnp.where(is_first_child | is_new_row, 0, jnp.where(is_leaf, count, tree.count)),
        active=tree.active | is_new_row,
        inactive=tree.inactive + num_missed,
        left_out=tree.left_out + was_left_out.astype(jnp.int32),
    )
    other_row = jnp.where(adds_row, free, -1)
    return tree, Split(happened, other_row=other_row, dimension=dimension, was_left_out=was_left_out)


def is_feasible(lower: Float[Numbers, "*n K"], upper: Float[Numbers, "*n K"]) -> Bool[Numbers, "*n"]:
    """Return whether a box has a point of the simplex: sum(l) <= 1 <= sum(u).

    Source: Sec. IV-B, in place of its linear program.
    """
    return (lower.sum(-1) <= 1) & (upper.sum(-1) >= 1)


def tightened(
    lower: Float[Numbers, "*n K"], upper: Float[Numbers, "*n K"]
) -> tuple[Float[Numbers, "*n K"], Float[Numbers, "*n K"]]:
    """Return the smallest box around the part of the simplex in a box.

    l'_k = max(l_k, 1 - sum_{j != k} u_j), u'_k = min(u_k, 1 - sum_{j != k} l_j).

    Source: Sec. IV-B, worked out.
    """
    namespace = array_namespace(lower, upper)
    least = 1 - (upper.sum(-1, keepdims=True) - upper)
    most = 1 - (lower.sum(-1, keepdims=True) - lower)
    low = namespace.clip(least, lower, upper)
    return low, namespace.clip(most, low, upper)


def feasible_point(
    lower: Float[Array, " K"], upper: Float[Array, " K"], rule: Int[Scalar, ""], uniforms: Float[Array, " K"]
) -> Float[Array, " K"]:
    """Return a point of the simplex in a box that `is_feasible`.

    `rule` is one of three readings of "a feasible weight":

    - LINE_POINT: l + a (u - l) with a = (1 - sum l)/(sum u - sum l).
    - FILLED_POINT: max(l, min(u, level)) with the level that makes the sum 1, the point nearest to uniform weights.
    - RANDOM_POINT: y uniform in the box, then along the line to u, or to l, until the sum is 1. It has full support on
      the part of the simplex in the box, but is not uniform there.

    Args:
        uniforms: in [0, 1), of y.
    Source: Sec. IV-B, "a feasible weight" by an unspecified LP.
    """
    line_point = _between(lower, upper)
    start = lower + uniforms * (upper - lower)  # y
    is_short = jnp.sum(start) <= 1
    # `_between` needs ends on both sides of the simplex, and one of them is the box's corner beyond the simplex from y.
    random_point = _between(jnp.where(is_short, start, lower), jnp.where(is_short, upper, start))
    rule = jnp.asarray(rule)
    other_point = jnp.where(rule == RANDOM_POINT, random_point, line_point)
    return jnp.where(rule == FILLED_POINT, _filled(lower, upper), other_point)


def truncated(point: Float[Array, " K"], max_active: Int[Scalar, ""]) -> Float[Array, " K"]:
    """Return the `max_active` largest weights, divided by their sum, and 0 elsewhere.

    Ties go to the first weights, and the result may lie outside the leaf's box.

    Source: Sec. IV-B, on (1b).
    """
    largest_weights = jnp.where(largest(point, jnp.ones_like(point, bool), max_active), point, 0)
    return largest_weights / jnp.sum(largest_weights)


def leaf_terms(depths: Int[Array, "*n"], params: Params) -> Float[Array, "*n"]:
    """Return nu_1 rho^h, the second term of (4), which bounds how much f* varies within a leaf. Source: Eq. (4)."""
    ratio = jnp.asarray(params.smoothness_ratio, jnp.result_type(float))
    return params.smoothness * ratio ** depths.astype(ratio.dtype)


def _halves(
    lower: Float[Array, " K"],
    upper: Float[Array, " K"],
    depth: Int[Array, ""],
    uniform: Float[Array, ""],
    params: Params,
) -> tuple[Float[Array, "2 K"], Float[Array, "2 K"], Int[Array, ""]]:
    """Return the lower and the upper corners of both halves of a box, and the dimension that was halved."""
    num_experts = jnp.asarray(params.num_experts, jnp.int32)
    is_effective = jnp.asarray(params.split_rule) == EFFECTIVE_SPLIT
    random_dimension = jnp.minimum(jnp.floor(uniform * num_experts).astype(jnp.int32), num_experts - 1)
    is_cyclic = jnp.asarray(params.split_rule) == CYCLIC_SPLIT
    dimension = jnp.where(is_cyclic, jnp.remainder(depth, num_experts), random_dimension)
    # Effective splits leave boxes tight.
    dimension = jnp.where(is_effective, jnp.argmax(upper - lower).astype(jnp.int32), dimension)
    is_cut = jnp.arange(lower.shape[0]) == dimension
    middle = (lower + upper) / 2
    lowers = jnp.stack([lower, jnp.where(is_cut, middle, lower)])
    uppers = jnp.stack([jnp.where(is_cut, middle, upper), upper])
    tight_lowers, tight_uppers = tightened(lowers, uppers)
    return jnp.where(is_effective, tight_lowers, lowers), jnp.where(is_effective, tight_uppers, uppers), dimension


def _between(short: Float[Array, " K"], long: Float[Array, " K"]) -> Float[Array, " K"]:
    """Return where the line from a point with sum at most 1 to a point with sum at least 1 meets the simplex."""
    room = jnp.sum(long) - jnp.sum(short)
    share = jnp.where(room > 0, (1 - jnp.sum(short)) / jnp.where(room > 0, room, 1), 0)
    return short + jnp.clip(share, 0, 1) * (long - short)


def _filled(lower: Float[Array, " K"], upper: Float[Array, " K"]) -> Float[Array, " K"]:
    """Return max(l, min(u, level)) with sum 1. Its sum is linear in the level between neighbouring ends of sides."""
    ends = jnp.concatenate([lower, upper])
    sums = jnp.sum(jnp.clip(ends[:, None], lower, upper), axis=1)
    start = jnp.max(jnp.where(sums <= 1, ends, jnp.min(lower)))  # the last end before the level
    filled = jnp.clip(start, lower, upper)
    slope = jnp.sum((lower <= start) & (start < upper)).astype(lower.dtype)
    level = start + jnp.maximum(1 - jnp.sum(filled), 0) / jnp.maximum(slope, 1)
    return jnp.clip(level, lower, upper)


def _read(rows: Array, is_row: Bool[Array, " C"]) -> Array:
    """Return the only row in the mask `is_row`."""
    mask = is_row.reshape(is_row.shape + (1,) * (rows.ndim - 1))
    return jnp.sum(jnp.where(mask, rows, 0), axis=0, dtype=rows.dtype)


def _write(rows: Float[Array, "C K"], is_row: Bool[Array, " C"], row: Float[Array, " K"]) -> Float[Array, "C K"]:
    return jnp.where(is_row[:, None], row, rows)
