"""Readings of the continual-learning paper: named choices where it is silent or contradicts itself.

What the paper leaves open, and the parameter that decides it:

| open | parameter |
| --- | --- |
| scale c of v_n = c w_n ("scaled by a constant", App. A.2) | `signal_scale` |
| whether v_n is proportional to w_n | `independent_signals` |
| distribution of beta_t in (0, C] | `min_strength`, `max_strength` |
| whether sigma_0 in N(0, sigma_0) is a variance or a deviation | `scale_is_variance` |
| spread of truths inside a cluster, O(sigma_0^1.5) | `cluster_spread` |
| whether (6) has a norm or a squared norm | `locality_power` |
| whether convergence flags accumulate | `accumulate_flags` |
| Gamma in Fig. 2 (Algorithm 1: O(sigma_0^1.25)) | `termination_threshold` |

The scale c matters most: the outcome depends on `gate_drive` more than on sigma_0 alone.
"""

import math

from moe_theory.continual.params import SIGMA_0, Params
from moe_theory.core.errors import unknown_name
from moe_theory.core.readings import Reading
from moe_theory.core.tasks import mean_norm, mean_square_strength

# The readings by name; the first is that of `Params`.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading("unit-signal", "c = 1/sigma_0, spread sigma_0^1.5 inside a cluster, q = 1; the default", Params()),
        Reading("weak-signal", "c = 1: signals are the truths themselves", Params(), {"signal_scale": 1.0}),
        Reading(
            "strong-signal", "c = 5, no spread inside a cluster", Params(), {"signal_scale": 5.0, "cluster_spread": 0.0}
        ),
        Reading("identical-tasks", "c = 1/sigma_0, no spread inside a cluster", Params(), {"cluster_spread": 0.0}),
        Reading(
            "independent-signal",
            "signals drawn apart from the truths, c = 1/sigma_0",
            Params(),
            {"independent_signals": True},
        ),
        Reading("squared-locality", "|w_t - w_{t-1}|^2 in (6)", Params(), {"locality_power": 2.0}),
    )
}


def reading(name: str) -> Reading:
    """The reading called `name`. Raises: UnknownNameError, with the nearest name suggested.

    Examples:
        >>> from moe_theory import continual
        >>> continual.reading("weak-signal").params(num_experts=5).signal_scale
        1.0
    """
    if name not in READINGS:
        raise unknown_name("reading", name, READINGS)
    return READINGS[name]


def gate_drive(params: Params, num_features: int) -> float:
    """kappa = eta E|w| E|v|^2 E[beta^2] / M, dimensionless: how far one gate step moves a gate output.

    Expectations of |w| and |v|^2 are those of Gaussian entries (E|w| by the chi distribution's mean).

    Examples:
        >>> from moe_theory import continual
        >>> params = continual.Params(learning_rate=0.25)
        >>> continual.gate_drive(params._replace(learning_rate=0.5), 10) / continual.gate_drive(params, 10)
        2.0
    """
    deviation = math.sqrt(params.truth_scale) if params.scale_is_variance else float(params.truth_scale)
    spread = float(params.cluster_spread)
    entry = math.hypot(deviation, spread)
    signal_entry = params.signal_scale * (deviation if params.independent_signals else entry)
    strength_squared = mean_square_strength(float(params.min_strength), float(params.max_strength))
    return float(
        params.learning_rate
        * mean_norm(entry, num_features)
        * num_features
        * signal_entry**2
        * strength_squared
        / params.num_experts
    )


__all__ = ["READINGS", "SIGMA_0", "Reading", "gate_drive", "reading"]
