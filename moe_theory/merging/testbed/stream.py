"""What arrives in the testbed: a slot of examples whose tasks follow a mix, and the rewards that it gives."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.merging.testbed.tasks import Examples


class Slot(NamedTuple):
    """The n examples of one slot."""

    inputs: Float[Array, "n s p"]
    labels: Int[Array, " n"]
    tasks: Int[Array, " n"]
    mix: Float[Array, " V"]  # what the tasks were drawn from, psi


def draw_slot(key: Key[Array, ""], examples: Examples, mix: Float[Array, " V"], size: int) -> Slot:
    """`size` independent examples: a task by the mix, then any of that task's examples, each as likely as the others.

    Args:
        examples: arrays on the device, in order of their V tasks.
    """
    task_key, input_key = jax.random.split(key)
    num_tasks = mix.shape[0]
    per_task = examples.labels.shape[0] // num_tasks
    reached = jnp.cumsum(mix)
    # Times the sum, as rounded, no draw is above it: a task of no share at the end is never drawn.
    draws = jax.random.uniform(task_key, (size, 1), mix.dtype) * reached[-1]
    tasks = jnp.sum(draws >= reached[:-1], axis=1, dtype=jnp.int32)
    places = jax.random.randint(input_key, (size,), 0, per_task, jnp.int32)
    chosen = tasks * per_task + places
    return Slot(jnp.asarray(examples.inputs)[chosen], jnp.asarray(examples.labels)[chosen], tasks, mix)


def accuracies(
    logits: Float[Array, "n C"], labels: Int[Array, " n"], tasks: Int[Array, " n"], num_tasks: int
) -> tuple[Float[Array, " V"], Int[Array, " V"]]:
    """The share of right answers among a slot's examples of each task, and how many of them there are.

    A task that is absent has reward 0 and count 0.
    """
    is_own = tasks[:, None] == jnp.arange(num_tasks, dtype=tasks.dtype)
    is_right = (jnp.argmax(logits, axis=-1) == labels)[:, None]
    counts = jnp.sum(is_own, axis=0, dtype=jnp.int32)
    hits = jnp.sum(is_own & is_right, axis=0, dtype=jnp.int32)
    return hits.astype(logits.dtype) / jnp.maximum(counts, 1).astype(logits.dtype), counts
