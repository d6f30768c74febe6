"""Readings of the edge-computing paper: named choices where it is silent or contradicts itself.

What the paper leaves open, and the parameter that decides it:

| open | parameter |
| --- | --- |
| which signal v_t belongs to a ground truth (Assumption 1) | `signal_law` |
| the signals' scale, |v|_inf = O(1) | `signal_scale` |
| distribution of beta_t in (0, C] | `min_strength`, `max_strength` |
| whether sigma_0, "the variance of elements", is a variance or a deviation | `scale_is_variance` |
| spread of truths inside a cluster, O(sigma_0^2) in (6) | `cluster_spread`: sigma_0^2 / 12^(1/2) an entry |
| the noise r = o(1) of (4) | `perturbation_scale` |
| laws of the delays in Fig. 3, of which only d_u = 10 is given | the laws of `delays` and their bounds |
| whether a completed task moves the gates in its own round, or in the next as (13) has it | `gate_lag` |

What decides the outcome is `gate_drive`, how far one gate step moves a gate output: with v = w it is so small in Fig. 3
that nothing specialises within T.
"""

import functools
import math
from typing import Any

from scipy import integrate, stats

from moe_theory.core.errors import unknown_name
from moe_theory.core.readings import Reading as Reading
from moe_theory.core.tasks import mean_norm, mean_square_strength
from moe_theory.edge.params import INDEPENDENT, ORTHOGONAL, PROPORTIONAL, Params

FIGURE_3_FEATURES = 15  # p of Fig. 3
TUNED_EXPERTS = 50  # the M at which a tuned reading has a gate drive of 1


def gate_drive(params: Params, num_features: int) -> float:
    """kappa = eta E|w| E|v|^2 E[beta^2] / M, dimensionless: how far one gate step moves a gate output.

    Expectations of |w| and |v|^2 are those of the reading's laws, with Gaussian entries of truths.

    Examples:
        A tuned reading has a gate drive of 1 in Fig. 3, with 50 experts and 15 features:

        >>> from moe_theory import edge
        >>> round(edge.gate_drive(edge.reading("scaled-signal").params(num_experts=50), 15), 6)
        1.0
    """
    deviation = math.sqrt(params.truth_scale) if params.scale_is_variance else float(params.truth_scale)
    entry = math.hypot(deviation, float(params.cluster_spread))
    square_norms = {
        PROPORTIONAL: num_features * entry**2,
        ORTHOGONAL: 1.0,
        INDEPENDENT: _mean_square_bounded(num_features),
    }
    square_signal = float(params.signal_scale) ** 2 * square_norms[int(params.signal_law)]
    strength_squared = mean_square_strength(float(params.min_strength), float(params.max_strength))
    drive = params.learning_rate * mean_norm(entry, num_features) * square_signal * strength_squared
    return float(drive / params.num_experts)


@functools.cache
def _mean_square_bounded(num_features: int) -> float:
    """E|z|^2 / |z|_inf^2 of a standard normal z: 1 for its largest entry, and for the others by quadrature over it."""

    def others(largest: float) -> float:
        inside = 2 * stats.norm.cdf(largest) - 1
        square = 1 - 2 * largest * stats.norm.pdf(largest) / inside
        density = num_features * 2 * stats.norm.pdf(largest) * inside ** (num_features - 1)
        return float(density * square / largest**2)

    return 1 + (num_features - 1) * float(integrate.quad(others, 1e-6, 12)[0])


def _tuned(**choices: Any) -> dict[str, Any]:
    """These choices with the signals' scale at which the gate drive is 1 in Fig. 3 with `TUNED_EXPERTS`."""
    params = Params(num_experts=TUNED_EXPERTS, signal_scale=1.0)._replace(**choices)
    return {**choices, "signal_scale": 1 / math.sqrt(gate_drive(params, FIGURE_3_FEATURES))}


# The readings by name; the first is that of `Params`.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading(
            "sibling",
            "v = w: signals are the truths themselves, as in the paper's sibling on continual learning",
            Params(),
        ),
        Reading("scaled-signal", "v = c w with the gate drive kappa = 1 at M = 50", Params(), _tuned()),
        Reading(
            "orthogonal-signal",
            "orthogonal signals of equal norm with the gate drive kappa = 1 at M = 50",
            Params(),
            _tuned(signal_law=ORTHOGONAL),
        ),
        Reading(
            "independent-signal",
            "signals drawn apart from the truths with |v|_inf = 1, beta uniform on (0, 1]",
            Params(),
            {"signal_law": INDEPENDENT, "min_strength": 0.0},
        ),
    )
}


def reading(name: str) -> Reading:
    """The reading called `name`. Raises: UnknownNameError, with the nearest name suggested.

    Examples:
        >>> from moe_theory import edge
        >>> edge.reading("independent-signal").params(num_experts=4).min_strength
        0.0
    """
    if name not in READINGS:
        raise unknown_name("reading", name, READINGS)
    return READINGS[name]
