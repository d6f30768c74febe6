"""What claims of this paper observe and predict: numbers per replicate and component."""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from moe_theory.generalization.experiments import gaps_of
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, Values
from moe_theory.verify.claim import claim as declare

claim = functools.partial(declare, paper="generalization")


def sizes_of(run: Run) -> tuple[int, int, int]:
    """T, k and m."""
    return int(run.params.num_experts), int(run.params.num_active), int(run.params.num_samples)


def allowed(*names: str) -> Values:
    """delta of the named cells, the probability with which a bound may fail, one component each."""
    return lambda runs: np.array([float(runs[name].params.delta) for name in names])


def all_allowed(runs: Runs) -> np.ndarray:
    """delta of every cell, one component each."""
    return allowed(*runs)(runs)


def exceeds_at(cell: str, bound: Callable[[Run], float]) -> Values:
    """Whether the gap of each instance drawn in a cell exceeds its bound (B,)."""
    return lambda runs: runs[cell].records.gap[-1] > bound(runs[cell])


def exceeds(bounds: Values) -> Values:
    """Whether the gap of each cell exceeds its bound, one component a cell."""
    return lambda runs: gaps_of(runs, runs) > bounds(runs)


def unless_impossible(largest: float, bound: Callable[[Runs], Any]) -> Values:
    """`trivial` of an event whose gap is at most `largest`: a bound of that or more cannot fail."""
    return lambda runs: np.where(np.asarray(bound(runs)) >= largest, 0.0, 1.0)


def seldom_above(bound: str) -> str:
    """LaTeX: the largest gap of the class exceeds a bound with probability at most delta."""
    return (
        r"\mathbb{P}\left( \sup_{f \in \mathcal{F}(T, k)} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) "
        r"\right\rvert > " + bound + r" \right) \le \delta"
    )


def shown(run: Run, *names: str) -> np.ndarray:
    """The field of these nested names in the only round of a run, in float64: (..., B)."""
    record: Any = run.records
    for name in names:
        record = getattr(record, name)
    return record[0].astype(np.float64)
