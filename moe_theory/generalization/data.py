"""Distributions of samples on which the true risk of any classifier is exact.

Inputs have |x| <= 1 and labels are -1 or 1. Random labels are fair coins, so every risk is 1/2. The teacher and the
digits draw inputs uniformly from a finite population, over which means can be computed exactly.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Key

from moe_theory.core.digits import handwritten_digits
from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.numerics import Scalar, stored
from moe_theory.generalization import model
from moe_theory.generalization.model import ClassifierWeights, Dims, Params

RANDOM_LABELS = "random-labels"
TEACHER = "teacher"
DIGITS = "digits"
DATA = (RANDOM_LABELS, TEACHER, DIGITS)
DIGITS_PIXELS = 64
POPULATION_SIZE = 2048  # inputs of the teacher's population
TEACHER_EXPERTS = 4
TEACHER_NORM = 8.0  # W of the teacher's router. Any positive number gives the same routes, because one expert is active


class Sample(NamedTuple):
    """Labelled inputs, padded with zeros to `Dims.max_samples`."""

    features: Float[Array, "m d"]  # |x| <= 1
    labels: Float[Array, " m"]  # -1 or 1, 0 where there is no sample
    is_drawn: Bool[Array, " m"]  # True for the first `Params.num_samples`


def check_data(dims: Dims, data: str) -> None:
    if data not in DATA:
        raise unknown_name("data", data, DATA)
    if data == DIGITS and dims.num_features != DIGITS_PIXELS:
        raise InvalidValueError(
            f"num_features={dims.num_features} must be {DIGITS_PIXELS} for the digits, which have 8 x 8 "
            "pixels. Change num_features.",
            argument="num_features",
        )


def draw_sample(
    key: Key[Array, ""], dims: Dims, params: Params, data: str, teacher: ClassifierWeights | None = None
) -> Sample:
    """Draw m independent samples of the distribution `data`, where a larger sample extends a smaller one."""
    feature_key, label_key = jax.random.split(key)
    size = dims.max_samples
    dtype = jnp.result_type(float)
    if data == RANDOM_LABELS:
        normals = stored(jax.random.normal(feature_key, (size, dims.num_features), dtype))
        features = stored(normals / jnp.sqrt(jnp.sum(jnp.square(normals), axis=1, keepdims=True)))
        clean = jnp.ones(size, dtype)
        noise = jnp.asarray(0.5, dtype)  # flips that make fair coins of labels 1
    else:
        inputs = population(dims, data)
        indices = jax.random.randint(feature_key, (size,), 0, inputs.shape[0], jnp.int32)
        features = jnp.asarray(inputs, dtype)[indices]
        clean = teacher_labels(teacher, features) if data == TEACHER else jnp.asarray(_digits()[1], dtype)[indices]
        noise = jnp.asarray(params.label_noise, dtype)
    is_flipped = jax.random.uniform(label_key, (size,), dtype) < noise
    labels = jnp.where(is_flipped, -clean, clean)
    is_drawn = jnp.arange(size, dtype=jnp.int32) < params.num_samples
    return Sample(jnp.where(is_drawn[:, None], features, 0), jnp.where(is_drawn, labels, 0), is_drawn)


def population(dims: Dims, data: str) -> np.ndarray:
    """Return the inputs (P, d) of "teacher" or "digits", the same for all replicates."""
    if data == DIGITS:
        return _digits()[0]
    normals = np.random.default_rng(0).standard_normal((POPULATION_SIZE, dims.num_features))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)  # on the sphere


def draw_teacher(key: Key[Array, ""], dims: Dims) -> ClassifierWeights:
    """Draw a sparse MoE of `TEACHER_EXPERTS` linear experts with one active. Its output's sign labels inputs."""
    teacher_dims = Dims(TEACHER_EXPERTS, dims.num_features, max_samples=1)
    params = Params(TEACHER_EXPERTS, num_active=1, num_samples=1, router_norm=TEACHER_NORM)
    return model.draw_weights(key, teacher_dims, params)


def teacher_labels(teacher: ClassifierWeights | None, features: Float[Array, "m d"]) -> Float[Array, " m"]:
    assert teacher is not None
    outputs = model.outputs(teacher, features, num_active=1, num_experts=TEACHER_EXPERTS)
    labels = jnp.where(outputs < 0, jnp.asarray(-1, outputs.dtype), jnp.asarray(1, outputs.dtype))
    return jnp.where(jnp.isnan(outputs), jnp.nan, labels)


def true_risk(
    weights: ClassifierWeights,
    num_active: Scalar,
    num_experts: Scalar,
    data: str,
    teacher: ClassifierWeights | None = None,
    label_noise: Scalar = 0.0,
) -> Float[Array, ""]:
    """Return the exact L_D(f) of the ramp loss, as a mean over the population and its labels.

    The risk is 1/2 for random labels, as (l(1, f) + l(-1, f))/2 = 1/2 for every f.
    """
    dtype = weights.experts[0].dtype
    if data == RANDOM_LABELS:
        return jnp.asarray(0.5, dtype)
    dims = Dims(max_experts=1, num_features=weights.experts[0].shape[-1], max_samples=1)  # `population` only reads d
    features = jnp.asarray(population(dims, data), dtype)
    labels = teacher_labels(teacher, features) if data == TEACHER else jnp.asarray(_digits()[1], dtype)
    outputs = model.outputs(weights, features, num_active, num_experts)
    noise = jnp.asarray(label_noise, dtype)
    losses = (1 - noise) * model.ramp_loss(labels, outputs) + noise * model.ramp_loss(-labels, outputs)
    return jnp.mean(losses)


def _digits() -> tuple[np.ndarray, np.ndarray]:
    """Return images with norms of at most 1, and labels: 1 for odd digits, -1 for even ones."""
    images, digits, _ = handwritten_digits()
    rows = images.reshape(-1, DIGITS_PIXELS)
    return rows / np.linalg.norm(rows, axis=1).max(), np.where(digits % 2 == 1, 1.0, -1.0)
