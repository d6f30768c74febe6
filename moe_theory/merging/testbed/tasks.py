"""The testbed's tasks, the setting of its trained weights, and slots of requests.

Inputs are scikit-learn's 8 x 8 images of digits. Task v applies change v mod 4 to the image and label map v // 4. Label
map m adds 3 m to a label, modulo the number of classes, so any two label maps disagree on every input.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.core.constraints import Size, SizeOrZero
from moe_theory.core.digits import handwritten_digits

CHANGES = ("as it is", "rotated", "inverted", "permuted")  # changes of an image, in the order of `changed`
SIDE = 8  # pixels along the side of an image
PATCH = 4  # pixels along the side of a token
NUM_CLASSES = 10
NUM_TOKENS = (SIDE // PATCH) ** 2
NUM_FEATURES = PATCH**2


def digits_task(change: int, is_validation: bool) -> tuple[np.ndarray, np.ndarray]:
    """Return images under one of the `CHANGES` as patches of pixels in [-1, 1], and their digits."""
    pixels, digits, is_held_out = handwritten_digits()
    is_selected = is_held_out == is_validation
    images = changed(pixels[is_selected] / 8 - 1, change)  # pixels are from 0 to 16
    blocks = SIDE // PATCH
    rows = images.reshape(-1, blocks, PATCH, blocks, PATCH).swapaxes(2, 3)
    return np.ascontiguousarray(rows.reshape(-1, blocks**2, PATCH**2)), digits[is_selected]


def changed(images: np.ndarray, change: int) -> np.ndarray:
    """Return images (n, 8, 8) with pixels in [-1, 1], under change number `change` of the `CHANGES`."""
    if change == 1:
        return np.rot90(images, axes=(1, 2))
    if change == 2:
        return -images
    if change == 3:
        order = np.random.default_rng(0).permutation(SIDE**2)
        return images.reshape(-1, SIDE**2)[:, order].reshape(images.shape)
    return images


TRAIN = "train"
VALIDATION = "validation"
_STRIDE = 3  # step between label maps, prime to the number of classes


@dataclass(frozen=True)
class Recipe:
    """Setting that determines the trained weights."""

    num_tasks: Size = 8  # V
    num_experts: Size = 8  # K, where expert v mod K serves task v
    width: Size = 48
    hidden: Size = 128  # hidden units of an expert
    num_layers: Size = 2
    num_heads: Size = 4
    dense_steps: SizeOrZero = 50  # steps of one FFN on all tasks, from which all experts start
    expert_steps: SizeOrZero = 500  # steps with task-level routing
    batch_size: Size = 256
    learning_rate: float = 2e-3  # peak rate of Adam
    seed: SizeOrZero = 0


class Examples(NamedTuple):
    """Labelled inputs: the requests of a slot, or a split in V equal parts with all inputs under each task."""

    inputs: Float[Array | np.ndarray, "n s p"]  # sequences of s tokens of p features each, float32
    labels: Int[Array | np.ndarray, " n"]  # int32, from 0
    tasks: Int[Array | np.ndarray, " n"]  # int32, from 0


@functools.lru_cache
def examples(setting: Recipe, split: str) -> Examples:
    """Return every input of a split, TRAIN or VALIDATION, under every task, the same in every setting."""
    inputs_by_task = []
    labels_by_task = []
    for task in range(setting.num_tasks):
        label_map, change = divmod(task, len(CHANGES))
        images, digits = digits_task(change, split == VALIDATION)
        inputs_by_task.append(images.astype(np.float32))
        labels_by_task.append(((digits + _STRIDE * label_map) % NUM_CLASSES).astype(np.int32))
    inputs = np.concatenate(inputs_by_task)
    labels = np.concatenate(labels_by_task)
    tasks = np.repeat(np.arange(setting.num_tasks, dtype=np.int32), len(inputs) // setting.num_tasks)
    for array in (inputs, labels, tasks):
        array.flags.writeable = False  # the arrays are cached
    return Examples(inputs, labels, tasks)


def draw_slot(key: Key[Array, ""], examples: Examples, mix: Float[Array, " V"], size: int) -> Examples:
    """Draw `size` independent requests: a task by the mix, then one of its examples uniformly."""
    task_key, input_key = jax.random.split(key)
    num_tasks = mix.shape[0]
    per_task = examples.labels.shape[0] // num_tasks
    edges = jnp.cumsum(mix)  # task v has the draws from edge v - 1 to edge v
    # We scale by the rounded sum, so that a last task with share 0 is never drawn.
    draws = jax.random.uniform(task_key, (size, 1), mix.dtype) * edges[-1]
    tasks = jnp.sum(draws >= edges[:-1], axis=1, dtype=jnp.int32)
    places = jax.random.randint(input_key, (size,), 0, per_task, jnp.int32)
    indices = tasks * per_task + places
    return Examples(jnp.asarray(examples.inputs)[indices], jnp.asarray(examples.labels)[indices], tasks)


def accuracies(
    logits: Float[Array, "n C"], labels: Int[Array, " n"], tasks: Int[Array, " n"], num_tasks: int
) -> tuple[Float[Array, " V"], Int[Array, " V"]]:
    """Return the share of right answers and the number of requests by task, both 0 for absent tasks."""
    is_of_task = tasks[:, None] == jnp.arange(num_tasks, dtype=tasks.dtype)  # (n, V)
    is_right = (jnp.argmax(logits, axis=-1) == labels)[:, None]
    counts = jnp.sum(is_of_task, axis=0, dtype=jnp.int32)
    hits = jnp.sum(is_of_task & is_right, axis=0, dtype=jnp.int32)
    return hits.astype(logits.dtype) / jnp.maximum(counts, 1).astype(logits.dtype), counts
