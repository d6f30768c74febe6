"""Distributions that samples are from, by their frequencies and exact risks: catches a sample of another distribution.

Chi-square tests at 1e-7 on fixed seeds.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from moe_theory import root_key
from moe_theory.generalization import corrected, counterexamples, data, model, theory
from moe_theory.generalization.model import Dims, Params

LEAST = 1e-7
SIZE = 20_000
FEATURES = {"random-labels": 3, "teacher": 3, "digits": 64}


def drawn(name, noise):
    dims = Dims(4, FEATURES[name], SIZE)
    teacher = data.draw_teacher(root_key(1), dims) if name == "teacher" else None
    sample = data.draw_sample(root_key(2), dims, Params(num_samples=SIZE, label_noise=noise), name, teacher)
    return dims, teacher, sample


def is_fair(happened, chance):
    return stats.binomtest(int(np.sum(happened)), len(happened), chance).pvalue > LEAST


@pytest.mark.parametrize("name", ["teacher", "digits"])
def test_inputs_are_uniform_on_the_population_and_labels_flipped_as_often_as_said(name):
    dims, teacher, sample = drawn(name, 0.3)
    population = data.population(dims, name).astype(np.float32)
    places = {row.tobytes(): place for place, row in enumerate(population)}
    chosen = np.array([places[row.tobytes()] for row in np.asarray(sample.features)])
    eighths = np.bincount(chosen * 8 // len(population), minlength=8)
    expected = np.bincount(np.arange(len(population)) * 8 // len(population)) * SIZE / len(population)
    assert stats.chisquare(eighths, expected).pvalue > LEAST
    if name == "teacher":
        clean = np.asarray(data.teacher_labels(teacher, sample.features))
    else:
        clean = data._digits()[1][chosen]
    assert is_fair(np.asarray(sample.labels) != clean, 0.3)


def test_random_labels_are_fair_coins_and_their_inputs_on_the_sphere():
    _, _, sample = drawn("random-labels", 0.0)
    features, labels = np.asarray(sample.features), np.asarray(sample.labels)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
    assert is_fair(labels > 0, 0.5)
    for column in features.T:  # a coordinate of a uniform point of the sphere in three dimensions is uniform
        assert stats.chisquare(np.histogram(column, 10, (-1, 1))[0]).pvalue > LEAST
        assert is_fair((column > 0) == (labels > 0), 0.5)


@pytest.mark.parametrize("name", ["teacher", "digits"])
def test_the_true_risk_counts_flipped_labels(name):
    """Against plain NumPy over the population, for a dense MoE of three."""
    dims, teacher, _ = drawn(name, 0.0)
    params = Params(num_experts=3, num_active=3, num_samples=8)
    weights = model.draw_weights(root_key(5), dims, params)
    points = data.population(dims, name)
    experts, rows = (np.asarray(part[0], float)[:3] for part in weights)
    logits = points @ rows.T
    gates = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    outputs = np.sum(gates * (points @ experts.T), axis=1)
    labels = data._digits()[1] if name == "digits" else np.asarray(data.teacher_labels(teacher, jnp.asarray(points)))
    risks = [np.clip((1 - sign * labels * outputs) / 2, 0, 1).mean() for sign in (1, -1)]
    for noise in (0.0, 0.25):
        ours = jax.jit(lambda noise: data.true_risk(weights, 3, 3, name, teacher, noise))(noise)
        assert float(ours) == pytest.approx((1 - noise) * risks[0] + noise * risks[1], abs=1e-5)


def test_a_frequency_refutes_only_where_its_lower_limit_is_above_delta():
    """5 of 40 samples exceed: the interval is from 0.042 to 0.27, so that 0.05 lies inside."""
    gap = np.where(np.arange(40) < 5, 1.0, 0.0)
    found = counterexamples._counterexample(gap, (4, 1, 1000), 0.01, {"mask-dimension": 1.0}, 0.05, {})
    assert found.frequency == found.frequencies["mask-dimension"] == 0.125
    assert found.interval[0] < 0.05 < found.interval[1]
    assert not found.refutes
    assert counterexamples._counterexample(gap, (4, 1, 1000), 0.01, {"mask-dimension": 1.0}, 0.04, {}).refutes


def test_edges_of_the_bounds_that_hold():
    assert corrected.fixed_router_complexity(50, 10, 1.0, 2.0) == 2.0  # outputs are within B c
    assert corrected.fixed_router_complexity(8, 100, 0.5) == pytest.approx(0.2)
    assert corrected.lipschitz_complexity(8, 1, 100) == corrected.product_complexity(8, 100)
    nothing = corrected.covering(4, 2, 100, 3, expert_norm=0.0)
    assert nothing == pytest.approx(np.sqrt(np.log(40) / 200))
    assert corrected.tail(50, 0.2) == pytest.approx(np.exp(-2))
    assert theory.tail_printed(50, 0.2) == pytest.approx(np.exp(-4))
    assert theory.ghost_factor(50, 0.2) == pytest.approx(1 - 2 * np.exp(-1))
