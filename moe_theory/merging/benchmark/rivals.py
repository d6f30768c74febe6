"""Ways to merge that are no policies: once, from training inputs; layer by layer, from the stream's unlabelled inputs;
and two that keep more than one expert.

A merge that is made once answers each input of the test set in one way, so that its right answers in a slot are counted
in a table.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Array, Bool, Float, Int

from moe_theory.checkpoints import Method
from moe_theory.core import programs
from moe_theory.merging.benchmark.runs import Right, Told, answered, graded, in_parts, num_right, untold
from moe_theory.merging.benchmark.streams import Testbed, Traffic, testbed
from moe_theory.merging.serving import merge as merges
from moe_theory.merging.testbed import transformer
from moe_theory.merging.testbed.tasks import Examples
from moe_theory.merging.testbed.transformer import Experts, Model
from moe_theory.merging.weights import merge

FISHER, REGMEAN, ADAMERGING = "fisher", "regmean", "adamerging"
OFFLINE = "offline weights"  # which know a stream's mix before it begins, and labels of training inputs
CLUSTERED, ROUTED = "hc-smoe, 2 experts", "not merged"  # which serve a request by its task's expert
TASK_VECTORS = ("task-arithmetic", "ties", "dare")
NAMES = (FISHER, REGMEAN, *TASK_VECTORS, ADAMERGING, OFFLINE, CLUSTERED, ROUTED)
# What `benchmarks/record_streams.py --tune` found best of as many settings as for each policy; see there. Merges of
# task vectors, which see training inputs of their family, have settings for each.
TUNED: Mapping[str, Mapping[str, Any]] = {ADAMERGING: {"rate": 0.00077, "scale": 1.3}}
TUNED_BY_FAMILY: Mapping[str, Mapping[str, Mapping[str, Any]]] = {
    "task-arithmetic": {"conflicting": {"scale": 1.0}, "agreeing": {"scale": 1.0}, "sequences": {"scale": 1.1}},
    "ties": {
        "conflicting": {"scale": 0.4, "density": 0.64},
        "agreeing": {"scale": 0.4, "density": 0.64},
        "sequences": {"scale": 0.66, "density": 0.069},
    },
    "dare": {
        "conflicting": {"scale": 1.0, "density": 0.64},
        "agreeing": {"scale": 1.0, "density": 0.64},
        "sequences": {"scale": 0.86, "density": 0.2},
    },
}
MASKS = 8  # of DARE, which streams have in turn
ADAM = optax.scale_by_adam()
SHARPENED = 2.0  # answers, in the search for offline weights
DESCENT_STEPS, DESCENT_SIZE, DESCENT_RATE = 100, 32, 0.1  # of offline weights: inputs of a task in a step
CALIBRATED = 256  # training inputs on which HC-SMoE compares the outputs of experts


def serve(name: str, tasks: str, served: Traffic, told: Told = untold) -> Right:
    """Right answers (B, T) of a way to merge, one of `NAMES`, with the settings that were found best for it.

    Args:
        tasks: the family, a name of `FAMILIES`.
    """
    of = testbed(tasks)
    if name == ADAMERGING:
        return adapt(of, served, **TUNED[name], told=told)
    if name == OFFLINE:
        return serve_weights(of, served, best_weights(of, served.mix.mean(axis=1)))
    if name in (CLUSTERED, ROUTED):
        models = by_task(of, clustered(of, 2 if name == CLUSTERED else of.num_experts))
    elif name in TUNED_BY_FAMILY:
        masks = range(MASKS if name == "dare" else 1)
        made = [merged_once(name, of, **TUNED_BY_FAMILY[name][tasks], seed=seed) for seed in masks]
        tables = np.stack([right_of(model, of) for model in made])
        mask = np.arange(len(served.tasks)) % len(tables)
        return tables[mask[:, None, None], served.places].sum(axis=-1)
    else:
        models = merged_once(name, of)
    return right_of(models, of)[served.places].sum(axis=-1)


def merged_once(name: str, of: Testbed, **settings: Any) -> Model:
    """The model with one expert a layer that a method makes from the experts, their beginning or training inputs.

    Args:
        settings: of `checkpoints.Method`: scale, density and the seed of DARE's mask.
    Raises: UnknownNameError or InvalidParamsError for a method or settings that `checkpoints.Method` refuses.
    """
    if name == FISHER:
        return merges.fisher(of.model, of.calibration)
    if name == REGMEAN:
        return merges.regmean(of.model, of.calibration)
    equal = np.full(of.num_experts, 1 / of.num_experts)
    parts = [
        merge(layer.experts, equal, Method(name, **settings), jax.tree.map(lambda leaf: leaf[0], base))
        for layer, base in zip(of.model.layers, of.base, strict=True)
    ]
    return transformer.replace_experts(of.model, [jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], p) for p in parts])


def by_task(of: Testbed, groups: Int[np.ndarray, "L K"]) -> list[Model]:
    """For each task the model of one expert a layer: the average of those that are in one group with its own."""
    models = []
    for task in range(of.num_tasks):
        shares = [(row == row[task % of.num_experts]) / np.sum(row == row[task % of.num_experts]) for row in groups]
        own = [
            transformer.merge_experts(layer.experts, jnp.asarray(each, jnp.float32))
            for layer, each in zip(of.model.layers, shares, strict=True)
        ]
        models.append(transformer.replace_experts(of.model, own))
    return models


def clustered(of: Testbed, count: int) -> Int[np.ndarray, "L K"]:
    """Groups of a layer's experts whose mean outputs on training inputs are alike: hierarchical, by average linkage.

    With one group this is the average of all; requests are then routed by task to the group of their expert.

    Source: I-C. Chen et al., "Retraining-Free Merging of Sparse MoE via Hierarchical Clustering", ICML 2025.
    """
    from scipy.cluster import hierarchy

    chosen = np.linspace(0, len(of.calibration.labels) - 1, CALIBRATED).astype(int)
    owner = of.calibration.tasks[chosen] % of.num_experts
    seen: list[np.ndarray] = []

    def moe(experts: Experts, tokens: Float[Array, "n s d"], layer: int) -> Float[Array, "n s d"]:
        each = [transformer.dense(Experts(*(part[k, None] for part in experts)), tokens) for k in range(of.num_experts)]
        seen.append(np.stack([np.asarray(outputs).mean(axis=(0, 1)) for outputs in each]))
        return jnp.stack(each)[owner, np.arange(CALIBRATED)]

    transformer.forward(of.model, jnp.asarray(of.calibration.inputs[chosen]), moe)
    return np.stack([hierarchy.fcluster(hierarchy.linkage(own, "average"), count, "maxclust") for own in seen])


def right_of(models: Model | Sequence[Model], of: Testbed) -> Bool[np.ndarray, " n"]:
    """Which of the test set's inputs a model answers rightly; of several each does those of its task."""
    if isinstance(models, Model):
        return np.asarray(_answers(models, jnp.asarray(of.tests.inputs))) == of.tests.labels
    parts = zip(models, np.split(of.tests.inputs, of.num_tasks), np.split(of.tests.labels, of.num_tasks), strict=True)
    return np.concatenate([np.asarray(_answers(model, jnp.asarray(own))) == labels for model, own, labels in parts])


@programs.jit
def _answers(model: Model, inputs: Float[Array, "n s p"]) -> Int[Array, " n"]:
    return jnp.argmax(transformer.forward(model, inputs, merges.single), axis=-1)


def adapt(of: Testbed, served: Traffic, rate: float, scale: float, told: Told = untold) -> Right:
    """AdaMerging: a coefficient for each layer and expert, moved after each slot to lower the entropy of its answers.

    Args:
        rate: of Adam.
        scale: sum of a layer's coefficients of task vectors at the beginning, where all are equal.
    Source: E. Yang et al., "AdaMerging: Adaptive Model Merging for Multi-Task Learning", ICLR 2024, layer-wise.
    """
    start = jnp.full((len(served.tasks), len(of.base), of.num_experts), scale / of.num_experts, jnp.float32)
    tests, carried = jax.tree.map(jnp.asarray, of.tests), (start, jax.vmap(ADAM.init)(start))

    def serve(carried: Any, part: Traffic, first: int) -> tuple[Any, Int[Array, "T B"]]:
        del first
        return _adapt(of.model, of.base, tests, carried, part, jnp.float32(rate))

    return in_parts(serve, carried, served, told)


def merged_by_layer(model: Model, base: Sequence[Experts], coefficients: Float[Array, "L K"]) -> Model:
    """One expert a layer, W_0 + sum_k c_lk (W_k - W_0), from what the experts began from."""
    experts = []
    for layer, start, own in zip(model.layers, base, coefficients, strict=True):
        pairs = zip(layer.experts, start, strict=True)
        experts.append(Experts(*(began + jnp.tensordot(own, part - began, axes=1)[None] for part, began in pairs)))
    return transformer.replace_experts(model, experts)


@programs.jit
def _adapt(
    model: Model, base: tuple[Experts, ...], tests: Examples, carried: Any, slots: Traffic, rate: Float[Array, ""]
) -> tuple[Any, Int[Array, "T B"]]:
    def entropy(coefficients: Float[Array, "L K"], slot: Traffic) -> tuple[Array, Array]:
        inputs = jnp.asarray(tests.inputs)[slot.places]
        logits = transformer.forward(merged_by_layer(model, base, coefficients), inputs, merges.single)
        chances = jax.nn.log_softmax(logits)
        return -jnp.mean(jnp.sum(jnp.exp(chances) * chances, axis=-1)), num_right(graded(logits, tests, slot))

    def of_stream(carried: tuple[Array, Any], slot: Traffic) -> tuple[tuple[Array, Any], Array]:
        coefficients, state = carried
        gradient, right = jax.grad(entropy, has_aux=True)(coefficients, slot)
        change, state = ADAM.update(gradient, state)
        return (coefficients - rate * jnp.asarray(change), state), right

    return jax.lax.scan(jax.vmap(of_stream), carried, slots)


def best_weights(of: Testbed, mixes: Float[np.ndarray, "B V"]) -> Float[Array, "B K"]:
    """Merging weights for mixes that are known: gradient descent on the loss of training inputs, from the mix itself.

    An online method has no labels and no training inputs; one that is further ahead than this has found better weights.
    """
    per_task = len(of.calibration.labels) // of.num_tasks
    draws = np.random.default_rng(0).integers(0, per_task, (DESCENT_STEPS, of.num_tasks, DESCENT_SIZE))
    rows = draws + per_task * np.arange(of.num_tasks)[:, None]
    start = jnp.log(jnp.pad(mixes, ((0, 0), (0, of.num_experts - of.num_tasks))) + 0.01)
    logits = _descend(of.model, jax.tree.map(jnp.asarray, of.calibration), jnp.asarray(mixes), start, rows)
    return jax.nn.softmax(logits)


@programs.jit
def _descend(
    model: Model,
    data: Examples,
    mixes: Float[Array, "B V"],
    start: Float[Array, "B K"],
    rows: Int[Array, "S V m"],
) -> Float[Array, "B K"]:
    adam = optax.adam(optax.cosine_decay_schedule(DESCENT_RATE, len(rows)))

    def loss(logits: Float[Array, " K"], mix: Float[Array, " V"], inputs: Array, labels: Array) -> Array:
        served = merges.weighted(model, jax.nn.softmax(logits))
        values = transformer.forward(served, inputs, merges.single)
        likelihood = jnp.exp(-optax.softmax_cross_entropy_with_integer_labels(SHARPENED * values, labels))
        return -mix @ jnp.mean(likelihood.reshape(len(mix), -1), axis=1)  # less where more is right, for sharp answers

    def step(carried: tuple[Array, Any], own: Int[Array, "V m"]) -> tuple[tuple[Array, Any], None]:
        logits, state = carried
        inputs, labels = jnp.asarray(data.inputs)[own.reshape(-1)], jnp.asarray(data.labels)[own.reshape(-1)]
        gradient = jax.vmap(jax.grad(loss), in_axes=(0, 0, None, None))(logits, mixes, inputs, labels)
        change, state = adam.update(gradient, state)
        return (logits + jnp.asarray(change), state), None

    return jax.lax.scan(step, (start, adam.init(start)), rows)[0][0]


@programs.jit
def _serve_weights(model: Model, tests: Examples, weights: Float[Array, "B K"], served: Traffic) -> Int[Array, "T B"]:
    each = jax.vmap(lambda own, slot: num_right(answered(model, tests, own, slot)))
    return jax.lax.map(lambda slots: each(weights, slots), served)


def serve_weights(of: Testbed, served: Traffic, weights: Float[Array, "B K"]) -> Right:
    """Right answers of experts merged with the same weights in all slots of a stream."""
    slots = Traffic(*(np.swapaxes(each, 0, 1) for each in served))
    return np.asarray(_serve_weights(of.model, jax.tree.map(jnp.asarray, of.tests), weights, slots)).T
