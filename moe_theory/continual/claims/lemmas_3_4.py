"""Lemma 3, on an expert whose task repeats, and Lemma 4, on the gates' gradients."""

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.continual import experiments, theory
from moe_theory.continual.algorithm import State, balance_cost, draw, learn
from moe_theory.continual.claims.measurements import at_rounds, claim, in_blocks, repeats_of
from moe_theory.continual.experiments import FEW, HISTORY, ROUTING, SINGLE
from moe_theory.continual.params import Params
from moe_theory.core import gating
from moe_theory.core.random import root_key
from moe_theory.verify.claim import Runs, named


def _largest_repeat_move(runs: Runs) -> np.ndarray:
    run = runs[FEW]
    largest = np.max(np.where(repeats_of(run), run.records.update_norm, 0), axis=0)
    return largest / np.sqrt(experiments.gaps_of(run).truth_norm)


def _errors_after_repeats(runs: Runs) -> np.ndarray:
    errors = runs[SINGLE].records.error.astype(np.float64)
    return np.sum(np.where(repeats_of(runs[SINGLE]), errors, 0), axis=0)


def _contracted_errors_before_repeats(runs: Runs) -> np.ndarray:
    # A move is orthogonal to what it leaves, so the squared error before it is the sum of both squares.
    moves = runs[SINGLE].records
    before = moves.error.astype(np.float64) + moves.update_norm.astype(np.float64) ** 2
    contraction = theory.error_contraction(HISTORY.dims.num_features, HISTORY.dims.num_samples)
    return contraction * np.sum(np.where(repeats_of(runs[SINGLE]), before, 0), axis=0)


@claim("continual.lemma-3", where="Lemma 3", kind="identity", margin=1e-3, replaced_by="continual.lemma-3.contraction")
class Lemma3:
    """An expert whose last task comes again does not change; its largest move, over the truths' root mean square."""

    formula = (
        r"\mathbf{w}_{n_t} = \mathbf{w}_{n_\tau} \;\Rightarrow\; \mathbf{w}_t^{(m_t)} = "
        r"\mathbf{w}_{t-1}^{(m_t)} = \cdots = \mathbf{w}_\tau^{(m_t)}"
    )
    experiment = HISTORY
    labels = named(FEW)
    observe = _largest_repeat_move


@claim("continual.lemma-3.contraction", where="replaces Lemma 3", kind="equality", margin=0.02)
class Lemma3Contraction:
    """A repeat multiplies an expert's expected squared error by (d - s)/(d - 1)."""

    formula = (
        r"\mathbf{w}_{n_t} = \mathbf{w}_{n_\tau} \;\Rightarrow\; "
        r"\mathbb{E}\left\lVert \mathbf{w}_t^{(m_t)} - \mathbf{w}_{n_t} \right\rVert^2 = "
        r"\frac{d - s}{d - 1}\, \mathbb{E}\left\lVert \mathbf{w}_{t-1}^{(m_t)} - \mathbf{w}_{n_t} \right\rVert^2"
    )
    experiment = HISTORY
    labels = named(SINGLE)
    observe = _errors_after_repeats
    predict = _contracted_errors_before_repeats


@jax.jit
def _imbalances(replicates: Int[Array, " B"], state: State, params: Params) -> Float[Array, " B"]:
    """|sum_m gradient_m| over the largest entry, differentiated by `jax.grad` and not by the system's closed form."""

    def imbalance(replicate: Int[Array, ""], state: State) -> Float[Array, ""]:
        arrival, perturbation = draw(jax.random.fold_in(root_key(4), replicate), ROUTING.dims, state.pool, params)
        after, info = learn(state, arrival, perturbation, params)
        move = info.update_norm**params.locality_power
        costs = jnp.where(info.chosen, move + balance_cost(after.visits, after.round, params), 0)
        exists = jnp.arange(ROUTING.dims.max_experts) < params.num_experts
        gradient = jax.grad(gating.task_loss)(state.gates, jnp.sum(arrival.features, axis=1), exists, costs)
        sums, largest = jnp.max(jnp.abs(jnp.sum(gradient, axis=0))), jnp.max(jnp.abs(gradient))
        return jnp.where(largest > 0, sums / jnp.where(largest > 0, largest, 1), sums)  # a saturated gate has none

    return jax.vmap(imbalance, in_axes=(0, -1))(replicates, state)


def _gradient_imbalance(runs: Runs) -> np.ndarray:
    run = runs[FEW]
    return in_blocks(lambda replicates, state: _imbalances(replicates, state, run.params), run.replicates, run.state)


@claim("continual.lemma-4", where="Lemma 4", kind="identity", margin=1e-5)
class Lemma4:
    """The task loss's gradients in the gates sum to zero over experts; their sum over their largest entry."""

    formula = r"\sum_{m=1}^{M} \nabla_{\theta_t^{(m)}} \mathcal{L}_t^{\text{task}} = \mathbf{0}"
    experiment = ROUTING
    labels = at_rounds(ROUTING.num_rounds + 1)
    observe = _gradient_imbalance
