"""The package's edge-computing system against a plain event-by-event NumPy loop of the paper."""

import functools
import itertools
from typing import NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moe_theory import edge

from .continual_loop import softmax
from .edge_loop import Arrival, Outcome, Reference, Settings

MAX_EXPERTS, NUM_TASKS, NUM_FEATURES, NUM_SAMPLES = 10, 3, 6, 4
LEARNING_RATE = 0.2
POLICIES = ("adaptive", "nearest", "fastest", "uniform")
TOLERANCE = 1e-9  # float64, absolute plus relative to an array's largest entry
SINGLE_TOLERANCE = 1e-5  # the same for one round in float32
CLEARANCE = 1e-6  # no learned route of a compared float64 run is closer than this


class Scenario(NamedTuple):
    """One run: who serves, how long a task takes, and how the arrivals are drawn."""

    policy: str = "adaptive"
    gate_lag: int = 1
    num_experts: int = 8
    capacity: int = 1
    max_capacity: int = 1
    num_rounds: int = 200
    max_delays: tuple[int, int] = (3, 3)  # execution 1 to the first, transfer 0 to the second
    max_delay: int | None = None  # what the package is told of the largest delay
    when_busy: str = "drop"
    max_waiting: int = 0
    max_experts: int = MAX_EXPERTS
    integer_features: bool = False
    learning_rate: float = LEARNING_RATE
    noise_scale: float = 0.4
    seed: int = 0

    @property
    def settings(self):
        queue = (self.when_busy, self.max_waiting)
        return Settings(self.num_experts, self.learning_rate, self.policy, self.gate_lag, self.capacity, *queue)


class World:
    """The arrays of a scenario. Servers that do not exist are the nearest, the fastest, and score highest."""

    def __init__(self, scenario):
        self.scenario = scenario
        generator = np.random.default_rng([20250, scenario.seed])
        rounds, M = scenario.num_rounds, scenario.num_experts
        slowest, farthest = scenario.max_delays
        self.centers = generator.normal(0, 0.6, (NUM_TASKS, NUM_FEATURES))
        self.signals = generator.normal(0, 1, (NUM_TASKS, NUM_FEATURES))
        self.task = generator.integers(NUM_TASKS, size=rounds)
        self.truth = self.centers[self.task] + generator.normal(0, 0.1, (rounds, NUM_FEATURES))
        self.features = generator.normal(0, scenario.noise_scale, (rounds, NUM_FEATURES, NUM_SAMPLES))
        column = generator.integers(NUM_SAMPLES, size=rounds)
        strength = 1 - 0.5 * generator.random(rounds)
        self.features[np.arange(rounds), :, column] = strength[:, None] * self.signals[self.task]
        if scenario.integer_features:
            self.features = generator.integers(-2, 3, self.features.shape).astype(np.float64)
            self.features[:, :, 2] = self.features[:, :, 0] - self.features[:, :, 1]
        per_server = (rounds, scenario.max_experts)
        self.execution_delay = generator.integers(1, slowest + 1, scenario.max_experts)
        self.transfer_delay = generator.integers(0, farthest + 1, per_server)
        self.distance = generator.random(per_server)
        self.perturbation = 0.3 * generator.random(per_server)
        self.uniform = generator.random(per_server)
        self.execution_delay[M:] = 1
        self.transfer_delay[:, M:] = 0
        self.distance[:, M:] = 0
        self.perturbation[:, M:] = 1e6
        self.uniform[:, M:] = 2

    def run_loop(self):
        """The loop, with what its state was after every round."""
        reference = Reference(self.scenario.settings, self.execution_delay, NUM_FEATURES)
        snapshots = []
        for t in range(self.scenario.num_rounds):
            outcome = reference.learn(self.arrival(t))
            free_in = np.array([reference.free_in(server) for server in reference.servers])
            routed = {task.number: (task.server.index, task.completes_in) for task in reference.pending}
            models = reference.w, reference.theta
            snapshots.append(Snapshot(outcome, *models, reference.visits, free_in, reference.dropped, routed))
        return snapshots

    def arrival(self, t):
        """The loop's arrival of a round, from 0."""
        M = self.scenario.num_experts
        per_server = (self.transfer_delay, self.distance, self.perturbation, self.uniform)
        return Arrival(self.features[t], self.truth[t], *(values[t, :M] for values in per_server))

    def run_package(self, precision="float64"):
        """The package's states and infos after every round, stacked."""
        state, arrivals, params = self.inputs(precision)
        return run(state, arrivals, params, self.scenario.policy, self.dims)

    @property
    def dims(self):
        return edge.Dims(
            self.scenario.max_experts,
            NUM_TASKS,
            NUM_FEATURES,
            NUM_SAMPLES,
            max_delay=self.scenario.max_delay,
            max_capacity=self.scenario.max_capacity,
            when_busy=self.scenario.when_busy,
            max_waiting=self.scenario.max_waiting,
        )

    def inputs(self, precision):
        """Where the package starts, and all its arrivals."""
        scenario = self.scenario
        params = edge.Params()._replace(
            num_experts=scenario.num_experts,
            learning_rate=scenario.learning_rate,
            gate_lag=scenario.gate_lag,
            capacity=scenario.capacity,
            max_execution_delay=scenario.max_delays[0],
            max_transfer_delay=scenario.max_delays[1],
        )

        def typed(values):
            return values.astype(np.int32 if values.dtype.kind == "i" else precision)

        pool = edge.Pool(typed(self.centers), typed(self.signals), typed(np.arange(NUM_TASKS)))
        state = jax.device_get(edge.begin(self.dims, params, pool, typed(self.execution_delay)))
        drawn = ("task", "features", "truth", "transfer_delay", "distance", "perturbation", "uniform")
        arrivals = edge.Arrival(**{name: typed(getattr(self, name)) for name in drawn})
        return state, arrivals, params


class Snapshot(NamedTuple):
    """The loop after one round."""

    outcome: Outcome
    w: np.ndarray  # (M, p)
    theta: np.ndarray  # (M, p) that the router has used in this round
    visits: np.ndarray  # (M,)
    free_in: np.ndarray  # (M,) first later round in which the server could take a task
    dropped: int
    pending: dict[int, tuple[int, int]]  # server and round of completion, by the number of the task


def run(state, arrivals, params, policy, dims):
    """States and infos of all rounds, ten a call, so that runs of every length share a program."""
    parts = []
    for first in range(0, len(arrivals.task), 10):
        ten = jax.tree.map(lambda leaf, first=first: leaf[first : first + 10], arrivals)
        state, history = ten_rounds(state, ten, params, POLICIES.index(policy), dims)
        parts.append(jax.device_get(history))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *parts)


@functools.partial(jax.jit, static_argnames="dims")
def ten_rounds(state, arrivals, params, policy, dims):
    def step(state, arrival):
        state, info = edge.learn(state, arrival, params, numbered(policy), dims=dims)
        return state, (state, info)

    return jax.lax.scan(step, state, arrivals)


@functools.partial(jax.jit, static_argnames="dims")
def single_rounds(states, arrivals, params, policy, dims):
    """One round from each of many states."""
    return jax.vmap(lambda state, arrival: edge.learn(state, arrival, params, numbered(policy), dims=dims))(
        states, arrivals
    )


def numbered(policy):
    """One of `POLICIES` by a traced number, so that all four share a compiled program."""
    branches = [getattr(edge.policies, name) for name in POLICIES]
    return lambda *args: jnp.stack([branch(*args) for branch in branches])[policy]


POLICIES_AND_LAGS = [*zip(POLICIES, (1, 0, 1, 0), strict=True), ("adaptive", 0)]
every_policy = pytest.mark.parametrize(("policy", "gate_lag"), POLICIES_AND_LAGS)


@every_policy
@pytest.mark.parametrize("max_delay", [None, pytest.param(6, marks=pytest.mark.thorough)])
def test_a_run_agrees_with_the_paper(policy, max_delay, gate_lag):
    """Would catch a slip in (1)-(13), (20), (24)-(26), in a round's order or in the sum of steps that fall together."""
    snapshots = assert_runs_agree(Scenario(policy, gate_lag, max_delay=max_delay))
    assert sum(len(snapshot.outcome.completed) >= 2 for snapshot in snapshots) >= 30, "no simultaneous completions"
    assert max(len(snapshot.outcome.completed) for snapshot in snapshots) >= 3
    assert snapshots[-1].dropped == 0


QUEUE = Scenario(num_experts=3, max_capacity=2, num_rounds=150, max_waiting=2, max_experts=4)
SHAPES = (
    Scenario(),
    Scenario(max_capacity=3),
    Scenario(max_capacity=3, max_delay=16),
    QUEUE._replace(when_busy="soonest"),
)


@settings(max_examples=6, deadline=None, derandomize=True, database=None)
@pytest.mark.parametrize(
    "shape", [SHAPES[0], *(pytest.param(shape, marks=pytest.mark.thorough) for shape in SHAPES[1:])]
)
@given(seed=st.integers(0, 2**32 - 1))
def test_any_run_agrees_with_the_paper_whatever_padded_servers_hold(shape, seed):
    """Would catch what the scenarios by hand do not try; and an absent server that reaches the others by a bit."""
    rng = np.random.default_rng(seed)
    world = World(
        shape._replace(
            policy=POLICIES[rng.integers(4)],
            gate_lag=int(rng.integers(2)),
            num_experts=int(rng.integers(1, min(shape.max_experts, 6) + 1)),
            capacity=int(rng.integers(1, shape.max_capacity + 1)),
            num_rounds=40,
            max_delays=(int(rng.integers(1, 4)), int(rng.integers(0, 4))),
            learning_rate=rng.uniform(0.05, 1),
            noise_scale=rng.choice([0.0, 0.1, 0.4, 1.0]),
            seed=seed,
        )
    )
    assert_runs_agree(world.scenario, world)
    M, (slowest, farthest) = world.scenario.num_experts, world.scenario.max_delays
    with jax.enable_x64(True):
        before = world.run_package()
        for values in (world.distance, world.perturbation, world.uniform):
            values[:, M:] = rng.normal(size=values[:, M:].shape)
        world.execution_delay[M:] = slowest
        world.transfer_delay[:, M:] = rng.integers(0, farthest + 1, world.transfer_delay[:, M:].shape)
        states, infos = world.run_package()
    chex.assert_trees_all_equal(infos, before[1])
    for name in ("experts", "gates", "visits", "busy_until", "dropped", "squared_error", "pending_slopes"):
        np.testing.assert_array_equal(getattr(states, name), getattr(before[0], name), name)


@pytest.mark.parametrize(
    ("policy", "gate_lag"),
    [pytest.param(*pair, marks=[pytest.mark.thorough] * (pair[0] != "adaptive")) for pair in POLICIES_AND_LAGS],
)
def test_tasks_that_nobody_can_take_are_dropped(policy, gate_lag):
    """Would catch a dropped task that trains a server, moves a gate or counts in (20)."""
    snapshots = assert_runs_agree(Scenario(policy, gate_lag, num_experts=2))
    assert 30 <= snapshots[-1].dropped <= 170
    assert any(len(snapshot.outcome.completed) == 2 for snapshot in snapshots)


@pytest.mark.parametrize("gate_lag", [0, 1])
def test_samples_that_depend_on_each_other_are_fitted(gate_lag):
    """Would catch an inverse of X'X, singular here; whole numbers make the dependence exact."""
    assert_runs_agree(Scenario("adaptive", gate_lag, integer_features=True))


@pytest.mark.parametrize(
    ("policy", "max_delay", "capacity", "gate_lag"),
    [
        pytest.param(
            *policy,
            capacity,
            gate_lag,
            marks=[pytest.mark.thorough] * (policy[0] == "adaptive" or (capacity + gate_lag) % 2),
        )
        for policy in (("nearest", None), ("adaptive", 16))
        for capacity in (1, 2, 3)
        for gate_lag in (0, 1)
    ],
)
def test_servers_that_hold_several_tasks_agree_with_the_paper(policy, max_delay, capacity, gate_lag):
    """Would catch (9) from the model at routing, a wrong order on one server, or a place freed at the wrong time."""
    scenario = Scenario(
        policy, gate_lag, 3, capacity, max_capacity=3, num_rounds=200, max_delays=(4, 4 * capacity), max_delay=max_delay
    )
    snapshots = assert_runs_agree(scenario)
    assert snapshots[-1].dropped >= 5
    completed = [task for snapshot in snapshots for task in snapshot.outcome.completed]
    pairs = [(early, late) for early, late in itertools.combinations(completed, 2) if early.server is late.server]
    together = sum(early.completes_in == late.completes_in for early, late in pairs)
    overtaking = sum(early.completes_in < late.completes_in and early.number > late.number for early, late in pairs)
    assert (together >= 5) == (overtaking >= 5) == (capacity > 1), "the data does not try a server with several tasks"


@pytest.mark.parametrize(
    ("policy", "capacity", "gate_lag"), [("adaptive", 1, 1), ("adaptive", 2, 0), ("fastest", 2, 1)]
)
def test_tasks_wait_at_the_server_that_is_free_soonest(policy, capacity, gate_lag):
    """Would catch a wrong forecast of a server's queue, a delay that starts too early, or (9) from the wrong model."""
    setting = {"policy": policy, "capacity": capacity, "gate_lag": gate_lag, "max_delays": (4, 7)}
    snapshots = assert_runs_agree(QUEUE._replace(when_busy="soonest", num_experts=4 - capacity, **setting))
    waits = [snapshot.outcome.wait for snapshot in snapshots]
    assert np.sum(np.array(waits) > 0) >= 30
    assert snapshots[-1].dropped >= 5
    assert len(set(waits)) >= 4


def test_unused_capacity_changes_no_bit():
    """Would catch an empty slot that completes, takes part in a sum, or changes the order of one."""
    narrow = Scenario(num_experts=5)
    with jax.enable_x64(True):
        (one, one_info), (three, three_info) = (
            World(scenario).run_package() for scenario in (narrow, narrow._replace(max_capacity=3))
        )
    chex.assert_trees_all_equal(one_info._replace(completed_task=0), three_info._replace(completed_task=0))
    for name in ("experts", "gates", "visits", "busy_until", "squared_error"):
        assert getattr(one, name).tobytes() == getattr(three, name).tobytes(), name


@pytest.mark.parametrize(
    ("policy", "capacity", "gate_lag"),
    [("adaptive", 1, 1), ("nearest", 1, 0), pytest.param("adaptive", 3, 0, marks=pytest.mark.thorough)],
)
def test_a_round_in_float32_agrees_with_float64(policy, capacity, gate_lag):
    """Would catch cancellation in the streamed (20), and a step whose float32 path is another one."""
    scenario = Scenario(policy, gate_lag, 5 if capacity == 1 else 3, capacity, capacity, max_delays=(3, 4))
    world = World(scenario)
    with jax.enable_x64(True):
        start, arrivals, params = world.inputs("float64")
        later, _ = run(start, arrivals, params, policy, world.dims)
    states = jax.tree.map(
        lambda first, rest: np.concatenate([first[None], rest[:-1]]), jax.tree.map(np.asarray, start), later
    )

    single_start, single_arrivals, _ = world.inputs("float32")
    single_states = cast(states, single_start)
    single_after, single_info = jax.device_get(
        single_rounds(single_states, single_arrivals, params, POLICIES.index(policy), world.dims)
    )
    with jax.enable_x64(True):  # from the same bits
        states, arrivals = cast(single_states, start), cast(single_arrivals, arrivals)
        after, info = jax.device_get(single_rounds(states, arrivals, params, POLICIES.index(policy), world.dims))

    assert single_info.generalization_error.dtype == np.float32
    same = single_info.expert == info.expert
    for t in np.flatnonzero(~same):
        assert policy == "adaptive"
        h = after.gates[t] @ arrivals.features[t].sum(axis=1)  # the router has used these gates in this round
        first, second = (h + arrivals.perturbation[t])[[single_info.expert[t], info.expert[t]]]
        assert abs(first - second) <= SINGLE_TOLERANCE * (1 + np.abs(h).max()), f"routes differ in round {t + 1}"
    assert np.mean(same) > 0.97
    for name in ("busy_until", "visits", "round", "dropped"):
        np.testing.assert_array_equal(getattr(single_after, name)[same], getattr(after, name)[same], name)
    for name in ("expert", "delay", "num_busy"):
        np.testing.assert_array_equal(getattr(single_info, name)[same], getattr(info, name)[same], name)
    for t in np.flatnonzero(same):
        for name in ("experts", "gates"):
            assert_close(name, getattr(single_after, name)[t], getattr(after, name)[t], t, SINGLE_TOLERANCE)
        for name in ("generalization_error", "generalization_error_flushed"):
            assert_close(name, getattr(single_info, name)[t], getattr(info, name)[t], t, SINGLE_TOLERANCE)


def assert_runs_agree(scenario, world=None):
    """Run both sides in float64 and compare all of every round; returns what the loop went through."""
    world = world or World(scenario)
    snapshots = world.run_loop()
    with jax.enable_x64(True):
        states, infos = world.run_package()
    M, rounds = scenario.num_experts, np.arange(1, scenario.num_rounds + 1)
    padded = scenario.max_experts - M
    outcomes = [snapshot.outcome for snapshot in snapshots]
    if scenario.policy == "adaptive":
        assert min(outcome.clearance for outcome in outcomes) > CLEARANCE, "a route hangs on rounding: change the seed"
    for name in ("expert", "delay", "wait", "num_busy"):
        expected = [getattr(outcome, name) for outcome in outcomes]
        np.testing.assert_array_equal(getattr(infos, name), expected, name)
    np.testing.assert_array_equal(infos.num_idle, M - infos.num_busy)
    np.testing.assert_array_equal(infos.num_completed, [len(outcome.completed) for outcome in outcomes])
    for name in ("visits", "dropped"):
        expected = np.array([getattr(snapshot, name) for snapshot in snapshots])
        actual = getattr(states, name)
        np.testing.assert_array_equal(actual if actual.ndim == 1 else actual[:, :M], expected, name)
    np.testing.assert_array_equal(states.round, rounds)
    np.testing.assert_array_equal(infos.dropped, states.dropped)
    np.testing.assert_array_equal(states.visits.sum(axis=1) + states.dropped, rounds)
    free_in = np.maximum(states.busy_until[:, :M], rounds[:, None] + 1)
    np.testing.assert_array_equal(free_in, [snapshot.free_in for snapshot in snapshots])
    for t, (snapshot, outcome) in enumerate(zip(snapshots, outcomes, strict=True)):
        slots = states.pending_server[t] >= 0
        shown = (leaf[t, slots].tolist() for leaf in (states.pending_server, states.pending_until))
        assert (
            dict(zip(states.pending_serial[t, slots].tolist(), zip(*shown, strict=True), strict=True))
            == snapshot.pending
        )
        assert_close("experts", states.experts[t, :M], snapshot.w, t)
        assert_close("gates", states.gates[t, :M], snapshot.theta, t)
        for name in ("generalization_error", "generalization_error_flushed"):
            assert_close(name, getattr(infos, name)[t], getattr(outcome, name), t)
    for padding in (states.experts, states.gates, states.gate_step, states.visits, states.residuals):
        assert not np.any(padding[:, M:])
    assert_models_move_for_completed_tasks_alone(states, outcomes, scenario.gate_lag)
    gates = states.gates[:, :M]  # that the router has used in this round
    outputs = np.einsum("tmp,tps->tm", gates, world.features)
    probabilities = softmax(outputs)
    assert_close("gate outputs", infos.gate_outputs[:, :M], outputs, 0)
    assert_close("gate probabilities", infos.gate_probabilities, np.pad(probabilities, ((0, 0), (0, padded))), 0)
    for step in (states.gates, states.gate_step):  # of one softmax over all servers
        assert np.abs(step.sum(axis=1)).max() < TOLERANCE * (1 + np.abs(step).max())
    return snapshots


def assert_models_move_for_completed_tasks_alone(states, outcomes, gate_lag):
    """To the bit: an idle server, one that still works, and a gate without news stay as they are."""
    completed = np.zeros(states.experts.shape[:2], bool)
    for t, outcome in enumerate(outcomes):
        completed[t, [task.server.index for task in outcome.completed]] = True
    moved = np.any(np.diff(states.experts, axis=0, prepend=0) != 0, axis=2)
    assert not np.any(moved & ~completed)
    has_news = np.roll(completed.any(axis=1), gate_lag)
    has_news[:gate_lag] = False
    assert not np.any(np.any(np.diff(states.gates, axis=0, prepend=0) != 0, axis=(1, 2)) & ~has_news)


def assert_close(what, actual, expected, t, tolerance=TOLERANCE):
    error = np.abs(np.asarray(actual, np.float64) - expected).max()
    bound = tolerance * (1 + np.abs(expected).max())
    assert error <= bound, f"{what} differ by {error:.3g} > {bound:.3g} in round {t + 1}"


def cast(tree, like):
    """The same numbers in the dtypes of another tree."""
    return jax.tree.map(lambda leaf, other: np.asarray(leaf).astype(np.asarray(other).dtype), tree, like)
