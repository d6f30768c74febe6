"""Accuracy matrices: catches a definition of forgetting or average accuracy other than the field's, or the papers'.

Avalanche's metric is written down as the events that update it, Mammoth's as the padded table that it makes of its
results; neither library is imported. Source: `Forgetting`, `StreamForgetting` (Avalanche, `evaluation/metrics/
forgetting_bwt.py`), `forgetting`, `backward_transfer` (Mammoth, `utils/metrics.py`).
"""

import numpy as np
import pytest

from moe_theory.continual import accuracy
from moe_theory.core.errors import InvalidRunError, UnknownNameError

NUM_EXPERIENCES, NUM_TESTS = 5, 20


def shared_matrix() -> np.ndarray:
    """Accuracies of twentieths, some of which rise after their experience, on which the definitions differ."""
    matrix = np.random.default_rng(5).integers(0, NUM_TESTS + 1, (NUM_EXPERIENCES, NUM_EXPERIENCES)) / NUM_TESTS
    assert any(matrix[i:, i].max() > matrix[i, i] for i in range(NUM_EXPERIENCES - 1))
    return matrix


def avalanche_forgetting(matrix: np.ndarray, last: int) -> float:
    """After training on experience `last`: first values are kept, the others replaced at every evaluation."""
    initial, newest = {}, {}
    for trained in range(last + 1):
        newest = {}
        for tested in range(trained + 1):
            if tested == trained:
                initial[tested] = matrix[trained, tested]
            else:
                newest[tested] = matrix[trained, tested]
    both = [initial[key] - newest[key] for key in initial if key in newest]
    return sum(both) / len(both)


def mammoth_forgetting(matrix: np.ndarray, last: int) -> float:
    """Lists of what was tested after each task, filled up with zeros; the best of each column."""
    results = [list(matrix[row, : row + 1]) + [0.0] * (last - row) for row in range(last + 1)]
    return sum(max(row[i] for row in results) - results[last][i] for i in range(last)) / last


def chaudhry_forgetting(matrix: np.ndarray, last: int) -> float:
    """f_j^k = max over l < k of a_{l,j} - a_{k,j}, averaged over j < k; l from j on, before which j was not learned."""
    return sum(max(matrix[row, i] for row in range(i, last)) - matrix[last, i] for i in range(last)) / last


def mammoth_backward_transfer(matrix: np.ndarray, last: int) -> float:
    return sum(matrix[last, i] - matrix[i, i] for i in range(last)) / last


@pytest.mark.parametrize("last", range(1, NUM_EXPERIENCES))
def test_the_definitions_are_the_field_s(last):
    matrix = shared_matrix()
    own, best = accuracy.forgetting(matrix)[last], accuracy.forgetting(matrix, against="best")[last]
    assert own == pytest.approx(avalanche_forgetting(matrix, last))
    assert own == pytest.approx(-mammoth_backward_transfer(matrix, last))
    assert best == pytest.approx(mammoth_forgetting(matrix, last))
    assert best >= max(own, 0) - 1e-12
    earlier = accuracy.forgetting(matrix, against="best-before")[last]
    assert earlier == pytest.approx(chaudhry_forgetting(matrix, last))
    assert own - 1e-12 <= earlier <= best + 1e-12
    seen = [matrix[last, i] for i in range(last + 1)]
    assert accuracy.average_accuracy(matrix)[last] == pytest.approx(sum(seen) / len(seen))


@pytest.mark.parametrize("matrix", [np.zeros((2, 3)), np.zeros(4), np.zeros((0, 0)), np.full((2, 2), np.nan)])
def test_what_is_no_matrix_is_refused(matrix):
    for function in (accuracy.average_accuracy, accuracy.forgetting):
        with pytest.raises(InvalidRunError, match="Change the matrix"):
            function(matrix)


def test_an_unknown_definition_is_refused():
    with pytest.raises(UnknownNameError, match="learned"):
        accuracy.forgetting(np.eye(2), against="learnt")


def test_what_is_to_come_is_not_looked_at():
    matrix = shared_matrix()
    unknown = matrix + np.where(np.triu(np.ones_like(matrix), 1) > 0, np.nan, 0)
    np.testing.assert_array_equal(accuracy.forgetting(unknown), accuracy.forgetting(matrix))
