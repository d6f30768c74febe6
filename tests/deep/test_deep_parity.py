"""The deep experiments against a NumPy loop of the papers, in float64, on the same explicit arrivals."""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.core.batching import trailing_vmap
from moe_theory.deep import continual, edge
from moe_theory.deep.params import ADAM, SGD, Dims, Params
from moe_theory.deep.tasks import Arrival, pool_of
from moe_theory.edge.policies import POLICIES

from . import deep_loop as loop
from .dataset_files import corners

ROUNDS, MOST = 12, 4
TOLERANCE = 1e-8  # absolute plus relative to an array's largest entry
CLASSES = (1, 3, 0)
KEY = jax.random.key(3)
PARAMS = Params(
    num_experts=3,
    learning_rate=0.75,
    balance_weight=0.4,
    termination_threshold=0.05,
    gate_scale=4.0,
    expert_rate=0.4,
    final_rate=0.4,
    num_rounds=ROUNDS,
    min_execution_delay=1,
)


class Scenario(NamedTuple):
    """One run: an optimizer, which decides the program, and what differs from `PARAMS`."""

    name: str
    changes: dict[str, Any]
    optimizer: str = SGD


CONTINUAL = (
    Scenario("as-is", {"terminate": False}),
    Scenario("terminated", {"termination_threshold": 0.3}),
    Scenario("momentary", {"termination_threshold": 0.1, "accumulate_flags": False, "locality_power": 2.0}),
    Scenario("two-experts", {"num_experts": 2, "per_parameter": True, "centre": False}),
    Scenario("squared", {"squared_loss": True, "weight_decay": 0.1}),
    Scenario("multi-class", {"multi_class": True, "positive_share": 1.0}),
    Scenario("adam", {"expert_rate": 0.05, "final_rate": 0.01, "weight_decay": 0.3, "num_rounds": 9}, ADAM),
    Scenario(
        "adam-squared-multi-class",
        {"multi_class": True, "positive_share": 1.0, "squared_loss": True, "expert_rate": 0.05, "final_rate": 0.02},
        ADAM,
    ),
)
EDGE = (
    Scenario("adaptive", {}),
    Scenario("adaptive-at-once", {"gate_lag": 0, "num_experts": 4}),
    Scenario("nearest", {"policy": 1}),
    Scenario("fastest", {"policy": 2, "num_experts": 2}),
    Scenario("uniform", {"policy": 3, "num_experts": 4, "squared_loss": True, "final_rate": 0.1}),
    Scenario("multi-class", {"multi_class": True, "positive_share": 1.0, "centre": False, "per_parameter": True}),
)
named = functools.partial(pytest.mark.parametrize, "scenario", ids=lambda scenario: scenario.name)


def dims(optimizer: str) -> Dims:
    batch_size = 8 if optimizer == SGD else 4
    return Dims(MOST, len(CLASSES), ROUNDS + 2, 8, 6, 4, batch_size, "mlp", optimizer)


def drawn(scenario: Scenario) -> Arrival:
    """Arrivals made by NumPy, stacked; experts that do not exist are the nearest and score highest."""
    generator = np.random.default_rng([11, len(scenario.name)])
    pool, size = pool_of(corners(), CLASSES), dims(scenario.optimizer)
    params = PARAMS._replace(**scenario.changes)
    tasks = generator.integers(0, len(CLASSES), ROUNDS)

    def rows(split, count):
        kinds = [split.labels == n if params.multi_class else split.labels >= -1 for n in tasks]
        return np.array([generator.choice(np.flatnonzero(kind), count) for kind in kinds])

    orders = [[generator.permutation(size.num_samples) for _ in range(size.num_epochs)] for _ in range(ROUNDS)]
    each = (ROUNDS, MOST)
    arrival = Arrival(
        task=tasks.astype(np.int32),
        images=rows(pool.train, size.num_samples),
        batches=np.array(orders).reshape(ROUNDS, -1, size.batch_size),
        tests=rows(pool.test, size.num_tests),
        perturbation=0.3 * generator.random(each),
        uniform=generator.random(each),
        distance=generator.random(each),
        transfer_delay=generator.integers(0, 3, each).astype(np.int32),
    )
    arrival.perturbation[:, params.num_experts :] = 1e6
    arrival.uniform[:, params.num_experts :] = 2
    arrival.distance[:, params.num_experts :] = 0
    return arrival


@functools.cache
def program(learn, optimizer: str):
    """All rounds: states, without their pool, and infos after each, stacked behind those before the first."""

    def run(state, arrivals, params):
        def one(state, arrival):
            state, info = learn(state, arrival, params, dims(optimizer))
            return state, (state._replace(pool=None), info)

        return jax.lax.scan(one, state, arrivals)[1]

    return jax.jit(run)


def run(system, scenario: Scenario) -> tuple[Any, Any, Any, loop.Settings, Arrival]:
    """The state before round 1, states and infos after every round, and what the loop needs."""
    params = PARAMS._replace(**scenario.changes)
    arrival = drawn(scenario)
    with jax.enable_x64(True):
        begun = beginning(system, scenario.optimizer)(KEY, params)
        if system is edge:
            begun = begun._replace(execution_delay=np.array([2, 1, 3, 2], np.int32))
        states, infos = jax.device_get(program(system.learn, scenario.optimizer)(begun, arrival, params))
        begun = jax.device_get(begun)
    settings = loop.Settings(
        M=params.num_experts,
        eta=params.learning_rate,
        alpha=params.balance_weight,
        gamma=params.termination_threshold,
        terminate=params.terminate,
        accumulate=params.accumulate_flags,
        power=params.locality_power,
        per_parameter=params.per_parameter,
        scale=params.gate_scale,
        centre=params.centre,
        first_rate=params.expert_rate,
        last_rate=params.final_rate,
        T=params.num_rounds,
        decay=params.weight_decay,
        adam=scenario.optimizer == ADAM,
        multi_class=params.multi_class,
        squared_loss=params.squared_loss,
        policy=list(POLICIES)[params.policy],
        gate_lag=params.gate_lag,
    )
    return begun, states, infos, settings, arrival


@functools.cache
def beginning(system, optimizer: str):
    return jax.jit(begin(system, optimizer))


@functools.cache
def begin(system, optimizer: str):
    """Outside `jit`, as a user's own loop would."""
    return lambda key, params: system.begin(key, dims(optimizer), params, pool_of(corners(), CLASSES))


def models(stack: Any) -> list[loop.Model]:
    """The experts of leaves (M, ...), whichever way the package holds kernels and biases."""
    leaves = jax.tree.leaves(stack.params)
    kernels = [leaf for leaf in leaves if leaf.ndim == 3]
    biases = [leaf for leaf in leaves if leaf.ndim == 2]
    return [loop.Model([kernels[0][m], biases[0][m], kernels[1][m], biases[1][m]]) for m in range(MOST)]


def data_of(pool: Any) -> loop.Data:
    train, test = pool.train, pool.test
    return loop.Data(train.pixels, train.labels, test.pixels, test.labels, pool.mean, pool.deviation)


def compare(reference: loop.Experiment, states: Any, infos: Any, arrival: Arrival) -> None:
    M = reference.settings.M
    for t in range(ROUNDS):
        shown = reference.learn(loop.Task(*(leaf[t] for leaf in arrival)))
        for name, expected in shown.items():
            actual = getattr(infos, name)[t]
            assert_close(f"{name} in round {t + 1}", actual[:M] if np.ndim(actual) else actual, expected)
        assert_close(f"gates in round {t + 1}", states.gates[t, :M], reference.theta)
        assert not np.any(states.gates[t, M:])


def assert_close(what: str, actual: Any, expected: Any) -> None:
    actual, is_number = np.asarray(actual, float), ~np.isnan(expected)  # a class that has had no task has no error
    np.testing.assert_array_equal(~np.isnan(actual), is_number, what)
    actual, expected = actual[is_number], np.asarray(expected)[is_number]
    error = np.abs(actual - expected).max(initial=0)
    bound = TOLERANCE * (1 + np.abs(expected).max(initial=0))
    assert error <= bound, f"{what}: {error:.3g} > {bound:.3g}"


def assert_others_unchanged(begun: Any, states: Any, infos: Any) -> None:
    """Every expert but the chosen one is what it was, bit for bit; all are in a round that drops its task."""
    for first, after in zip(jax.tree.leaves(begun.experts), jax.tree.leaves(states.experts), strict=True):
        before = np.concatenate([first[None], after[:-1]])
        for t, expert in enumerate(infos.expert):
            same = np.all(before[t].reshape(MOST, -1) == after[t].reshape(MOST, -1), axis=1)
            assert {m for m in range(MOST) if not same[m]} <= {expert}


@named(CONTINUAL)
def test_continual_agrees_with_the_loop(scenario: Scenario) -> None:
    begun, states, infos, settings, arrival = run(continual, scenario)
    reference = loop.Continual(settings, data_of(begun.pool), models(begun.experts))
    compare(reference, states, infos, arrival)
    for model, other in zip(reference.models, models(jax.tree.map(lambda leaf: leaf[-1], states.experts)), strict=True):
        for array, expected in zip(other.arrays, model.arrays, strict=True):
            assert_close("weights", array, expected)
    assert_others_unchanged(begun, states, infos)
    np.testing.assert_array_equal(states.converged[-1][: settings.M], reference.flags)
    if scenario.name == "terminated":  # otherwise lines 6 to 13 are not tested
        assert 0 < np.argmax(infos.terminated) < ROUNDS - 2
    assert len(set(infos.expert.tolist())) > 1


@pytest.mark.thorough
def test_a_batch_holds_the_replicates_as_they_are_alone() -> None:
    """Would catch an operation that the batching of `simulate_batch` has a wrong rule for."""
    pairs = [drawn(Scenario(name, {})) for name in ("one", "another")]
    with jax.enable_x64(True):
        begun = begin(edge, SGD)(KEY, PARAMS)
        learn = trailing_vmap(functools.partial(edge.learn, dims=dims(SGD)), (True, True, False))
        state = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf], -1), begun)
        together = jax.tree.map(lambda *leaves: np.stack(leaves, -1), *pairs)
        together = jax.jit(lambda state: jax.lax.scan(lambda *pair: learn(*pair, PARAMS), state, together))(state)[1]
        for place, arrival in enumerate(pairs):
            _, alone = program(edge.learn, SGD)(begun, arrival, PARAMS)
            for name, one, other in zip(alone._fields, together, alone, strict=True):
                assert_close(name, one[..., place], np.asarray(other, float))


@pytest.mark.thorough
@pytest.mark.parametrize("system", [continual, edge])
def test_gates_that_ran_off_route_to_an_expert_that_exists(system: Any) -> None:
    """Would catch a task that goes to nobody, or to padding, and is then missing in every mean."""
    scenario = Scenario("adaptive", {"num_experts": 2})
    params, arrival = PARAMS._replace(**scenario.changes), drawn(scenario)
    with jax.enable_x64(True):
        begun = begin(system, SGD)(KEY, params)
        for gates in (jnp.full_like(begun.gates, jnp.nan), begun.gates.at[0].set(jnp.nan)):
            _, infos = jax.device_get(program(system.learn, SGD)(begun._replace(gates=gates), arrival, params))
            idle = infos.num_busy < 2 if system is edge else infos.expert < 2
            assert np.all((infos.expert[idle] >= 0) & (infos.expert[idle] < 2))
            assert np.all(infos.expert[~idle] == -1)


@named(EDGE)
def test_edge_agrees_with_the_loop(scenario: Scenario) -> None:
    begun, states, infos, settings, arrival = run(edge, scenario)
    reference = loop.Edge(settings, data_of(begun.pool), models(begun.experts))
    reference.execution_delay = begun.execution_delay
    compare(reference, states, infos, arrival)
    assert_others_unchanged(begun, states, infos)
    if settings.M == 2:  # else nothing is shown of tasks that nobody takes
        assert infos.dropped[-1] > 0
    assert np.any(infos.num_busy > 0)
    assert np.any(infos.generalization_error != infos.generalization_error_flushed)
