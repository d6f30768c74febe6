"""Normalisation of values (n, height, width, channels): over the batch, as the papers' ResNet has it, or per image."""

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from moe_theory.core.errors import InvalidDimsError

EPSILON = 1e-5  # added to variances, as in PyTorch
MOMENTUM = 0.1  # weight of a batch in the running statistics, as in PyTorch


class Affine(NamedTuple):
    scale: Float[Array, " c"]  # gamma
    shift: Float[Array, " c"]  # beta


class Moments(NamedTuple):
    """Running statistics of a layer, what evaluation normalises by."""

    mean: Float[Array, " c"]
    variance: Float[Array, " c"]


class Normalization(NamedTuple):
    """`begin(channels)` statistics; `apply(values, affine, statistics, is_training)` to values and statistics after."""

    begin: Callable[[int], PyTree]
    apply: Callable[[Float[Array, "n h w c"], Affine, PyTree, bool], tuple[Float[Array, "n h w c"], PyTree]]


def batch_normalized(
    values: Float[Array, "n h w c"], affine: Affine, running: Moments, is_training: bool
) -> tuple[Float[Array, "n h w c"], Moments]:
    """Each channel by its mean and variance: in training those of this batch, in evaluation the running ones.

    As in PyTorch, a batch is normalised by its biased variance, and the unbiased one goes into the running statistics.

    Source: Ioffe and Szegedy, "Batch Normalization" (2015), Algorithms 1 and 2.
    Raises: InvalidDimsError in training if a channel has a single value, whose variance is 0.
    """
    if not is_training:
        return _standardized(values, *running) * affine.scale + affine.shift, running
    count = values.shape[0] * values.shape[1] * values.shape[2]
    if count == 1:
        raise InvalidDimsError(
            "a batch of 1 image, 1 x 1 here, must have more than one value a channel: BatchNorm would make every "
            "value 0. Raise the size of minibatches, or give larger images."
        )
    mean, variance = jnp.mean(values, axis=(0, 1, 2)), jnp.var(values, axis=(0, 1, 2))
    after = Moments(_moved(running.mean, mean), _moved(running.variance, variance * (count / (count - 1))))
    return _standardized(values, mean, variance) * affine.scale + affine.shift, after


def group_normalized(values: Float[Array, "n h w c"], affine: Affine, num_groups: int) -> Float[Array, "n h w c"]:
    """Each image's channels, in groups of neighbours, by the group's own mean and biased variance.

    Source: Wu and He, "Group Normalization" (2018), Eqs. (1), (2), (7).
    Raises: InvalidDimsError unless the groups divide the channels.
    """
    n, height, width, channels = values.shape
    if channels % num_groups:
        raise InvalidDimsError(f"num_groups={num_groups} must divide the {channels} channels. Change num_groups.")
    grouped = values.reshape(n, height, width, num_groups, channels // num_groups)
    moments = (moment(grouped, axis=(1, 2, 4), keepdims=True) for moment in (jnp.mean, jnp.var))
    return _standardized(grouped, *moments).reshape(values.shape) * affine.scale + affine.shift


@functools.cache  # equal settings are the same functions, so that networks made of them are equal too
def batches() -> Normalization:
    """BatchNorm, whose statistics are the `Moments` of each layer."""

    def begin(channels: int) -> Moments:
        dtype = jnp.result_type(float)
        return Moments(jnp.zeros(channels, dtype), jnp.ones(channels, dtype))

    return Normalization(begin, batch_normalized)


@functools.cache
def groups(num_groups: int) -> Normalization:
    """GroupNorm, which has no statistics."""

    def apply(values: Array, affine: Affine, statistics: PyTree, is_training: bool) -> tuple[Array, PyTree]:
        return group_normalized(values, affine, num_groups), ()

    return Normalization(lambda channels: (), apply)


def _standardized(values: Array, mean: Array, variance: Array) -> Array:
    return (values - mean) * jax.lax.rsqrt(variance + EPSILON)


def _moved(running: Array, batch: Array) -> Array:
    return ((1 - MOMENTUM) * running + MOMENTUM * jax.lax.stop_gradient(batch)).astype(running.dtype)
