"""The linear gating network: its outputs, softmax, routing among available experts, and gradient.

Arrays are padded to `max_experts`. A mask marks the available experts, which exist and, in `edge`, are idle.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import Scalar


def gate_outputs(gates: Float[Array, "M d"], gate_input: Float[Array, " d"]) -> Float[Array, " M"]:
    """Return h = Theta' sum_i X_i. Source: Section 3.2 of `continual`."""
    return jnp.sum(gates * gate_input[None, :], axis=1)


def gate_probabilities(outputs: Float[Array, " M"], available: Bool[Array, " M"]) -> Float[Array, " M"]:
    """Return the softmax over the available experts, and exactly 0 elsewhere. Source: Eq. (2) of `continual`."""
    masked = jnp.where(available, outputs, -jnp.inf)
    weights = jnp.exp(masked - jnp.max(masked))
    return weights / jnp.sum(weights)


def best_expert(scores: Float[Array, " M"], available: Bool[Array, " M"]) -> tuple[Int[Array, ""], Bool[Array, " M"]]:
    """Return the index and one-hot mask of the available expert with the highest score (lowest index on ties).

    If no expert is available, the index is -1 and the mask is empty. Source: Eq. (1) of `continual`.
    """
    max_experts = scores.shape[0]
    indices = jnp.arange(max_experts, dtype=jnp.int32)
    masked = jnp.where(available, scores, -jnp.inf)
    leads = available & (masked == jnp.max(masked))
    index = jnp.min(jnp.where(leads, indices, jnp.int32(max_experts)))
    return jnp.where(index == max_experts, -1, index), indices == index


def best_ranked(
    scores: Float[Array, " M"], available: Bool[Array, " M"]
) -> tuple[Int[Array, ""], Bool[Array, " M"], Bool[Array, ""]]:
    """Return `best_expert` with NaN ranked last, and whether the best score is NaN."""
    is_nan = jnp.isnan(scores)
    index, mask = best_expert(jnp.where(is_nan, -jnp.inf, scores), available)
    return index, mask, jnp.any(mask & is_nan)


def checked_scores(scores: Float[Array, " M"], outputs: Float[Array, " M"]) -> Float[Array, " M"]:
    """Return a router's scores. Raises: InvalidValueError unless they have the shape of the gate outputs."""
    if jnp.shape(scores) != outputs.shape:
        shape = jnp.shape(scores)
        raise InvalidValueError(f"the router returned scores of shape {shape}, not one per expert: {outputs.shape}.")
    return jnp.asarray(scores)


def route(
    scores: Float[Array, " M"], available: Bool[Array, " M"], num_active: Int[Scalar, ""], max_active: int = 1
) -> tuple[Int[Array, " k"], Bool[Array, "k M"]]:
    """Return the available experts with the highest scores, the best one first, padded to k = `max_active` rows.

    Source: Eq. (1) of `continual`, and for top-k the last remark of Section 5.2.
    """
    experts = []
    masks = []
    for rank in range(max_active):
        expert, mask = best_expert(scores, available)
        available = available & ~mask
        is_active = rank < num_active
        experts.append(jnp.where(is_active, expert, -1))
        masks.append(mask & is_active)
    return jnp.stack(experts), jnp.stack(masks)


def task_loss(
    gates: Float[Array, "M d"], gate_input: Float[Array, " d"], available: Bool[Array, " M"], costs: Float[Array, " M"]
) -> Float[Array, ""]:
    """Return the part of the task loss (8) that depends on the gates: sum_m pi_m cost_m, with constant costs.

    The locality loss (6) charges a chosen expert |w_t - w_{t-1}|^q, and the auxiliary loss (7) charges it alpha M f_t /
    t. P_t in (7) is a mean over rounds, so the current gates enter only its newest term.

    Source: Eqs. (6)-(8), (27), (30) of `continual`.
    """
    return jnp.sum(gate_probabilities(gate_outputs(gates, gate_input), available) * costs)


def gate_gradient(
    probabilities: Float[Array, " M"], gate_input: Float[Array, " d"], costs: Float[Array, " M"]
) -> Float[Array, "M d"]:
    """Return the gradient of `task_loss` in the gates. Its rows sum to 0 (Lemma 4).

    Source: Eqs. (27)-(30) of `continual`.
    """
    return gate_slopes(probabilities, costs)[:, None] * gate_input[None, :]


def gate_slopes(probabilities: Float[Array, " M"], costs: Float[Array, " M"]) -> Float[Array, " M"]:
    """Return the derivatives of `task_loss` in the gate outputs, pi_m (cost_m - sum_j pi_j cost_j).

    Source: Eqs. (27), (30) of `continual`, Eqs. (25), (26) of `edge`.
    """
    return probabilities * (costs - jnp.sum(probabilities * costs))


class Pairs(NamedTuple):
    """In each run, the pairs (m, m') of experts whose outputs are largest for signals of different sets."""

    exist: Bool[np.ndarray, "M M B"]  # whether m and m' are highest for signals of different sets
    trail: Bool[np.ndarray, "M M B"]  # whether m' is at least as high as m for the signal at which m is highest

    @property
    def swapped(self) -> Bool[np.ndarray, "M M B"]:
        """Return whether m is at least as high as m' for the signal at which m' is highest."""
        return self.trail.swapaxes(0, 1)


def pairs_of(outputs: Float[np.ndarray, "M N B"], sets: Int[np.ndarray, "N B"] | None = None) -> Pairs:
    """Return the pairs of experts for different sets of signals, and compare the outputs of each pair.

    The experts of a pair cannot both trail. Let m be highest at signal n, and m' at n'. Then h_m(n) > h_m(n') and
    h_m'(n') > h_m'(n). The sum of both differences is [h_m(n) - h_m'(n)] + [h_m'(n') - h_m(n')] > 0.

    Args:
        sets: the set of each signal, such as its cluster. By default every signal is its own set.
    Source: the sets in (11) of `continual` and (15) of `edge`. Equations (40) and (30) say that neither trails.
    """
    runs = np.arange(outputs.shape[2])  # B
    best_signals = outputs.argmax(axis=1)  # for each expert, the signal with its largest output
    if sets is None:
        sets = np.broadcast_to(np.arange(outputs.shape[1])[:, None], outputs.shape[1:])
    sets_of_best = sets[best_signals, runs]
    highest = np.take_along_axis(outputs, best_signals[:, None], axis=1)[:, 0]
    rivals = np.arange(len(outputs))[None, :, None]  # m'
    rival_outputs = outputs[rivals, best_signals[:, None], runs]  # h_m' at m's signal
    return Pairs(exist=sets_of_best[:, None] != sets_of_best[None, :], trail=highest[:, None] <= rival_outputs)
