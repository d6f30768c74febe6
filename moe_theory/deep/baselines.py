"""A locality loss with a baseline, weighted by `Params.baseline_weight`."""

from typing import Any

from jaxtyping import Array, Float

from moe_theory.core.baseline import Baseline, repaired
from moe_theory.core.locality import Locality, Move
from moe_theory.deep.params import Dims, Params


def _weighed(move: Move, memory: Baseline, arrival: Any, params: Params) -> tuple[Float[Array, " M"], Baseline]:
    costs, memory = repaired.cost(move, memory, arrival, params)
    return move.costs + params.baseline_weight * (costs - move.costs), memory


AGAINST_BASELINE = Locality(_weighed, repaired.init)  # weighted by `Params.baseline_weight`


def locality_of(dims: Dims, locality: Locality | None, printed: Any) -> Any:
    """Return the user's locality loss, or else one with a baseline if `Dims.compares`, or else the printed loss."""
    return locality or (AGAINST_BASELINE if dims.compares else printed)
