"""Past tasks and how well today's experts do them: test errors and accuracies of (15), (16) without a second look.

Only the expert that was trained is evaluated, once on all test images; what every earlier task's test images make of
its expert's model is then read from that table. T rounds take T evaluations and not T^2.
"""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core import checks
from moe_theory.core.errors import InvalidRunError
from moe_theory.deep.params import Dims


class Tables(NamedTuple):
    """What each expert makes of each test image, for each of the K tasks that it may belong to."""

    losses: Float[Array, "M K n"]  # squared errors
    hits: Float[Array, "M K n"]  # 1 where it is right


class Past(NamedTuple):
    """Arrivals so far, padded to T rounds."""

    tasks: Int[Array, " T"]
    experts: Int[Array, " T"]  # `NOBODY` for a task that was dropped, or has not come yet
    tests: Int[Array, "T n"]  # rows of its test images
    learned: Float[Array, " T"]  # E_t(w_t): its error when its expert had just learned it

    @property
    def max_rounds(self) -> int:
        """T, in a batch too."""
        return self.experts.shape[0]


class Scores(NamedTuple):
    """Of the tasks so far, with the experts as they are."""

    error: Float[Array, ""]  # E_t(w_t) of the newest
    forgetting: Float[Array, ""]  # F_t, (15)
    generalization_error: Float[Array, ""]  # G_t, (16)
    accuracy: Float[Array, ""]  # the mean over these tasks


NOBODY = -1


def no_past(dims: Dims) -> Past:
    """Before the first round."""
    dtype = jnp.result_type(float)
    return Past(
        tasks=jnp.zeros(dims.max_rounds, jnp.int32),
        experts=jnp.full(dims.max_rounds, NOBODY, jnp.int32),
        tests=jnp.zeros((dims.max_rounds, dims.num_tests), jnp.int32),
        learned=jnp.zeros(dims.max_rounds, dtype),
    )


def with_rows(tables: Tables, expert: Int[Array, ""], rows: Tables) -> Tables:
    """The tables after an expert was evaluated, `rows` (K, n)."""
    return Tables(*(table.at[expert].set(row) for table, row in zip(tables, rows, strict=True)))


def remember(
    past: Past,
    time: Int[Array, ""],
    task: Int[Array, ""],
    expert: Int[Array, ""],
    tests: Int[Array, " n"],
    rows: Tables,
) -> Past:
    """The past with round `time`'s arrival; `rows` (K, n) are its expert's once it has learned it.

    Raises: InvalidRunError for a round beyond `Dims.max_rounds`, where its number is known.
    """
    if checks.is_known(time) and int(time) > past.max_rounds:
        raise InvalidRunError(
            f"round {int(time)} must be at most max_rounds={past.max_rounds}, which there is memory for. "
            "Raise Dims.max_rounds."
        )
    place = time - 1
    return Past(
        tasks=past.tasks.at[place].set(task.astype(jnp.int32)),
        experts=past.experts.at[place].set(expert),
        tests=past.tests.at[place].set(tests.astype(jnp.int32)),
        learned=past.learned.at[place].set(jnp.mean(rows.losses[task, tests])),
    )


def scores(past: Past, tables: Tables, time: Int[Array, ""]) -> Scores:
    """F_t, G_t and the accuracy of all tasks that an expert has been given, after round `time`.

    All are NaN in rounds beyond `Dims.max_rounds`, whose arrivals there is no memory for, so that nobody misses it.

    Source: Eqs. (15), (16) of `continual` with the mean-squared test error in place of (14); Eq. (20) of `edge`.
    """
    routed = past.experts != NOBODY
    count = jnp.sum(routed)
    errors, rates = (_by_task(past, table) for table in tables)
    rises = jnp.sum(jnp.where(routed, errors - past.learned, 0))
    remembered = jnp.where(time <= past.max_rounds, 1, jnp.nan).astype(errors.dtype)
    return Scores(
        error=remembered * past.learned[time - 1],
        forgetting=remembered * rises / jnp.maximum(count - 1, 1),
        generalization_error=remembered * _mean(errors, routed, count),
        accuracy=remembered * _mean(rates, routed, count),
    )


def _by_task(past: Past, table: Float[Array, "M K n"]) -> Float[Array, " T"]:
    # Row by row: a gather of single entries takes twice as long on a CPU.
    rows = table[jnp.maximum(past.experts, 0), past.tasks]
    return jnp.mean(jnp.take_along_axis(rows, past.tests, axis=1), axis=1)


def _mean(values: Float[Array, " T"], chosen: Bool[Array, " T"], count: Int[Array, ""]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(chosen, values, 0)) / jnp.maximum(count, 1)
