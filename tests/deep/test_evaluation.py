"""The memory of past tasks, and what the router is asked; how well experts do is compared in test_deep_parity.py."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refusal

from moe_theory import deep
from moe_theory.core.errors import InvalidValueError
from moe_theory.deep import evaluation, gate, tasks
from moe_theory.deep.params import Dims

DIMS = Dims(max_experts=3, num_classes=2, max_rounds=5, num_samples=1, num_tests=4, num_epochs=1, batch_size=1)
NUM_IMAGES = 7


def test_rounds_beyond_those_remembered_are_nan_or_refused():
    """Each would else be lost without a word: an update beyond the end of an array is none."""
    rows = evaluation.Tables(*np.zeros((2, DIMS.num_classes, NUM_IMAGES)))
    tests, first = jnp.zeros(DIMS.num_tests, jnp.int32), jnp.int32(0)

    @jax.jit
    def one_round(past, time):
        tables = evaluation.Tables(*jnp.zeros((2, DIMS.max_experts, DIMS.num_classes, NUM_IMAGES)))
        past = evaluation.record(past, time, first, first, tests, rows)
        return past, evaluation.scores(past, tables, time)

    past = evaluation.empty_past(DIMS)
    for time in range(1, DIMS.max_rounds + 3):
        past, found = one_round(past, jnp.int32(time))
        of_all = np.array(found[:4])  # the classes that have not arrived have no scores yet
        assert np.all(np.isfinite(of_all) if time <= DIMS.max_rounds else np.isnan(of_all))
    past = evaluation.empty_past(DIMS)
    refusal(InvalidValueError, evaluation.record, past, jnp.int32(6), first, first, tests, rows)


def test_the_router_is_asked_by_the_gates_as_they_are_without_perturbation():
    """Gates that send task j to expert 2 - j, whatever perturbation the round had; the fourth expert does not exist."""
    dims = deep.Dims(4, num_classes=3, max_rounds=2, num_samples=1, num_tests=1, num_epochs=1, batch_size=1)
    hits = jnp.broadcast_to(jnp.array([0.1, 0.2, 0.3, 0.9])[:, None, None], (4, 3, 5))
    rows, past = jnp.zeros((3, 1), jnp.int32), evaluation.empty_past(dims)
    rest = jnp.zeros((), jnp.int32), jnp.zeros(4)
    arrival = tasks.Arrival(rest[0], rows[0], rows, rows[0], jnp.array([1e6, 0, 0, 0]), *(rest[1],) * 3)
    tested = jax.jit(functools.partial(evaluation.tested, rank=lambda outputs, shown: outputs + shown.perturbation))
    found = tested(
        evaluation.Tests(rows, jnp.eye(3), jnp.eye(2, 3)),
        past._replace(experts=jnp.array([2, evaluation.NO_EXPERT])),
        evaluation.Tables(1 - hits, hits),
        jnp.concatenate([jnp.eye(3)[::-1], jnp.ones((1, 3))]),
        gate.initial_moments(3),
        jnp.int32(1),
        arrival,
        deep.Params(num_experts=3),
    )
    np.testing.assert_allclose(found.task_accuracies_routed, [0.3, 0.2, 0.1])
    np.testing.assert_allclose(found.task_accuracies, [0.3, np.nan, np.nan])
    assert found.accuracy_routed == pytest.approx(0.3)
