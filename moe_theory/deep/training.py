"""An expert learns one task: some epochs of gradient steps, with an optimizer begun anew."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Bool, Float, Int

from moe_theory.core.numerics import Scalar
from moe_theory.deep.networks import Network, Weights
from moe_theory.deep.params import ADAM, Params


def train(
    network: Network,
    optimizer: str,
    weights: Weights,
    inputs: Float[Array, "s h w c"],
    labels: Int[Array, " s"],
    task: Int[Array, ""],
    batches: Int[Array, "steps b"],
    time: Int[Array, ""],
    params: Params,
) -> Weights:
    """The expert after one step a row of `batches`, which are places in the task's images.

    Args:
        labels: which of the K classes each image shows; -1 for none of them.
        task: the class to recognise.
        time: the round, by which the step size falls.
    Source: Appendices A.3 and A.4 of `continual`.
    """
    method = _method(optimizer, params, step_size(params, time))

    def loss(parameters: Any, statistics: Any, batch: Int[Array, " b"]) -> tuple[Float[Array, ""], Any]:
        outputs, statistics = network.apply(Weights(parameters, statistics), inputs[batch], True)
        return jnp.mean(losses(outputs, labels[batch], task, params)), statistics

    def step(carry: Any, batch: Int[Array, " b"]) -> tuple[Any, None]:
        (parameters, statistics), memory = carry
        gradient, statistics = jax.grad(loss, has_aux=True)(parameters, statistics, batch)
        updates, memory = method.update(gradient, memory, parameters)
        return (Weights(optax.apply_updates(parameters, updates), statistics), memory), None

    return jax.lax.scan(step, (weights, method.init(weights.params)), batches)[0][0]


def step_size(params: Params, time: Int[Array, ""]) -> Float[Array, ""]:
    """From `expert_rate` in round 1 to `final_rate` in round T along half a cosine."""
    # Without the cast JAX divides integers in float32, even where the run is in float64.
    share = (time - 1).astype(jnp.result_type(float)) / jnp.maximum(params.num_rounds - 1, 1)
    fall = (1 + jnp.cos(jnp.pi * jnp.clip(share, 0, 1))) / 2
    return params.final_rate + (params.expert_rate - params.final_rate) * fall


def losses(
    outputs: Float[Array, "n K"], labels: Int[Array, " n"], task: Int[Array, ""], params: Params
) -> Float[Array, " n"]:
    """What training minimises, image by image: cross entropy or squared error, of two classes or of K."""
    binary = optax.sigmoid_binary_cross_entropy(outputs[:, 0], (labels == task).astype(outputs.dtype))
    # One-hot: the gradient of a gather would be a scatter, and an image of no class has no cross entropy.
    among = optax.softmax_cross_entropy(outputs, _shown(outputs, labels).astype(outputs.dtype))
    entropies = jnp.where(jnp.asarray(params.multi_class, bool), among, binary)
    return jnp.where(jnp.asarray(params.squared_loss, bool), squared_errors(outputs, labels, task, params), entropies)


def squared_errors(
    outputs: Float[Array, "n K"], labels: Int[Array, " n"], task: Int[Array, ""], params: Params
) -> Float[Array, " n"]:
    """(p - y)^2 of the probability p that an image shows the task's class; among K classes the sum over them.

    Source: Appendix A.4 of `continual`: the mean-squared error in place of (14).
    """
    binary = jnp.square(jax.nn.sigmoid(outputs[:, 0]) - (labels == task))
    among = jnp.sum(jnp.square(jax.nn.softmax(outputs) - _shown(outputs, labels)), axis=1)
    return jnp.where(jnp.asarray(params.multi_class, bool), among, binary)


def hits(
    outputs: Float[Array, "n K"], labels: Int[Array, " n"], task: Int[Array, ""], params: Params
) -> Float[Array, " n"]:
    """1 where an image is told right, else 0."""
    binary = (outputs[:, 0] > 0) == (labels == task)
    among = jnp.argmax(outputs, axis=1) == labels
    return jnp.where(jnp.asarray(params.multi_class, bool), among, binary).astype(outputs.dtype)


def _shown(outputs: Float[Array, "n K"], labels: Int[Array, " n"]) -> Bool[Array, "n K"]:
    return labels[:, None] == jnp.arange(outputs.shape[1])


def _method(optimizer: str, params: Params, rate: Float[Scalar, ""]) -> optax.GradientTransformation:
    """Weight decay is part of the gradient, as in the Adam of the papers' framework."""
    begin: Callable[[Any], optax.GradientTransformation] = optax.adam if optimizer == ADAM else optax.sgd
    return optax.chain(optax.add_decayed_weights(params.weight_decay), begin(rate))
