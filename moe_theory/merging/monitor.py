"""Monitors: estimates of the task mix of a slot before its requests arrive.

Source: Sec. III-B. The paper names a moving average, which is used here, and a Count-Min Sketch, without constants.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float

from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback

ORACLE = "oracle"  # a name of `MONITORS`
AVERAGE = "average"  # a name of `MONITORS`


class Monitor(NamedTuple):
    """Estimator of the task mix, on the simplex. All but the oracle use earlier slots only.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.merging import Dims, Feedback, Params, monitor
        >>> average, params = monitor.MONITORS[monitor.AVERAGE], Params(monitor_rate=0.5)
        >>> slot = Feedback(rewards=np.zeros(2), counts=np.array([3, 1]))
        >>> state = average.watch(average.begin(Dims(num_tasks=2), params), slot, params)
        >>> average.estimate(state, None).tolist()
        [0.625, 0.375]
    """

    begin: Callable[[Dims, Params], Any]  # the first state
    estimate: Callable[[Any, Float[Array, " V"]], Float[Array, " V"]]  # (state, the slot's true mix): its estimate
    watch: Callable[[Any, Feedback, Params], Any]  # (state, the slot's feedback, params): the next state


def _update_average(state: Float[Array, " V"], feedback: Feedback, params: Params) -> Float[Array, " V"]:
    counts = feedback.counts.astype(state.dtype)
    rate = jnp.asarray(params.monitor_rate, state.dtype)
    return (1 - rate) * state + rate * counts / jnp.sum(counts)


# The monitors by name. The oracle estimates the true mix, and the average the moving average of earlier slots.
MONITORS: dict[str, Monitor] = {
    ORACLE: Monitor(
        begin=lambda dims, params: (), estimate=lambda state, mix: mix, watch=lambda state, feedback, params: state
    ),
    AVERAGE: Monitor(
        begin=lambda dims, params: jnp.full((dims.num_tasks,), 1 / dims.num_tasks, jnp.result_type(float)),
        estimate=lambda state, mix: state,
        watch=_update_average,
    ),
}
