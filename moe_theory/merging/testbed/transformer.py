"""A pre-layer-norm transformer encoder in which every FFN is an MoE layer of K experts.

`forward` takes an `MoE`, so that merged and routed experts run in the same network.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from moe_theory.merging.weights import merge

_VARIANCE_FLOOR = 1e-5  # added to the variance in a layer norm


class Experts(NamedTuple):
    """E experts of one layer, each E(u; W) = relu(u w_in + b_in) w_out + b_out."""

    w_in: Float[Array, "E d f"]
    b_in: Float[Array, "E f"]
    w_out: Float[Array, "E f d"]
    b_out: Float[Array, "E d"]


class Norm(NamedTuple):
    scale: Float[Array, " d"]
    shift: Float[Array, " d"]


class Attention(NamedTuple):
    """H heads of c = d / H features each."""

    w_in: Float[Array, "d 3 H c"]  # queries, keys and values
    b_in: Float[Array, "3 H c"]
    w_out: Float[Array, "H c d"]
    b_out: Float[Array, " d"]


class Layer(NamedTuple):
    attention_norm: Norm
    attention: Attention
    experts_norm: Norm
    experts: Experts


class Model(NamedTuple):
    w_embedding: Float[Array, "p d"]
    b_embedding: Float[Array, " d"]
    positions: Float[Array, "s d"]
    layers: tuple[Layer, ...]
    head_norm: Norm
    w_head: Float[Array, "d C"]
    b_head: Float[Array, " C"]


MoE = Callable[[Experts, Float[Array, "n s d"], int], Float[Array, "n s d"]]  # (experts, tokens, layer from 0)


def forward(model: Model, inputs: Float[Array, "n s p"], moe: MoE) -> Float[Array, "n C"]:
    """Return logits of n inputs with s tokens each, where `moe` computes each layer's experts."""
    tokens = inputs @ model.w_embedding + (model.b_embedding + model.positions)
    for index, layer in enumerate(model.layers):
        tokens = tokens + attend(layer.attention, normalise(layer.attention_norm, tokens))
        tokens = tokens + moe(layer.experts, normalise(layer.experts_norm, tokens), index)
    return normalise(model.head_norm, jnp.mean(tokens, axis=1)) @ model.w_head + model.b_head


def dense(expert: Experts, tokens: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    """Compute tokens at a lone expert (E = 1)."""
    hidden = jax.nn.relu(tokens @ expert.w_in[0] + expert.b_in[0])
    return hidden @ expert.w_out[0] + expert.b_out[0]


def in_groups(experts: Experts, tokens: Float[Array, "n s d"], layer: int) -> Float[Array, "n s d"]:
    """Compute, as an `MoE`, inputs that are ordered by expert, n / E for each of the E experts."""
    num_experts, width = experts.b_out.shape
    groups = tokens.reshape(num_experts, -1, width)
    hidden = jax.nn.relu(groups @ experts.w_in + experts.b_in[:, None])
    return (hidden @ experts.w_out + experts.b_out[:, None]).reshape(tokens.shape)


def merge_experts(experts: Experts, weights: Float[Array, " K"]) -> Experts:
    """Return one expert (E = 1) by weighted average. Source: Eq. (1) of `merging`."""
    return Experts(*(part[None] for part in merge(experts, weights)))


def replace_experts(model: Model, experts_by_layer: Sequence[Experts]) -> Model:
    pairs = zip(model.layers, experts_by_layer, strict=True)
    return model._replace(layers=tuple(layer._replace(experts=experts) for layer, experts in pairs))


def attend(attention: Attention, tokens: Float[Array, "n s d"]) -> Float[Array, "n s d"]:
    width, _, num_heads, size = attention.w_in.shape
    projected = tokens @ attention.w_in.reshape(width, -1) + attention.b_in.reshape(-1)
    queries, keys, values = jnp.moveaxis(projected.reshape(*tokens.shape[:2], 3, num_heads, size), 2, 0)
    scores = jnp.einsum("nihc,njhc->nhij", queries, keys) / jnp.sqrt(jnp.asarray(size, tokens.dtype))
    mixed = jnp.einsum("nhij,njhc->nihc", jax.nn.softmax(scores, axis=-1), values)
    return mixed.reshape(tokens.shape) @ attention.w_out.reshape(width, width) + attention.b_out


def normalise(norm: Norm, tokens: Float[Array, "*n d"]) -> Float[Array, "*n d"]:
    centred = tokens - jnp.mean(tokens, axis=-1, keepdims=True)
    variance = jnp.mean(jnp.square(centred), axis=-1, keepdims=True)
    return centred * jax.lax.rsqrt(variance + _VARIANCE_FLOOR) * norm.scale + norm.shift
