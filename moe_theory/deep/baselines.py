"""A locality loss with a baseline, weighted by `Params.baseline_weight`."""

from typing import Any

from jaxtyping import Array, Float

from moe_theory.core.baseline import Baseline, repaired
from moe_theory.core.locality import Locality, Move
from moe_theory.deep.params import Dims, Params


def _weighted_cost(move: Move, memory: Baseline, arrival: Any, params: Params) -> tuple[Float[Array, " M"], Baseline]:
    costs, memory = repaired.cost(move, memory, arrival, params)
    return move.costs + params.baseline_weight * (costs - move.costs), memory


WITH_BASELINE = Locality(_weighted_cost, repaired.init)


def locality_of(dims: Dims, locality: Locality | None, printed: Any) -> Any:
    """Return the user's locality loss, or else one with a baseline if `Dims.compares`, or else the printed loss."""
    if locality is None and dims.compares:
        return WITH_BASELINE
    return locality or printed
