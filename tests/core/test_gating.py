"""Gating against sorting in NumPy and automatic differentiation, and Theorem B of docs/pages/derivations/gates.md."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import softmax

from moe_theory.core import gating
from moe_theory.core.critical import critical_drive, lead_after_turns
from moe_theory.core.errors import InvalidValueError

route = jax.jit(gating.route, static_argnames="max_active")
loss_slope = jax.jit(jax.grad(gating.task_loss))


def reference_route(scores, available, num_active, max_active):
    """Best first, lowest index on ties, by a stable sort of the available experts."""
    order = [int(expert) for expert in np.argsort(-scores, kind="stable") if available[expert]]
    best = order[: min(num_active, max_active)]
    return best + [-1] * (max_active - len(best))


@pytest.mark.parametrize("max_active", [1, 2, 4])
def test_routes_are_those_of_a_stable_sort(max_active):
    """Would catch a tie that goes to a higher index, an unavailable expert, an expert chosen twice, or a lost rank."""
    rng = np.random.default_rng(max_active)
    for trial in range(60):
        scores = rng.normal(size=6) if trial % 3 else rng.integers(0, 3, 6).astype(float)
        available = rng.random(6) < (1.0, 0.7, 0.3, 0.0)[trial % 4]
        num_active = int(rng.integers(1, max_active + 1))
        expected = reference_route(scores.astype(np.float32), available, num_active, max_active)
        experts, masks = route(jnp.asarray(scores), jnp.asarray(available), num_active, max_active=max_active)
        np.testing.assert_array_equal(experts, expected)
        np.testing.assert_array_equal(masks, np.array(expected)[:, None] == np.arange(6))


def test_an_unavailable_expert_never_wins():
    """Would catch a mask by multiplication: the best score, however high, and a tie at minus infinity."""
    for scores in ([9e30, -5.0, -7.0], [np.inf, -1e30, -2e30], [0.0, 0.0, -1.0]):
        expert, mask = gating.best_expert(jnp.array(scores), jnp.array([False, True, True]))
        assert expert == 1
        np.testing.assert_array_equal(mask, [False, True, False])
    expert, _ = gating.best_expert(jnp.array([5.0, -jnp.inf, -jnp.inf]), jnp.array([False, False, True]))
    assert expert == 2


def test_probabilities_are_the_softmax_over_available_experts():
    """Would catch a padded expert that takes probability, and an overflow at large outputs."""
    rng = np.random.default_rng(1)
    for scale in (0.0, 1.0, 1e4):
        for count in (1, 2, 5):
            outputs = scale * rng.normal(size=5)
            available = np.zeros(5, bool)
            available[rng.permutation(5)[:count]] = True
            probabilities = gating.gate_probabilities(jnp.asarray(outputs), jnp.asarray(available))
            expected = np.zeros(5)
            expected[available] = softmax(np.float32(outputs)[available].astype(float))
            assert np.abs(probabilities - expected).max() < 1e-6
            assert not np.any(np.asarray(probabilities)[~available])
            assert abs(np.sum(probabilities) - 1) < 1e-6


@pytest.mark.parametrize("num_available", [1, 2, 5])
def test_the_gradient_is_the_loss_s_derivative(num_available):
    """Would catch a wrong sign or term in (27) to (30); the derivative is JAX's own, in double precision."""
    with jax.enable_x64(True):
        rng = np.random.default_rng(num_available)
        available = jnp.arange(5) < num_available
        for _ in range(5):
            gates, gate_input, costs = (jnp.asarray(rng.normal(size=shape)) for shape in ((5, 3), 3, 5))
            expected = loss_slope(gates, gate_input, available, costs)
            probabilities = gating.gate_probabilities(gating.gate_outputs(gates, gate_input), available)
            gradient = gating.gate_gradient(probabilities, gate_input, costs)
            assert np.abs(gradient - expected).max() < 1e-13 * (1 + np.abs(expected).max())
            assert not np.any(gradient[num_available:])


def test_few_experts_need_a_perturbation():
    """For two and three experts the lead is positive at every drive, but tiny: ahead by lambda it is later."""
    for perturbation in (1e-8, 1e-7):
        two, three = (critical_drive(number, 0, perturbation) for number in (2, 3))
        assert two == pytest.approx((4 * perturbation) ** (1 / 3), rel=1e-3)
        assert three == pytest.approx((6 * perturbation) ** (1 / 4), rel=1e-2)
    assert critical_drive(2, 0, perturbation=0) == critical_drive(3, 0, perturbation=0) == 0
    assert critical_drive(6, 0, perturbation=0) == critical_drive(6, 0)
    assert critical_drive(6, 0, perturbation=0.5) > critical_drive(6, 0.0, perturbation=0.1) > critical_drive(6, 0)
    assert critical_drive(2, 0.5, perturbation=0) > 1  # slow learners pay again


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((1, 0.0), "at least 2"),
        ((4, 1.0), r"contraction=1.0 must be in \[0, 1\)"),
        ((4, -0.1), "contraction"),
        ((4, float("nan")), "contraction"),
        ((2, 0.0), "Give it as perturbation"),
        ((2, 0.5), "Give it as perturbation"),
        ((3, 0.0), "Give it as perturbation"),
        ((4, 0.0, -1.0), "perturbation=-1.0"),
        ((4, 0.0, float("inf")), "perturbation=inf"),
        ((4, 0.0, 1e9), "not between"),
    ],
)
def test_what_has_no_critical_drive_is_refused(arguments, words):
    with pytest.raises(InvalidValueError, match=words):
        critical_drive(*arguments)


def test_a_lone_expert_has_nobody_to_be_ahead_of():
    with pytest.raises(InvalidValueError, match="at least 2"):
        lead_after_turns(1, 0.5)
