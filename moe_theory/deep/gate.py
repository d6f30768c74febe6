"""The gate's input, made from a task's mean image, and the gate drive kappa."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Num

from moe_theory.core.errors import DeclarationError
from moe_theory.deep.params import Params
from moe_theory.deep.tasks import Pool, in_unit

# Range of kappa in which the router begins to freeze. Above it the first steps fix where a task goes.
FREEZING_DRIVES = (10.0, 20.0)


class ImageMoments(NamedTuple):  # of the unscaled images of all arrivals so far
    mean: Float[Array, " p"]
    squares: Float[Array, " p"]  # sum of squared deviations from the mean


def initial_moments(num_features: int) -> ImageMoments:
    zeros = jnp.zeros(num_features, jnp.result_type(float))
    return ImageMoments(mean=zeros, squares=zeros)


def mean_image(pixels: Num[Array, "s h w c"]) -> Float[Array, " p"]:
    """Return the mean of a task's images as a vector of norm 1. Source: Section VI of `edge`, 6 of `continual`."""
    image = jnp.mean(in_unit(pixels, jnp.result_type(float)), axis=0).reshape(-1)
    norm = jnp.sqrt(jnp.sum(jnp.square(image)))
    return image / jnp.maximum(norm, 1e-12)  # black images, of norm 0, stay 0


Embed = Callable[[Num[Array, "s h w c"]], Float[Array, " p"]]  # from a task's images to the gate's input


def num_features(embed: Embed, pool: Pool, num_samples: int) -> int:
    """Return the length p of the gate's input. Raises: DeclarationError unless it is a vector of real numbers."""
    images = jax.ShapeDtypeStruct((num_samples, *pool.train.pixels.shape[1:]), pool.train.pixels.dtype)
    features = jax.eval_shape(embed, images)
    if getattr(features, "ndim", None) != 1 or not jnp.issubdtype(features.dtype, jnp.floating):
        raise DeclarationError(f"embed returns {features}, but must return one vector of real numbers. Change embed.")
    return features.shape[0]


def observe(
    before: ImageMoments, pixels: Num[Array, "s h w c"], time: Int[Array, ""], params: Params, embed: Embed = mean_image
) -> tuple[ImageMoments, Float[Array, " p"]]:
    image = embed(pixels)
    gap = image - before.mean
    mean = before.mean + gap / time
    moments = ImageMoments(mean, before.squares + gap * (image - mean))  # Welford's recursion
    return moments, gate_input(moments, image, params)


def gate_input(moments: ImageMoments, image: Float[Array, " p"], params: Params) -> Float[Array, " p"]:
    """Return the gate's input, the scaled image. With `centre`, the mean of the arrivals so far is subtracted first."""
    centre = jnp.where(jnp.asarray(params.centre, bool), moments.mean, 0)
    return params.gate_scale * (image - centre)


def total_variance(moments: ImageMoments, time: Int[Array, ""]) -> Float[Array, ""]:
    return jnp.sum(moments.squares) / time


def variance(moments: ImageMoments, time: Int[Array, ""]) -> Float[Array, ""]:
    """Return an element's variance across tasks, averaged over elements: sigma_0 or its square, in [0, 1/p].

    For vectors x of norm 1 these variances sum to 1 - |E x|^2. So the value 0.1 in `edge` is impossible at p = 784.

    Source: Section VI of `edge`, Section 6 of `continual`.
    """
    return total_variance(moments, time) / moments.squares.size


def drive(input: Float[Array, " p"], locality: Float[Array, ""], params: Params) -> Float[Array, ""]:
    """Return kappa = eta |g|^2 |w_t - w_{t-1}|, dimensionless, by which a step moves the task's own gate output."""
    return params.learning_rate * jnp.sum(jnp.square(input)) * locality
