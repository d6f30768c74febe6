"""What claims read off runs: metrics at recorded rounds, a stage of learning, repeats of a task; and their shorthands.

"With probability 1 - o(1)" is read as at least 1 - delta, delta = 0.05, at the smallest sigma_0 of a grid.
"""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import jax
import numpy as np
from jaxtyping import PyTree

from moe_theory.continual import theory
from moe_theory.continual.experiments import SPECIALIZATION, T2_POWER, gaps_of, stage_rounds
from moe_theory.runs import Run
from moe_theory.verify.claim import Claim, Runs, Side, Values, named, over
from moe_theory.verify.claim import claim as declared

EXPONENT_MARGIN = 0.1  # how far an exponent may be from the one claimed
FAILURE = 0.05  # delta: what a probability that the paper leaves at delta, or at o(1), may be at most
BLOCK = 64  # replicates that a compiled function of a claim takes at once
LEARNED = 1e-4  # of the truths' mean square: squared errors below are too near to rounding for a ratio
WINDOW = 20  # rounds that a gap at t_1 or t_2 is averaged over, in which sets and gates hardly change

claim = functools.partial(declared, paper="continual")


def rate(
    id: str, *, at_least: float | None = None, at_most: float | None = None, equal: float | None = None, **about: Any
) -> Callable[[type], Claim]:
    """Declares a claim of kind `rate`: that its slope is at least, at most or equal to an exponent."""
    sides: dict[Side, float | None] = {"at_least": at_least, "at_most": at_most, "equal": equal}
    [(side, exponent)] = [(side, exponent) for side, exponent in sides.items() if exponent is not None]

    def declare(body: Any) -> Claim:
        body.side, body.predict = side, staticmethod(lambda runs: exponent)
        return claim(id, kind="rate", margin=EXPONENT_MARGIN, **about)(body)

    return declare


def likely(runs: Runs) -> float:
    return 1 - FAILURE


def unlikely(runs: Runs) -> float:
    return FAILURE


def at_rounds(*rounds: int) -> Callable[[Runs], list[str]]:
    return named(*(f"t = {time}" for time in rounds))


def at(run: Run, values: np.ndarray, rounds: tuple[int, ...] | None) -> np.ndarray:
    """Values (R, B) at some of the recorded rounds (None: all), as components (B, V)."""
    rows = slice(None) if rounds is None else np.searchsorted(run.rounds, rounds)
    return values[rows].T.astype(np.float64)


def metric(name: str, cell: str, rounds: tuple[int, ...] | None = None) -> Values:
    return lambda runs: at(runs[cell], getattr(runs[cell].records, name), rounds)


def probable(id: str, *, is_likely: bool = True, **about: Any) -> Callable[[type], Claim]:
    """Declares a claim of kind `probability`: at least 1 - delta or, where not likely, at most delta."""

    def declare(body: Any) -> Claim:
        body.side, body.predict = "at_least" if is_likely else "at_most", likely if is_likely else unlikely
        return claim(id, kind="probability", **about)(body)

    return declare


def per_cell(cells: Iterable[str], value: Callable[[Run], np.ndarray]) -> tuple[Callable[[Runs], list[str]], Values]:
    """`labels` and `observe` of a claim with one component a cell."""
    return named(*cells), over(tuple(cells), value)


def along(
    grid: Mapping[str, float], value: Callable[[Run], np.ndarray]
) -> tuple[Callable[[Runs], list[str]], Values, tuple[float, ...]]:
    """`labels`, `observe` and `abscissa` of a claim over a grid of cells."""
    return *per_cell(grid, value), tuple(grid.values())


def recorded(run: Run, name: str, first: int, last: int) -> np.ndarray:
    """A recorded number in rounds `first` to `last` (R, B) of a run that records every round."""
    return getattr(run.records, name)[first - 1 : last].astype(np.float64)


def in_blocks(function: Callable[..., Any], replicates: np.ndarray, *trees: PyTree) -> np.ndarray:
    """A compiled function of replicates and of trees that end in their axis, `BLOCK` at a time."""
    blocks = [slice(start, start + BLOCK) for start in range(0, len(replicates), BLOCK)]
    parts = [
        np.asarray(function(replicates[block], *(jax.tree.map(lambda leaf: leaf[..., block], tree) for tree in trees)))  # noqa: B023
        for block in blocks
    ]
    return np.concatenate(parts)


def exploration(run: Run) -> slice:
    """Rows of the rounds 1, ..., T1, of a full history."""
    return slice(stage_rounds(run.params))


def router_learning(run: Run) -> slice:
    """Rows of the rounds T1 + 1, ..., t_1, the router's learning stage."""
    return slice(stage_rounds(run.params), stage_rounds(run.params, T2_POWER))


def past_exploration(run: Run) -> slice:
    """Rows of the rounds T1 + 2, ..., T."""
    return slice(stage_rounds(run.params) + 1, None)


def truth_length(run: Run) -> np.ndarray:
    return np.sqrt(np.asarray(gaps_of(run).truth_norm))


def repeats_of(run: Run) -> np.ndarray:
    """Where a task meets an expert whose last task was the same one: (T, B) of a full history."""
    tasks, experts = run.records.task, run.records.expert
    lanes = np.arange(tasks.shape[1])
    last = np.full((experts.max() + 1, tasks.shape[1]), -1)
    repeats = np.zeros(tasks.shape, bool)
    for time in range(len(tasks)):
        repeats[time] = last[experts[time], lanes] == tasks[time]
        last[experts[time], lanes] = tasks[time]
    return repeats


def remaining_errors(run: Run) -> np.ndarray:
    """What repeats past T1 leave of an expert's squared error, as fractions of it, summed over rounds (B,)."""
    repeats, before = _late_repeats(run)
    return np.sum(np.where(repeats, run.records.error / np.where(repeats, before, 1), 0), axis=0)


def contracted_errors(run: Run) -> np.ndarray:
    contraction = theory.error_contraction(SPECIALIZATION.dims.num_features, SPECIALIZATION.dims.num_samples)
    return contraction * np.sum(_late_repeats(run)[0], axis=0)


def _late_repeats(run: Run) -> tuple[np.ndarray, np.ndarray]:
    """Where past T1 an expert repeats a task that it has not learned up to rounding, and its squared error before."""
    # A move is orthogonal to what it leaves, so the squared error before it is the sum of both squares.
    before = run.records.error + run.records.update_norm.astype(np.float64) ** 2
    repeats = repeats_of(run) & (before > LEARNED * truth_length(run) ** 2)
    repeats[exploration(run)] = False
    return repeats, before
