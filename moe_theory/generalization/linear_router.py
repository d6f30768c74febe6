"""A linear router that is given, and linear experts in a ball: their capacity on a sample, exact for its signs.

sup over |w_j| <= B of (1/m) sum_i sigma_i sum_j a_j(x_i) w_j.x_i is (B/m) sum_j |sum_i sigma_i a_j(x_i) x_i|: each
expert points along its own sum.
"""

import functools
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from moe_theory.core.random import normals
from moe_theory.core.system import System
from moe_theory.generalization import model
from moe_theory.generalization.finite import draws
from moe_theory.generalization.one_round import one_round
from moe_theory.generalization.params import Dims, Params

NUM_SIGNS = 16  # vectors of signs that a sample is looked at with: they cost less than another sample


class Capacity(NamedTuple):
    """What `linear_router` shows. Means of the first two over replicates are R_m(F|a) and R_m(H)."""

    routed: Float[Array, ""]  # mean of sup_f (1/m) sum_i sigma_i f(x_i) over T experts, with the router given
    lone: Float[Array, ""]  # the same for one expert, B |sum_i sigma_i x_i| / m
    mean_square_gate: Float[Array, ""]  # mean over the sample of |a(x_i)|^2


@functools.lru_cache
def linear_router(dims: Dims) -> System:
    """Inputs uniform on the unit sphere, router rows uniform on the sphere of radius W."""

    shapes = (
        (dims.max_samples, dims.num_features),
        (dims.max_experts, dims.num_features),
        (NUM_SIGNS, dims.max_samples),
    )

    def instance(key: Key[Array, ""], params: Params) -> Capacity:
        inputs, rows, toss = draws(key, *shapes)
        features = _on_sphere(inputs)
        is_drawn = (jnp.arange(dims.max_samples) < params.num_samples).astype(features.dtype)
        rows = params.router_norm * _on_sphere(rows)
        gates = model.gates(features @ rows.T, params.num_active, params.num_experts)
        signs = jnp.where(toss < 0, -1, 1) * is_drawn
        samples = jnp.asarray(params.num_samples, features.dtype)
        weighted = (gates[:, :, None] * features[:, None, :]).reshape(dims.max_samples, -1)
        sums = (signs @ weighted).reshape(NUM_SIGNS, dims.max_experts, dims.num_features)
        return Capacity(
            routed=params.expert_norm * jnp.mean(jnp.sum(_norms(sums), axis=1)) / samples,
            lone=params.expert_norm * jnp.mean(_norms(signs @ features)) / samples,
            mean_square_gate=jnp.sum(is_drawn[:, None] * gates**2) / samples,
        )

    return one_round(dims, instance)


def _on_sphere(uniforms: Float[Array, "n d"]) -> Float[Array, "n d"]:
    rows = normals(uniforms)
    return rows / _norms(rows)[:, None]


def _norms(rows: Float[Array, "*n d"]) -> Float[Array, "*n"]:
    return jnp.sqrt(jnp.sum(jnp.square(rows), axis=-1))
