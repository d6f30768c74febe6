"""Readings of the deep experiments: named choices where the papers are silent or contradict themselves.

What the papers leave open, and the parameter that decides it:

| open | parameter |
| --- | --- |
| which images a task has: half of its class, or only those | `positive_share` |
| whether experts tell one class from the rest, or all K apart | `multi_class` |
| what experts minimise (only the test error is said to be squared) | `squared_loss` |
| whether the mean image is centred before it is the gate's input | `centre` |
| the scale of the gate's input | `gate_scale` |
| whether the locality loss is the norm of the change of all parameters, or per parameter | `per_parameter` |
| delays of servers, of which only d_u = 4 is given | `min_execution_delay`, `max_execution_delay`, ... |
| eta, alpha, lambda and Gamma | `learning_rate`, `balance_weight`, `perturbation_scale`, `termination_threshold` |

The outcome depends most on `gate.drive`, kappa = eta |g|^2 |w_t - w_{t-1}|, which runs print.
"""

from moe_theory.core.errors import unknown_name
from moe_theory.core.readings import Reading
from moe_theory.deep.params import Params

# The readings by name; the first has the defaults of `Params`.
READINGS: dict[str, Reading] = {
    reading.name: reading
    for reading in (
        Reading("balanced", "half of a task's images show its class, cross entropy, delays of 4 rounds", Params()),
        Reading(
            "multi-class",
            "all images show the task's class, which experts tell from the K - 1 others",
            Params(),
            {"positive_share": 1.0, "multi_class": True},
        ),
        Reading("all-positive", "all images show the task's class: one label", Params(), {"positive_share": 1.0}),
        Reading("squared-loss", "as balanced, experts minimise the squared error", Params(), {"squared_loss": True}),
        Reading("uncentred", "as balanced, the gate reads the mean image itself", Params(), {"centre": False}),
        Reading("per-parameter", "as balanced, the locality norm per parameter", Params(), {"per_parameter": True}),
        Reading(
            "uniform-delay",
            "as balanced, execution delays uniform on 1 to 4 rounds",
            Params(),
            {"min_execution_delay": 1},
        ),
    )
}


def reading(name: str) -> Reading:
    """The reading called `name`. Raises: UnknownNameError, with the nearest name suggested.

    Examples:
        >>> from moe_theory import deep
        >>> deep.reading("uncentred").params(num_experts=4).centre
        False
    """
    if name not in READINGS:
        raise unknown_name("reading", name, READINGS)
    return READINGS[name]
