"""Training of the testbed's model, and a cache of trained models."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import programs
from moe_theory.core.errors import OutputError
from moe_theory.core.random import root_key
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import NUM_CLASSES, NUM_FEATURES, NUM_TOKENS, TRAIN, Examples, Recipe, examples
from moe_theory.merging.testbed.transformer import Attention, Experts, Layer, Model, MoE, Norm
from moe_theory.runs.files import user_cache
from moe_theory.runs.key import code_digest
from moe_theory.runs.provenance import fingerprint
from moe_theory.runs.store import Store, pack, unpack

Progress = Callable[[str], None]
Tree = TypeVar("Tree")  # a tree of arrays
_REPORTS = 10  # largest number of progress lines per phase
_WARM_UP = 0.1  # share of a phase's steps during which the learning rate rises


def tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")


def trained(setting: Recipe, progress: Progress = tell, folder: Path | None = None) -> Model:
    """Return the model that `train` makes in this setting, trained or read from a cache, by default the user's."""
    like = jax.eval_shape(lambda: initial(root_key(0), setting))
    key = code_digest(train, setting, fingerprint())
    return cached(Store(folder or cache_folder()), key, lambda: train(setting, progress), like, progress)


def cached(store: Store, key: str, make: Callable[[], Tree], like: Any, progress: Progress = tell) -> Tree:
    """Return a tree with the structure of `like` from the cache, or make and save it.

    `progress` receives a line if the cache is damaged, or if the tree cannot be saved.
    """
    data = None
    with contextlib.suppress(OutputError):  # saving will raise it again
        data = store.get(key)
    if data is not None:
        leaves = unpack(data).values()
        return jax.tree.unflatten(jax.tree.structure(like), map(jnp.asarray, leaves))
    for reason in store.damaged.values():
        progress(f"training again: {reason}")
    tree = make()
    leaves = {str(number): np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))}
    try:
        store.put({key: pack(leaves)})
    except OutputError as failure:
        progress(f"the trained model is not saved: {failure}")
    return tree


def train(setting: Recipe, progress: Progress = tell) -> Model:
    """Train a model with task-level routing in float32, where expert v mod K learns task v.

    First one expert per layer trains on batches of all tasks. Then K copies train on equally large batches of their own
    tasks.
    """
    data = Examples(*map(jnp.asarray, examples(setting, TRAIN)))
    key = root_key(setting.seed)
    start = programs.jit(initial, static_argnums=1)(jax.random.fold_in(key, 0), setting)
    model = _phase("dense", jax.random.fold_in(key, 1), setting, start, data=data, num_groups=1, progress=progress)
    count = setting.num_experts
    copies = [Experts(*(jnp.repeat(part, count, axis=0) for part in layer.experts)) for layer in model.layers]
    copied = transformer.replace_experts(model, copies)
    return _phase("experts", jax.random.fold_in(key, 2), setting, copied, data, num_groups=count, progress=progress)


def initial(key: Key[Array, ""], setting: Recipe) -> Model:
    """Return a random model with one expert per layer. Weights have variance 1 / inputs, and biases are 0."""
    embedding_key, position_key, head_key, layer_key = jax.random.split(key, 4)
    width = setting.width
    keys = jax.random.split(layer_key, setting.num_layers)
    return Model(
        w_embedding=_weights(embedding_key, (NUM_FEATURES, width), NUM_FEATURES),
        b_embedding=jnp.zeros(width, jnp.float32),
        positions=_weights(position_key, (NUM_TOKENS, width), width),
        layers=tuple(_layer(key, setting) for key in keys),
        head_norm=_norm(width),
        w_head=_weights(head_key, (width, NUM_CLASSES), width),
        b_head=jnp.zeros(NUM_CLASSES, jnp.float32),
    )


def loss(model: Model, batch: Examples, moe: MoE) -> Float[Array, ""]:
    logits = transformer.forward(model, jnp.asarray(batch.inputs), moe)
    return jnp.mean(optax.softmax_cross_entropy_with_integer_labels(logits, batch.labels))


def draw_batch(key: Key[Array, ""], data: Examples, num_tasks: int, num_groups: int, size: int) -> Examples:
    """Draw `size` examples, ordered by group. Group g has the tasks g, g + num_groups, ... with equal probability."""
    task_key, input_key = jax.random.split(key)
    groups = jnp.arange(size, dtype=jnp.int32) // (size // num_groups)
    tasks_in_group = (num_tasks - 1 - groups) // num_groups + 1  # number of tasks in each example's group
    turns = jax.random.randint(task_key, (size,), 0, tasks_in_group, jnp.int32)  # place among the group's tasks
    per_task = data.labels.shape[0] // num_tasks
    places = jax.random.randint(input_key, (size,), 0, per_task, jnp.int32)
    indices = (groups + turns * num_groups) * per_task + places
    return jax.tree.map(lambda leaf: leaf[indices], data)


def _phase(
    name: str, key: Key[Array, ""], setting: Recipe, model: Model, data: Examples, num_groups: int, progress: Progress
) -> Model:
    """Train a model in the phase "dense" or "experts"."""
    num_steps = setting.dense_steps if name == "dense" else setting.expert_steps
    if num_steps == 0:
        return model
    warm_up = int(_WARM_UP * num_steps) + 1
    rate = optax.warmup_cosine_decay_schedule(0.0, setting.learning_rate, warm_up, num_steps + 2)
    optimizer = optax.adam(rate)

    def step(carried: Any, time: Int[Array, ""]) -> tuple[Any, Float[Array, ""]]:
        model, state = carried
        batch = draw_batch(jax.random.fold_in(key, time), data, setting.num_tasks, num_groups, setting.batch_size)
        value, gradient = jax.value_and_grad(loss)(model, batch, transformer.in_groups)
        change, state = optimizer.update(gradient, state)
        return (optax.apply_updates(model, change), state), value

    @programs.jit
    def run(carried: Any, times: Int[Array, " n"]) -> Any:
        return jax.lax.scan(step, carried, times)

    carried = (model, programs.jit(optimizer.init)(model))
    # Parts of equal length share one program.
    num_reports = next(count for count in range(_REPORTS, 0, -1) if num_steps % count == 0)
    for times in np.split(np.arange(num_steps, dtype=np.int32), num_reports):
        carried, losses = run(carried, times)
        progress(f"{name}: {times[-1] + 1} of {num_steps} steps, loss {np.asarray(losses).mean():.3f}")
    return carried[0]


def _layer(key: Key[Array, ""], setting: Recipe) -> Layer:
    projection_key, output_key, in_key, out_key = jax.random.split(key, 4)
    width = setting.width
    hidden = setting.hidden
    heads = setting.num_heads
    size = width // heads  # features of a head
    attention = Attention(
        w_in=_weights(projection_key, (width, 3, heads, size), width),
        b_in=jnp.zeros((3, heads, size), jnp.float32),
        w_out=_weights(output_key, (heads, size, width), width),
        b_out=jnp.zeros(width, jnp.float32),
    )
    experts = Experts(
        w_in=_weights(in_key, (1, width, hidden), width),
        b_in=jnp.zeros((1, hidden), jnp.float32),
        w_out=_weights(out_key, (1, hidden, width), hidden),
        b_out=jnp.zeros((1, width), jnp.float32),
    )
    return Layer(attention_norm=_norm(width), attention=attention, experts_norm=_norm(width), experts=experts)


def _weights(key: Key[Array, ""], shape: tuple[int, ...], num_inputs: int) -> Array:
    return jax.random.normal(key, shape, jnp.float32) * np.float32(num_inputs**-0.5)


def _norm(width: int) -> Norm:
    return Norm(scale=jnp.ones(width, jnp.float32), shift=jnp.zeros(width, jnp.float32))


def cache_folder() -> Path:
    return user_cache() / "testbed"
