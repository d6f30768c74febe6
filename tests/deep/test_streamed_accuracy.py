"""Forgetting and accuracy as `deep` streams them, against the field's: catches a task that counts otherwise."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.deep import Dims, evaluation
from moe_theory.deep.presets import incremental_accuracy

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
