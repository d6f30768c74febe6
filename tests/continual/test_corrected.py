"""What holds in place of false statements, computed another way; the exact moments against complete enumeration.

Rounds are independent, so averaging over every sequence of tasks and lines gives the expectations to rounding.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.continual import corrected, theory
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.linear import minimum_norm_change
from moe_theory.core.tasks import Pool
from tests.continual.designs import DESIGNS, complement_basis, draw_pool, residual_projectors


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


@pytest.mark.parametrize("kind", ["proportional", "independent"])
@pytest.mark.parametrize(
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


def test_the_lines_are_a_design():
    """Second and fourth moments of a uniform direction: 1/D, and 3/(D(D+2)) and 1/(D(D+2)) for pairs of axes."""
    for dimension, lines in DESIGNS.items():
        np.testing.assert_allclose(lines.T @ lines / len(lines), np.eye(dimension) / dimension, atol=1e-15)
        for axes in itertools.product(range(dimension), repeat=4):
            pairings = sum(axes[0] == axes[i] and axes[j] == axes[k] for i, j, k in [(1, 2, 3), (2, 1, 3), (3, 1, 2)])
            moment = np.mean(np.prod(lines[:, axes], axis=1))
            assert moment == pytest.approx(pairings / (dimension * (dimension + 2)), abs=1e-15)


def test_long_runs_forget_what_proposition_4_says_they_do_not():
    pool = draw_pool(5, 8)
    ratio, pool_gaps = theory.overparameterization_ratio(8, 6), theory.gaps(pool)
    computed = corrected.single_expert_gaussian(pool, 6, 5000)
    printed = theory.proposition_4(pool_gaps, ratio, np.arange(1, 5001))
    assert computed.forgetting[-1] == pytest.approx((1 - ratio) * pool_gaps.task_gap, rel=1e-3)
    assert abs(printed.forgetting[-1]) < 1e-3 * computed.forgetting[-1]
    np.testing.assert_allclose(printed.generalization_error[-1], computed.generalization_error[-1], rtol=1e-3)


@pytest.mark.parametrize(("num_features", "num_samples"), [(2, 1), (3, 1), (3, 2), (4, 1), (4, 3)])
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
    with pytest.raises(InvalidValueError, match="count from 0"):
        corrected.given_routes(stacked, num_samples, tasks, experts - 1)
    with pytest.raises(InvalidValueError, match="num_rounds=0"):
        corrected.given_routes(stacked, num_samples, tasks[:0], experts[:0])


@pytest.mark.parametrize("formula", [corrected.single_expert, corrected.single_expert_gaussian])
def test_what_cannot_be_run_is_refused(formula):
    pool = draw_pool(3, 5)
    for num_samples in (0, 5):
        with pytest.raises(InvalidValueError, match="num_samples"):
            formula(pool, num_samples, 10)
    with pytest.raises(InvalidValueError, match="num_rounds=0"):
        formula(pool, 2, 0)


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


@pytest.mark.parametrize("num_experts", [2, 3, 7, 10])
def test_routing_probabilities_sum_to_one_and_know_no_common_shift(num_experts):
    outputs = np.random.default_rng(0).normal(size=(40, num_experts))
    probabilities = corrected.routing_probabilities(outputs, 1.3)
    np.testing.assert_allclose(probabilities.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(corrected.routing_probabilities(outputs + 5, 1.3), probabilities, atol=1e-12)


def test_equal_outputs_share_and_a_lead_of_lambda_takes_all():
    np.testing.assert_allclose(corrected.routing_probabilities(np.zeros(3), 0.2), np.full(3, 1 / 3), atol=1e-14)
    np.testing.assert_allclose(corrected.routing_probabilities(np.array([0.0, 0.2, 0.0]), 0.2), [0, 1, 0], atol=1e-14)


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


@pytest.mark.parametrize(("num_sets", "num_experts"), [(2, 2), (3, 3), (3, 5), (4, 6)])
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
    features = rng.normal(size=(20_000, 6, 3))
    features[:, :, 0] = signal
    change = jax.vmap(minimum_norm_change, in_axes=(0, None))(jnp.asarray(features), jnp.asarray(truth - expert)[None])
    after = expert + np.asarray(change, float)[:, 0]
    observed = np.mean(np.sum((after[:, None] - others[None]) ** 2, axis=2), axis=0)
    expected = corrected.lemma_16(*map(jnp.asarray, (expert, truth, signal, others)), num_samples=3)
    np.testing.assert_allclose(observed, expected, rtol=0.05)


@pytest.mark.parametrize("num_experts", [2, 3, 6])
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


def test_a_tilt_is_refused_without_perturbation_or_for_gates_that_are_not_the_algorithms():
    with pytest.raises(InvalidValueError, match="perturbation_scale=0"):
        corrected.route_tilt(np.zeros((2, 3)), 0.1, 0, 2)
    with pytest.raises(InvalidValueError, match="add up to 0"):
        corrected.route_tilt(np.ones((2, 3)), 0.1, 1.0, 2)
