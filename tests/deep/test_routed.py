"""Who is tested: catches a router that is asked something else than at training."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import deep
from moe_theory.deep import evaluation, gate, tasks

SIZES = {"rounds": 6, "samples": 10, "batch": 10, "epochs": 5, "test_images": 60, "replicates": 2}


@pytest.fixture(scope="module")
def judged():
    return deep.judge(
        deep.plan("continual-mnist-small", experts=(1, 4), network="mlp", reading="class-incremental", **SIZES)
    )


def test_one_expert_is_the_one_that_served_and_the_routed_one(judged):
    """The two settings are of the same images, so that they differ by the expert alone; four experts differ."""
    made = judged.to_xarray()
    one, four = made.sel(cell="M = 1"), made.sel(cell="M = 4, no termination")
    np.testing.assert_array_equal(one.accuracy_routed, one.accuracy)
    np.testing.assert_array_equal(one.generalization_error_routed, one.generalization_error)
    assert not np.array_equal(four.generalization_error_routed, four.generalization_error)


def test_the_router_is_asked_by_the_gates_as_they_are_without_perturbation():
    """Gates that send task j to expert 2 - j, whatever perturbation the round had; the fourth expert does not exist."""
    dims = deep.Dims(4, num_classes=3, max_rounds=2, num_samples=1, num_tests=1, num_epochs=1, batch_size=1)
    hits = jnp.broadcast_to(jnp.array([0.1, 0.2, 0.3, 0.9])[:, None, None], (4, 3, 5))
    rows, past = jnp.zeros((3, 1), jnp.int32), evaluation.empty_past(dims)
    rest = jnp.zeros((), jnp.int32), jnp.zeros(4)
    arrival = tasks.Arrival(rest[0], rows[0], rows, rows[0], jnp.array([9.0, 0, 0, 0]), *(rest[1],) * 3)
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
