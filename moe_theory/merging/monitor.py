"""Monitors: estimates of the task mix of a slot before its requests arrive.

Source: Sec. III-B, which names a moving average and a Count-Min Sketch and gives neither's constants.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.core.fields import documented
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.rewards import Feedback

ORACLE, AVERAGE, SKETCH = "oracle", "average", "sketch"  # names of `MONITORS`
SKETCH_COLUMNS = 8  # counters of a row, however many tasks there are
# Multipliers and shifts of the rows' hashes, ((a v + b) mod p) mod columns: fixed, from a table of random digits.
HASHES = ((1009732533, 760013586), (346735486, 876807911), (1490845117, 927496452))
HASH_PRIME = 2**31 - 1  # p


@documented
class Monitor(NamedTuple):
    """An estimate of the task mix, on the simplex; except for the oracle, from earlier slots alone."""

    begin: Callable[[Dims, Params], Any]
    estimate: Callable[[Any, Float[Array, " V"]], Float[Array, " V"]]  # (state, the slot's true mix)
    watch: Callable[[Any, Feedback, Params], Any]


@documented
class Sketch(NamedTuple):
    """A Count-Min Sketch with decaying counts.

    Examples:
        A monitor that has watched one slot, with 3 requests of the first task and 5 of the second:

        >>> import numpy as np
        >>> from moe_theory.merging import Dims, Feedback, Params, monitor
        >>> watcher = monitor.MONITORS[monitor.SKETCH]
        >>> empty = watcher.begin(Dims(num_tasks=2), Params())
        >>> sketch = watcher.watch(empty, Feedback(rewards=np.zeros(2), counts=np.array([3, 5])), Params())
        >>> monitor.sketch_counts(sketch).tolist()
        [3.0, 5.0]
    """

    table: Float[Array, "rows columns"]
    kinds: Float[Array, " V"]  # zeros; its shape is the number of tasks


def sketch_counts(sketch: Sketch) -> Float[Array, " V"]:
    """The least counter of each task: at least its decayed count, above it where all rows collide.

    Source: Cormode and Muthukrishnan, 2005.
    """
    columns = hashed(sketch.kinds.shape[0])
    return jnp.min(jnp.stack([row[places] for row, places in zip(sketch.table, columns, strict=True)]), axis=0)


def hashed(num_tasks: int) -> Int[np.ndarray, "rows V"]:
    """The column of each task in each row.

    Examples:
        >>> from moe_theory.merging import monitor
        >>> monitor.hashed(num_tasks=20).shape
        (3, 20)
    """
    return np.array([[(a * task + b) % HASH_PRIME % SKETCH_COLUMNS for task in range(num_tasks)] for a, b in HASHES])


def _average(state: Float[Array, " V"], feedback: Feedback, params: Params) -> Float[Array, " V"]:
    """(1 - rate) shares + rate (counts of the slot / their sum)."""
    counts = feedback.counts.astype(state.dtype)
    rate = jnp.asarray(params.monitor_rate, state.dtype)
    return (1 - rate) * state + rate * counts / jnp.sum(counts)


def _empty_sketch(dims: Dims, params: Params) -> Sketch:
    del params
    dtype = jnp.result_type(float)
    return Sketch(jnp.zeros((len(HASHES), SKETCH_COLUMNS), dtype), jnp.zeros((dims.num_tasks,), dtype))


def _sketched(state: Sketch, mix: Float[Array, " V"]) -> Float[Array, " V"]:
    """Shares in proportion to the counts; equal shares before the first count."""
    del mix
    counts = sketch_counts(state)
    total = jnp.sum(counts)
    return jnp.where(total > 0, counts / jnp.where(total > 0, total, 1), 1 / counts.shape[0])


def _count(state: Sketch, feedback: Feedback, params: Params) -> Sketch:
    """Decay all counters by 1 - rate, then add the slot's requests."""
    counts = feedback.counts.astype(state.table.dtype)
    is_column = hashed(counts.shape[0])[:, :, None] == np.arange(SKETCH_COLUMNS)
    added = jnp.sum(jnp.where(is_column, counts[None, :, None], 0), axis=1)
    return Sketch((1 - jnp.asarray(params.monitor_rate, counts.dtype)) * state.table + added, state.kinds)


# The monitors by name: the true mix, a moving average, a Count-Min Sketch.
MONITORS: dict[str, Monitor] = {
    ORACLE: Monitor(lambda dims, params: (), lambda state, mix: mix, lambda state, feedback, params: state),
    AVERAGE: Monitor(
        lambda dims, params: jnp.full((dims.num_tasks,), 1 / dims.num_tasks, jnp.result_type(float)),
        lambda state, mix: state,
        _average,
    ),
    SKETCH: Monitor(_empty_sketch, _sketched, _count),
}
