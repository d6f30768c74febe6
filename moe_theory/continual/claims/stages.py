"""What claims about expert sets read off a run: rounds between the stages of learning, in the cells of a grid.

"With probability 1 - o(1)" is read as at least 1 - delta, delta = .05, at the smallest sigma_0 of the grid, where o(1)
should be least.
"""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import theory
from moe_theory.continual.claims.lemmas import repeats_of
from moe_theory.continual.claims.values import FAILURE
from moe_theory.continual.experiments import gaps_of
from moe_theory.continual.params import SIGMA_0
from moe_theory.continual.specialisation import (
    FEW_EXPERTS,
    MANY_EXPERTS,
    RETURN_SCALES,
    SCALES,
    SETTLING,
    scale_name,
    stage_rounds,
)
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs

MANY_CELLS = tuple(scale_name(MANY_EXPERTS, scale) for scale in SCALES)  # M > N
FEW_CELLS = tuple(scale_name(FEW_EXPERTS, scale) for scale in SCALES)  # M < N, K clusters
MANY_RETURN_CELLS, FEW_RETURN_CELLS = (
    tuple(scale_name(number, scale) for scale in RETURN_SCALES) for number in (MANY_EXPERTS, FEW_EXPERTS)
)
MANY_SMALLEST, FEW_SMALLEST = MANY_CELLS[:1], FEW_CELLS[:1]
MANY_OWN, FEW_OWN = ((scale_name(number, SIGMA_0),) for number in (MANY_EXPERTS, FEW_EXPERTS))  # Fig. 2's sigma_0
MANY_LARGEST, FEW_LARGEST = MANY_CELLS[-1:], FEW_CELLS[-1:]
LEARNED = 1e-4  # of the truths' mean square: squared errors below are too near to rounding for a ratio
WINDOW = 20  # rounds that a gap at t_1 or t_2 is averaged over, in which sets and gates hardly change
ROOT_TERMINATION = 0.25  # T2 and t_1 are ceil(M / eta sigma_0^(-1/4))
ROOT_RETURN = 0.75  # t_2 is ceil(M / eta sigma_0^(-3/4))


def likely(runs: Runs) -> float:
    """1 - delta."""
    del runs
    return 1 - FAILURE


def exponent(value: float) -> Callable[[Runs], float]:
    """The exponent that a rate claims."""
    return lambda runs: value


def around(run: Run, name: str, time: int) -> np.ndarray:
    """The mean of a recorded number over the last rounds up to `time` (B,), of a full history."""
    return getattr(run.records, name)[time - WINDOW : time].mean(axis=0, dtype=np.float64)


def explored(run: Run) -> int:
    """T1."""
    return stage_rounds(run.params)


def learning(run: Run) -> slice:
    """Rows of the rounds T1 + 1, ..., t_1, the router's learning stage."""
    return slice(explored(run), stage_rounds(run.params, ROOT_TERMINATION))


def settled(run: Run) -> slice:
    """Rows of the rounds T1 + 2, ..., T."""
    return slice(explored(run) + 1, None)


def mean_where(values: np.ndarray, happens: np.ndarray) -> np.ndarray:
    """The mean of values (R, B) over the rounds in which something happens; 0 if it never does."""
    return np.sum(np.where(happens, values, 0.0), axis=0) / np.maximum(np.sum(happens, axis=0), 1)


def truth_length(run: Run) -> np.ndarray:
    """The root mean square of the truths' norms (B,), the unit of moves."""
    return np.sqrt(np.asarray(gaps_of(run).truth_norm))


def remaining_errors(run: Run) -> np.ndarray:
    """What repeats past T1 leave of an expert's squared error, as fractions of it, summed over rounds (B,)."""
    repeats, before = _late_repeats(run)
    return np.sum(np.where(repeats, run.records.error / np.where(repeats, before, 1), 0), axis=0)


def contracted_errors(run: Run) -> np.ndarray:
    """(d - s)/(d - 1) times the number of those repeats (B,)."""
    contraction = theory.error_contraction(SETTLING.dims.num_features, SETTLING.dims.num_samples)
    return contraction * np.sum(_late_repeats(run)[0], axis=0)


def _late_repeats(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Where past T1 an expert repeats a task that it has not learned up to rounding, and its squared error before."""
    # A move is orthogonal to what it leaves, so the squared error before it is the sum of both squares.
    before = run.records.error + run.records.update_norm.astype(np.float64) ** 2
    repeats = repeats_of(run) & (before > LEARNED * truth_length(run) ** 2)
    repeats[: explored(run)] = False
    return repeats, before
