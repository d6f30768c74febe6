"""Rademacher complexities against loops over signs, other routes and Monte Carlo; margins are for a failure in 1e7."""

import itertools
import math

import numpy as np
import pytest

from moe_theory.core.errors import InvalidDimsError, InvalidParamsError
from moe_theory.generalization import Dims, Params, complexity, corrected

ERRORS = 5.5  # standard errors that many draws may be off by
ERRORS_OF_FEW = 7.5  # with a standard error that comes from 60 draws


def all_signs(num_samples: int) -> list[tuple[int, ...]]:
    return list(itertools.product((-1, 1), repeat=num_samples))


def random_shapes(seed: int, most_samples: int) -> list[tuple[int, int, float]]:
    generator = np.random.default_rng(seed)
    return [
        (int(generator.integers(1, most_samples + 1)), int(generator.integers(1, 30)), float(generator.uniform(0.1, 9)))
        for _ in range(20)
    ]


@pytest.mark.parametrize(("num_samples", "num_features", "radius"), random_shapes(1, 200))
def test_gaussian_inputs_have_the_closed_form(num_samples: int, num_features: int, radius: float) -> None:
    """The closed form is the mean over samples; each of 60 samples is given signs of its own."""
    generator = np.random.default_rng(num_samples)
    values = []
    for seed in range(60):
        features = generator.normal(0, 1.7, (num_samples, num_features))
        values.append(complexity.linear_ball_monte_carlo(features, radius, 8, seed).value)
    expected = complexity.linear_ball_gaussian(num_samples, num_features, radius, 1.7)
    assert abs(np.mean(values) - expected) <= ERRORS_OF_FEW * np.std(values, ddof=1) / math.sqrt(len(values))


@pytest.mark.parametrize(("num_samples", "num_features", "radius"), random_shapes(2, 12))
def test_enumeration_is_within_the_error_of_monte_carlo(num_samples: int, num_features: int, radius: float) -> None:
    features = np.random.default_rng(num_features).normal(size=(num_samples, num_features))
    exact = complexity.linear_ball_exact(features, radius)
    drawn = complexity.linear_ball_monte_carlo(features, radius, 4000, seed=3)
    bound = complexity.linear_ball(features, radius)
    assert (exact.kind, drawn.kind, drawn.draws, exact.draws) == ("exact", "Monte Carlo", 4000, 2**num_samples)
    assert abs(drawn.value - exact.value) <= ERRORS * drawn.error + 1e-12
    assert bound.value / math.sqrt(2) - 1e-12 <= exact.value <= bound.value + 1e-12


def test_enumeration_is_the_mean_of_quadratic_forms() -> None:
    features = np.random.default_rng(4).normal(size=(7, 3))
    gram = features @ features.T
    lengths = [math.sqrt(np.array(signs) @ gram @ np.array(signs)) for signs in all_signs(7)]
    assert complexity.linear_ball_exact(features, 2.5).value == pytest.approx(2.5 * np.mean(lengths) / 7, rel=1e-12)


def orthogonal(num_samples: int) -> np.ndarray:
    generator = np.random.default_rng(5)
    return (np.linalg.qr(generator.normal(size=(5, 5)))[0] * generator.uniform(0.5, 2, (5, 1)))[:num_samples]


@pytest.mark.parametrize(
    ("features", "kind"),
    [
        (np.ones((1, 4)), "exact"),
        (np.zeros((3, 2)), "exact"),
        (orthogonal(4), "exact"),
        (np.vstack([orthogonal(5), np.zeros((2, 5))]), "exact"),
        (orthogonal(4) + 0.1, "upper bound"),
        (np.vstack([orthogonal(5), orthogonal(4)]), "upper bound"),
    ],
)
def test_orthogonal_inputs_attain_the_upper_bound(features: np.ndarray, kind: str) -> None:
    """An input of zeros adds nothing. In five dimensions nine inputs cannot be orthogonal."""
    bound, exact = complexity.linear_ball(features, 3.0), complexity.linear_ball_exact(features, 3.0)
    assert (bound.kind, bound.error) == (kind, 0.0)
    assert (bound.value == pytest.approx(exact.value, rel=1e-12)) == (kind == "exact")


@pytest.mark.parametrize("num_samples", range(1, 12))
def test_constants_are_the_mean_length_of_a_walk(num_samples: int) -> None:
    mean = np.mean([abs(sum(signs)) / num_samples for signs in all_signs(num_samples)])
    assert complexity.constants(num_samples) == pytest.approx(mean, rel=1e-14)


@pytest.mark.parametrize("num_samples", [150, 199, 200, 201, 1001, 5000])
def test_constants_of_many_samples_are_whole_number_arithmetic(num_samples: int) -> None:
    half = -(-num_samples // 2)
    expected = 2 * half * math.comb(2 * half, half) / 4**half / num_samples
    assert complexity.constants(num_samples) == pytest.approx(expected, rel=1e-14)


@pytest.mark.parametrize("num_samples", [10**6, 10**9 + 1, 10**12])
def test_constants_keep_their_digits_at_any_size(num_samples: int) -> None:
    """Gamma(n + 1/2) / Gamma(n) lies between the roots of n - 1/4 and n - 1/4 + 1/(32n) + O(1/n^2)."""
    half = -(-num_samples // 2)
    low, high = (2 * math.sqrt((half - 0.25 + more / half) / math.pi) / num_samples for more in (0, 1 / 16))
    assert low * (1 - 1e-15) <= complexity.constants(num_samples) <= high * (1 + 1e-15)


def test_gaussian_lengths_are_products_of_their_neighbours() -> None:
    """E|g_d| E|g_{d+1}| = d, on both sides of where the series takes over."""
    lengths = [complexity.linear_ball_gaussian(1, d, 1.0) for d in range(1, 400)]
    products = np.array(lengths[:-1]) * lengths[1:]
    np.testing.assert_allclose(products, np.arange(1, 399), rtol=1e-13)
    assert lengths[0] == pytest.approx(math.sqrt(2 / math.pi), rel=1e-14)


@pytest.mark.parametrize("num_active", [1, 2, 4])
def test_a_fixed_router_is_a_loop_over_signs_and_experts(num_active: int) -> None:
    generator = np.random.default_rng(num_active)
    num_samples, num_experts = 8, 4
    features, gates = generator.normal(size=(num_samples, 3)), np.zeros((num_samples, num_experts))
    for row in gates:
        row[generator.permutation(num_experts)[:num_active]] = generator.dirichlet(np.ones(num_active))
    total = 0.0
    for signs in all_signs(num_samples):
        for expert in range(num_experts):
            total += np.linalg.norm(sum(signs[i] * gates[i, expert] * features[i] for i in range(num_samples)))
    estimate = complexity.fixed_router(gates, features, 1.5)
    assert (estimate.kind, estimate.error) == ("exact", 0.0)
    assert estimate.value == pytest.approx(1.5 * total / num_samples / 2**num_samples, rel=1e-12)
    square = np.mean(np.sum(gates**2, axis=1))
    largest = np.max(np.linalg.norm(features, axis=1))
    assert estimate.value <= corrected.fixed_router_complexity(num_experts, num_samples, square, 1.5, largest)


def test_a_fixed_router_of_many_samples_is_within_its_error() -> None:
    """With inputs of 1 and one expert each, the experts' parts are walks of their own, whose mean lengths are known."""
    generator = np.random.default_rng(6)
    choices = generator.integers(0, 5, 300)
    estimate = complexity.fixed_router(np.eye(5)[choices], np.ones((300, 1)), 2.0, num_draws=3000, seed=1)
    expected = 2 * sum(complexity.constants(int(count)) * count for count in np.bincount(choices)) / 300
    assert (estimate.kind, estimate.draws) == ("Monte Carlo", 3000)
    assert abs(estimate.value - expected) <= ERRORS * estimate.error
    assert estimate.error < 0.01 * expected


def test_equal_cells_of_orthogonal_inputs_cost_the_root_of_their_number() -> None:
    """The factor that Eq. (31) loses: exact for a router with T cells of m/T orthogonal inputs each."""
    gates = np.repeat(np.eye(4), 3, axis=0)
    assert complexity.fixed_router(gates, np.eye(12), 1.0).value == pytest.approx(math.sqrt(4 / 12), rel=1e-12)
    shared = complexity.fixed_router(np.full((12, 4), 0.25), np.eye(12), 1.0)
    assert shared.value == pytest.approx(complexity.linear_ball(np.eye(12), 1.0).value, rel=1e-12)


def test_any_class_can_be_given_by_its_supremum() -> None:
    """Two functions on four points, not closed under a change of sign, so that every one of the signs counts."""
    outputs = np.array([[1.0, 0.0, -2.0, 0.5], [0.0, 3.0, 1.0, 1.0]])
    expected = np.mean([max(outputs @ np.array(signs)) / 4 for signs in all_signs(4)])

    def supremum(signs: np.ndarray) -> np.ndarray:
        return np.max(signs @ outputs.T, axis=1) / 4

    assert complexity.enumerated(supremum, 4).value == pytest.approx(expected, rel=1e-12)
    drawn = complexity.monte_carlo(supremum, 4, 20_000, seed=2)
    assert abs(drawn.value - expected) <= ERRORS * drawn.error


def test_signs_are_fair_and_independent() -> None:
    for power in (1, 2):  # the mean of m signs, and what its square has beyond 1/m
        drawn = complexity.monte_carlo(lambda s, p=power: np.mean(s, axis=1) ** p - (p - 1) / 100, 100, 20_000, seed=5)
        assert abs(drawn.value) <= ERRORS * drawn.error


def test_more_draws_begin_with_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(complexity, "BLOCK", 50)
    seen: list[np.ndarray] = []

    def supremum(signs: np.ndarray) -> np.ndarray:
        seen.append(signs)
        return signs[:, 0]

    complexity.monte_carlo(supremum, 7, 23, seed=4)
    first = np.concatenate(seen)
    seen.clear()
    complexity.monte_carlo(supremum, 7, 60, seed=4)
    np.testing.assert_array_equal(np.concatenate(seen)[:23], first)
    assert set(first.ravel()) == {-1.0, 1.0}


def test_one_layer_has_the_bound_of_a_linear_ball() -> None:
    weight = np.random.default_rng(7).normal(size=6)
    features = np.eye(6) * 2.0
    bound = complexity.linear_ball(features, float(np.linalg.norm(weight)))
    assert complexity.spectral([weight], 6, feature_norm=2.0) == pytest.approx(bound.value, rel=1e-12)


def test_the_spectral_bound_is_above_what_networks_of_its_class_reach() -> None:
    """One hidden unit along +-sum_i sigma_i x_i has the norms allowed, and its best sign is a lower estimate."""
    generator = np.random.default_rng(8)
    first, second = generator.normal(size=(5, 3)), generator.normal(size=5)
    features = generator.normal(size=(40, 3))
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    scale = np.linalg.svd(first)[1][0] * np.linalg.norm(second)

    def lower(signs: np.ndarray) -> np.ndarray:
        directions = signs @ features
        directions /= np.linalg.norm(directions, axis=1, keepdims=True)
        hidden = np.stack([np.maximum(side * directions @ features.T, 0) for side in (1, -1)])
        return scale * np.max(np.abs(np.sum(hidden * signs, axis=2)), axis=0) / 40

    estimate = complexity.monte_carlo(lower, 40, 2000, seed=1)
    bound = complexity.spectral([first, second], 40)
    assert 0.2 * scale / math.sqrt(40) < estimate.value + ERRORS * estimate.error < bound


def test_the_spectral_bound_is_made_of_eigenvalues_and_rows() -> None:
    generator = np.random.default_rng(9)
    weights = [generator.normal(size=(4, 3)), generator.normal(size=(5, 4)), generator.normal(size=(1, 5))]
    product, total = 1.0, 0.0
    for layer in weights:
        operator = math.sqrt(max(np.linalg.eigvalsh(layer.T @ layer)))
        rows = sum(math.sqrt(sum(entry**2 for entry in row)) for row in layer)
        product *= operator
        total += (rows / operator) ** (2 / 3)
    assert complexity.spectral(weights, 50, 1.5) == pytest.approx(1.5 / math.sqrt(50) * product * total**1.5, rel=1e-12)


SMALL = Dims(max_experts=2, num_features=2, max_samples=6)
STEPS, STARTS = 300, 10


def test_one_linear_expert_reaches_all_of_its_ball() -> None:
    """With orthogonal inputs every sign vector has the same supremum, B / sqrt(m)."""
    estimate = complexity.learned(SMALL, Params(1, 1, expert_norm=3.0), np.eye(2), 20, STEPS, num_starts=STARTS)
    assert (estimate.kind, estimate.draws) == ("lower estimate", 20)
    assert estimate.value == pytest.approx(3 / math.sqrt(2), rel=1e-3)
    assert estimate.error <= 1e-3


def test_learned_experts_and_router_are_below_the_supremum_and_near_it() -> None:
    """k = 1: a linear router of two experts splits points on a plane by a line through 0. The same signs for both."""
    features = np.random.default_rng(10).normal(size=(6, 2))
    angles = np.arange(0, 2 * np.pi, 1e-3)
    splits = np.unique(features @ np.stack([np.cos(angles), np.sin(angles)]) >= 0, axis=1).T
    assert len(splits) == 12  # two a point

    def supremum(signs: np.ndarray) -> np.ndarray:
        of_cells = [np.linalg.norm(signs[:, None, :] * cells @ features, axis=2) for cells in (splits, ~splits)]
        return np.max(of_cells[0] + of_cells[1], axis=1) / 6

    exact = complexity.monte_carlo(supremum, 6, 20, seed=1).value
    params = Params(2, 1, router_norm=16.0)
    learned = complexity.learned(SMALL, params, features, 20, STEPS, seed=1, num_starts=STARTS)
    assert 0.9 * exact <= learned.value <= exact * (1 + 1e-6)
    one = complexity.learned(SMALL, params, features, 20 * STARTS, STEPS, seed=1)
    all_of_them = complexity.monte_carlo(supremum, 6, 20 * STARTS, seed=1).value
    assert 0.6 * all_of_them <= one.value <= all_of_them * (1 + 1e-6)
    assert complexity.learned(SMALL, params, features, 20, STEPS, seed=1, num_starts=STARTS) == learned
    assert complexity.learned(SMALL, params, features, 20, STEPS, seed=2, num_starts=STARTS) != learned


@pytest.mark.parametrize("shape", [(3, 4), (7, 2)])
def test_inputs_that_do_not_fit_are_one_clear_line(shape: tuple[int, int]) -> None:
    with pytest.raises(InvalidDimsError, match="features of shape") as caught:
        complexity.learned(SMALL, Params(2, 1), np.ones(shape), 5, STEPS)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: complexity.linear_ball_exact(np.ones((21, 2)), 1.0), "num_samples=21 must be at most 20"),
        (lambda: complexity.linear_ball(np.ones(3), 1.0), "features of shape"),
        (lambda: complexity.linear_ball(np.full((2, 2), np.nan), 1.0), "finite"),
        (lambda: complexity.linear_ball(np.ones((2, 2)), -1.0), "radius=-1.0"),
        (lambda: complexity.linear_ball_gaussian(0, 3, 1.0), "num_samples=0"),
        (lambda: complexity.constants(0), "num_samples=0"),
        (lambda: complexity.linear_ball_monte_carlo(np.ones((2, 2)), 1.0, 1), "num_draws=1"),
        (lambda: complexity.learned(SMALL, Params(2, 1), np.ones((3, 2)), 1, STEPS), "num_draws=1"),
        (lambda: complexity.learned(SMALL, Params(2, 3), np.ones((3, 2)), 2, STEPS), "num_active=3"),
        (lambda: complexity.fixed_router(np.ones((3, 2)), np.ones((4, 2)), 1.0), "gates has 3 rows"),
        (lambda: complexity.spectral([np.ones((2, 3)), np.ones((1, 4))], 5), "no network with one output"),
        (lambda: complexity.spectral([np.ones((2, 3))], 5), "no network with one output"),
        (lambda: complexity.spectral([], 5), "no network with one output"),
        (lambda: complexity.spectral([np.zeros((1, 3))], 5), "layer of zeros"),
    ],
)
def test_what_cannot_be_computed_is_one_clear_line(call, words: str) -> None:
    with pytest.raises(InvalidParamsError, match=words) as caught:
        call()
    assert "\n" not in str(caught.value)
