"""Instances of one round against brute force; a statistical test fails a true law with chance below LEVEL."""

import itertools
import math
from collections import Counter

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize, stats

import moe_theory as mt
from moe_theory.core.random import normals, replicate_keys, step_key, uniforms
from moe_theory.generalization import complexity, instances
from moe_theory.generalization.instances import NUM_SIGNS, linear_router
from moe_theory.generalization.model import Dims, Params
from moe_theory.generalization.statements.equation_16 import cover_count
from moe_theory.generalization.statements.equation_20 import exact_tail
from tests.continual.cases import loop_over, refuse

from .formulas import natarajan_dimension

LEVEL = 1e-7
ROOT = mt.root_key(11)
NUM_DRAWS = 6016
BLOCK = 64  # replicates of one program, which serves every test of a system
DIMS = Dims(5, 2, 40)
TOLERANCE = 1e-6  # of float32


def observed(system, params, replicates=BLOCK):
    """The Info of every replicate, in float64."""
    info = mt.simulate_batch(system, ROOT, replicates, params, 1)[1]
    return jax.tree.map(lambda leaf: np.asarray(leaf[0], float), jax.device_get(info))


@jax.jit
def round_key(replicate):
    return step_key(replicate_keys(ROOT, jnp.asarray(replicate)[None])[0], jnp.asarray(1))


draw_cells = jax.jit(instances.draw_cells, static_argnums=1)
draws = jax.jit(lambda law, key, shapes: instances.draws(law, key, *shapes), static_argnums=(0, 2))
ball_gap = jax.jit(instances.ball_gap)
class_sizes = jax.jit(instances.class_sizes, static_argnums=(1, 2))


def ramp(labels, outputs):
    return np.clip((1 - np.asarray(labels) * np.asarray(outputs)) / 2, 0, 1)


def brute_force(cells, labels, num_experts):
    """What `Cells` has, from the risks of all 2^T functions; cells and labels are (2, m), the ghost's second."""
    values: dict[str, list[float]] = {name: [] for name in ("difference", "paired", "mean", "memory")}
    for experts in itertools.product([-1, 1], repeat=num_experts):
        outputs = np.asarray(experts)[cells]
        risks = ramp(labels, outputs).mean(axis=1)
        # Labels all +1: the risk over x is the share of cells whose expert is -1.
        plain = ramp(1, outputs[0]).mean(), np.mean(np.asarray(experts) < 0)
        values["difference"].append(risks[0] - 0.5)
        values["paired"].append(risks[0] - risks[1])
        values["mean"].append(np.mean(labels[0] * outputs[0]))
        values["memory"].append(plain[1] - plain[0])
    assert abs(max(values["paired"]) - np.max(np.abs(values["paired"]))) < 1e-12
    return {
        "gap": np.max(np.abs(values["difference"])),
        "paired_gap": max(values["paired"]),
        "masked": max(values["mean"]),
        "lone": max(np.mean(labels[0]), -np.mean(labels[0])),
        "memorised": max(values["memory"]),
    }


@loop_over(("num_experts", "num_samples"), [(1, 5), (3, 1), (3, 6), (5, 4)])
def test_cells_have_the_suprema_over_all_experts(num_experts, num_samples):
    """Would catch a majority, a half or a count that is wrong, padding that counts, and cells that leave the range."""
    info = observed(instances.cells(DIMS), Params(num_experts=num_experts, num_samples=num_samples))
    for replicate in range(12):
        drawn = draw_cells(round_key(replicate), DIMS.max_samples)
        inputs, labels = (np.asarray(part)[:num_samples].T for part in drawn)
        expected = brute_force(np.floor(inputs * num_experts).astype(int), labels, num_experts)
        for name, value in expected.items():
            assert abs(getattr(info, name)[replicate] - value) < TOLERANCE, name


def test_cells_have_the_law_of_all_inputs_and_labels():
    """Would catch labels or cells that are unfair, and a ghost sample that is not independent of the sample."""
    num_experts, num_samples = 2, 2
    names = ("gap", "paired_gap", "lone", "memorised")
    sample = list(itertools.product(range(num_experts), [-1, 1]))
    exact: Counter[tuple[float, ...]] = Counter()
    for drawn in itertools.product(sample, repeat=2 * num_samples):
        cells, labels = np.asarray(drawn).reshape(2, num_samples, 2).transpose(2, 0, 1)
        values = brute_force(cells, labels, num_experts)
        exact[tuple(round(values[name], 3) for name in names)] += 1
    info = observed(instances.cells(DIMS), Params(num_experts=num_experts, num_samples=num_samples), NUM_DRAWS)
    found = Counter(zip(*(np.round(getattr(info, name), 3).tolist() for name in names), strict=True))
    assert found.keys() <= exact.keys()
    expected = np.asarray(list(exact.values())) * NUM_DRAWS / len(sample) ** (2 * num_samples)
    assert expected.min() > 15, "too few draws for a chi-square"
    assert stats.chisquare([found[key] for key in exact], expected).pvalue > LEVEL


def test_means_of_cells_are_rademacher_complexities():
    """Would catch `lone` and `masked` in place of each other, or either scaled."""
    num_experts, num_samples = 3, 40
    params = Params(num_experts=num_experts, num_samples=num_samples)
    info = observed(instances.cells(DIMS), params, NUM_DRAWS)
    # A cell has n_j ~ Binomial(m, 1/T) inputs, and E|S_j| of so many signs.
    counts = np.arange(1, num_samples + 1)
    mean_sum = np.asarray([count * complexity.constants(int(count)) for count in counts])
    masked = num_experts * stats.binom.pmf(counts, num_samples, 1 / num_experts) @ mean_sum / num_samples
    limit = stats.norm.isf(LEVEL / 4) / np.sqrt(NUM_DRAWS)
    for values, mean in ((info.lone, complexity.constants(num_samples)), (info.masked, masked)):
        assert abs(values.mean() - mean) < limit * values.std()


@pytest.mark.parametrize("system", [instances.cells, pytest.param(instances.learned_cells, marks=pytest.mark.thorough)])
def test_padding_and_batching_change_no_draw(system):
    """Would catch draws that depend on `Dims`, and arrays beyond m or T that take part."""
    params = Params(num_experts=4, num_samples=40)
    tight = observed(system(DIMS), params)
    info = mt.simulate(system(Dims(9, 2, 83)), replicate_keys(ROOT, jnp.asarray([7]))[0], params, 1)[1]
    alone = jax.tree.map(lambda leaf: np.asarray(leaf[0], float), info)
    chex.assert_trees_all_close(jax.tree.map(lambda leaf: leaf[7], tight), alone, rtol=1e-6)


def best_in_ball(labels, squared_radius):
    """The largest sum of 1 - 2 loss over outputs |f|^2 <= B^2, by a solver of the convex problem.

    Loss is taken as max(0, (1 - y f)/2), at least the ramp's. It is more only where y f < -1, which no best f has: an
    output of 0 there costs less norm and less loss.
    """
    count = len(labels)
    found = optimize.minimize(
        lambda point: -point[:count].sum(),  # margins t <= 1, outputs f
        np.full(2 * count, 0.1 * np.sqrt(squared_radius / count)) * np.append(np.ones(count), labels),
        method="SLSQP",
        bounds=[(-5, 1)] * count + [(-5, 5)] * count,
        constraints=[
            {"type": "ineq", "fun": lambda point: labels * point[count:] - point[:count]},
            {"type": "ineq", "fun": lambda point: squared_radius - point[count:] @ point[count:]},
        ],
    )
    assert found.success
    return -found.fun


def test_the_best_outputs_in_a_ball_are_those_of_a_convex_solver():
    """Would catch a margin without its cap of 1, B in place of its square, or a gap that depends on labels."""
    for count in range(1, 5):
        for labels in itertools.product([-1.0, 1.0], repeat=count):
            for squared_radius in (0.5, 2.0, 3.0):
                gap = ball_gap(np.asarray([float(count)]), squared_radius, float(count))
                assert abs(best_in_ball(np.asarray(labels), squared_radius) / (2 * count) - gap) < 1e-5


@loop_over(("num_experts", "num_samples"), [(3, 6), (3, 7), (4, 6), (5, 3), (1, 4)])
def test_learned_cells_cut_a_sample_evenly(num_experts, num_samples):
    """Would catch parts of wrong sizes, and a gap above what all T-part cuts of the sample reach."""
    squared_radius = num_samples / num_experts
    best = {0: 0.0} | {size: best_in_ball(np.ones(size), squared_radius) for size in range(1, num_samples + 1)}
    cuts = itertools.combinations_with_replacement(range(num_samples + 1), num_experts - 1)
    gaps = {}
    for cut in cuts:
        sizes = tuple(sorted(np.diff([0, *cut, num_samples])))
        gaps[sizes] = sum(best[size] for size in sizes) / (2 * num_samples)
    even = tuple(sorted(len(part) for part in np.array_split(np.arange(num_samples), num_experts)))
    info = observed(instances.learned_cells(DIMS), Params(num_experts=num_experts, num_samples=num_samples))
    np.testing.assert_allclose(info.gap, gaps[even], atol=2e-5)
    if num_samples % num_experts == 0:
        assert abs(gaps[even] - 0.5) < 1e-5
        assert max(gaps.values()) < gaps[even] + 1e-5


def test_dense_outputs_fit_every_labelling():
    """Would catch an output of the wrong sign, losses of another scale, and logits too close."""
    limit = np.tanh(instances.DENSE_LOGIT / 2)  # the gates' outputs for logits that are so far apart at most
    dense_losses = jax.jit(instances.dense_losses)
    for labels in itertools.product([-1.0, 1.0], repeat=3):
        gap = 0.5 - np.mean(dense_losses(np.asarray(labels)))
        every = itertools.product([-limit, 0, limit], repeat=3)
        assert abs(gap - max(abs(0.5 - ramp(labels, outputs).mean()) for outputs in every)) < TOLERANCE
    for num_experts in (2, 5):
        params = Params(num_experts=num_experts, num_active=num_experts, num_samples=7)
        gaps = observed(instances.dense(DIMS), params).gap
        assert np.all(gaps <= 0.5)
        assert np.all(gaps > 0.5 - 1e-6)


def test_a_coin_is_fair_and_its_ghost_another():
    """Would catch an unfair coin, samples that are shared, and members beyond m that count."""
    info = observed(instances.coin(DIMS), Params(num_experts=1, num_samples=3), NUM_DRAWS)
    pairs = np.rint(3 * info.risk) * 4 + np.rint(3 * info.ghost)
    law = stats.binom.pmf(np.arange(4), 3, 0.5)
    counts = np.bincount(pairs.astype(int), minlength=16)
    assert stats.chisquare(counts, NUM_DRAWS * np.outer(law, law).ravel()).pvalue > LEVEL


def test_params_that_do_not_fit_are_named():
    """Would catch a system that runs on them, or an error that says less than a line or more."""
    for system, wrong in (
        (instances.cells, {"num_experts": Params(5, 1, 5)}),
        (instances.coin, {"num_samples": Params(1, 1, 6)}),
        (instances.coin, {"num_samples": Params(1, 1, 0)}),
    ):
        for argument, params in wrong.items():
            refuse(argument, mt.simulate_batch, system(Dims(4, 1, 5)), ROOT, 2, params, 1)


REPLICATES = 3
ROUTER_DIMS = Dims(max_experts=4, num_features=3, max_samples=6)


def drawn(law, replicate, *shapes):
    """The numbers that a system of one round has drawn in its only round."""
    return [np.asarray(part, np.float64) for part in draws(law, round_key(replicate), shapes)]


def shown(system, replicates=REPLICATES, **sizes):
    return observed(system, Params(**sizes), replicates)


def mean_supremum(functions):
    """E_sigma max_f (1/m) sum_i sigma_i f_i of rows f."""
    rows = np.asarray(functions)
    signs = np.array(list(itertools.product((-1, 1), repeat=rows.shape[1])))
    return np.mean(np.max(signs @ rows.T, axis=1)) / rows.shape[1]


def hull_supremum(functions):
    """The same over convex combinations of the rows, by a linear program for each vector of signs."""
    count, suprema = len(functions[0]), []
    for signs in itertools.product((-1, 1), repeat=count):
        scores = np.asarray(functions) @ np.array(signs)
        found = optimize.linprog(-scores, A_eq=np.ones((1, len(scores))), b_eq=[1], bounds=(0, None))
        suprema.append(-found.fun)
    return float(np.mean(suprema)) / count


@pytest.mark.parametrize(
    ("experts", "active", "samples"), [pytest.param(3, 1, 4, marks=pytest.mark.thorough), (2, 2, 3)]
)
def test_complexities_are_those_of_all_functions_and_signs(experts, active, samples):
    dims = Dims(max_experts=3, num_features=1, max_samples=4)
    info = shown(instances.function_classes(dims), num_experts=experts, num_active=active, num_samples=samples)
    for replicate in range(REPLICATES):
        size, toss = drawn(uniforms, replicate, (), (4,))
        (entries,) = drawn(normals, replicate, (2, 3, 3, 4))
        low, high = instances.LOG_SCALES
        both = math.exp(low + (high - low) * size) * entries
        values, ghosts = both[:, :experts, :active, :samples]
        labels = [1 if number >= 0.5 else -1 for number in toss[:samples]]
        losses = np.array(
            [
                [[min(max((1 - y * f) / 2, 0), 1) for y, f in zip(labels, row, strict=True)] for row in part]
                for part in values
            ]
        )
        every = values.reshape(-1, samples)
        assert info.complexity[replicate] == pytest.approx(mean_supremum(every), rel=1e-5)
        assert info.complexity[replicate] == pytest.approx(hull_supremum(every), rel=1e-5)
        assert info.vertex[replicate] == pytest.approx(hull_supremum(every), rel=1e-5)
        assert info.ghost_complexity[replicate] == pytest.approx(mean_supremum(ghosts.reshape(-1, samples)), rel=1e-5)
        exchanged = (values - ghosts).reshape(-1, samples)
        assert info.swapped[replicate] == pytest.approx(mean_supremum(exchanged), rel=1e-5)
        assert info.composed[replicate] == pytest.approx(mean_supremum(losses.reshape(-1, samples)), rel=1e-5, abs=1e-6)
        parts = max(mean_supremum(part) for part in losses)
        assert info.largest_part[replicate] == pytest.approx(parts, rel=1e-5, abs=1e-6)
        assert info.mixtures[replicate] < info.complexity[replicate]


@loop_over(("points", "labels"), [(4, 3), (3, 2), (2, 4), (3, 1)])
def test_sizes_of_a_class_are_those_of_brute_force(points, labels):
    generator = np.random.default_rng(points)
    every = np.array(list(itertools.product(range(labels), repeat=points)))
    for density in (0.0, 0.1, 0.5, 1.0):
        is_member = (generator.random(len(every)) < density) | (np.arange(len(every)) == 0)
        sizes = class_sizes(is_member, points, labels)
        members = every[is_member]
        assert int(sizes.natarajan) == natarajan_dimension(members)
        most = [
            max(len({tuple(row) for row in members[:, kept]}) for kept in itertools.combinations(range(points), size))
            for size in range(1, points + 1)
        ]
        np.testing.assert_allclose(np.exp(sizes.log_growth), most, rtol=1e-5)


@loop_over(("experts", "active"), [(3, 1), (3, 2), (2, 1), (3, 3)])
def test_masks_are_those_of_the_routers_drawn(experts, active):
    dims = Dims(max_experts=3, num_features=2, max_samples=3)
    info = shown(instances.labelings(dims), num_experts=experts, num_active=active, num_samples=3)
    for replicate in range(REPLICATES):
        inputs, routers = drawn(normals, replicate, (3, 2), (instances.NUM_ROUTERS, 3, 2))
        rows = []
        for router in routers[:, :experts]:
            logits = inputs @ router.T
            masks = [frozenset(np.argsort(-row, kind="stable")[:active].tolist()) for row in logits]
            rows.append(masks)
        names = {mask: place for place, mask in enumerate({mask for row in rows for mask in row})}
        labels = np.array([[names[mask] for mask in row] for row in rows])
        assert int(info.masks.natarajan[replicate]) == natarajan_dimension(labels)
        assert math.exp(info.masks.log_growth[-1, replicate]) == pytest.approx(len({tuple(row) for row in labels}))


def test_lone_points_make_the_largest_gap_of_all_masks():
    samples = 4
    dims = Dims(max_experts=2, num_features=1, max_samples=5)
    info = shown(instances.lone_points(dims), num_experts=2, num_active=1, num_samples=samples)
    for replicate in range(REPLICATES):
        inputs = np.asarray(jax.random.bits(round_key(replicate), (2, 5), np.uint32))[:, :samples]
        gaps = []
        points = inputs.ravel().tolist()
        masks = [set(mask) for size in range(instances.NUM_LONE + 1) for mask in itertools.combinations(points, size)]
        for mask, lone, other in itertools.product(masks, (-1, 1), (-1, 1)):
            risks = [np.mean([(lone if x in mask else other) < 0 for x in sample.tolist()]) for sample in inputs]
            gaps.append(abs(risks[0] - risks[1]))
        assert max(Counter(inputs.ravel().tolist()).values()) == 1
        assert info.gap[replicate] == pytest.approx(max(gaps))


@loop_over(("experts", "active"), [(4, 1), (3, 2), (2, 2)])
def test_capacity_is_the_best_of_every_expert_for_each_sign(experts, active):
    norm, samples = 2.0, 5
    sizes = {"num_experts": experts, "num_active": active, "num_samples": samples, "router_norm": 3.0}
    info = shown(linear_router(ROUTER_DIMS), expert_norm=norm, **sizes)
    for replicate in range(REPLICATES):
        vectors = drawn(normals, replicate, (6, 3), (4, 3))
        (toss,) = drawn(uniforms, replicate, (NUM_SIGNS, 6))
        features, router = ([row / math.hypot(*row) for row in part] for part in vectors)
        routed, lone, squares = 0.0, 0.0, 0.0
        gates = []
        for x in features[:samples]:
            logits = [3 * (v @ x) for v in router[:experts]]
            chosen = sorted(range(experts), key=lambda place: -logits[place])[:active]
            total = sum(math.exp(logits[place]) for place in chosen)
            gates.append([math.exp(logits[place]) / total if place in chosen else 0 for place in range(experts)])
            squares += sum(gate**2 for gate in gates[-1]) / samples
        for row in toss:
            signs = [1 if number >= 0.5 else -1 for number in row[:samples]]
            signed = [sign * x for sign, x in zip(signs, features, strict=False)]
            for expert in range(experts):
                total = np.sum([gate[expert] * x for gate, x in zip(gates, signed, strict=True)], axis=0)
                routed += norm * math.hypot(*total) / samples / NUM_SIGNS
            lone += norm * math.hypot(*np.sum(signed, axis=0)) / samples / NUM_SIGNS
        assert info.routed[replicate] == pytest.approx(routed, rel=1e-5)
        assert info.lone[replicate] == pytest.approx(lone, rel=1e-5)
        assert info.mean_square_gate[replicate] == pytest.approx(squares, rel=1e-5)


@loop_over(("points", "features"), [(3, 1), (4, 2), (5, 3), (4, 6)])
def test_splits_by_linear_routers_are_as_many_as_programs_are_feasible(points, features):
    inputs = np.random.default_rng(points).standard_normal((points, features))
    feasible = 0
    for signs in itertools.product((-1, 1), repeat=points):
        found = optimize.linprog(
            np.zeros(features), A_ub=-np.array(signs)[:, None] * inputs, b_ub=-np.ones(points), bounds=(None, None)
        )
        feasible += found.status == 0
    assert cover_count(points, features) == feasible


def test_the_exact_tail_is_that_of_all_outcomes():
    samples = 4
    counts = Counter(
        sum(outcome[:samples]) - sum(outcome[samples:]) for outcome in itertools.product((0, 1), repeat=2 * samples)
    )
    for successes in range(samples + 1):
        tail = sum(number for gap, number in counts.items() if gap >= successes) / 4**samples
        assert exact_tail(samples, np.array(successes)) == pytest.approx(tail)
