"""Ways to serve a mixture of experts against plain loops, on layers and models of a few units."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.merging.serving import merge, methods, routers, routing
from moe_theory.merging.serving.methods import METHODS, Deployment
from moe_theory.merging.serving.routing import KINDS, Router
from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.tasks import TRAIN, Examples, Recipe, examples
from moe_theory.merging.testbed.transformer import Experts

EXPERTS, TOKENS, WIDTH, HIDDEN = 4, 24, 5, 7
SETTING = Recipe(num_tasks=EXPERTS, num_experts=EXPERTS, width=8, hidden=6, num_layers=2, num_heads=2, batch_size=8)
quick = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


def random_experts(rng, num_experts=EXPERTS, width=WIDTH, hidden=HIDDEN):
    shapes = ((width, hidden), (hidden,), (hidden, width), (width,))
    return Experts(*(np.float32(rng.normal(size=(num_experts, *shape))) for shape in shapes))


def outputs_of(expert, token):
    w_in, b_in, w_out, b_out = expert
    return np.maximum(token @ w_in + b_in, 0) @ w_out + b_out


def of_expert(experts, number):
    return [np.asarray(part[number], np.float64) for part in experts]


def routed_tokens(rng, num_choices, shares=None):
    tokens = rng.normal(size=(TOKENS, WIDTH)).astype(np.float32)
    chosen = np.stack([rng.choice(EXPERTS, num_choices, replace=False, p=shares) for _ in range(TOKENS)])
    gates = rng.dirichlet(np.ones(num_choices), TOKENS).astype(np.float32)
    return tokens, chosen.astype(np.int32), gates


def by_loop(experts, tokens, chosen, gates, room=TOKENS):
    """First choices of all tokens, then second ones; an expert takes no more than it has room for."""
    outputs, taken, dropped = np.zeros(tokens.shape), np.zeros(EXPERTS, int), 0
    for choice in range(chosen.shape[1]):
        for token in range(len(tokens)):
            expert = chosen[token, choice]
            taken[expert] += 1
            if taken[expert] <= room:
                outputs[token] += gates[token, choice] * outputs_of(of_expert(experts, expert), tokens[token])
            else:
                dropped += 1
    return outputs, dropped


def test_builds_of_sparse_routing_are_one_function():
    """Would catch a build that loses a token, a gate or a bias, or undoes its sorting wrongly."""
    rng = np.random.default_rng(1)
    experts, (tokens, chosen, gates) = random_experts(rng), routed_tokens(rng, 2)
    expected, _ = by_loop(experts, tokens, chosen, gates)
    ample = functools.partial(routing.with_capacity, factor=float(EXPERTS))  # drops none
    for build in (routing.dense, routing.ragged, ample):
        np.testing.assert_allclose(quick(build)(experts, tokens, chosen, gates), expected, atol=1e-4)


def test_capacity_drops_what_is_beyond_it_and_nothing_else():
    """Would catch later tokens that push out earlier ones, second choices before first ones, and rounding down."""
    rng = np.random.default_rng(2)
    experts, (tokens, chosen, gates) = random_experts(rng), routed_tokens(rng, 2, [0.7, 0.1, 0.1, 0.1])
    room = routing.capacity(TOKENS, 2, EXPERTS)
    assert room == 15  # 1.25 x 24 x 2 / 4
    assert routing.capacity(10, 1, 4) == 4  # 3.125, rounded up
    expected, dropped = by_loop(experts, tokens, chosen, gates, room)
    assert dropped > 5
    np.testing.assert_allclose(quick(routing.with_capacity)(experts, tokens, chosen, gates), expected, atol=1e-4)


def test_soft_merges_are_one_function():
    """Would catch weights that meet the wrong group, and biases that are not merged."""
    rng = np.random.default_rng(3)
    experts = random_experts(rng)
    tokens = rng.normal(size=(6, 3, WIDTH)).astype(np.float32)
    weights = rng.dirichlet(np.ones(EXPERTS), 6).astype(np.float32)
    expected = np.zeros(tokens.shape)
    for group in range(6):
        own = [np.tensordot(weights[group], np.asarray(part, np.float64), 1) for part in experts]
        expected[group] = outputs_of(own, tokens[group])
    for build in routing.SOFT_BUILDS.values():
        np.testing.assert_allclose(quick(build)(experts, tokens, weights), expected, atol=1e-4)


@pytest.fixture(scope="module")
def deployment():
    """A random model, with routers that send everything to expert 2, but tags to their own experts."""
    rng = np.random.default_rng(4)
    model = jax.device_get(quick(training.initial, static_argnums=1)(jax.random.key(0), SETTING))
    layers = [random_experts(rng, EXPERTS, SETTING.width, SETTING.hidden) for _ in model.layers]
    model = transformer.replace_experts(model, layers)
    made = {}
    for name, kind in KINDS.items():
        is_tagged = kind.level == routing.TASK
        weights = 50 * np.eye(EXPERTS) if is_tagged else np.zeros((SETTING.width, EXPERTS))
        bias = np.zeros(EXPERTS) if is_tagged else 50 * np.eye(EXPERTS)[2]
        made[name] = (Router(np.float32(weights), np.float32(bias)),) * SETTING.num_layers
    return Deployment(model, made, examples(SETTING, TRAIN))


@pytest.fixture(scope="module")
def batch(deployment):
    data = deployment.calibration
    places = np.random.default_rng(5).integers(0, len(data.labels), 12)
    return data.inputs[places], data.tasks[places]


@pytest.fixture(scope="module")
def by_expert(deployment, batch):
    """Logits of every expert alone, (K, n, C)."""
    return np.stack([alone(deployment.model, batch[0], number) for number in range(EXPERTS)])


def by_one(model, inputs, number):
    """Logits by one expert."""
    own = [jax.tree.map(lambda part: part[number][None], experts) for experts in merge.experts_of(model)]
    return transformer.forward(transformer.replace_experts(model, own), inputs, merge.single)


alone = quick(by_one)
NAMES = ("token-top-1-ragged", "rl-dense")
OTHERS = ("smear-example-materialised", "token-top-2-dense", "smear-token-linear")


@pytest.mark.parametrize("name", [*NAMES, *(pytest.param(name, marks=pytest.mark.thorough) for name in OTHERS)])
def test_methods_follow_their_routers(deployment, batch, by_expert, name):
    """Would catch a router that another layer's or method's experts listen to."""
    method = METHODS[name]
    logits = quick(method.serve)(method.prepare(deployment), *batch)
    np.testing.assert_allclose(logits, by_expert[2], atol=1e-4)


def test_tags_choose_experts(deployment, batch, by_expert):
    """Would catch tags that do not reach a build, and a batch of one task that is served by another's expert."""
    inputs, tags = batch
    method = METHODS["task-top-1-dense"]
    own = by_expert[np.asarray(tags), np.arange(len(tags))]
    np.testing.assert_allclose(quick(method.serve)(method.prepare(deployment), inputs, tags), own, atol=1e-4)
    method = METHODS["task-top-1-one-task"]
    serve = quick(method.serve)
    for task in (1, 3):
        logits = serve(method.prepare(deployment), inputs, np.full_like(tags, task))
        np.testing.assert_allclose(logits, by_expert[task], atol=1e-4)


def test_merges_of_a_model(deployment):
    """Would catch weights that miss a layer or a bias; bytes against a count by hand."""
    weights = np.float32([0.1, 0.2, 0.3, 0.4])
    merged = quick(merge.weighted)(deployment.model, weights)
    for own, experts in zip(merge.experts_of(merged), merge.experts_of(deployment.model), strict=True):
        for part, parts in zip(own, experts, strict=True):
            expected = sum(float(weights[e]) * np.asarray(parts[e], np.float64) for e in range(EXPERTS))
            np.testing.assert_allclose(part[0], expected, atol=1e-6)
    expert = SETTING.num_layers * 4 * (8 * 6 + 6 + 6 * 8 + 8)
    rest = 4 * ((16 * 8 + 8 + 4 * 8) + 2 * (4 * 8 + 8 * 3 * 8 + 3 * 8 + 8 * 8 + 8) + (2 * 8 + 8 * 10 + 10))
    router = 2 * 4 * (8 * EXPERTS + EXPERTS)
    sizes = {
        "merged": expert + rest,
        "average": expert + rest,
        "token-top-1-capacity": EXPERTS * expert + rest + router,
    }
    for name, size in sizes.items():
        begun = methods.begin_slot(METHODS[name], METHODS[name].prepare(deployment), weights)
        assert methods.loaded_bytes(begun) == size


def test_fisher_information_is_of_the_experts_own_predictions(deployment):
    """Against differences of log-probabilities; equal information everywhere makes the average."""
    rng = np.random.default_rng(6)
    experts = random_experts(rng)
    merged = quick(merge.fisher_average)(experts, Experts(*(np.full_like(part, 0.3) for part in experts)))
    for part, parts in zip(merged, experts, strict=True):
        np.testing.assert_allclose(part[0], np.mean(parts, axis=0), atol=1e-6)
    first = deployment.model._replace(layers=deployment.model.layers[:1])
    inputs = merge.own_inputs(deployment.calibration, EXPERTS)[:, :2]
    known = jax.device_get(merge.fisher_information(first, inputs))
    step = 1e-2

    @functools.partial(quick, static_argnums=0)
    def log_probabilities(expert, shift):
        (own,) = merge.experts_of(first)
        model = transformer.replace_experts(
            first, [own._replace(w_out=jnp.asarray(own.w_out).at[expert, 3, 5].add(shift))]
        )
        return jax.nn.log_softmax(by_one(model, inputs[expert], expert))

    def found(expert, shift):
        return np.asarray(log_probabilities(expert, np.float32(shift)))

    for expert in (0, 3):
        slopes = (found(expert, step) - found(expert, -step)) / (2 * step)
        expected = np.mean(np.sum(np.exp(found(expert, 0.0)) * np.square(slopes), axis=1))
        np.testing.assert_allclose(known[0].w_out[expert, 3, 5], expected, rtol=0.02, atol=1e-7)


@pytest.mark.thorough
def test_regmean_is_least_squares(deployment):
    """Against NumPy's least squares; would catch inputs of another expert, and biases that are averaged."""
    rng = np.random.default_rng(7)
    rows = [rng.normal(size=(30, 4)) * rng.uniform(0.2, 3, 4) for _ in range(3)]
    maps = rng.normal(size=(3, 4, 2))
    targets = np.concatenate([own @ to for own, to in zip(rows, maps, strict=True)])
    expected = np.linalg.lstsq(np.concatenate(rows), targets, rcond=None)[0]
    grams = np.stack([own.T @ own for own in rows])
    found = quick(merge.regression_mean)(np.float32(maps), np.float32(grams), 1.0)
    np.testing.assert_allclose(found, expected, atol=1e-4)
    first = deployment.model._replace(layers=deployment.model.layers[:1])
    same = [Experts(*(np.repeat(part[:1], len(part), axis=0) for part in own)) for own in merge.experts_of(first)]
    merged = merge.regmean(transformer.replace_experts(first, same), deployment.calibration)
    for own, experts in zip(merge.experts_of(merged), same, strict=True):
        for part, parts in zip(own, experts, strict=True):
            np.testing.assert_allclose(part[0], parts[0], atol=2e-2)


def test_routers_learn_from_experts_that_they_do_not_choose():
    """Would catch gates without a gradient, as that of a single expert is, and gates that are not the hard ones."""
    kind = KINDS["token-top-1"]

    @quick
    def gates_and_gradient(scores):
        gates, pull = jax.vjp(functools.partial(routers.straight_through, kind), scores)
        return gates, *pull(jnp.zeros_like(gates).at[..., 1].set(1))

    gates, gradient = map(np.asarray, gates_and_gradient(np.float32([[[0.3, 0.1, -0.2]]])))
    np.testing.assert_allclose(gates, [[[1, 0, 0]]], atol=1e-6)
    assert gradient[0, 0, 1] > 0.1


def test_reinforce_is_unbiased(deployment):
    """Its mean over many keys against the exact gradient, over all routings of one token in one layer.

    Would catch a baseline that sees its own sample, and a sign. Bounds of six standard errors.
    """
    model = deployment.model._replace(layers=deployment.model.layers[:1], positions=deployment.model.positions[:1])
    inputs = deployment.calibration.inputs[:8, :1]
    answers = np.stack([np.asarray(alone(model, inputs, number)).argmax(-1) for number in range(EXPERTS)])
    labels = np.int32([row[i % EXPERTS] for i, row in enumerate(answers.T)])
    slot = Examples(inputs, labels, np.zeros(8, np.int32))
    kind = KINDS["rl"]
    start = (Router(np.zeros((SETTING.width, EXPERTS), np.float32), np.float32([0.4, -0.1, 0.2, 0.0])),)

    @quick
    def gradients(keys):
        return jax.vmap(lambda key: jax.grad(routers._reinforced_loss)(start, kind, model, slot, key, 0.0)[0].bias)(
            keys
        )

    found = np.asarray(gradients(jax.random.split(jax.random.key(1), 400)), np.float64)
    chances = np.exp(start[0].bias) / np.exp(start[0].bias).sum()
    rewards = (answers == np.asarray(labels)).astype(float)  # (K, n)
    assert rewards.min() == 0
    expected = -np.mean(chances[:, None] * (rewards - chances @ rewards), axis=1)
    error = found.std(axis=0, ddof=1) / np.sqrt(len(found))
    assert np.all(np.abs(found.mean(axis=0) - expected) < 6 * error + 1e-6)
    assert np.abs(expected).max() > 20 * error.max()
