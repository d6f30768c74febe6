"""Against forgetting: replay of images and a penalty on the weights, to compare a router with, and a router whose moves
are charged against a baseline.

The first two are of an expert, so that they go with any number of experts, one above all. `Dims.num_kept`,
`Dims.consolidates` and `Dims.compares` make room for them; `Params.replay_weight`, `Params.ewc_strength` and
`Params.baseline_weight` turn them on.

Source: Chaudhry et al., "On Tiny Episodic Memories in Continual Learning" (2019), with a ring buffer for each class;
Kirkpatrick et al., "Overcoming catastrophic forgetting in neural networks" (2017), with the running sum of Schwarz et
al., "Progress & Compress" (2018): one penalty, from the newest weights.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, PyTree

from moe_theory.core.baseline import Baseline, repaired
from moe_theory.core.locality import Locality, Move
from moe_theory.core.numerics import Scalar
from moe_theory.deep.params import Dims, Params

NO_IMAGE = -1


def _weighed(move: Move, memory: Baseline, arrival: Any, params: Params) -> tuple[Float[Array, " M"], Baseline]:
    against, memory = repaired.cost(move, memory, arrival, params)
    return move.costs + params.baseline_weight * (against - move.costs), memory


AGAINST_BASELINE = Locality(_weighed, repaired.init)  # as far as `Params.baseline_weight` has it


def locality_of(dims: Dims, own: Locality | None, printed: Any) -> Any:
    """The locality loss of a system: one of a user's own, or the printed one, with a baseline where there is room."""
    return own or (AGAINST_BASELINE if dims.compares else printed)


class Kept(NamedTuple):
    """Replay memory and weight importances of the experts, leaves (M, ...); of one expert, without that axis."""

    rows: Int[Array, "M K b"]  # of the newest training images of each class, or `NO_IMAGE`
    importance: PyTree  # of each weight: its Fisher information, summed over tasks; () unless `Dims.consolidates`


def nothing_kept(dims: Dims, parameters: PyTree) -> Kept:
    """The start, of experts with these parameters, leaves (M, ...)."""
    rows = jnp.full((dims.max_experts, dims.num_classes, dims.num_kept), NO_IMAGE, jnp.int32)
    return Kept(rows, jax.tree.map(jnp.zeros_like, parameters) if dims.consolidates else ())


def held(kept: Kept, parameters: PyTree, before: PyTree, rate: Float[Scalar, ""], params: Params) -> PyTree:
    """The parameters after a gradient step, moved back toward their values before the task by the penalty on the
    distance of important weights, lambda / 2 sum F (w - w_before)^2.

    Its step is implicit, (w + rate lambda F w_before) / (1 + rate lambda F): explicit ones diverge where
    rate lambda F > 2, which is below the strengths that hold an expert best.
    """
    if not jax.tree.leaves(kept.importance):
        return parameters

    def back(now: Float[Array, "..."], then: Float[Array, "..."], weight: Float[Array, "..."]) -> Float[Array, "..."]:
        pull = rate * params.ewc_strength * weight
        return (now + pull * then) / (1 + pull)

    return jax.tree.map(back, parameters, before, kept.importance)


def replayed(kept: Kept, losses: Float[Array, " n"], params: Params) -> Float[Array, ""]:
    """The mean loss of kept images, whose losses these are, times its weight."""
    is_kept = kept.rows.reshape(-1) != NO_IMAGE
    return params.replay_weight * jnp.sum(jnp.where(is_kept, losses, 0)) / jnp.maximum(jnp.sum(is_kept), 1)


def updated(
    kept: Kept,
    task: Int[Array, ""],
    images: Int[Array, " s"],
    entropies_of: Callable[[Any, Int[Array, ""]], tuple[Float[Array, " n"], Float[Array, " n"]]],
    parameters: PyTree,
    dims: Dims,
) -> Kept:
    """Update an expert's memory after a task with these rows of images: keep the first of them, and add the diagonal of
    the Fisher information, mean over the images.

    The information is that of the expert's own predictions, p (d log p)^2 summed over answers: of the given answers
    alone it would be (d log p)^2, which vanishes as the square of 1 - p once they have been learned.

    Args:
        entropies_of: (parameters, position among the images) -> -log p of each answer, and p.
    """
    rows = kept.rows.at[task].set(images[: dims.num_kept].astype(jnp.int32))
    if not dims.consolidates:
        return Kept(rows, kept.importance)

    def added(total: PyTree, place: Int[Array, ""]) -> tuple[PyTree, None]:
        gradients, chances = jax.jacrev(lambda given: entropies_of(given, place), has_aux=True)(parameters)

        def more(sum: Float[Array, "..."], each: Float[Array, "n ..."]) -> Float[Array, "..."]:
            return sum + jnp.tensordot(chances, jnp.square(each), 1) / dims.num_samples

        return jax.tree.map(more, total, gradients), None

    return Kept(rows, jax.lax.scan(added, kept.importance, jnp.arange(dims.num_samples))[0])
