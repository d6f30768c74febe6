"""Image tasks, their pool, and a round's arrival."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int, Key, Num

from moe_theory.core import random
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.numerics import Numbers, Scalar, rounded_positive
from moe_theory.core.tasks import select_row, uniform_index
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.params import Dims, Params

OTHER = -1  # label of an image whose class is no task
Source = DataSet | Callable[[], DataSet]  # a data set, or a function that reads it when needed


class ImageSplit(NamedTuple):
    """Images of one split. Images of no task come first, then images of class 0, 1, ..., K - 1."""

    pixels: Num[Numbers, "n h w c"]  # bytes, or features as float32
    labels: Int[Numbers, " n"]  # class of each image, or `OTHER`
    starts: Int[Numbers, " K"]  # first row of each class
    counts: Int[Numbers, " K"]  # images of each class


class Pool(NamedTuple):
    """Images for K tasks. Each task is one class against the rest, or among all K under `multi_class`."""

    train: ImageSplit
    test: ImageSplit
    mean: Float[Numbers, " c"]  # mean of the training pixels, in [0, 1]
    deviation: Float[Numbers, " c"]


class Arrival(NamedTuple):
    """A task's images, as rows of the pool, and data for routing. The last three fields are for policies of `edge`."""

    task: Int[Array, ""]  # n_t, one of the K classes
    images: Int[Array, " s"]  # rows of training images
    batches: Int[Array, "steps b"]  # positions in `images`, with a row for each gradient step
    tests: Int[Array, " n"]  # rows of test images
    perturbation: Float[Array, " M"]  # r in the router
    uniform: Float[Array, " M"]  # independent, uniform on (0, 1)
    distance: Float[Array, " M"]  # from the user to each server in the unit square
    transfer_delay: Int[Array, " M"]  # d^tr to each server, in rounds


# A stream: (key, dims, state, params) -> this round's pool and arrival.
Stream = Callable[[Key[Array, ""], Dims, Any, Params], tuple[Pool, Arrival]]


def draw(
    key: Key[Array, ""], dims: Dims, pool: Pool, params: Params, time: Int[Scalar, ""] = 1
) -> tuple[Arrival, Float[Array, "2"]]:
    """Draw the arrival of round `time`, with a uniform or `incremental` class, and the user's position.

    Distances and delays stay 0.

    Source: Appendices A.3 to A.6 of `continual`, and Section VI of `edge`.
    """
    sizes = (3, dims.num_samples, dims.num_tests)  # 3 for the class and two coordinates of the user
    count = sum(sizes) + 2 * dims.max_experts
    units = random.uniforms(key, count, jnp.result_type(float))
    user_units, train_units, test_units, expert_units = jnp.split(units, np.cumsum(sizes))
    noise, uniform = expert_units.reshape(dims.max_experts, 2).T
    task_in_turn = (jnp.asarray(time) - 1) * dims.num_classes // params.num_rounds
    task_in_turn = jnp.minimum(task_in_turn, dims.num_classes - 1)  # after T the last class stays
    random_task = uniform_index(user_units[0], dims.num_classes)
    task = jnp.where(jnp.asarray(params.incremental, bool), task_in_turn, random_task).astype(jnp.int32)
    arrival = Arrival(
        task=task,
        images=sample_rows(pool.train, task, train_units, params.positive_share),
        batches=_batches(jax.random.fold_in(key, 1), dims),
        tests=sample_rows(pool.test, task, test_units, params.positive_share),
        perturbation=rounded_positive(params.perturbation_scale * noise),
        uniform=uniform,
        distance=jnp.zeros_like(noise),
        transfer_delay=jnp.zeros(noise.shape, jnp.int32),
    )
    return arrival, user_units[1:]


@functools.lru_cache(maxsize=4)  # each pool is as large as its data set
def pool_of(source: Source, classes: tuple[int, ...]) -> Pool:
    """Return the pool of tasks for these classes of a data set, in the host's memory."""
    data = source if isinstance(source, DataSet) else source()
    check_classes(data, classes)
    mean, deviation = _moments(data.train.pixels)
    return Pool(train=_split(data.train, classes), test=_split(data.test, classes), mean=mean, deviation=deviation)


def check_classes(data: DataSet, classes: tuple[int, ...]) -> None:
    train = data.train.pixels
    test = data.test.pixels
    is_alike = train.shape[1:] == test.shape[1:] and train.dtype == test.dtype
    if train.ndim != 4 or train.dtype not in (np.uint8, np.float32) or not is_alike:
        raise InvalidValueError(
            f"images of {data.title} must have the same shape (n, h, w, c) in both splits, and be uint8 pixels or "
            f"float32 features, not {train.shape} of {train.dtype} and {test.shape} of {test.dtype}. Convert them."
        )
    number = len(data.class_names)
    if len(set(classes)) < len(classes) or not set(classes) <= set(range(number)):
        few = ", ".join(f"{label} ({name})" for label, name in enumerate(data.class_names[:10]))
        raise InvalidValueError(
            f"classes={list(classes)} must be different classes of {data.title}, 0..{number - 1}: {few}"
            f"{', ...' if number > 10 else ''}. Change classes.",
            argument="classes",
        )
    for label in classes:
        for name, split in (("training", data.train), ("test", data.test)):
            if not np.any(split.labels == label) or np.all(split.labels == label):
                raise InvalidValueError(
                    f"{data.title} needs {name} images of class {label} and of other classes. Change the data."
                )


def on_device(pool: Pool) -> Pool:
    return jax.tree.map(
        lambda leaf: jnp.asarray(leaf, None if leaf.dtype.kind in "iu" else jnp.result_type(float)), pool
    )


def _moments(pixels: Num[np.ndarray, "n h w c"]) -> tuple[Float[np.ndarray, " c"], Float[np.ndarray, " c"]]:
    if pixels.dtype != np.uint8:
        deviation = pixels.std(axis=(0, 1, 2), dtype=np.float64)
        return pixels.mean(axis=(0, 1, 2), dtype=np.float64), np.where(deviation > 0, deviation, 1)
    levels = np.arange(256) / 255
    counts = np.zeros((pixels.shape[-1], 256), np.int64)  # of each byte in each channel, without a copy in floats
    for first in range(0, len(pixels), 1000):  # in parts, because `bincount` casts bytes to int64
        for channel in range(len(counts)):
            counts[channel] += np.bincount(pixels[first : first + 1000, ..., channel].ravel(), minlength=256)
    shares = counts / counts.sum(axis=1, keepdims=True)
    mean = shares @ levels
    deviation = np.sqrt(np.sum(shares * np.square(levels - mean[:, None]), axis=1))
    return mean, np.where(deviation > 0, deviation, 1)  # a constant channel becomes 0, not NaN


def _split(images: Images, classes: tuple[int, ...]) -> ImageSplit:
    task_of_label = np.full(int(max(images.labels.max(), *classes)) + 1, OTHER)
    task_of_label[list(classes)] = np.arange(len(classes))
    labels = task_of_label[images.labels]
    order = np.argsort(labels, kind="stable")  # images keep their order within a class
    counts = np.bincount(labels + 1, minlength=len(classes) + 1)  # `OTHER`, which is -1, comes first
    return ImageSplit(
        pixels=images.pixels[order],
        labels=labels[order].astype(np.int32),
        starts=np.cumsum(counts)[:-1].astype(np.int32),
        counts=counts[1:].astype(np.int32),
    )


def sample_rows(
    split: ImageSplit, task: Int[Array, ""], uniforms: Float[Array, " n"], positive_share: Float[Scalar, ""]
) -> Int[Array, " n"]:
    """Sample rows of a task's images. The first `positive_share` shows its class, and the others other classes."""
    # Under x64 sums of int32 are int64, but rows in the state are int32.
    start = select_row(split.starts[:, None], task)[0].astype(jnp.int32)
    count = select_row(split.counts[:, None], task)[0].astype(jnp.int32)
    num_others = split.labels.shape[0] - count
    number = uniforms.shape[0]
    is_positive = jnp.arange(number) < jnp.round(positive_share * number)
    bound = jnp.where(is_positive, count, num_others)
    places = jnp.minimum(jnp.floor(uniforms * bound).astype(jnp.int32), bound - 1)  # a product may round up to `bound`
    # Rows of other classes lie before and behind those of the task's class.
    return jnp.where(is_positive, start + places, places + jnp.where(places >= start, count, 0))


def inputs_of(pool: Pool, pixels: Num[Array, "n h w c"]) -> Float[Array, "n h w c"]:
    """Return pixels after standardising each channel by the training images' mean and deviation."""
    return (in_unit(pixels, pool.mean.dtype) - pool.mean) / pool.deviation


def in_unit(pixels: Num[Array, "*shape"], dtype: DTypeLike) -> Float[Array, "*shape"]:
    values = pixels.astype(dtype)
    return values / 255 if pixels.dtype == jnp.uint8 else values


def _batches(key: Key[Array, ""], dims: Dims) -> Int[Array, "steps b"]:
    places = jnp.arange(dims.num_samples, dtype=jnp.int32)
    if dims.batch_size == dims.num_samples:
        return jnp.broadcast_to(places, (dims.num_epochs, dims.num_samples))
    orders = jax.vmap(lambda key: jax.random.permutation(key, places))(jax.random.split(key, dims.num_epochs))
    return orders.reshape(-1, dims.batch_size)
