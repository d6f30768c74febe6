"""The memory of past tasks, forgetting and accuracy: catches a task that counts otherwise, or a router that is asked
something else than at training. How well experts do is compared with a loop in test_deep_parity.py.
"""

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
from moe_theory.deep.presets import incremental_accuracy

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


NUM_EXPERIENCES, NUM_TESTS = 5, 20


def shared_matrix() -> np.ndarray:
    """Accuracies of twentieths; row t and column i: on experience i after experience t."""
    return np.random.default_rng(5).integers(0, NUM_TESTS + 1, (NUM_EXPERIENCES, NUM_EXPERIENCES)) / NUM_TESTS


def average_accuracy(matrix: np.ndarray) -> list[float]:
    """A_t of Lopez-Paz and Ranzato (2017): the mean accuracy on experiences 1 to t after each of them."""
    return [matrix[last, : last + 1].mean() for last in range(len(matrix))]


def forgetting(matrix: np.ndarray) -> list[float]:
    """Avalanche's stream forgetting, and Eq. (15) with the error as 1 - accuracy."""
    lost = [[matrix[i, i] - matrix[last, i] for i in range(last)] for last in range(len(matrix))]
    return [sum(losses) / max(len(losses), 1) for losses in lost]


def streamed(matrix: np.ndarray, tasks: list[int]) -> list[evaluation.Scores]:
    """What `deep` streams when its only expert has, after round t, the accuracy `matrix[t, k]` on task k."""
    num_tasks = matrix.shape[1]
    dims = Dims(max_experts=1, num_classes=num_tasks, max_rounds=len(tasks), num_tests=NUM_TESTS)
    past, tests = evaluation.empty_past(dims), jnp.arange(NUM_TESTS)
    made, record, scores = [], jax.jit(evaluation.record), jax.jit(evaluation.scores)
    for before, task in enumerate(tasks):
        hits = (np.arange(NUM_TESTS) < np.round(matrix[before][:, None] * NUM_TESTS)).astype(np.float32)
        tables = evaluation.Tables(jnp.asarray(1 - hits)[None], jnp.asarray(hits)[None])
        rows = evaluation.Tables(*(table[0] for table in tables))
        time = jnp.int32(before + 1)
        past = record(past, time, jnp.int32(task), jnp.int32(0), tests, rows)
        made.append(scores(past, tables, time))
    return made


def test_streams_of_distinct_tasks_agree_with_the_field():
    matrix = shared_matrix()
    made = streamed(matrix, list(range(NUM_EXPERIENCES)))
    np.testing.assert_allclose([each.forgetting for each in made], forgetting(matrix), atol=1e-6)
    np.testing.assert_allclose([each.accuracy for each in made], average_accuracy(matrix), atol=1e-6)
    means = np.asarray([each.accuracy for each in made])
    assert incremental_accuracy(means) == pytest.approx(np.mean(average_accuracy(matrix)), abs=1e-6)


def test_a_task_that_comes_again_counts_as_often_as_it_comes():
    """The difference: the papers' (15) is of arrivals, each against its own learning; the field's of tasks, once."""
    by_task = shared_matrix()[:, :3]
    tasks = [0, 1, 0, 2, 0]
    last = streamed(by_task, tasks)[-1]
    arrivals = by_task[:, tasks]  # a column an arrival
    assert float(last.forgetting) == pytest.approx(forgetting(arrivals)[-1], abs=1e-6)
    first = {task: tasks.index(task) for task in tasks[:-1]}
    field = [by_task[first[task], task] - by_task[-1, task] for task in first if task != tasks[-1]]
    assert float(last.forgetting) != pytest.approx(sum(field) / len(field), abs=1e-3)


SIZES = {"rounds": 6, "samples": 10, "batch": 10, "epochs": 5, "test_images": 60, "replicates": 2}


@pytest.fixture(scope="module")
def judged():
    return deep.judge(
        deep.plan("continual-mnist-small", experts=(1, 4), network="mlp", reading="class-incremental", **SIZES)
    )


@pytest.mark.thorough
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
