"""Training of experts, in epochs of gradient steps on one task with a new optimizer."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key, Num

from moe_theory.deep import networks
from moe_theory.deep.evaluation import Tables, evaluate, one_hot, squared_errors
from moe_theory.deep.networks import NETWORKS, Network, Weights
from moe_theory.deep.params import ADAM, Dims, Params
from moe_theory.deep.tasks import Arrival, Pool, inputs_of


class Trained(NamedTuple):
    weights: Weights  # only the expert's
    squared_change: Float[Array, ""]  # |w_t - w_{t-1}|^2, or under `per_parameter` its mean over parameters
    rows: Tables  # evaluation on every test image, leaves (K, n)


def initial_experts(key: Key[Array, ""], dims: Dims, pool: Pool) -> Weights:
    """Return untrained experts. Raises: DeclarationError if the network does not fit the images."""
    _, height, width, channels = pool.train.pixels.shape
    shape = (height, width, channels)
    network = NETWORKS[dims.network]
    networks.check(network, shape, dims.num_classes)
    return networks.stacked(network, key, dims.max_experts, shape, dims.num_classes)


def train_on_arrival(
    expert: Weights,
    arrival: Arrival,
    pixels: Num[Array, "s h w c"],
    pool: Pool,
    time: Int[Array, ""],
    params: Params,
    dims: Dims,
) -> Trained:
    """Train and evaluate one expert on the arrival of round `time`, which has the images `pixels`."""
    network = NETWORKS[dims.network]
    inputs = inputs_of(pool, pixels)
    labels = pool.train.labels[arrival.images]
    after = train(network, dims.optimizer, expert, inputs, labels, arrival=arrival, time=time, params=params)
    squared_change = networks.squared_distance(after.params, expert.params)
    divisor = jnp.where(jnp.asarray(params.per_parameter, bool), networks.num_parameters(after), 1)
    return Trained(after, squared_change / divisor, rows=evaluate(after, pool, params, dims))


def train(
    network: Network,
    optimizer: str,
    weights: Weights,
    inputs: Float[Array, "s h w c"],
    labels: Int[Array, " s"],
    arrival: Arrival,
    time: Int[Array, ""],
    params: Params,
) -> Weights:
    """Return the weights after a gradient step for each row of `arrival.batches`."""
    make_method: Callable[[Any], optax.GradientTransformation] = optax.adam if optimizer == ADAM else optax.sgd
    method = optax.chain(optax.add_decayed_weights(params.weight_decay), make_method(step_size(params, time)))

    def loss(parameters: Any, statistics: Any, batch: Int[Array, " b"]) -> tuple[Float[Array, ""], Any]:
        outputs, statistics = network.apply(Weights(parameters, statistics), inputs[batch], True)  # in training
        return jnp.mean(losses(outputs, labels[batch], arrival.task, params)), statistics

    def step(carry: Any, batch: Int[Array, " b"]) -> tuple[Any, None]:
        (parameters, statistics), method_state = carry
        gradient, statistics = jax.grad(loss, has_aux=True)(parameters, statistics, batch)
        updates, method_state = method.update(gradient, method_state, parameters)
        parameters = optax.apply_updates(parameters, updates)
        return (Weights(parameters, statistics), method_state), None

    (trained, _), _ = jax.lax.scan(step, (weights, method.init(weights.params)), arrival.batches)
    return trained


def step_size(params: Params, time: Int[Array, ""]) -> Float[Array, ""]:
    """Return the step size, half a cosine from `expert_rate` in round 1 to `final_rate` in round T."""
    # Without the cast JAX divides integers in float32, even in a float64 run.
    share = (time - 1).astype(jnp.result_type(float)) / jnp.maximum(params.num_rounds - 1, 1)
    fall = (1 + jnp.cos(jnp.pi * jnp.clip(share, 0, 1))) / 2
    return params.final_rate + (params.expert_rate - params.final_rate) * fall


def losses(
    outputs: Float[Array, "n K"], labels: Int[Array, " n"], task: Int[Array, ""], params: Params
) -> Float[Array, " n"]:
    squares = squared_errors(outputs, labels, task, params)
    binary = optax.sigmoid_binary_cross_entropy(outputs[:, 0], (labels == task).astype(outputs.dtype))
    # Labels are one-hot, because the gradient of a gather is a scatter, and an image of no class has no cross entropy.
    multi_class = optax.softmax_cross_entropy(outputs, one_hot(outputs, labels).astype(outputs.dtype))
    cross_entropies = jnp.where(jnp.asarray(params.multi_class, bool), multi_class, binary)
    return jnp.where(jnp.asarray(params.squared_loss, bool), squares, cross_entropies)
