"""Sparse-MoE classifiers: parameters, the top-k gate (5) and the output (4).

Functions are for one replicate's padded arrays, with M = `Dims.max_experts` experts of which the first T exist. T and
the number k of active experts are traced, so one program serves every sparsity. Experts and routers are linear or have
one hidden layer of ReLUs, without biases.

Examples:
    >>> import jax.numpy as jnp
    >>> import numpy as np
    >>> import moe_theory as mt
    >>> from moe_theory.generalization import Dims, Params, model
    >>> weights, features = model.ClassifierWeights(experts=(np.eye(2),), router=(np.eye(2),)), np.eye(2)
    >>> logits = model.logits(weights, features)
    >>> model.masks(logits, num_active=1, num_experts=2).tolist()
    [[True, False], [False, True]]
    >>> gates = model.gates(logits, num_active=1, num_experts=2)
    >>> np.sum(gates * model.expert_outputs(weights, features), axis=1).tolist()
    [1.0, 1.0]
    >>> model.outputs(weights, features, num_active=1, num_experts=2).tolist()
    [1.0, 1.0]
    >>> dims = Dims(max_experts=4, num_features=3, max_samples=1)
    >>> weights = model.draw_weights(mt.root_key(0), dims, Params(num_experts=2))
    >>> weights.experts[0].shape, bool(weights.experts[0][2:].any())
    ((4, 3), False)
    >>> weights = model.ClassifierWeights(experts=(2 * jnp.eye(2),), router=(2 * jnp.eye(2),))
    >>> model.project(weights, Params(expert_norm=1.0, router_norm=4.0)).experts[0].tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    >>> model.gates_straight_through(jnp.array([[1.0, 3.0, 2.0]]), num_active=1, num_experts=3).tolist()
    [[0.0, 1.0, 0.0]]
    >>> model.ramp_loss(np.array([1.0, -1.0, 1.0]), np.array([2.0, 2.0, 0.0])).tolist()
    [0.0, 1.0, 0.5]
"""

import dataclasses
from typing import Annotated, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.core import constraints
from moe_theory.core.batching import LONGEST_CHAIN
from moe_theory.core.constraints import (
    AtMost,
    Count,
    Flag,
    OpenProbability,
    PaddedTo,
    Probability,
    Scale,
    Size,
    SizeOrZero,
    StepSize,
)
from moe_theory.core.errors import with_known_names
from moe_theory.core.numerics import Scalar, stored
from moe_theory.core.papers import Reading as Reading

LIPSCHITZ = 0.5  # C of the ramp loss
_START_SHARE = 0.5  # approximate initial norm of a row, or of a matrix, as a share of the largest allowed


@dataclasses.dataclass(frozen=True)
class Dims:
    """Static shapes, with padded experts and samples.

    Raises: InvalidValueError for sizes that are not whole numbers in range.

    Examples:
        >>> from moe_theory import generalization
        >>> generalization.Dims(max_experts=8, num_features=4, max_samples=100).expert_width  # linear experts
        0
    """

    max_experts: Size  # largest number of experts T
    num_features: Size  # d, entries of an input
    max_samples: Size  # largest number of samples m
    expert_width: SizeOrZero = 0  # hidden units of an expert network, 0 for a linear expert
    router_width: SizeOrZero = 0  # hidden units of the router network, 0 for a linear router

    def __post_init__(self) -> None:
        constraints.check_sizes(self)


@with_known_names
class Params(NamedTuple):
    """Parameters that a user sweeps.

    Examples:
        >>> from moe_theory import generalization
        >>> generalization.Params(num_experts=8, num_samples=100).num_active
        1
    """

    num_experts: Annotated[Count, PaddedTo("max_experts")] = 8  # T
    num_active: Annotated[Count, AtMost("num_experts", "k of T experts are active (4)")] = 1  # k
    num_samples: Annotated[Count, PaddedTo("max_samples")] = 128  # m
    expert_norm: Scale = 1.0  # B: linear experts have |w| <= B
    router_norm: Scale = 4.0  # W: rows of a linear router have |v| <= W
    delta: OpenProbability = 0.05  # delta, the probability with which a bound may fail
    whole_router: Flag = False  # whether d_N is of the whole router (Theorem 1), or of its masks (Definition 4)
    learning_rate: StepSize = 0.05  # the optimizer's step size
    label_noise: Probability = 0.0  # probability that a teacher's label is flipped


_CHOICES = {
    "mask-dimension": ("d_N of the masks alone, as in Definition 4", {}),
    "router-dimension": ("d_N of the whole router, its weights included, as in Theorem 1", {"whole_router": True}),
}
# The readings of d_N. The defaults of `Params` are the first. In Definition 4 d_N is the size of a set on which the
# router's masks are shattered. In Theorem 1 it is the Natarajan dimension of the router function class A, including
# weights. For k = 1 the two agree, because the weight of a lone expert is 1. For k = T there is one mask, so the first
# is 0 for any weights.
READINGS: dict[str, Reading] = {
    name: Reading(name, summary, Params(), choices) for name, (summary, choices) in _CHOICES.items()
}


class ClassifierWeights(NamedTuple):
    """Layers of all experts and of the router, from the input on."""

    experts: tuple[Array, ...]  # ((M, d),) if linear, ((M, h, d), (M, h)) for networks
    router: tuple[Array, ...]  # ((M, d),) if linear, ((h, d), (M, h)) for a network


def draw_weights(key: Key[Array, ""], dims: Dims, params: Params) -> ClassifierWeights:
    """Draw normal entries. Linear experts have norms of about B/2, and rows of a linear router of about W/2.

    A network's matrices have about half of the Frobenius norm that `project` allows. An expert's numbers do not depend
    on `dims.max_experts`, and missing experts are zero.
    """
    dtype = jnp.result_type(float)
    keys = jax.random.split(key, 4)
    count = dims.max_experts
    features = dims.num_features
    exists = jnp.arange(count, dtype=jnp.int32) < params.num_experts

    def draw(key: Key[Array, ""], shape: tuple[int, ...], norm: Float[Scalar, ""], entries: Int[Scalar, ""]) -> Array:
        scale = _START_SHARE * jnp.asarray(norm, dtype) / jnp.sqrt(jnp.asarray(entries, dtype))
        return stored(scale * jax.random.normal(key, shape, dtype))

    def existing(layer: Array) -> Array:
        return jnp.where(exists.reshape(count, *[1] * (layer.ndim - 1)), layer, 0)

    width = dims.expert_width
    if width == 0:
        experts = (existing(draw(keys[0], (count, features), params.expert_norm, features)),)
    else:
        inner = draw(keys[0], (count, width, features), params.expert_norm, width * features)
        experts = (existing(inner), existing(draw(keys[1], (count, width), params.expert_norm, width)))
    width = dims.router_width
    if width == 0:
        router = (existing(draw(keys[2], (count, features), params.router_norm, features)),)
    else:
        inner = draw(keys[2], (width, features), params.router_norm, width * features)
        outer = draw(keys[3], (count, width), params.router_norm, width * params.num_experts)
        router = (inner, existing(outer))
    return project(ClassifierWeights(experts, router), params)


def project(weights: ClassifierWeights, params: Params) -> ClassifierWeights:
    """Project linear experts onto |w| <= B, and rows of a linear router onto |v| <= W.

    Each matrix of an expert network is scaled to a Frobenius norm of at most B, each of a router network to W.
    """
    experts = tuple(_shrink(layer, range(1, layer.ndim), params.expert_norm) for layer in weights.experts)
    first_axis = 1 if len(weights.router) == 1 else 0  # norms of rows, or of matrices
    router = tuple(_shrink(layer, range(first_axis, layer.ndim), params.router_norm) for layer in weights.router)
    return ClassifierWeights(experts, router)


def logits(weights: ClassifierWeights, features: Float[Array, "m d"]) -> Float[Array, "m M"]:
    """Return g(x) of Eq. (5), also for experts that do not exist."""
    if len(weights.router) == 1:
        return _products(features, weights.router[0])
    inner, outer = weights.router
    return _products(jax.nn.relu(_products(features, inner)), outer)


def expert_outputs(weights: ClassifierWeights, features: Float[Array, "m d"]) -> Float[Array, "m M"]:
    """Return h_j(x) of Eq. (4)."""
    if len(weights.experts) == 1:
        return _products(features, weights.experts[0])
    inner, outer = weights.experts
    num_experts, width, num_features = inner.shape
    hidden = jax.nn.relu(_products(features, inner.reshape(num_experts * width, num_features)))
    return jnp.sum(hidden.reshape(-1, num_experts, width) * outer[None], axis=2)


def masks(logits: Float[Array, "m M"], num_active: Int[Scalar, ""], num_experts: Int[Scalar, ""]) -> Bool[Array, "m M"]:
    """Return J(x) of Eq. (5): the k experts with the largest logits, and the lowest indices on ties."""
    indices = jnp.arange(logits.shape[1], dtype=jnp.int32)
    exists = indices < num_experts
    ranked = jnp.where(exists, logits, -jnp.inf)
    rank = jnp.zeros(logits.shape, jnp.int32)
    for rival in range(logits.shape[1]):
        rival_logit = ranked[:, rival : rival + 1]
        precedes = (rival_logit > ranked) | ((rival_logit == ranked) & (rival < indices))
        rank = rank + precedes.astype(jnp.int32)
    return stored((rank < num_active) & exists)


def gates(
    logits: Float[Array, "m M"], num_active: Int[Scalar, ""], num_experts: Int[Scalar, ""]
) -> Float[Array, "m M"]:
    """Return a(x) of Eq. (5): the softmax of the k largest logits, exactly 0 elsewhere."""
    return _softmax(logits, masks(logits, num_active, num_experts))


def gates_straight_through(
    logits: Float[Array, "m M"], num_active: Int[Scalar, ""], num_experts: Int[Scalar, ""]
) -> Float[Array, "m M"]:
    """Return `gates`, with a gradient at k = 1 too.

    At k = 1 Eq. (5) is constant, so we use the gradient of the softmax over all existing experts. At k >= 2 it is the
    gradient of Eq. (5).
    """
    exists = jnp.arange(logits.shape[1], dtype=jnp.int32) < num_experts
    smooth = _softmax(logits, jnp.broadcast_to(exists, logits.shape))
    is_lone = jnp.asarray(num_active) == 1
    return gates(logits, num_active, num_experts) + jnp.where(is_lone, smooth - jax.lax.stop_gradient(smooth), 0)


def outputs(
    weights: ClassifierWeights, features: Float[Array, "m d"], num_active: Int[Scalar, ""], num_experts: Int[Scalar, ""]
) -> Float[Array, " m"]:
    """Return f(x) of Eq. (4)."""
    routed = gates(logits(weights, features), num_active, num_experts)
    return jnp.sum(routed * expert_outputs(weights, features), axis=1)


def ramp_loss(labels: Float[Array, "*shape"], outputs: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return (1 - y f)/2 clipped to [0, 1], `LIPSCHITZ` in f. Its mean over a fair label is 1/2 for any f."""
    return jnp.clip((1 - labels * outputs) / 2, 0, 1)


def _softmax(logits: Float[Array, "m M"], active: Bool[Array, "m M"]) -> Float[Array, "m M"]:
    largest = jnp.max(jnp.where(active, jax.lax.stop_gradient(logits), -jnp.inf), axis=1, keepdims=True)
    weights = jnp.where(active, jnp.exp(jnp.where(active, logits - largest, 0)), 0)
    return weights / jnp.sum(weights, axis=1, keepdims=True)


def _shrink(layer: Array, axes: range, norm: Float[Scalar, ""]) -> Array:
    squared = jnp.sum(jnp.square(layer), axis=tuple(axes), keepdims=True)
    length = jnp.sqrt(jnp.where(squared > 0, squared, 1))
    return layer * jnp.minimum(1, jnp.asarray(norm, layer.dtype) / length)


def _products(features: Float[Array, "m d"], rows: Float[Array, "n d"]) -> Float[Array, "m n"]:
    if features.shape[1] > LONGEST_CHAIN:
        return jnp.matmul(features, rows.T, precision="highest")
    return jnp.sum(features[:, None, :] * rows[None, :, :], axis=-1)
