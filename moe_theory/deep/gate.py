"""What the router sees of a task of images, and how far one step moves what it makes of it."""

from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Float, Int, UInt8

from moe_theory.deep.params import Params

# Drives kappa between which the first steps on a task begin to freeze the router.
FREEZING_DRIVES = (10.0, 20.0)


class Moments(NamedTuple):
    """Running moments of the normalised mean images that have arrived."""

    mean: Float[Array, " p"]
    squares: Float[Array, " p"]  # sum of squared deviations from the mean


def none_yet(num_pixels: int) -> Moments:
    """Before the first round."""
    return Moments(*(jnp.zeros(num_pixels, jnp.result_type(float)),) * 2)


def mean_image(pixels: UInt8[Array, "s h w c"]) -> Float[Array, " p"]:
    """The mean of a task's images as a vector of norm 1. Source: Section VI of `edge`, Section 6 of `continual`."""
    image = jnp.mean(pixels.astype(jnp.result_type(float)) / 255, axis=0).reshape(-1)
    return image / jnp.maximum(jnp.sqrt(jnp.sum(jnp.square(image))), 1e-12)


def arrived(before: Moments, image: Float[Array, " p"], time: Int[Array, ""]) -> Moments:
    """The moments with one image more, that of round `time`."""
    gap = image - before.mean
    mean = before.mean + gap / time
    return Moments(mean, before.squares + gap * (image - mean))


def seen(
    before: Moments, pixels: UInt8[Array, "s h w c"], time: Int[Array, ""], params: Params
) -> tuple[Moments, Float[Array, " p"]]:
    """A task's images of round `time` as the router sees them: the moments with them, and the gate's input."""
    image = mean_image(pixels)
    moments = arrived(before, image, time)
    return moments, gate_input(moments, image, params)


def gate_input(moments: Moments, image: Float[Array, " p"], params: Params) -> Float[Array, " p"]:
    """What the linear gate reads: the image, unless told otherwise less the mean of all that arrived, scaled."""
    centre = jnp.where(jnp.asarray(params.centre, bool), moments.mean, 0)
    return params.gate_scale * (image - centre)


def total_variance(moments: Moments, time: Int[Array, ""]) -> Float[Array, ""]:
    """The sum of all elements' variances across tasks, in [0, 1]."""
    return jnp.sum(moments.squares) / time


def variance(moments: Moments, time: Int[Array, ""]) -> Float[Array, ""]:
    """The variance of an element across tasks, mean over elements: sigma_0, or its square. In [0, 1/p].

    Elements' variances sum to E|x|^2 - |E x|^2 = 1 - |E x|^2 for vectors x of norm 1. The sigma_0 = 0.1 of `edge`, at
    p = 784, is therefore no such mean of variances, nor of deviations, which is at most p^-0.5 = 0.036.

    Source: as `mean_image`.
    """
    return total_variance(moments, time) / moments.squares.size


def drive(input: Float[Array, " p"], locality: Float[Array, ""], params: Params) -> Float[Array, ""]:
    """kappa = eta |g|^2 Delta, dimensionless: how far one step on a task moves the gate output of that same task.

    Above `FREEZING_DRIVES` a first step freezes the router; below 1 it takes many arrivals to specialise.
    """
    return params.learning_rate * jnp.sum(jnp.square(input)) * locality
