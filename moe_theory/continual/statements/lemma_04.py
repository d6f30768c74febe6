"""Lemma 4: the gates' gradients of the task loss."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.continual.algorithm import State, balance_cost, draw, learn
from moe_theory.continual.experiments import FEW, HISTORY, at_rounds
from moe_theory.continual.params import Params
from moe_theory.continual.statements.setting import statement
from moe_theory.core import gating, programs
from moe_theory.core.random import root_key
from moe_theory.runs.draws import in_blocks
from moe_theory.verification.statement import identity

LEMMA_4 = statement("lemma-4", module=__name__)


@programs.jit
def imbalances(replicates: Int[Array, " B"], state: State, params: Params) -> Float[Array, " B"]:
    """Return |sum_m gradient_m| over the largest entry, from `jax.grad` and not from the system's closed form."""

    def imbalance(replicate: Int[Array, ""], state: State) -> Float[Array, ""]:
        key = jax.random.fold_in(root_key(4), replicate)  # a key for a round after the run
        arrival, perturbation = draw(key, HISTORY.dims, state.pool, params)
        after, info = learn(state, arrival, perturbation, params)
        move = info.update_norm**params.locality_power
        costs = jnp.where(info.chosen, move + balance_cost(after.visits, after.round, params), 0)
        exists = jnp.arange(HISTORY.dims.max_experts) < params.num_experts
        gradient = jax.grad(gating.task_loss)(state.gates, jnp.sum(arrival.features, axis=1), exists, costs)
        sums = jnp.max(jnp.abs(jnp.sum(gradient, axis=0)))
        largest = jnp.max(jnp.abs(gradient))
        return jnp.where(
            largest > 0, sums / jnp.where(largest > 0, largest, 1), sums
        )  # saturated gates have gradient 0

    return jax.vmap(imbalance, in_axes=(0, -1))(replicates, state)


@LEMMA_4.charitable("lemma-4", HISTORY.at(FEW), identity(within=1e-5), labels=at_rounds(HISTORY.num_rounds + 1))
def gradient_imbalance(run) -> np.ndarray:
    def of_block(places: Int[np.ndarray, " W"]) -> Array:
        state = jax.tree.map(lambda leaf: leaf[..., places], run.state)
        return imbalances(run.replicates[places], state, run.params)

    return in_blocks(of_block, len(run.replicates))
