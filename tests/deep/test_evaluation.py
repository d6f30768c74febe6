"""Past tasks and how well today's experts do them, against sums over explicit lists.

Catches a task that counts for another expert or before it came, dropped tasks that count, and rounds that are forgotten
without a word.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.errors import InvalidRunError
from moe_theory.deep import evaluation
from moe_theory.deep.params import Dims

DIMS = Dims(max_experts=3, num_classes=2, max_rounds=5, num_samples=1, num_tests=4, num_epochs=1, batch_size=1)
NUM_IMAGES = 7


@jax.jit
def one_round(past, tables, time, task, expert, tests, rows):
    tables = evaluation.with_rows(tables, expert, rows)
    past = evaluation.record(past, time, task, expert, tests, rows)
    return past, tables, evaluation.scores(past, tables, time)


def played(num_rounds, experts):
    """Rounds on random tables: the scores after each, and the same by hand."""
    generator = np.random.default_rng(num_rounds)
    shape = (DIMS.max_experts, DIMS.num_classes, NUM_IMAGES)
    past, tables = evaluation.empty_past(DIMS), evaluation.Tables(*generator.random((2, *shape), np.float32))
    by_hand = [np.array(table, float) for table in tables]
    listed, learned = [], []
    for time, expert in enumerate(experts[:num_rounds], start=1):
        task, tests = generator.integers(DIMS.num_classes), generator.integers(0, NUM_IMAGES, DIMS.num_tests)
        rows = evaluation.Tables(*generator.random((2, *shape[1:]), np.float32))
        if expert < 0:
            past = jax.jit(evaluation.record)(past, np.int32(time), np.int32(task), np.int32(expert), tests, rows)
            found = jax.jit(evaluation.scores)(past, tables, np.int32(time))
        else:
            arguments = np.int32(time), np.int32(task), np.int32(expert), tests.astype(np.int32), rows
            past, tables, found = one_round(past, tables, *arguments)
            by_hand[0][expert], by_hand[1][expert] = rows
            listed.append((expert, task, tests))
            learned.append(rows.losses[task, tests].mean())
        errors, hits = (np.array([table[m, n][rows].mean() for m, n, rows in listed]) for table in by_hand)
        rises = (errors - np.array(learned))[: len(listed)]
        yield found, errors, hits, rises


def test_scores_are_means_over_the_tasks_that_somebody_was_given():
    for found, errors, hits, rises in played(5, [0, 2, -1, 0, 1]):
        assert float(found.generalization_error) == pytest.approx(errors.mean(), abs=1e-6)
        assert float(found.accuracy) == pytest.approx(hits.mean(), abs=1e-6)
        assert float(found.forgetting) == pytest.approx(rises.sum() / max(len(rises) - 1, 1), abs=1e-6)


def test_rounds_beyond_those_remembered_are_nan_or_refused():
    """Each would else be lost without a word: an update beyond the end of an array is none."""
    last = list(played(7, [0, 1, 2, 0, 1, 2, 0]))
    assert all(np.all(np.isfinite(found)) for found, *_ in last[: DIMS.max_rounds])
    assert all(np.all(np.isnan(found)) for found, *_ in last[DIMS.max_rounds :])
    rows = evaluation.Tables(*np.zeros((2, DIMS.num_classes, NUM_IMAGES)))
    with pytest.raises(InvalidRunError, match=r"round 6 must be at most max_rounds=5.*Raise Dims.max_rounds"):
        evaluation.record(
            evaluation.empty_past(DIMS), jnp.int32(6), jnp.int32(0), jnp.int32(0), jnp.zeros(4, jnp.int32), rows
        )
