"""The closed forms against the papers' double sums, taken literally over simulated routes."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.continual import corrected, theory
from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.core.tasks import Pool

FORMS = {
    "printed": theory.theorem_2,
    "appendix": functools.partial(theory.theorem_2, form="appendix"),
    "corrected": corrected.theorem_2,
}
GAPS = theory.Gaps(*np.array([1.7, 2.9, 0.3, 3.1]))


def draw_pool(num_tasks=7, num_features=4, clusters=(0, 1, 2, 0, 1, 2, 0), seed=0):
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


@pytest.mark.parametrize("clusters", [(0, 1, 2, 0, 1, 2, 0), (0,) * 7, tuple(range(7)), (6, 6, 2, 2, 2, 0, 6)])
def test_gaps_are_the_literal_double_sums(clusters):
    pool = draw_pool(clusters=clusters)
    np.testing.assert_allclose(theory.gaps(pool), literal_gaps(pool), rtol=1e-13)


def test_gaps_take_a_traced_number_of_clusters():
    host_pool = draw_pool()

    def gaps_of(num_clusters):
        clusters = jnp.arange(7) % num_clusters
        return theory.gaps(Pool(jnp.asarray(host_pool.truths), jnp.asarray(host_pool.signals), clusters))

    traced = jax.jit(jax.vmap(gaps_of))(jnp.arange(1, 8))
    for index, num_clusters in enumerate(range(1, 8)):
        expected = literal_gaps(host_pool._replace(clusters=np.arange(7) % num_clusters))
        np.testing.assert_allclose([leaf[index] for leaf in traced], expected, rtol=1e-5, atol=1e-6)


def test_gaps_of_identical_clusters_vanish_within():
    pool = draw_pool()
    pool = pool._replace(truths=pool.truths[pool.clusters])
    assert theory.gaps(pool).within_gap == 0
    assert theory.gaps(pool).task_gap > 0


@pytest.mark.parametrize("ratio", [0.02, 0.4, 0.97])
def test_proposition_4_is_the_sum_over_rounds(ratio):
    """(17) and (18), round by round."""
    rounds = np.array([2, 3, 10, 57])
    bound = theory.proposition_4(GAPS, ratio, rounds)
    for index, t in enumerate(rounds.tolist()):
        routed_to_one = Loads(np.zeros(t, int), 1)
        np.testing.assert_allclose(bound.forgetting[index], literal_19(GAPS, ratio, routed_to_one, t), rtol=1e-12)
        error = ratio**t * GAPS.truth_norm + (1 - ratio**t) * GAPS.task_gap
        np.testing.assert_allclose(bound.generalization_error[index], error, rtol=1e-13)


@pytest.mark.parametrize("ratio", [0.3, 0.95])
@pytest.mark.parametrize(("t", "explored"), [(2, 20), (20, 20), (21, 20), (60, 20), (60, 1), (60, 59)])
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


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("ratio", [0.3, 0.95])
@pytest.mark.parametrize(("t", "explored"), [(21, 20), (60, 20), (60, 1), (60, 59)])
def test_theorem_2_is_the_sum_over_routes(form, ratio, t, explored):
    loads = Loads(draw_routes(6, 60, seed=t + explored), 6)
    bound = FORMS[form](GAPS, ratio, loads.table[t], loads.table[explored], t)
    np.testing.assert_allclose(bound.forgetting, literal_21(GAPS, ratio, loads, t, explored, form), rtol=1e-10)
    np.testing.assert_allclose(
        bound.generalization_error, literal_22(GAPS, ratio, loads, t, explored, form), rtol=1e-10
    )


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("t", [1, 2, 30])
def test_theorem_2_is_theorem_1_while_exploring(form, t):
    loads = Loads(draw_routes(6, 30, seed=3), 6).table[t]
    expected = theory.theorem_1(GAPS, 0.4, loads, loads, t)
    np.testing.assert_allclose(FORMS[form](GAPS, 0.4, loads, loads, t), expected, rtol=1e-12, atol=1e-15)


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


@pytest.mark.parametrize("form", FORMS)
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


@pytest.mark.parametrize(("num_features", "num_samples"), [(5, 5), (5, 6), (5, 0), (1, 1)])
def test_ratios_refuse_what_is_not_overparameterized(num_features, num_samples):
    for ratio in (theory.overparameterization_ratio, theory.error_contraction):
        with pytest.raises(InvalidValueError, match=f"num_samples={num_samples}"):
            ratio(num_features, num_samples)


def test_an_unknown_form_suggests_a_known_one():
    with pytest.raises(UnknownNameError, match="appendix"):
        theory.theorem_2(GAPS, 0.4, np.ones(2), np.ones(2), 2, form="appendx")


@pytest.mark.parametrize("num_experts", [1, 3, 5, 7, 10, 20, 50])
@pytest.mark.parametrize("hundredths", [1, 3, 7, 10, 15, 30, 35, 50, 70, 90, 100])
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
