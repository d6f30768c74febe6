"""Numbers that claims are made of, one a replicate and component, and bounds at the sizes and the reading of a cell."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from moe_theory.generalization import natarajan, repaired, theory
from moe_theory.generalization.experiments import gaps_of
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs
from moe_theory.verify.components import Values as Values
from moe_theory.verify.components import alike as alike
from moe_theory.verify.components import computed as computed
from moe_theory.verify.components import excess as excess
from moe_theory.verify.components import named as named


def reading_of(params: Any) -> str:
    """What d_N is the dimension of in a run."""
    return "router-dimension" if params.whole_router else "mask-dimension"


def theorem_1(run: Run, rademacher: float, router: str, num_features: int, least_natarajan: float = 0) -> float:
    """(23) of a cell whose routers are of the class `router` (see `natarajan`), or with a larger d_N.

    Raises: InvalidParamsError for a class that has no finite d_N under the run's reading.
    """
    params = run.params
    experts, active = int(params.num_experts), int(params.num_active)
    dimension = natarajan.natarajan(router, experts, active, num_features, reading_of(params))
    return float(
        theory.theorem_1(
            experts,
            active,
            int(params.num_samples),
            rademacher,
            max(dimension, least_natarajan),
            LIPSCHITZ,
            float(params.delta),
        )
    )


def linear_bounds(run: Run, num_features: int, share: float = 1.0) -> repaired.Bounds:
    """The bounds that hold for linear experts and routers, at `share` of the cell's delta."""
    params = run.params
    return repaired.bounds(
        int(params.num_experts),
        int(params.num_active),
        int(params.num_samples),
        num_features,
        float(params.expert_norm),
        1.0,
        float(params.router_norm),
        LIPSCHITZ,
        share * float(params.delta),
    )


def allowed(*names: str) -> Values:
    """delta of the named cells, which a bound may fail with, one component each."""
    return lambda runs: np.array([float(runs[name].params.delta) for name in names])


def all_allowed(runs: Runs) -> np.ndarray:
    """delta of every cell, one component each."""
    return allowed(*runs)(runs)


def exceeds(bounds: Values) -> Values:
    """Whether the gap of each cell exceeds its bound, one component a cell."""
    return lambda runs: gaps_of(runs, runs) > bounds(runs)


def unless_impossible(largest: float, bound: Callable[[Runs], Any]) -> Values:
    """`trivial` of an event whose gap is at most `largest`: no bound from there on can fail, whatever it says."""
    return lambda runs: np.where(np.asarray(bound(runs)) >= largest, 0.0, 1.0)


def seldom_above(bound: str) -> str:
    """In LaTeX, that the largest gap of the class exceeds a bound with probability at most delta."""
    return (
        r"\mathbb{P}\left( \sup_{f \in \mathcal{F}(T, k)} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) "
        r"\right\rvert > " + bound + r" \right) \le \delta"
    )


def shown(run: Run, *names: str) -> np.ndarray:
    """What the only round of a run shows under a name, or under a name within another, in float64: (..., B)."""
    record: Any = run.records
    for name in names:
        record = getattr(record, name)
    return record[0].astype(np.float64)


def over(cells: Sequence[str], value: Callable[[Run], np.ndarray]) -> Values:
    """What `value` says of each cell's run (B,), one component a cell."""
    return lambda runs: np.stack([value(runs[cell]) for cell in cells], axis=1)
