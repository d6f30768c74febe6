"""Average accuracy and forgetting of an accuracy matrix, row t and column i: on the i-th experience after the t-th."""

from typing import Literal

import numpy as np
from jaxtyping import Float

from moe_theory.core.errors import InvalidRunError, unknown_name

AGAINST = ("learned", "best", "best-before")  # what forgetting is measured against


def average_accuracy(matrix: Float[np.ndarray, "T T"]) -> Float[np.ndarray, " T"]:
    """The mean accuracy A_t on the experiences 1 to t after each of them, in the matrix's unit.

    Its last entry is ACC of Lopez-Paz and Ranzato (2017), the mean over t the average incremental accuracy.

    Args:
        matrix: accuracies; entries above the diagonal, of future experiences, are ignored.
    Raises: InvalidRunError unless the matrix is square and its lower triangle has numbers.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import accuracy
        >>> accuracy.average_accuracy(np.array([[1.0, 0.0], [0.5, 1.0]])).tolist()
        [1.0, 0.75]
    """
    seen = _lower_triangle(matrix)
    return seen.sum(axis=1) / np.arange(1, len(seen) + 1)


def forgetting(
    matrix: Float[np.ndarray, "T T"], against: Literal["learned", "best", "best-before"] = "learned"
) -> Float[np.ndarray, " T"]:
    """The mean loss of accuracy F_t on the experiences before t, after each of them, in the matrix's unit; F_1 = 0.

    Args:
        matrix: accuracies; entries above the diagonal, of future experiences, are ignored.
        against: "learned", what an experience had when it had just been learned: Eq. (15) of `continual` with the
            error as 1 - accuracy, Avalanche's stream forgetting, and backward transfer (Lopez-Paz and Ranzato, 2017)
            with the other sign. "best-before", the highest that it had before t: Chaudhry et al., Riemannian Walk,
            2018. "best", the highest that it ever had, t included: Mammoth's, never negative.
    Raises: InvalidRunError unless the matrix is square and its lower triangle has numbers; UnknownNameError.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import accuracy
        >>> matrix = np.array([[0.5, 0.0, 0.0], [0.75, 1.0, 0.0], [0.25, 1.0, 1.0]])
        >>> accuracy.forgetting(matrix).tolist(), accuracy.forgetting(matrix, against="best").tolist()
        ([0.0, -0.25, 0.125], [0.0, 0.0, 0.25])
    """
    if against not in AGAINST:
        raise unknown_name("definition of forgetting", against, AGAINST)
    seen = _lower_triangle(matrix)
    best = np.maximum.accumulate(np.where(np.tri(len(seen), dtype=bool), seen, -np.inf), axis=0)
    before = {
        "learned": np.broadcast_to(np.diag(seen), seen.shape),
        "best": best,
        "best-before": np.concatenate([best[:1], best[:-1]]),
    }[against]
    lost = np.where(np.tri(len(seen), k=-1, dtype=bool), before - seen, 0.0)
    return lost.sum(axis=1) / np.maximum(np.arange(len(seen)), 1)


def _lower_triangle(matrix: Float[np.ndarray, "T T"]) -> Float[np.ndarray, "T T"]:
    accuracies = np.asarray(matrix, np.float64)
    if accuracies.ndim != 2 or accuracies.shape[0] != accuracies.shape[1] or not len(accuracies):
        raise InvalidRunError(
            f"the matrix has shape {accuracies.shape}, not (T, T): a row after each experience, a column for each. "
            "Change the matrix."
        )
    later = np.triu(np.ones(accuracies.shape, bool), 1)
    seen = np.where(later, 0.0, accuracies)
    if not np.isfinite(seen).all():
        row, column = np.argwhere(~np.isfinite(seen))[0]
        raise InvalidRunError(
            f"the accuracy {seen[row, column]} in row {row}, column {column} is not finite: an experience is tested "
            "after each one from its own on. Change the matrix."
        )
    return seen
