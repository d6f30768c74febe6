"""Closed forms against the papers' double sums, and exact moments against complete enumeration."""

import functools
import itertools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.continual import corrected, theory
from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.core.linear import minimum_norm_change
from moe_theory.core.tasks import Pool
from tests.continual.cases import loop_over, refuse
from tests.continual.designs import complement_basis, draw_pool, residual_projectors

FORMS = {
    "printed": theory.theorem_2,
    "appendix": functools.partial(theory.theorem_2, form="appendix"),
    "corrected": corrected.theorem_2,
}
GAPS = theory.Gaps(*np.array([1.7, 2.9, 0.3, 3.1]))


def clustered_pool(num_tasks=7, num_features=4, clusters=(0, 1, 2, 0, 1, 2, 0), seed=0):
    truths, signals = np.random.default_rng(seed).normal(size=(2, num_tasks, num_features))
    return Pool(truths, signals, np.array(clusters))


def draw_routes(num_experts, num_rounds, seed):
    return np.random.default_rng(seed).integers(num_experts, size=num_rounds)


class Loads:
    """L_tau(m) for every round, from the routes m_1, m_2, ... alone."""

    def __init__(self, routes, num_experts):
        self.routes = routes
        self.table = np.array(
            [[np.sum(routes[:tau] == m) for m in range(num_experts)] for tau in range(len(routes) + 1)]
        )

    def at(self, round, tau):
        """L_round(m_tau)."""
        return self.table[round, self.routes[tau - 1]]


def literal_19(gaps, r, loads, t):
    drops = [r ** loads.at(t, tau) - r ** loads.at(tau, tau) for tau in range(1, t)]
    return sum(drop * gaps.truth_norm - drop * gaps.task_gap for drop in drops) / (t - 1)


def literal_20(gaps, r, loads, t, explored):
    powers = [r ** loads.at(min(t, explored), tau) for tau in range(1, t + 1)]
    return sum(power * gaps.truth_norm + (1 - power) * gaps.task_gap for power in powers) / t


def literal_21(gaps, r, loads, t, explored, form):
    total = 0.0
    for tau in range(1, t):
        total += (r ** loads.at(t, tau) - r ** loads.at(tau, tau)) * gaps.truth_norm
    for tau in range(1, explored + 1):
        total += (r ** loads.at(tau, tau) - r ** loads.at(explored, tau)) * gaps.task_gap
    for tau in range(explored + 1, t + 1):
        newer = 1 - r ** (loads.at(t, tau) - loads.at(tau, tau))
        if form == "corrected":
            weight = r ** (loads.at(tau, tau) - loads.at(explored, tau))
        else:
            weight = r ** (loads.at(t, tau) - loads.at(explored, tau) - 1.0)
        total += newer * weight * gaps.within_gap
    return total / (t - 1)


def literal_22(gaps, r, loads, t, explored, form):
    lag = 1.0 if form == "appendix" else 0.0
    total = 0.0
    for tau in range(1, t + 1):
        exploited_load = loads.at(t, tau) - loads.at(explored, tau)
        kept = r**exploited_load * (1 - r ** loads.at(explored, tau))
        overwritten = 1 - r ** (exploited_load - lag)
        total += r ** loads.at(t, tau) * gaps.truth_norm
        if tau <= explored:
            total += kept * gaps.task_gap + overwritten * gaps.across_gap
        else:
            total += kept * gaps.across_gap + overwritten * gaps.within_gap
    return total / t


def literal_gaps(pool):
    num_tasks = len(pool.truths)
    groups = [np.flatnonzero(pool.clusters == k) for k in sorted(set(pool.clusters.tolist()))]

    def distance(n, other):
        return np.sum((pool.truths[n] - pool.truths[other]) ** 2)

    def to_group(n, group):
        return sum(distance(n, other) for other in group) / len(group)

    tasks = range(num_tasks)
    return theory.Gaps(
        truth_norm=sum(np.sum(pool.truths[n] ** 2) for n in tasks) / num_tasks,
        task_gap=sum(distance(n, other) for n in tasks for other in tasks) / num_tasks**2,
        within_gap=sum(to_group(n, group) for group in groups for n in group) / num_tasks,
        across_gap=sum(sum(to_group(n, group) for group in groups) / len(groups) for n in tasks) / num_tasks,
    )


@loop_over("clusters", [(0, 1, 2, 0, 1, 2, 0), (0,) * 7, tuple(range(7)), (6, 6, 2, 2, 2, 0, 6)])
def test_gaps_are_the_literal_double_sums(clusters):
    pool = clustered_pool(clusters=clusters)
    np.testing.assert_allclose(theory.gaps(pool), literal_gaps(pool), rtol=1e-13)


def test_gaps_take_a_traced_number_of_clusters():
    host_pool = clustered_pool()

    def gaps_of(num_clusters):
        clusters = jnp.arange(7) % num_clusters
        return theory.gaps(Pool(jnp.asarray(host_pool.truths), jnp.asarray(host_pool.signals), clusters))

    traced = jax.jit(jax.vmap(gaps_of))(jnp.arange(1, 8))
    for index, num_clusters in enumerate(range(1, 8)):
        expected = literal_gaps(host_pool._replace(clusters=np.arange(7) % num_clusters))
        np.testing.assert_allclose([leaf[index] for leaf in traced], expected, rtol=1e-5, atol=1e-6)


@loop_over("ratio", [0.02, 0.4, 0.97])
def test_proposition_4_is_the_sum_over_rounds(ratio):
    """(17) and (18), round by round."""
    rounds = np.array([2, 3, 10, 57])
    bound = theory.proposition_4(GAPS, ratio, rounds)
    for index, t in enumerate(rounds.tolist()):
        routed_to_one = Loads(np.zeros(t, int), 1)
        np.testing.assert_allclose(bound.forgetting[index], literal_19(GAPS, ratio, routed_to_one, t), rtol=1e-12)
        error = ratio**t * GAPS.truth_norm + (1 - ratio**t) * GAPS.task_gap
        np.testing.assert_allclose(bound.generalization_error[index], error, rtol=1e-13)


@loop_over("ratio", [0.3, 0.95])
@loop_over(("t", "explored"), [(2, 20), (20, 20), (21, 20), (60, 20), (60, 1), (60, 59)])
def test_theorem_1_is_the_sum_over_routes(ratio, t, explored):
    loads = Loads(draw_routes(6, 60, seed=t + explored), 6)
    bound = theory.theorem_1(GAPS, ratio, loads.table[t], loads.table[min(t, explored)], t)
    if t <= explored:
        forgetting = literal_19(GAPS, ratio, loads, t)
    elif explored == 1:
        forgetting = 0.0
    else:
        forgetting = (explored - 1) / (t - 1) * literal_19(GAPS, ratio, loads, explored)
    np.testing.assert_allclose(bound.forgetting, forgetting, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(bound.generalization_error, literal_20(GAPS, ratio, loads, t, explored), rtol=1e-12)


@loop_over("form", FORMS)
@loop_over("ratio", [0.3, 0.95])
@loop_over(("t", "explored"), [(21, 20), (60, 20), (60, 1), (60, 59)])
def test_theorem_2_is_the_sum_over_routes(form, ratio, t, explored):
    loads = Loads(draw_routes(6, 60, seed=t + explored), 6)
    bound = FORMS[form](GAPS, ratio, loads.table[t], loads.table[explored], t)
    np.testing.assert_allclose(bound.forgetting, literal_21(GAPS, ratio, loads, t, explored, form), rtol=1e-10)
    np.testing.assert_allclose(
        bound.generalization_error, literal_22(GAPS, ratio, loads, t, explored, form), rtol=1e-10
    )


def test_padded_experts_and_leading_axes_change_nothing():
    table = Loads(draw_routes(3, 40, seed=1), 3).table
    rounds = np.array([5, 12, 40])
    loads, explored_loads = table[rounds], table[np.minimum(rounds, 12)]
    padding = np.zeros((3, 2), int)
    padded = np.hstack([loads, padding]), np.hstack([explored_loads, padding])
    for bound in (theory.theorem_1, theory.theorem_2):
        stacked = bound(GAPS, 0.4, *padded, rounds)
        singles = [bound(GAPS, 0.4, *row) for row in zip(loads, explored_loads, rounds, strict=True)]
        np.testing.assert_allclose(stacked, np.transpose(singles), rtol=1e-13)


def test_forgetting_is_zero_in_the_first_round():
    loads = np.array([0, 1, 0])
    assert theory.theorem_1(GAPS, 0.4, loads, loads, 1).forgetting == 0
    assert theory.theorem_2(GAPS, 0.4, loads, loads, 1).forgetting == 0
    assert theory.proposition_4(GAPS, 0.4, 1).forgetting == pytest.approx(0, abs=1e-15)


def test_large_loads_neither_overflow_nor_warn():
    loads = np.array([2**31 - 1, 0], np.int64)
    bound = theory.theorem_2(GAPS, 0.01, loads, np.array([5, 0]), 2**31 - 1)
    assert np.all(np.isfinite(bound))
    assert bound.generalization_error == pytest.approx(GAPS.within_gap, rel=1e-6)


@loop_over("form", FORMS)
def test_traced_bounds_equal_the_host_in_the_precision_of_the_run(form):
    table = Loads(draw_routes(5, 200, seed=2), 5).table
    rounds = np.array([2, 40, 41, 200])
    arguments = table[rounds], table[np.minimum(rounds, 40)], rounds
    traced_gaps = theory.Gaps(*(jnp.float32(gap) for gap in GAPS))

    def bounds(loads, explored_loads, round):
        return (
            theory.theorem_1(traced_gaps, 0.4, loads, explored_loads, round),
            FORMS[form](traced_gaps, 0.4, loads, explored_loads, round),
            theory.proposition_4(traced_gaps, 0.4, round),
        )

    batched = jax.jit(jax.vmap(bounds, in_axes=-1, out_axes=-1))
    traced = batched(*(jnp.asarray(np.moveaxis(array, 0, -1)) for array in arguments))
    expected = (
        theory.theorem_1(GAPS, 0.4, *arguments),
        FORMS[form](GAPS, 0.4, *arguments),
        theory.proposition_4(GAPS, 0.4, rounds),
    )
    chex.assert_type(jax.tree.leaves(traced), jnp.float32)
    chex.assert_type(jax.tree.leaves(expected), np.float64)
    chex.assert_trees_all_close(traced, jax.tree.map(np.float32, expected), rtol=2e-5, atol=2e-6)


def test_ratios_of_the_papers_shapes():
    assert theory.overparameterization_ratio(10, 6) == pytest.approx(0.4)
    assert theory.error_contraction(10, 6) == pytest.approx(4 / 9)
    assert theory.error_contraction(2, 1) == 1


@loop_over(("num_features", "num_samples"), [(5, 5), (5, 6), (5, 0)])
def test_ratios_refuse_what_is_not_overparameterized(num_features, num_samples):
    for ratio in (theory.overparameterization_ratio, theory.error_contraction):
        with pytest.raises(InvalidValueError, match=f"num_samples={num_samples}"):
            ratio(num_features, num_samples)


def test_an_unknown_form_suggests_a_known_one():
    refuse("form", theory.theorem_2, GAPS, 0.4, np.ones(2), np.ones(2), 2, form="appendx", kind=UnknownNameError)


@loop_over("num_experts", [1, 3, 5, 7, 10, 20, 50])
@loop_over("hundredths", [1, 3, 7, 10, 15, 30, 35, 50, 70, 90, 100])
def test_exploration_rounds_do_not_depend_on_the_precision_of_eta(num_experts, hundredths):
    expected = -(-100 * num_experts // hundredths)
    eta = hundredths / 100
    assert theory.exploration_rounds(num_experts, eta) == expected
    assert theory.exploration_rounds(num_experts, float(np.float32(eta))) == expected
    traced = jax.jit(theory.exploration_rounds)(num_experts, eta)
    assert traced == expected
    assert jnp.issubdtype(traced.dtype, jnp.integer)


def test_exploration_rounds_saturate():
    assert theory.exploration_rounds(50, 1e-12) == theory.MAX_ROUNDS
    assert jax.jit(theory.exploration_rounds)(50, 1e-12) == theory.MAX_ROUNDS


def test_termination_rounds_scale_with_the_truths():
    assert theory.termination_rounds(10, 0.5, 1.0) == theory.exploration_rounds(10, 0.5)
    assert theory.termination_rounds(10, 0.5, 1 / 16) == 40
    assert jax.jit(theory.termination_rounds)(10, 0.5, 0.4) == int(np.ceil(20 * 0.4**-0.25))


def test_errors_of_a_history_are_those_of_lemma_16():
    """Would catch a wrong order of arrivals, or experts mixed up, in (42): its recursion, an arrival at a time."""
    rng = np.random.default_rng(2)
    tasks, experts, truths = rng.integers(0, 6, (9, 2)), rng.integers(0, 3, (9, 2)), rng.normal(size=(6, 10, 2))
    ratio, expected = 1 - 6 / 10, []
    for lane in range(2):
        errors = []
        for arrival in range(9):
            truth = truths[tasks[arrival, lane], :, lane]
            error = np.sum(truth**2)
            for time in range(9):
                if experts[time, lane] == experts[arrival, lane]:
                    gap = np.sum((truths[tasks[time, lane], :, lane] - truth) ** 2)
                    error = ratio * error + (1 - ratio) * gap
            errors.append(error)
        expected.append(np.mean(errors))
    np.testing.assert_allclose(theory.lemma_16(tasks, experts, truths, ratio), expected, rtol=1e-12)


def enumerate_rounds(pool, bases, rank, num_rounds):
    """Mean of each metric, as defined in (14) to (16), over every sequence of tasks and projectors."""
    choices = [(n, S) for n, basis in enumerate(bases) for S in residual_projectors(basis, rank)]
    models = np.zeros((1, pool.truths.shape[1]))
    history = np.zeros((1, 0), int)
    own_errors = np.zeros((1, 0))
    rounds = []
    for t in range(1, num_rounds + 1):
        learned = [pool.truths[n] + (models - pool.truths[n]) @ S for n, S in choices]
        repeats = len(models)
        models = np.concatenate(learned)
        tasks = np.repeat([n for n, _ in choices], repeats)
        error = np.sum((models - pool.truths[tasks]) ** 2, axis=1)
        history = np.hstack([np.tile(history, (len(choices), 1)), tasks[:, None]])
        own_errors = np.hstack([np.tile(own_errors, (len(choices), 1)), error[:, None]])
        errors = np.sum((models[:, None] - pool.truths[history]) ** 2, axis=2)
        forgetting = np.mean(errors[:, :-1] - own_errors[:, :-1]) if t > 1 else 0.0
        rounds.append((forgetting, np.mean(errors), np.mean(error)))
    return corrected.Exact(*np.transpose(rounds))


@loop_over("kind", ["proportional", "independent"])
@loop_over(
    ("num_features", "num_samples", "num_tasks", "num_rounds"),
    [(2, 1, 3, 6), (3, 1, 3, 6), (3, 2, 2, 5), (3, 2, 3, 4), (4, 1, 3, 6), (4, 2, 2, 4), (4, 3, 2, 4), (4, 3, 1, 5)],
)
def test_single_expert_is_the_mean_over_every_sequence(kind, num_features, num_samples, num_tasks, num_rounds):
    pool = draw_pool(num_tasks, num_features, kind)
    bases = [complement_basis(signal) for signal in pool.signals]
    expected = enumerate_rounds(pool, bases, num_features - num_samples, num_rounds)
    computed = corrected.single_expert(pool, num_samples, num_rounds)
    np.testing.assert_allclose(computed, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(
    ("num_features", "num_samples", "num_tasks", "num_rounds"), [(2, 1, 3, 4), (3, 1, 2, 4), (3, 2, 2, 4)]
)
def test_gaussian_single_expert_is_the_mean_over_every_sequence(num_features, num_samples, num_tasks, num_rounds):
    pool = draw_pool(num_tasks, num_features)
    bases = [np.eye(num_features)] * num_tasks
    expected = enumerate_rounds(pool, bases, num_features - num_samples, num_rounds)
    computed = corrected.single_expert_gaussian(pool, num_samples, num_rounds)
    np.testing.assert_allclose(computed, expected, rtol=1e-11, atol=1e-11)


def test_long_runs_forget_what_proposition_4_says_they_do_not():
    pool = draw_pool(5, 8)
    ratio, pool_gaps = theory.overparameterization_ratio(8, 6), theory.gaps(pool)
    computed = corrected.single_expert_gaussian(pool, 6, 5000)
    printed = theory.proposition_4(pool_gaps, ratio, np.arange(1, 5001))
    assert computed.forgetting[-1] == pytest.approx((1 - ratio) * pool_gaps.task_gap, rel=1e-3)
    assert abs(printed.forgetting[-1]) < 1e-3 * computed.forgetting[-1]
    np.testing.assert_allclose(printed.generalization_error[-1], computed.generalization_error[-1], rtol=1e-3)


@loop_over(("num_features", "num_samples"), [(2, 1), (3, 1), (3, 2), (4, 1), (4, 3)])
def test_given_routes_the_mean_over_every_sequence_of_features(num_features, num_samples):
    """Guards what holds in place of Theorems 1 and 2: three experts, each along its own tasks, four runs at once."""
    random = np.random.default_rng(4)
    tasks, experts = random.integers(3, size=(2, 4, 4))
    pools = [draw_pool(3, num_features, seed=seed) for seed in range(4)]
    stacked = Pool(*(np.stack(leaves, axis=-1) for leaves in zip(*pools, strict=True)))
    computed = corrected.given_routes(stacked, num_samples, tasks, experts)
    for run, pool in enumerate(pools):
        models, own, rounds = np.zeros((1, 3, num_features)), np.zeros((1, 0)), []
        for t in range(4):
            n, m = tasks[t, run], experts[t, run]
            projectors = residual_projectors(complement_basis(pool.signals[n]), num_features - num_samples)
            own, models = (np.concatenate([each] * len(projectors)) for each in (own, models))
            learned = np.split(models[:, m], len(projectors))
            models[:, m] = np.concatenate(
                [pool.truths[n] + (each - pool.truths[n]) @ S for each, S in zip(learned, projectors, strict=True)]
            )
            errors = np.sum((models[:, experts[: t + 1, run]] - pool.truths[tasks[: t + 1, run]]) ** 2, axis=2)
            forgetting = np.mean(errors[:, :-1] - own) if t else 0.0
            own = np.hstack([own, errors[:, -1:]])
            rounds.append((forgetting, np.mean(errors), np.mean(errors[:, -1])))
        np.testing.assert_allclose([leaf[:, run] for leaf in computed], np.transpose(rounds), rtol=1e-11, atol=1e-11)
    refuse("num_rounds", corrected.given_routes, stacked, num_samples, tasks[:0], experts[:0])


@loop_over("formula", [corrected.single_expert, corrected.single_expert_gaussian])
def test_what_cannot_be_run_is_refused(formula):
    pool = draw_pool(3, 5)
    for num_samples in (0, 5):
        refuse("num_samples", formula, pool, num_samples, 10)
    refuse("num_rounds", formula, pool, 2, 0)


def test_a_zero_signal_is_refused():
    pool = draw_pool(3, 5)
    with pytest.raises(InvalidValueError, match=r"signals\[1\]"):
        corrected.single_expert(pool._replace(signals=pool.signals * np.array([[1.0], [0.0], [1.0]])), 2, 10)


def test_two_experts_are_routed_by_the_triangular_distribution():
    leads = np.linspace(-1.5, 1.5, 31)  # (h_1 - h_2) / lambda
    inside = 0.5 + np.abs(leads) - leads**2 / 2
    upper = np.where(np.abs(leads) < 1, inside, 1.0)
    expected = np.where(leads >= 0, upper, 1 - upper)
    outputs = 0.3 * np.stack([leads, np.zeros_like(leads)], axis=1)
    np.testing.assert_allclose(corrected.routing_probabilities(outputs, 0.3)[:, 0], expected, atol=1e-12)


def test_routing_probabilities_are_the_frequencies_of_the_router():
    outputs, scale, count = np.array([0.0, 0.1, -0.2, 0.25]), 0.5, 200_000
    perturbed = outputs + scale * np.random.default_rng(1).uniform(size=(count, 4))
    frequencies = np.bincount(perturbed.argmax(axis=1), minlength=4) / count
    expected = corrected.routing_probabilities(outputs, scale)
    assert np.all(np.abs(frequencies - expected) < 6 * np.sqrt(0.25 / count))


def test_a_probability_moves_by_at_most_the_sharp_constant_and_by_that_at_equal_outputs():
    scale, step = 0.4, 1e-6

    def steepness(outputs):  # sum_j |dp_1/dh_j| by central differences
        moves = step * np.eye(len(outputs))
        slopes = corrected.routing_probabilities(outputs + moves, scale) - corrected.routing_probabilities(
            outputs - moves, scale
        )
        return np.abs(slopes[:, 0]).sum() / (2 * step)

    rng = np.random.default_rng(2)
    bound = corrected.lemma_2(scale)
    assert max(steepness(scale * rng.uniform(-0.7, 0.7, size=5)) for _ in range(50)) <= bound * (1 + 1e-6)
    for num_experts in (3, 5, 9):
        assert steepness(np.zeros(num_experts)) == pytest.approx(bound, rel=1e-4)


@loop_over(("num_sets", "num_experts"), [(2, 2), (3, 3), (3, 5), (4, 6)])
def test_coverage_by_counting_every_assignment(num_sets, num_experts):
    """Would catch a sign in inclusion and exclusion, and says which of the two bounds is one."""
    assignments = list(itertools.product(range(num_sets), repeat=num_experts))
    counted = sum(len(set(assignment)) == num_sets for assignment in assignments) / len(assignments)
    assert corrected.coverage_probability(num_sets, num_experts) == pytest.approx(counted)
    empty_once = sum(0 not in assignment for assignment in assignments) / len(assignments)
    assert corrected.lemma_11(num_sets, num_experts) == pytest.approx(1 - num_sets * empty_once)
    assert theory.lemma_11(num_sets, num_experts) == pytest.approx((1 - empty_once) ** num_sets)
    assert corrected.lemma_11(num_sets, num_experts) <= counted < theory.lemma_11(num_sets, num_experts)


def test_a_step_leaves_what_is_expected_of_it():
    """Would catch a contraction of the signal's direction, or the learned task's own part left out."""
    rng = np.random.default_rng(5)
    expert, truth, signal = rng.normal(size=(3, 6))
    others = np.concatenate([rng.normal(size=(2, 6)), truth[None]])
    features = rng.normal(size=(8000, 6, 3))
    features[:, :, 0] = signal
    change = jax.vmap(minimum_norm_change, in_axes=(0, None))(jnp.asarray(features), jnp.asarray(truth - expert)[None])
    after = expert + np.asarray(change, float)[:, 0]
    observed = np.mean(np.sum((after[:, None] - others[None]) ** 2, axis=2), axis=0)
    expected = corrected.lemma_16(*map(jnp.asarray, (expert, truth, signal, others)), num_samples=3)
    np.testing.assert_allclose(observed, expected, rtol=0.05)


@loop_over("num_experts", [2, 3, 6])
def test_a_span_moves_routes_by_no_first_order_of_the_noise(num_experts):
    """Would catch a bound that leaves out an expert or a half: both signs of the noise, 4,000 draws."""
    random, scale, samples = np.random.default_rng(num_experts), 0.3, 3
    gates = random.normal(size=(num_experts, 4)) * 0.02
    gates -= gates.mean(axis=0)
    signal, found = random.normal(size=4), []
    for noise_scale in (0.1, 0.2):
        noise = noise_scale * random.normal(size=(4000, samples - 1, 4)).sum(axis=1)
        ahead, behind = (corrected.routing_probabilities((signal + sign * noise) @ gates.T, scale) for sign in (1, -1))
        given = (ahead + behind) / 2
        tilt = np.abs(given - given.mean(axis=0)).sum(axis=1).mean() / 2
        seen = np.abs(ahead - given.mean(axis=0)).sum(axis=1).mean() / 2
        assert 0 < tilt < corrected.route_tilt(gates, noise_scale, scale, samples)
        found.append((tilt, seen))
    assert 3 < found[1][0] / found[0][0] < 5  # of second order
    assert 1.7 < found[1][1] / found[0][1] < 2.3  # what is seen without the other sign is of first order


def test_a_tilt_is_refused_for_gates_that_are_not_the_algorithms():
    with pytest.raises(InvalidValueError, match="add up to 0"):
        corrected.route_tilt(np.ones((2, 3)), 0.1, 1.0, 2)
