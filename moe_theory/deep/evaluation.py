"""Test errors and accuracies of all past tasks with the current experts, which give F_t (15) and G_t (16).

The expert that served a task is tested on it.
"""

from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core import constraints
from moe_theory.core.errors import InvalidValueError
from moe_theory.deep.networks import NETWORKS, Weights
from moe_theory.deep.params import Dims, Params
from moe_theory.deep.tasks import Arrival, Pool, inputs_of

NO_EXPERT = -1
# Images per evaluation of a network. On a CPU, ResNet-18 takes 5 MB for an image of 32 x 32.
EVALUATION_BATCH = 500


class Tables(NamedTuple):
    """Evaluations of each expert on each test image, for each of the K tasks of the image."""

    losses: Float[Array, "M K n"]  # squared errors
    hits: Float[Array, "M K n"]  # 1 if the output is right, 0 if it is wrong, NaN if the network has diverged


class Past(NamedTuple):
    tasks: Int[Array, " T"]
    experts: Int[Array, " T"]  # `NO_EXPERT` for a task that was dropped or has not arrived yet
    tests: Int[Array, "T n"]  # rows of the tasks' test images
    learned: Float[Array, " T"]  # E_t(w_t), the error when the expert had just learned the task

    @property
    def max_rounds(self) -> int:
        return self.experts.shape[0]


UNSEEN = constraints.Undefined("no task of a class has arrived yet")  # for values of each class


class Scores(NamedTuple):
    error: Float[Array, ""]  # E_t(w_t) of the newest task
    forgetting: Float[Array, ""]  # F_t, (15)
    generalization_error: Float[Array, ""]  # G_t, (16)
    accuracy: Float[Array, ""]  # mean over the tasks so far
    class_errors: Annotated[Float[Array, " K"], UNSEEN]  # mean over the tasks of each class, NaN before the first
    class_accuracies: Annotated[Float[Array, " K"], UNSEEN]


def empty_past(dims: Dims) -> Past:
    return Past(
        tasks=jnp.zeros(dims.max_rounds, jnp.int32),
        experts=jnp.full(dims.max_rounds, NO_EXPERT, jnp.int32),
        tests=jnp.zeros((dims.max_rounds, dims.num_tests), jnp.int32),
        learned=jnp.zeros(dims.max_rounds, jnp.result_type(float)),
    )


def record(past: Past, time: Int[Array, ""], arrival: Arrival, expert: Int[Array, ""], rows: Tables) -> Past:
    """Return the past with the arrival of round `time`. `rows` (K, n) evaluate the task's expert after learning."""
    if constraints.is_known(time) and int(time) > past.max_rounds:
        raise InvalidValueError(
            f"round {int(time)} must be at most max_rounds={past.max_rounds}, the length of the arrays. Raise "
            "Dims.max_rounds."
        )
    place = time - 1
    return Past(
        tasks=past.tasks.at[place].set(arrival.task.astype(jnp.int32)),
        experts=past.experts.at[place].set(expert),
        tests=past.tests.at[place].set(arrival.tests.astype(jnp.int32)),
        learned=past.learned.at[place].set(jnp.mean(rows.losses[arrival.task, arrival.tests])),
    )


def scores(past: Past, tables: Tables, time: Int[Array, ""]) -> Scores:
    """Return F_t, G_t and accuracy after round `time`, for all routed tasks and by class, NaN past `max_rounds`.

    Source: Eqs. (15), (16) of `continual` with the mean-squared test error in place of (14), and Eq. (20) of `edge`.
    """
    routed = past.experts != NO_EXPERT
    count = jnp.sum(routed)
    errors = _by_task(tables.losses, past)
    hit_rates = _by_task(tables.hits, past)
    rises = jnp.sum(jnp.where(routed, errors - past.learned, 0))
    is_of_class = (past.tasks == jnp.arange(tables.losses.shape[1])[:, None]) & routed
    one_or_nan = jnp.where(time <= past.max_rounds, 1, jnp.nan).astype(errors.dtype)
    return Scores(
        error=one_or_nan * past.learned[time - 1],
        forgetting=one_or_nan * rises / jnp.maximum(count - 1, 1),
        generalization_error=one_or_nan * _mean(errors, routed, count),
        accuracy=one_or_nan * _mean(hit_rates, routed, count),
        class_errors=one_or_nan * _class_means(errors, is_of_class),
        class_accuracies=one_or_nan * _class_means(hit_rates, is_of_class),
    )


def _class_means(values: Float[Array, " T"], is_of_class: Bool[Array, "K T"]) -> Float[Array, " K"]:
    return jnp.sum(jnp.where(is_of_class, values, 0), axis=1) / jnp.sum(is_of_class, axis=1)


def _by_task(table: Float[Array, "M K n"], past: Past) -> Float[Array, " T"]:
    """Return each past task's mean over its test images. A task without an expert has values of expert 0."""
    # Whole rows are selected first, because gathering single entries takes twice as long on a CPU.
    rows = table[jnp.maximum(past.experts, 0), past.tasks]
    return jnp.mean(jnp.take_along_axis(rows, past.tests, axis=1), axis=1)


def _mean(values: Float[Array, " T"], is_chosen: Bool[Array, " T"], count: Int[Array, ""]) -> Float[Array, ""]:
    return jnp.sum(jnp.where(is_chosen, values, 0)) / jnp.maximum(count, 1)


def evaluate_all(experts: Weights, pool: Pool, params: Params, dims: Dims) -> Tables:
    return jax.lax.map(lambda expert: evaluate(expert, pool, params, dims), experts)


def evaluate(expert: Weights, pool: Pool, params: Params, dims: Dims) -> Tables:
    network = NETWORKS[dims.network]
    count = pool.test.labels.shape[0]
    num_batches = -(-count // EVALUATION_BATCH)  # rounded up
    size = -(-count // num_batches)
    # Batches have one size. The last batch is filled up with its last image.
    batches = np.minimum(np.arange(num_batches * size), count - 1).reshape(num_batches, size)

    def outputs_of(places: Int[Array, " n"]) -> Float[Array, "n K"]:
        inputs = inputs_of(pool, pool.test.pixels[places])
        outputs, _ = network.apply(expert, inputs, False)  # not in training
        return outputs

    outputs = jax.lax.map(outputs_of, jnp.asarray(batches)).reshape(num_batches * size, -1)[:count]
    labels = jnp.asarray(pool.test.labels)

    def evaluate_task(task: Int[Array, ""]) -> Tables:
        return Tables(squared_errors(outputs, labels, task, params), hits(outputs, labels, task, params))

    return jax.vmap(evaluate_task)(jnp.arange(dims.num_classes))


def squared_errors(
    outputs: Float[Array, "n K"], labels: Int[Array, " n"], task: Int[Array, ""], params: Params
) -> Float[Array, " n"]:
    """Return (p - y)^2 for the probability p that an image shows the task's class, summed over several classes."""
    binary = jnp.square(jax.nn.sigmoid(outputs[:, 0]) - (labels == task))
    multi_class = jnp.sum(jnp.square(jax.nn.softmax(outputs) - one_hot(outputs, labels)), axis=1)
    return jnp.where(jnp.asarray(params.multi_class, bool), multi_class, binary)


def hits(
    outputs: Float[Array, "n K"], labels: Int[Array, " n"], task: Int[Array, ""], params: Params
) -> Float[Array, " n"]:
    binary = (outputs[:, 0] > 0) == (labels == task)
    multi_class = jnp.argmax(outputs, axis=1) == labels
    hit = jnp.where(jnp.asarray(params.multi_class, bool), multi_class, binary).astype(outputs.dtype)
    return jnp.where(jnp.any(jnp.isnan(outputs), axis=1), jnp.nan, hit)  # NaN if the network has diverged


def one_hot(outputs: Float[Array, "n K"], labels: Int[Array, " n"]) -> Bool[Array, "n K"]:
    """Return labels as one-hot rows. The row is zero if an image shows none of the K classes."""
    return labels[:, None] == jnp.arange(outputs.shape[1])
