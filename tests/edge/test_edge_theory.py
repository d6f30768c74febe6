"""The closed forms of `edge` against literal sums over histories, counted sequences and clouds of points."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats
from scipy.stats import qmc

from moe_theory.continual import exact as continual_exact
from moe_theory.core import single_expert
from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.core.tasks import Pool
from moe_theory.edge import corrected, theory
from tests.continual.cases import loop_over, refuse

GAPS = theory.Gaps(*np.array([1.7, 2.9, 0.3, 2.9]))
FORMULAS = (theory.proposition_4, corrected.proposition_4)
ONE_SIGMA = float(stats.norm.sf(1.0))
WINDOWS = [(1, 2), (4, 3), (10, 10), (25, 6)]  # (max_delay, num_tasks)


def draw_pool(num_tasks=4, num_features=3, seed=0):
    truths, signals = np.random.default_rng(seed).normal(size=(2, num_tasks, num_features))
    return Pool(truths, signals, np.arange(num_tasks))


def draw_routes(num_experts, num_rounds, seed=0):
    return np.random.default_rng(seed).integers(num_experts, size=num_rounds)


def count(routes, num_experts):
    return np.bincount(routes, minlength=num_experts)


def literal_34(routes, ratio, own_gap):
    """Mean over tasks of (34): every arrival at the same expert, in order, with the weight its projection leaves it."""
    total = 0.0
    for task, expert in enumerate(routes):
        arrivals = np.flatnonzero(routes == expert)
        total += ratio ** len(arrivals) * GAPS.truth_norm
        for position, arrival in enumerate(arrivals, start=1):
            gap = own_gap if arrival == task else GAPS.task_gap
            total += (1 - ratio) * ratio ** (len(arrivals) - position) * gap
    return total / len(routes)


def literal_23(routes, explored, ratio, floor):
    """The two sums of (23) task by task, loads counted from the routes."""
    total = 0.0
    for expert in routes:
        load, explored_load = np.sum(routes == expert), np.sum(routes[:explored] == expert)
        total += ratio**load * GAPS.truth_norm
        total += (1 - ratio**explored_load) * ratio ** (load - explored_load) * GAPS.task_gap
    return total / len(routes) + floor


def literal_tail(max_delay, num_tasks, at_least):
    chance = Fraction(1, num_tasks)
    return sum(
        math.comb(max_delay, k) * chance**k * (1 - chance) ** (max_delay - k) for k in range(at_least, max_delay + 1)
    )


@loop_over("spread", [0.0, 0.4])
def test_gaps_are_means_over_arrivals_with_own_truths(spread):
    """Catches a wrong multiple of p tau^2, and a task gap that leaves out two arrivals of one task."""
    pool = draw_pool()
    num_features = pool.truths.shape[1]
    # These points have the mean 0 and the covariance tau^2 I of the own truths, which is all that distances see.
    offsets = spread * np.sqrt(num_features) * np.concatenate([np.eye(num_features), -np.eye(num_features)])
    own = pool.truths[:, None] + offsets
    flat = own.reshape(-1, num_features)
    squared = np.sum((flat[:, None] - flat[None]) ** 2, axis=-1)
    within = [np.mean(np.sum((points[:, None] - points[None]) ** 2, axis=-1)) for points in own]
    expected = theory.Gaps(np.mean(np.sum(flat**2, axis=1)), np.mean(squared), np.mean(within), np.mean(squared))
    np.testing.assert_allclose(theory.gaps(pool, spread), expected, rtol=1e-13, atol=1e-13)


def test_gaps_take_every_task_as_its_own_cluster_and_traced_values():
    """Catches cluster labels that leak into the gaps, and a spread that cannot be traced."""
    pool = draw_pool()
    merged = pool._replace(clusters=np.zeros(4, int))
    np.testing.assert_array_equal(theory.gaps(merged, 0.3), theory.gaps(pool, 0.3))
    traced = jax.jit(lambda spread: theory.gaps(Pool(*map(jnp.asarray, pool)), spread))(0.3)
    np.testing.assert_allclose(traced, theory.gaps(pool, 0.3), rtol=1e-5)


def test_the_normal_quantile_by_hand():
    """Catches a variance or quantile of (16) that is off: at one sigma, 16 rounds and 2 tasks give 8 + sqrt(4)."""
    assert theory.specialists_needed(16, 2, ONE_SIGMA) == pytest.approx(10.0)
    assert theory.specialists_needed(16, 2, 0.5) == pytest.approx(8.0)
    assert theory.specialists_needed(7, 1, 0.01) == pytest.approx(7.0)


@pytest.mark.parametrize(("max_delay", "num_tasks"), WINDOWS)
@pytest.mark.parametrize("failure", [0.3, 0.05, 1e-4])
def test_the_binomial_quantile_is_the_smallest_that_suffices(max_delay, num_tasks, failure):
    """Catches the wrong tail (A_n >= k for A_n > k) and a number that is one too large."""
    specialists = theory.specialists_needed(max_delay, num_tasks, failure, "binomial")
    assert isinstance(specialists, int)
    assert literal_tail(max_delay, num_tasks, specialists + 1) < failure
    assert specialists == 0 or literal_tail(max_delay, num_tasks, specialists) >= failure


@loop_over(("max_delay", "num_tasks"), WINDOWS)
def test_the_tail_is_the_exact_sum_of_binomial_terms(max_delay, num_tasks):
    """Catches a tail that counts A_n = specialists, or rounds a real number of specialists up."""
    for specialists in range(max_delay + 1):
        expected = pytest.approx(float(literal_tail(max_delay, num_tasks, specialists + 1)), rel=1e-9, abs=1e-300)
        assert theory.tail(max_delay, num_tasks, specialists) == expected
        assert theory.tail(max_delay, num_tasks, specialists + 0.7) == expected


@loop_over(("max_delay", "num_tasks"), [(1, 2), (2, 3), (4, 2), (5, 3)])
@loop_over("specialists", [1, 2, 3])
def test_unserved_counts_the_sequences_in_which_a_task_finds_nobody(max_delay, num_tasks, specialists):
    """Catches a window that is a round too long, from servers that really are busy for max_delay rounds."""
    missed, served_by_the_window = 0, True
    sequences = list(itertools.product(range(num_tasks), repeat=max_delay - 1))
    for earlier in sequences:
        idle_from = [0] * specialists
        found = False
        for round, kind in enumerate((*earlier, 0)):
            server = next((i for i, start in enumerate(idle_from) if start <= round), None)
            found = server is not None
            if kind == 0 and server is not None:
                idle_from[server] = round + max_delay
        missed += not found
        served_by_the_window &= found or earlier.count(0) + 1 > specialists
    assert corrected.unserved(max_delay, num_tasks, specialists) == pytest.approx(missed / len(sequences))
    assert served_by_the_window, "A_n <= M_th, the new arrival included, must be enough"
    assert corrected.unserved(max_delay, num_tasks, specialists) >= theory.tail(max_delay, num_tasks, specialists)


@loop_over("quantile", theory.QUANTILES)
@loop_over(("max_delay", "num_tasks"), WINDOWS)
@loop_over("failure", [0.3, 0.05, 1e-4])
def test_the_chernoff_rule_gives_the_smallest_number_that_satisfies_it(quantile, max_delay, num_tasks, failure):
    """Catches the wrong root of the quadratic, and an M that is one off."""
    needed = num_tasks * max(theory.specialists_needed(max_delay, num_tasks, failure, quantile), 0)

    def suffices(experts):
        return experts > needed and math.exp(-((1 - needed / experts) ** 2) * experts / (2 * num_tasks)) < failure

    smallest = next(experts for experts in itertools.count(1) if suffices(experts))
    assert theory.experts_needed(max_delay, num_tasks, failure, quantile, "chernoff") == smallest


def test_the_stated_rule_by_hand():
    """Catches a lost factor: 2 tasks, M_th = 10 and ln(1/failure) of one sigma give 36.8."""
    assert theory.experts_needed(16, 2, ONE_SIGMA) == math.ceil(20 * math.log(1 / ONE_SIGMA)) == 37
    assert theory.experts_needed(1, 100, 0.9) == 1


def test_exploration_rounds_by_hand():
    """Catches a wrong power of sigma_0 or a lost delay: (1 / .5) * 4 * ln(e^2) + 7 = 23."""
    arguments = (1, 0.5, 1 / 16, math.exp(-2.0), 7)
    assert theory.exploration_rounds(*arguments) == 23
    traced = jax.jit(theory.exploration_rounds)(*arguments)
    assert traced == 23
    assert jnp.issubdtype(traced.dtype, jnp.integer)
    batch = theory.exploration_rounds(np.array([10, 50]), 0.2, 0.6, 0.05, 10)
    expected = [10 + math.ceil(5 * m / math.sqrt(0.6) * math.log(m / 0.05)) for m in (10, 50)]
    np.testing.assert_array_equal(batch, expected)


def test_exploration_rounds_saturate_with_their_delay():
    """Catches an integer overflow to a negative T1 where eta is tiny."""
    assert theory.exploration_rounds(50, 1e-12, 0.5, 0.05, 2**20) == theory.MAX_ROUNDS
    assert jax.jit(theory.exploration_rounds)(50, 1e-12, 0.5, 0.05, 2**20) == theory.MAX_ROUNDS


@loop_over("ratio", [0.05, 0.4, 0.97])
@loop_over(("num_experts", "num_rounds"), [(1, 1), (1, 30), (4, 3), (5, 60)])
def test_proposition_4_is_the_sum_over_the_history(ratio, num_experts, num_rounds):
    """Catches a wrong geometric sum, and an own-task term in the wrong form."""
    routes = draw_routes(num_experts, num_rounds)
    loads = count(routes, num_experts)
    printed = theory.proposition_4(GAPS, ratio, loads, num_rounds)
    right = corrected.proposition_4(GAPS, ratio, loads, num_rounds)
    np.testing.assert_allclose(printed, literal_34(routes, ratio, own_gap=GAPS.task_gap), rtol=1e-12)
    np.testing.assert_allclose(right, literal_34(routes, ratio, own_gap=0.0), rtol=1e-12, atol=1e-15)


def test_corrected_proposition_4_is_exact_for_one_expert_and_gaussian_columns():
    """Catches a correction that is off, against the exact moments of the other paper's setting."""
    pool = draw_pool(4, 6)
    expected = continual_exact.single_expert_gaussian(pool, 4, 40).generalization_error
    rounds = np.arange(1, 41)
    computed = corrected.proposition_4(theory.gaps(pool, 0.0), 1 - 4 / 6, rounds[:, None], rounds)
    np.testing.assert_allclose(computed, expected, rtol=1e-12)


@loop_over("ratio", [0.3, 0.95])
@loop_over("explored", [1, 20, 60])
def test_theorem_1_is_the_sum_over_the_history(ratio, explored):
    """Catches exponents of (23) that are mixed up, and a floor that is averaged or lost."""
    routes = draw_routes(6, 60, seed=explored)
    loads, explored_loads = count(routes, 6), count(routes[:explored], 6)
    computed = theory.theorem_1(GAPS, ratio, loads, explored_loads, 60, floor=0.25)
    np.testing.assert_allclose(computed, literal_23(routes, explored, ratio, 0.25), rtol=1e-12)


def test_padded_experts_leading_axes_and_traced_loads_change_nothing():
    """Catches an expert without arrivals that counts, and float32 traces that part from the host."""
    routes = draw_routes(3, 200)
    rounds = np.array([5, 40, 200])
    loads = np.array([[*count(routes[:t], 3), 0, 0] for t in rounds])
    explored = np.minimum(loads, loads[1])

    def bounds(pool_gaps, loads, explored, rounds):
        forms = [formula(pool_gaps, 0.4, loads, rounds) for formula in FORMULAS]
        return jnp.stack([*forms, theory.theorem_1(pool_gaps, 0.4, loads, explored, rounds)])

    expected = [[formula(GAPS, 0.4, row[:3], t) for row, t in zip(loads, rounds, strict=True)] for formula in FORMULAS]
    rows = zip(loads, explored, rounds, strict=True)
    expected.append([theory.theorem_1(GAPS, 0.4, row[:3], early[:3], t) for row, early, t in rows])
    traced_gaps = theory.Gaps(*map(jnp.float32, GAPS))
    traced = jax.jit(bounds)(traced_gaps, *map(jnp.asarray, (loads, explored, rounds)))
    assert traced.dtype == jnp.float32
    np.testing.assert_allclose(traced, expected, rtol=2e-5)
    np.testing.assert_allclose(theory.proposition_4(GAPS, 0.4, loads, rounds), expected[0], rtol=1e-13)


def test_unknown_names_are_refused():
    """Catches unknown names that pass silently."""
    refuse("quantile", theory.specialists_needed, 10, 10, 0.05, "binomal", kind=UnknownNameError)
    refuse("rule", theory.experts_needed, 10, 10, 0.05, rule="chernof", kind=UnknownNameError)


def cloud_pool(num_features, num_tasks, scale=1.0, seed=0):
    rng = np.random.default_rng([seed, num_features, num_tasks])
    truths, signals = scale * rng.normal(size=(2, num_tasks, num_features))
    return Pool(truths, signals, np.arange(num_tasks))


@loop_over("follows_truth", [False, True])
def test_without_spread_it_is_the_continual_papers_exact_error(follows_truth):
    """Catches a recursion that changes where own truths are the task's, and a g that is shifted by a round."""
    pool = cloud_pool(6, 4)
    signals = pool.truths if follows_truth else pool.signals
    expected = continual_exact.single_expert(pool._replace(signals=signals), 4, 30).generalization_error
    computed = corrected.generalization_error(pool, 4, 30, 0.0, follows_truth)
    assert computed[0] == 0
    np.testing.assert_allclose(computed[1:], expected, rtol=1e-12, atol=1e-14)


@loop_over("num_samples", [1, 3, 4])
def test_fixed_signals_see_only_the_covariance_of_own_truths(num_samples):
    """Catches a misplaced tau^2: points w_n +- tau sqrt(d) e_i, as tasks of their own, have the same two moments."""
    pool, spread = cloud_pool(5, 3), 0.8
    offsets = spread * np.sqrt(5) * np.concatenate([np.eye(5), -np.eye(5)])
    points = (pool.truths[:, None] + offsets).reshape(-1, 5)
    signals = np.repeat(pool.signals, 10, axis=0)
    expected = single_expert.single_expert(points, signals, num_samples, 25)
    computed = single_expert.single_expert(pool.truths, pool.signals, num_samples, 25, spread)
    np.testing.assert_allclose(computed, expected, rtol=1e-11, atol=1e-12)


@loop_over("spread", [0.1, 0.7, 3.0])
def test_signals_along_truths_are_the_limit_of_many_tasks(spread):
    """Catches a wrong mean over own truths, against a symmetric Sobol cloud of 2 x 4096 tasks with fixed signals."""
    pool = cloud_pool(5, 2)
    cloud = qmc.MultivariateNormalQMC(np.zeros(5), rng=np.random.default_rng(3)).random(4096)
    cloud = np.concatenate([cloud, -cloud])
    cloud = cloud @ np.linalg.inv(np.linalg.cholesky(cloud.T @ cloud / len(cloud))).T
    points = (pool.truths[:, None] + spread * cloud).reshape(-1, 5)
    expected = single_expert.single_expert(points, points, 3, 100)
    computed = single_expert.learn_arrivals(single_expert.signals_along_truths(pool.truths, spread), 3, 100)
    np.testing.assert_allclose(computed, expected, rtol=1e-3, atol=1e-12)


def test_a_vanishing_spread_is_continuous():
    """Catches a jump between the Poisson sum, its limit for large means, and the case without spread."""
    pool = cloud_pool(6, 3)
    length = np.max(np.linalg.norm(pool.truths, axis=1))
    edge_of_sum = length / np.sqrt(2 * single_expert.CERTAIN_POISSON_MEAN)

    def errors(spread):
        return corrected.generalization_error(pool, 4, 30, spread, follows_truth=True)

    np.testing.assert_allclose(errors(edge_of_sum * 0.999999), errors(edge_of_sum * 1.000001), rtol=1e-7, atol=1e-9)
    for spread in (1e-9, 1e-200):
        np.testing.assert_allclose(errors(spread), errors(0.0), rtol=1e-6, atol=1e-12)


def test_centres_without_length_are_learned_in_both_forms():
    """Catches a division by the length of a truth that is 0."""
    pool = cloud_pool(4, 2)._replace(truths=np.zeros((2, 4)))
    first = corrected.generalization_error(pool, 2, 1, 0.5, follows_truth=True)[1]
    assert first == pytest.approx(0, abs=1e-15), "a signal along the own truth is learned at once"
    # Of 4 coordinates of variance 1/4, the fixed signal's is learned and 2 of the other 3 stay.
    second = corrected.generalization_error(pool, 2, 1, 0.5, follows_truth=False)[1]
    assert second == pytest.approx(2.0 * 0.25)


def test_loads_weigh_the_errors_literally():
    """Catches a sum over experts in place of tasks, padding that counts, and an empty network that divides by 0."""
    errors = np.array([0.0, 5.0, 3.0, 2.0])
    assert corrected.by_loads(errors, np.array([3, 1, 0])) == pytest.approx((3 * 2.0 + 5.0) / 4)
    assert corrected.by_loads(errors, np.array([0, 0])) == 0
    stacked = corrected.by_loads(errors, np.array([[3, 1, 0], [2.0, 2.0, 1.0]]))
    np.testing.assert_allclose(stacked, [11 / 4, (6 + 6 + 5) / 5])
    loads = jnp.array([[3, 1, 0], [4, 0, 0]])
    for traced in (corrected.by_loads, lambda _, loads: corrected.by_loads(errors, loads)):  # and a table of NumPy
        np.testing.assert_allclose(jax.jit(traced)(jnp.asarray(errors), loads), [11 / 4, np.nan], rtol=1e-6)


def test_what_cannot_be_computed_is_refused():
    """Catches loads beyond g that silently take its last value, and settings that give nan."""
    pool = cloud_pool(5, 3)
    refuse("loads", corrected.by_loads, np.zeros(4), np.array([4, 0]))
    refuse("num_samples", corrected.generalization_error, pool, 5, 5, 0.1, follows_truth=True)
    zero = pool._replace(truths=0 * pool.truths, signals=0 * pool.signals)
    with pytest.raises(InvalidValueError, match=r"signals\[0\]"):
        corrected.generalization_error(zero, 2, 5, 0.1, follows_truth=False)
    with pytest.raises(InvalidValueError, match="is zero"):
        corrected.generalization_error(zero, 2, 5, 0.0, follows_truth=True)


def test_theorem_1_with_early_tasks_is_its_sum_over_tasks():
    """Would catch an early task that fades, or a late one that keeps the error of blind routing."""
    gaps = theory.Gaps(np.float64(5.0), np.float64(9.0), np.float64(0.5), np.float64(9.0))
    loads, explored, ratio = np.array([7.0, 3.0, 0.0]), np.array([2.0, 3.0, 0.0]), 1 / 3
    expected = 0.0
    for load, early in zip(loads, explored, strict=True):
        for arrival in range(int(load)):
            if arrival < early:
                expected += ratio**load * 5.0 + (1 - ratio**load) * 9.0
            else:
                expected += 0.5 + ratio ** (load - early) * 9.0
    bound = corrected.theorem_1(gaps, ratio, loads, explored, 10, 0.5)
    assert bound == pytest.approx(expected / 10)


def test_along_routes_a_task_that_nobody_gets_counts_nowhere():
    """Guards what holds in place of Theorem 1, whose exact moments `tests/continual/test_theory.py` has: catches own
    truths or signals of another arrival, and a dropped task that is learned or counted."""
    random = np.random.default_rng(2)
    tasks, experts = random.integers(3, size=(2, 8, 5))
    pools = [cloud_pool(4, 3, seed=seed) for seed in range(5)]
    truths, signals = (np.stack([getattr(pool, name) for pool in pools], axis=-1) for name in ("truths", "signals"))
    own = np.moveaxis(truths, 1, 0)[:, tasks, np.arange(5)].swapaxes(0, 1)
    assert own.shape == (8, 4, 5)
    for follows_truth in (False, True):
        stacked = Pool(truths, truths if follows_truth else signals, np.tile(np.arange(3)[:, None], 5))
        expected = continual_exact.given_routes(stacked, 2, tasks, experts).generalization_error
        computed = corrected.given_routes(own, signals, 2, tasks, experts, follows_truth)
        np.testing.assert_allclose(computed, expected, rtol=1e-12)
        with_dropped = [np.insert(part, 3, filler, axis=0) for part, filler in ((own, 7.0), (tasks, 1), (experts, -1))]
        more = corrected.given_routes(with_dropped[0], signals, 2, *with_dropped[1:], follows_truth)
        np.testing.assert_array_equal(np.delete(more, 3, axis=0), computed)
        np.testing.assert_array_equal(more[3], more[2])
