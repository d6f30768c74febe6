"""Peers take the same rounds as the package: round by round from the same arrivals, and in the mean over their own.

Would catch a peer that does less work than the engine it is timed against, or other work.
"""

import dataclasses
import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from benchmarks.contenders import PEERS, Case, Setting
from benchmarks.peers import jax_batched, limit, numpy_batched, numpy_loop, textbook, textbook_edge
from benchmarks.peers.rounds import Constants, Trajectory, constants_of
from moe_theory import continual, edge

NUM_TASKS, NUM_FEATURES, NUM_SAMPLES = 6, 10, 6
NUM_ROUNDS, BATCH = 60, 3


class World(NamedTuple):
    """What three replicates meet, drawn without the package."""

    truths: np.ndarray  # (B, N, d)
    tasks: np.ndarray  # (T, B)
    features: np.ndarray  # (T, B, d, s)
    perturbations: np.ndarray  # (T, B, M)


def draw_world(seed: int, num_experts: int) -> World:
    generator = np.random.default_rng(seed)
    truths = 0.4 * generator.standard_normal((BATCH, NUM_TASKS, NUM_FEATURES))
    tasks = generator.integers(NUM_TASKS, size=(NUM_ROUNDS, BATCH))
    features = 0.1 * generator.standard_normal((NUM_ROUNDS, BATCH, NUM_FEATURES, NUM_SAMPLES))
    slots = generator.integers(NUM_SAMPLES, size=(NUM_ROUNDS, BATCH))
    rounds, replicates = np.ogrid[:NUM_ROUNDS, :BATCH]
    features[rounds, replicates, :, slots] = 2.5 * truths[replicates, tasks]
    return World(truths, tasks, features, 0.3 * generator.random((NUM_ROUNDS, BATCH, num_experts)))


def by_numpy_loop(constants: Constants, world: World) -> Trajectory:
    return stacked(
        numpy_loop.play(
            constants,
            world.truths[b],
            numpy_loop.Arrivals(world.tasks[:, b], world.features[:, b], world.perturbations[:, b]),
        )
        for b in range(BATCH)
    )


def by_textbook(constants: Constants, world: World) -> Trajectory:
    @jax.jit
    def play(truths, arrivals):
        return jax.vmap(lambda truths, arrivals: textbook.play(constants, truths, arrivals), (0, 1), 1)(
            truths, arrivals
        )

    return Trajectory(*map(np.asarray, play(jnp.asarray(world.truths), textbook.Arrival(*map(jnp.asarray, world[1:])))))


def by_batched_jax(constants: Constants, world: World) -> Trajectory:
    arrivals = jax_batched.Arrivals(world.tasks, world.features.transpose(0, 3, 2, 1), world.perturbations.mT)
    arrivals = jax.tree.map(jnp.asarray, arrivals)
    play = jax.jit(functools.partial(jax_batched.play, constants))
    return Trajectory(*map(np.asarray, play(jnp.asarray(world.truths.transpose(1, 2, 0)), arrivals)))


def by_numba(constants: Constants, world: World) -> Trajectory:
    require("Numba")
    from benchmarks.peers import numba_tiles

    return numba_tiles.play(constants, *world)


def by_batched_numpy(constants: Constants, world: World) -> Trajectory:
    return numpy_batched.play(constants, *world)


def by_batched_torch(constants: Constants, world: World, *one_round) -> Trajectory:
    require("batched Torch")
    import torch  # pyright: ignore[reportMissingImports]

    from benchmarks.peers import torch_batched

    played = torch_batched.play(constants, *map(torch.as_tensor, world), *one_round)
    return Trajectory(*(leaf.numpy() for leaf in played))


def by_compiled_torch(constants: Constants, world: World) -> Trajectory:
    require("compiled Torch")
    from benchmarks.peers import torch_compiled

    return by_batched_torch(constants, world, torch_compiled.take_round)


def by_limit(constants: Constants, world: World) -> Trajectory:
    require("C++ limit")
    return limit.play(constants, *world)


def require(name: str, system: str = "continual") -> Case:
    """A peer at a system's setting; skips the test where what it needs is missing."""
    case = Case("peers", name, SETTINGS[system])
    if reason := case.skipped(num_threads=1):
        pytest.skip(reason)
    return case


def stacked(courses) -> Trajectory:
    return Trajectory(*(np.stack(leaves, axis=1) for leaves in zip(*courses, strict=True)))


PLAYERS = {
    "NumPy loop": by_numpy_loop,
    "batched NumPy": by_batched_numpy,
    "batched Torch": by_batched_torch,
    "compiled Torch": by_compiled_torch,
    "Numba": by_numba,
    "JAX, batched by hand": by_batched_jax,
    "textbook vmap(scan)": by_textbook,
    "C++ limit": by_limit,
}


@functools.cache
def by_package(case: str) -> tuple[continual.Params, World, Trajectory, np.ndarray]:
    """A case, what `continual.learn` shows on its arrivals, and the rounds (B,) after which the gates stand still."""
    seed, num_experts, threshold, terminate, _ = CASES[case]
    params = continual.Params(num_experts=num_experts, termination_threshold=threshold, terminate=terminate)
    world = draw_world(seed, num_experts)
    dims = continual.Dims(int(params.num_experts), NUM_TASKS, NUM_FEATURES, NUM_SAMPLES)

    @jax.jit
    def play(truths, tasks, features, perturbations):
        def body(state, drawn):
            task, features, perturbation = drawn
            state, info = continual.learn(state, continual.Arrival(task, features), perturbation, params)
            shown = Trajectory(info.expert, info.generalization_error, info.forgetting)
            return state, (shown, state.terminated)

        state = continual.begin(dims, params, continual.Pool(truths, truths, jnp.arange(NUM_TASKS)))
        return jax.lax.scan(body, state, (tasks, features, perturbations))[1]

    shown, terminated = jax.vmap(play, (0, 1, 1, 1), 1)(*map(jnp.asarray, world))
    return params, world, Trajectory(*map(np.asarray, shown)), NUM_ROUNDS - np.asarray(terminated).sum(axis=0)


CASES = {
    # seed, M, Gamma, terminate, and which replicates stop moving their gates within the rounds
    "wide": (7, 5, 4.0, True, "all"),
    "default": (7, 10, continual.Params().termination_threshold, True, "all"),
    "mixed": (8, 10, 0.1, True, "some"),
    "narrow": (7, 20, 0.01, True, "none"),
    "endless": (7, 5, 4.0, False, "none"),
}
SWITCHED_OFF = ("batched NumPy", "endless")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("name", "case"),
    [
        pytest.param(name, case, marks=[pytest.mark.thorough] * (case != "mixed" and (name, case) != SWITCHED_OFF))
        for name in PLAYERS
        for case in CASES
    ],
)
def test_rounds_agree_with_the_package(name, case):
    """Would catch a slip in routing, the update, costs, flags, the last gate step, or either streamed metric."""
    with jax.enable_x64(True):
        params, world, ours, stopped = by_package(case)
        theirs = PLAYERS[name](constants_of(params), world)
    has_stopped = stopped < NUM_ROUNDS
    assert ("all" if has_stopped.all() else "some" if has_stopped.any() else "none") == CASES[case][-1]
    assert len(np.unique(ours.experts)) > 1
    np.testing.assert_array_equal(theirs.experts, ours.experts)
    np.testing.assert_allclose(theirs.generalization_error, ours.generalization_error, rtol=0, atol=1e-9)
    np.testing.assert_allclose(theirs.forgetting, ours.forgetting, rtol=0, atol=1e-9)


class Servers(NamedTuple):
    """What three replicates of the edge system keep and meet, drawn without the package."""

    network: textbook_edge.Network  # leaves (B, ...)
    arrivals: textbook_edge.Arrival  # leaves (T, B, ...)


def draw_servers(seed: int, num_experts: int) -> Servers:
    generator = np.random.default_rng(seed)
    T, B, N, p, s, M = NUM_ROUNDS, BATCH, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES, num_experts
    centres = 0.6 * generator.standard_normal((B, N, p))
    signals = 3 * np.linalg.qr(generator.standard_normal((B, p, N)))[0].transpose(0, 2, 1)
    tasks, slots = generator.integers(N, size=(T, B)), generator.integers(s, size=(T, B))
    features = 0.1 * generator.standard_normal((T, B, p, s))
    rounds, replicates = np.ogrid[:T, :B]
    features[rounds, replicates, :, slots] = signals[replicates, tasks]
    truths = centres[replicates, tasks] + 0.1 * generator.standard_normal((T, B, p))
    transfer = generator.integers(0, 6, size=(T, B, M)).astype(np.int32)
    execution = generator.integers(1, 6, size=(B, M)).astype(np.int32)
    return Servers(
        textbook_edge.Network(centres, signals, execution),
        textbook_edge.Arrival(tasks, features, truths, transfer, 0.1 * generator.random((T, B, M))),
    )


def edge_by_package(params: edge.Params, servers: Servers) -> tuple[edge.State, Trajectory]:
    dims = edge.Dims(int(params.num_experts), NUM_TASKS, NUM_FEATURES, NUM_SAMPLES, max_delay=10)

    @jax.jit
    def play(network, arrivals):
        def body(state, drawn):
            unused = jnp.zeros(dims.max_experts)
            arrival = edge.Arrival(*drawn[:4], distance=unused, perturbation=drawn.perturbation, uniform=unused)
            state, info = edge.learn(state, arrival, params, dims=dims)
            return state, Trajectory(info.expert, info.generalization_error)

        pool = edge.Pool(network.truths, network.signals, jnp.arange(NUM_TASKS))
        return jax.lax.scan(body, edge.begin(dims, params, pool, network.execution_delay), arrivals)

    return jax.tree.map(np.asarray, jax.vmap(play, (0, 1), (0, 1))(*jax.tree.map(jnp.asarray, servers)))


@pytest.mark.thorough
@pytest.mark.parametrize(("num_experts", "drops"), [(5, True), (10, False)])
def test_edge_rounds_agree_with_the_package(num_experts, drops):
    """Would catch a slip in delays, completions, stale gate steps and their lag, drops, the counters, or G_t."""
    params = edge.reading("orthogonal-signal").params(num_experts=num_experts)
    servers = draw_servers(5, num_experts)
    with jax.enable_x64(True):
        state, ours = edge_by_package(params, servers)

        @jax.jit
        def play(network, arrivals):
            return textbook_edge.play(textbook_edge.constants_of(params), network, arrivals)

        left, theirs = jax.vmap(play, (0, 1), (0, 1))(*jax.tree.map(jnp.asarray, servers))
    assert np.any(ours.experts == -1) == drops
    assert state.misrouted.min() > 0
    for counter in ("visits", "dropped", "misrouted"):
        np.testing.assert_array_equal(getattr(left, counter), getattr(state, counter))
    assert len(np.unique(ours.experts)) > num_experts / 2
    np.testing.assert_array_equal(theirs.experts, ours.experts)
    np.testing.assert_allclose(theirs.generalization_error, ours.generalization_error, rtol=0, atol=1e-9)


SETTINGS = {
    "continual": Setting("continual", 5, 6, 10, 6, batch=200, num_rounds=40, seed=3),
    "edge": Setting("edge", 8, 4, 8, 4, batch=200, num_rounds=40, seed=3),
}


def run_of(name: str, setting: Setting):
    """G_T of all the setting's replicates, also by a peer that benchmarks run one by one."""
    return require(name, setting.system).module.prepare(setting)()


# The others are compiled for seconds.
QUICK_PAIRS = {("batched NumPy", "continual"), ("C++ limit", "continual")}
PAIRS = [(name, system) for name in PEERS for system in PEERS[name].systems]


every_pair = pytest.mark.parametrize(
    ("name", "system"),
    [pytest.param(*pair, marks=[pytest.mark.thorough] * (pair not in QUICK_PAIRS)) for pair in PAIRS],
)


@every_pair
def test_runs_are_in_the_precision_asked(name, system):
    """Would catch a peer that is timed in float32 as if it were float64: the same draws would then end the same."""
    setting = dataclasses.replace(SETTINGS[system], batch=4, num_rounds=30, precision="float64")
    errors = run_of(name, setting)
    assert errors.shape == (4,)
    assert errors.dtype == np.float64
    assert np.all(errors != errors.astype(np.float32))
