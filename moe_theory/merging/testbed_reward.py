"""A trained MoE as a reward: accuracy on each task of one expert a layer, merged with the weights in question.

A slot shows the accuracy on its own random requests. f* itself, the accuracy on all requests there could be, would cost
a pass over the validation split every slot; `value` is the accuracy on a fixed part of it, the same for all replicates,
slots and policies, so that it orders policies better than it measures any of them. What a policy earns is unbiased in
the slots' own accuracies. The best weights are unknown, and the regret is not a number.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import checks
from moe_theory.core.errors import InvalidDimsError, InvalidParamsError
from moe_theory.merging import tasks
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.policy import Feedback
from moe_theory.merging.reward import Reward
from moe_theory.merging.serving import merge
from moe_theory.merging.tasks import Tasks
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.stream import accuracies, draw_slot
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Model

MAX_SLOT_SIZE = 128  # requests that a slot has room for
NUM_VALUED = 16  # validation inputs of each task that `value` is over


class World(NamedTuple):
    """What a replicate draws: its mix. Model and inputs are the same for all, so that no state carries them."""

    tasks: Tasks


def of_model(
    model: Model,
    data: Examples,
    num_tasks: int,
    max_slot_size: int = MAX_SLOT_SIZE,
    num_valued: int = NUM_VALUED,
) -> Reward:
    """The reward of any model; each call makes another object, and so another system.

    Args:
        data: of V equal parts, the v-th of task v.
        max_slot_size: what `Params.slot_size` may be at most.
        num_valued: inputs of each task, spread evenly, that `value` is the accuracy on.
    Raises: InvalidDimsError for fewer inputs than that.
    """
    num_experts, per_task = merge.num_experts_of(model), len(data.labels) // num_tasks
    if not 1 <= num_valued <= per_task:
        raise InvalidDimsError(
            f"num_valued={num_valued} must be from 1 to {per_task}, the inputs of each task. Change num_valued."
        )
    on_device = jax.tree.map(jnp.asarray, data)
    chosen = np.linspace(0, per_task - 1, num_valued).astype(int) + per_task * np.arange(num_tasks)[:, None]
    valued = jax.tree.map(lambda leaf: leaf[chosen.reshape(-1)], on_device)

    def draw(key: Key[Array, ""], dims: Dims, params: Params) -> World:
        _check(dims, params, num_experts, num_tasks, max_slot_size)
        return World(tasks.draw_tasks(key, dims, params))

    def mix(world: World, time: Int[Array, ""], params: Params) -> Float[Array, " V"]:
        return tasks.mix_of(world.tasks, time, params)

    def answered(weights: Float[Array, " K"], inputs: Float[Array, "n s p"]) -> Float[Array, "n C"]:
        served = merge.weighted(model, weights[:num_experts].astype(model.b_head.dtype))
        return transformer.forward(served, inputs, merge.single).astype(weights.dtype)

    def value(world: World, weights: Float[Array, " K"]) -> Float[Array, " V"]:
        del world
        return accuracies(answered(weights, valued.inputs), valued.labels, valued.tasks, num_tasks)[0]

    def serve(
        key: Key[Array, ""], world: World, weights: Float[Array, " K"], mix: Float[Array, " V"], params: Params
    ) -> Feedback:
        del world
        slot = draw_slot(key, on_device, mix, max_slot_size)
        is_request = jnp.arange(max_slot_size, dtype=jnp.int32) < params.slot_size
        kinds = jnp.where(is_request, slot.tasks, -1)
        return Feedback(*accuracies(answered(weights, slot.inputs), slot.labels, kinds, num_tasks))

    return Reward(draw, mix, value, serve, None)


def _check(dims: Dims, params: Params, num_experts: int, num_tasks: int, max_slot_size: int) -> None:
    if dims.max_experts < num_experts or dims.num_tasks != num_tasks:
        raise InvalidDimsError(
            f"max_experts={dims.max_experts} must be at least {num_experts} and num_tasks={dims.num_tasks} be "
            f"{num_tasks}, as the model has so many. Change Dims."
        )
    if checks.is_known(params.num_experts) and params.num_experts != num_experts:
        raise InvalidParamsError(
            f"num_experts={params.num_experts} must be {num_experts}, as the model has so many. Change num_experts."
        )
    if checks.is_known(params.slot_size) and params.slot_size > max_slot_size:
        raise InvalidParamsError(
            f"slot_size={params.slot_size} must be at most max_slot_size={max_slot_size}, which slots have room for. "
            "Lower slot_size, or raise max_slot_size."
        )
