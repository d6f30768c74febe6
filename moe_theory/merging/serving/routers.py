"""Training of linear routers on frozen experts, by the loss or by REINFORCE, and their cache."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import optax
from jaxtyping import Array, Float, Int, Key

from moe_theory.core import programs
from moe_theory.core.numerics import Scalar
from moe_theory.core.random import root_key
from moe_theory.merging.serving import routing
from moe_theory.merging.serving.methods import Deployment
from moe_theory.merging.serving.routing import KINDS, SOFT, TOKEN, Kind, Router, Routers
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import TRAIN, Examples, Recipe, draw_slot, examples
from moe_theory.merging.testbed.transformer import Experts, Model, MoE
from moe_theory.runs.key import code_digest
from moe_theory.runs.provenance import fingerprint
from moe_theory.runs.store import Store

NUM_STEPS = 300
BATCH_SIZE = 128
NUM_SAMPLES = 4  # routes drawn for each example in a step of REINFORCE


class Descent(NamedTuple):
    learning_rate: float = 0.02  # of Adam
    balance_weight: float = 0.01  # alpha of Switch's load-balancing loss


# `benchmarks/tune_testbed.py` found these better by more than half a point. For other routers the gain was smaller.
DESCENTS = {"token-top-2": Descent(learning_rate=0.0054, balance_weight=0.0025)}


def train(
    kind: Kind, model: Model, data: Examples, num_tasks: int, key: Key[Array, ""], descent: Descent | None = None
) -> Routers:
    on_device = jax.tree.map(jnp.asarray, data)
    start = _untrained(kind, model, num_tasks)
    return _descend(kind, model, on_device, num_tasks, key, start, descent or Descent())


def _untrained(kind: Kind, model: Model, num_tasks: int) -> Routers:
    num_experts, width = model.layers[0].experts.b_out.shape  # all layers have the same sizes
    return routing.zeros(kind, [width] * len(model.layers), num_experts, num_tasks)


@functools.partial(programs.jit, static_argnums=(0, 3))
def _descend(
    kind: Kind, model: Model, data: Examples, num_tasks: int, key: Key[Array, ""], start: Routers, descent: Descent
) -> Routers:
    schedule = optax.cosine_decay_schedule(1.0, decay_steps=NUM_STEPS, alpha=0.1)  # falls from 1 to a tenth
    optimizer = optax.adam(lambda count: descent.learning_rate * schedule(count))
    loss = _reinforced_loss if kind.is_reinforced else _supervised_loss

    def step(carried: tuple[Routers, Any], time: Int[Array, ""]) -> tuple[tuple[Routers, Any], None]:
        routers, state = carried
        batch_key, sample_key = jax.random.split(jax.random.fold_in(key, time))
        batch = draw_slot(batch_key, data, jnp.full(num_tasks, 1 / num_tasks, jnp.float32), BATCH_SIZE)
        gradient = jax.grad(loss)(routers, kind, model, batch, sample_key, descent.balance_weight)
        change, state = optimizer.update(gradient, state)
        return (optax.apply_updates(routers, change), state), None  # pyright: ignore[reportReturnType]

    times = jnp.arange(NUM_STEPS, dtype=jnp.int32)
    return jax.lax.scan(step, (start, optimizer.init(start)), times)[0][0]  # pyright: ignore[reportArgumentType]


def _supervised_loss(
    routers: Routers, kind: Kind, model: Model, batch: Examples, key: Key[Array, ""], balance_weight: Scalar
) -> Float[Array, ""]:
    del key
    balance: list[Float[Array, ""]] = []

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        if kind.level == TOKEN and kind.num_active != SOFT:
            balance.append(_imbalance(routers[layer], kind, tokens))
        return _differentiable(routers, kind, batch)(experts, tokens, layer)

    values = transformer.forward(model, jnp.asarray(batch.inputs), moe)
    entropy = jnp.mean(optax.softmax_cross_entropy_with_integer_labels(values, batch.labels))
    return entropy + balance_weight * sum(balance, jnp.zeros((), entropy.dtype))


def _differentiable(routers: Routers, kind: Kind, batch: Examples) -> MoE:
    """Return the routed layers, with gates through which routers learn."""
    if kind.num_active == SOFT:
        return routing.soft(routers, kind, routing.by_linearity)

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        scores = routing.logits(routers[layer], kind, tokens, jnp.asarray(batch.tasks))
        gates = jnp.broadcast_to(straight_through(kind, scores), (*tokens.shape[:2], scores.shape[-1]))
        flat = routing.gated(experts, tokens.reshape(-1, tokens.shape[-1]), gates.reshape(-1, gates.shape[-1]))
        return flat.reshape(tokens.shape)

    return moe


def straight_through(kind: Kind, scores: Float[Array, "n g K"]) -> Float[Array, "n g K"]:
    """Return the chosen experts' gates, with the gradient of the softmax over all experts.

    At k = 1 the chosen gate is constant and has no gradient.
    """
    experts, gates = routing.choose(kind, scores)
    hard = jnp.einsum("ngj,ngjk->ngk", gates, jax.nn.one_hot(experts, scores.shape[-1], dtype=scores.dtype))
    probabilities = jax.nn.softmax(scores)
    return probabilities + jax.lax.stop_gradient(hard - probabilities)


def _imbalance(router: Router, kind: Kind, tokens: Float[Array, "n t d"]) -> Float[Array, ""]:
    """Return the load-balancing loss K sum_k (share of tokens)_k (mean probability)_k, which is 1 under even load.

    Source: Switch Transformer, Eq. (4) to (6).
    """
    scores = routing.logits(router, kind, tokens, None)
    num_experts = scores.shape[-1]
    indices, _ = routing.choose(kind, scores)
    is_chosen = jax.nn.one_hot(indices, num_experts, dtype=scores.dtype)
    shares = jnp.mean(is_chosen.reshape(-1, num_experts), axis=0)
    probabilities = jnp.mean(jax.nn.softmax(scores).reshape(-1, num_experts), axis=0)
    return num_experts * jnp.sum(jax.lax.stop_gradient(shares) * probabilities)


def _reinforced_loss(
    routers: Routers, kind: Kind, model: Model, batch: Examples, key: Key[Array, ""], balance_weight: Scalar
) -> Float[Array, ""]:
    """Return a loss whose gradient is REINFORCE's for minus the expected number of right answers.

    Each example is routed `NUM_SAMPLES` times, with the mean of the other samples as baseline.
    """
    del balance_weight
    inputs = jnp.repeat(batch.inputs, NUM_SAMPLES, axis=0)
    labels = jnp.repeat(batch.labels, NUM_SAMPLES, axis=0)
    surprises: list[Float[Array, " n"]] = []  # -log p of an example's routes, by layer

    def moe(experts: Experts, tokens: Float[Array, "n t d"], layer: int) -> Float[Array, "n t d"]:
        tokens = jax.lax.stop_gradient(tokens)
        scores = routing.logits(routers[layer], kind, tokens, None)
        sampled = jax.random.categorical(jax.random.fold_in(key, layer), jax.lax.stop_gradient(scores))[..., None]
        surprises.append(-jnp.sum(jnp.take_along_axis(jax.nn.log_softmax(scores), sampled, axis=-1), axis=(1, 2)))
        indices = sampled.astype(jnp.int32).reshape(-1, 1)
        flat = tokens.reshape(-1, tokens.shape[-1])
        return routing.dense(experts, flat, indices, jnp.ones(indices.shape, tokens.dtype)).reshape(tokens.shape)

    answers = jnp.argmax(transformer.forward(model, inputs, moe), axis=-1)
    rewards = (answers == labels).astype(jnp.float32).reshape(-1, NUM_SAMPLES)
    baseline = (jnp.sum(rewards, axis=1, keepdims=True) - rewards) / (NUM_SAMPLES - 1)
    advantage = (rewards - baseline).reshape(-1)
    return jnp.mean(advantage * sum(surprises, jnp.zeros(advantage.shape, jnp.float32)))


def deployed(setting: Recipe) -> Deployment:
    """Return the trained model with routers of all kinds. The model and routers are trained, or read from the cache."""
    model = training.trained(setting)
    data = examples(setting, TRAIN)
    store = Store(training.cache_folder())
    digest = code_digest(train, examples, setting, model, fingerprint())
    routers = {}
    for number, (name, kind) in enumerate(KINDS.items()):

        def make(number: int = number, name: str = name, kind: Kind = kind) -> Routers:
            training.tell(f"router: {name}, {NUM_STEPS} steps")
            # `training.train` folds numbers below 1000 into the same key.
            router_key = jax.random.fold_in(root_key(setting.seed), 1000 + number)
            return train(kind, model, data, setting.num_tasks, router_key, descent=DESCENTS.get(name))

        like = _untrained(kind, model, setting.num_tasks)
        routers[name] = training.cached(store, f"{digest} {number} {name}", make, like)
    return Deployment(model, routers, data)
