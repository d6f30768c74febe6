"""Invariants of whole runs of busy servers, from random delays, arrivals and parameters, in double precision.

Hypothesis chooses a seed, NumPy draws all else from it. One compiled program a shape serves all examples. The tasks of
a run are found again in the table that the state keeps, so every way to queue is held to the same invariants.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moe_theory as mt
from moe_theory import edge

NUM_ROUNDS = 40
N, P, S = 3, 5, 3  # num_tasks, num_features, num_samples
POLICIES = tuple(edge.policies.POLICIES.values())
PAPER = (edge.Dims(5, N, P, S), edge.Dims(5, N, P, S, max_delay=6))
SHARED = (edge.Dims(3, N, P, S, max_capacity=3), edge.Dims(4, N, P, S, max_delay=6, max_capacity=2))
QUEUES = (
    edge.Dims(3, N, P, S, max_delay=6, max_capacity=2, when_busy="wait", max_waiting=2),
    edge.Dims(3, N, P, S, max_capacity=2, when_busy="soonest", max_waiting=2),
)
DROPPING = PAPER + SHARED


class Task(NamedTuple):
    """A routed task, as the table of tasks under way shows it."""

    arrival: int  # the round, from 0, in which it came
    server: int
    routed: int  # the round, from 1
    until: int  # the round at whose start it is done
    seen: tuple[int, ...]  # the rounds after which it was under way


class Run(NamedTuple):
    """A run's inputs, and its states and infos after every round, on the host."""

    dims: edge.Dims
    start: edge.State
    arrivals: edge.Arrival
    params: edge.Params
    policy: int
    states: edge.State
    infos: edge.Info

    @property
    def exists(self) -> np.ndarray:
        return np.arange(self.dims.max_experts) < self.params.num_experts

    @property
    def total(self) -> np.ndarray:
        """Delay of every round's task at every server, (rounds, M)."""
        return self.arrivals.transfer_delay + self.start.execution_delay

    def tasks(self) -> list[Task]:
        """All routed tasks in the order of their routing. Tasks pass a queue in the order in which they came."""
        came = np.flatnonzero(self.infos.expert != edge.DROPPED)
        slots: dict[int, list[tuple[int, int, int]]] = {}
        for time in range(NUM_ROUNDS):
            for slot in np.flatnonzero(self.states.pending_server[time] >= 0):
                shown = (self.states.pending_server[time, slot], self.states.pending_until[time, slot], time + 1)
                slots.setdefault(int(self.states.pending_serial[time, slot]), []).append(tuple(map(int, shown)))
        assert sorted(slots) == list(range(len(slots))), "a task has no serial number of its own"
        tasks = []
        for serial in range(len(slots)):
            servers, ends, seen = zip(*slots[serial], strict=True)
            assert len(set(servers)) == len(set(ends)) == 1, "a task changed its server or its end"
            tasks.append(Task(int(came[serial]), servers[0], seen[0], ends[0], seen))
        return tasks


@functools.cache
def program(dims: edge.Dims) -> Any:
    """All rounds of a run, with the policy and every parameter traced."""

    def scan(state, arrivals, params, policy):
        def numbered(*args):
            return jnp.stack([branch(*args) for branch in POLICIES])[policy]

        def step(state, arrival):
            state, info = edge.learn(state, arrival, params, numbered, dims=dims)
            return state, (state, info)

        return jax.lax.scan(step, state, arrivals)[1]

    return jax.jit(scan)


def run(dims: edge.Dims, start: edge.State, arrivals: edge.Arrival, params: edge.Params, policy: int) -> Run:
    with jax.enable_x64(True):
        values = edge.Params(*(np.asarray(value) for value in params))
        states, infos = jax.device_get(program(dims)(start, arrivals, values, np.asarray(policy)))
    return Run(dims, start, arrivals, params, policy, states, infos)


@st.composite
def runs(draw: Any, shapes: tuple[edge.Dims, ...] = DROPPING + QUEUES, **fixed: Any) -> Run:
    """A run of one of `shapes`; `fixed` parameters stay."""
    dims = draw(st.sampled_from(shapes))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    most_transfer, most_execution = int(rng.integers(0, 4)), int(rng.integers(1, 4))
    params = edge.Params(
        num_experts=int(rng.integers(1, dims.max_experts + 1)),
        learning_rate=rng.uniform(0.05, 1),
        gate_lag=int(rng.integers(2)),
        capacity=int(rng.integers(1, dims.max_capacity + 1)),
        max_transfer_delay=most_transfer,
        max_execution_delay=most_execution,
    )._replace(**fixed)
    truths = rng.normal(size=(N, P))
    pool = edge.Pool(truths, rng.choice([0.5, 2.0]) * truths, np.arange(N))
    execution = rng.integers(1, most_execution + 1, dims.max_experts)
    with jax.enable_x64(True):
        start = jax.device_get(edge.begin(dims, params, pool, execution))
    return run(dims, start, draw_arrivals(rng, dims, pool, most_transfer), params, int(rng.integers(len(POLICIES))))


def draw_arrivals(rng: np.random.Generator, dims: edge.Dims, pool: edge.Pool, most_transfer: int) -> edge.Arrival:
    task = rng.integers(N, size=NUM_ROUNDS)
    features = rng.choice([0.1, 1.0]) * rng.normal(size=(NUM_ROUNDS, P, S))
    features[:, :, 0] = pool.signals[task]
    features[:, :, 1] *= rng.random((NUM_ROUNDS, 1)) < 0.8  # sigma_t = 0 now and then
    per_server = (NUM_ROUNDS, dims.max_experts)
    return edge.Arrival(
        task=task.astype(np.int32),
        features=features,
        truth=pool.truths[task] + 0.1 * rng.normal(size=(NUM_ROUNDS, P)),
        transfer_delay=rng.integers(0, most_transfer + 1, per_server).astype(np.int32),
        distance=rng.random(per_server),
        perturbation=0.3 * rng.random(per_server),
        uniform=rng.random(per_server),
    )


few = settings(max_examples=30, deadline=None, derandomize=True, database=None)


def close(actual: Any, expected: Any, scale: Any = 1.0, tolerance: float = 1e-10) -> bool:
    return bool(np.all(np.abs(np.asarray(actual) - expected) <= tolerance * scale))


def size(*arrays: Any) -> float:
    return 1 + max(np.abs(array).max() for array in arrays)


def routed_tasks(result: Run) -> list[Task]:
    tasks = result.tasks()
    assert len(tasks) == result.states.visits[-1].sum()
    return tasks


def count(tasks: list[Task], result: Run, time: int) -> np.ndarray:
    """Tasks that each server has in round `time` of those routed before it."""
    held = [task.server for task in tasks if task.routed < time < task.until]
    return np.bincount(held, minlength=result.dims.max_experts)


@few
@given(runs(DROPPING))
def test_a_full_server_is_never_chosen(result: Run) -> None:
    """Would catch a server that takes a task too many, is free a round early, or stays busy a round too long."""
    tasks = routed_tasks(result)
    arrived = {task.arrival: task for task in tasks}
    for time in range(1, NUM_ROUNDS + 1):
        is_full = count(tasks, result, time) >= result.params.capacity
        assert result.infos.num_busy[time - 1] == np.sum(is_full & result.exists)
        assert result.infos.num_idle[time - 1] == np.sum(~is_full & result.exists)
        expert = result.infos.expert[time - 1]
        if expert != edge.DROPPED:
            assert not is_full[expert]
            assert arrived[time - 1].server == expert


@few
@given(runs(DROPPING))
def test_drops_happen_exactly_when_nobody_is_idle(result: Run) -> None:
    """Would catch a task that is lost though a server is idle, or goes to one that is not."""
    np.testing.assert_array_equal(result.infos.expert == edge.DROPPED, result.infos.num_idle == 0)
    np.testing.assert_array_equal(result.states.dropped, np.cumsum(result.infos.num_idle == 0))
    assert not np.any(result.infos.wait)


@few
@given(runs(DROPPING, capacity=1))
def test_an_expert_is_busy_for_exactly_the_delay(result: Run) -> None:
    """Would catch a server that is busy d - 1 or d + 1 rounds, or with a delay other than transfer plus execution."""
    for time, (expert, delay) in enumerate(zip(result.infos.expert, result.infos.delay, strict=True), 1):
        if expert == edge.DROPPED:
            assert delay == 0
            continue
        assert delay == result.total[time - 1, expert]
        later = np.arange(time + 1, min(time + delay, NUM_ROUNDS) + 1)
        assert not np.any(result.infos.expert[later[later < time + delay] - 1] == expert)
        assert np.all(result.states.busy_until[time - 1 : min(time + delay, NUM_ROUNDS) - 1, expert] == time + delay)
        if result.params.num_experts == 1 and time + delay <= NUM_ROUNDS:
            assert result.infos.expert[time + delay - 1] == expert  # again as soon as it may


@few
@given(runs())
def test_every_task_completes_once_and_in_time(result: Run) -> None:
    """Would catch a task that is lost under way, completes twice, early or late, or is not counted as it completes."""
    tasks = routed_tasks(result)
    for task in tasks:
        assert task.seen == tuple(range(task.routed, min(task.until, NUM_ROUNDS + 1)))
        delay = result.total[task.arrival, task.server]
        if result.dims.when_busy != "soonest":
            assert task.until == task.routed + delay
        else:
            assert task.until == task.routed + delay + result.infos.wait[task.arrival]
        if result.dims.when_busy != "wait":
            assert task.routed == task.arrival + 1
    completed = np.bincount([task.until for task in tasks], minlength=NUM_ROUNDS + 1)[1 : NUM_ROUNDS + 1]
    np.testing.assert_array_equal(result.infos.num_completed, completed)


@few
@given(runs())
def test_no_task_is_lost_or_made_up(result: Run) -> None:
    """Would catch arrivals that are neither routed nor dropped nor waiting, or loads that are not the routed tasks."""
    waiting = 0 if result.states.queue is None else result.states.queue.num_waiting
    time = np.arange(1, NUM_ROUNDS + 1)
    np.testing.assert_array_equal(result.states.visits.sum(axis=1) + result.states.dropped + waiting, time)
    np.testing.assert_array_equal(result.states.round, time)
    assert np.all(np.diff(result.states.dropped, prepend=0) == (result.infos.expert == edge.DROPPED))
    np.testing.assert_array_equal(result.infos.dropped, result.states.dropped)
    loads = np.bincount([task.server for task in result.tasks()], minlength=result.dims.max_experts)
    np.testing.assert_array_equal(result.states.visits[-1], loads)


@few
@given(runs(SHARED + QUEUES))
def test_no_server_works_on_more_tasks_than_it_may(result: Run) -> None:
    """Would catch a capacity read as the padded one, and a queue that is longer than `max_waiting`."""
    tasks = routed_tasks(result)
    queue = result.dims.max_waiting if result.dims.when_busy == "soonest" else 0
    starts = {task: task.until - int(result.total[task.arrival, task.server]) for task in tasks}
    for time in range(1, NUM_ROUNDS + 1):
        held = [task for task in tasks if task.routed <= time < task.until]
        working = [task for task in held if starts[task] <= time]
        for server in range(result.dims.max_experts):
            assert sum(task.server == server for task in working) <= result.params.capacity
            assert sum(task.server == server for task in held) <= result.params.capacity + queue
    if result.states.queue is not None:
        assert result.states.queue.num_waiting.max() <= result.dims.max_waiting


@few
@given(runs())
def test_models_change_only_on_completion_and_then_fit(result: Run) -> None:
    """Would catch an idle or still working server that moves, and a model that is not of the task last completed."""
    before = np.zeros_like(result.states.experts[0])
    tasks = routed_tasks(result)
    for time, models in enumerate(result.states.experts, 1):
        ending = [task for task in tasks if task.until == time]
        changed = np.flatnonzero(np.any(models != before, axis=1))
        assert set(changed) <= {task.server for task in ending}
        for server in {task.server for task in ending}:
            last = max((task for task in ending if task.server == server), key=lambda task: tasks.index(task))
            X, truth = result.arrivals.features[last.arrival], result.arrivals.truth[last.arrival]
            assert close(X.T @ models[server], X.T @ truth, size(models, truth))
        before = models


@few
@given(runs())
def test_gates_move_only_for_completed_tasks(result: Run) -> None:
    """Would catch a gate that learns from a task under way or dropped, or with another lag than the chosen one."""
    gates = np.concatenate([np.zeros_like(result.states.gates[:1]), result.states.gates])
    moved = np.any(np.diff(gates, axis=0) != 0, axis=(1, 2))
    completed = result.infos.num_completed > 0
    if result.params.gate_lag == 1:
        completed = np.concatenate([[False], completed[:-1]])
    assert not np.any(moved & ~completed)
    if result.params.num_experts > 1 and np.any(completed):
        first = int(np.argmax(completed))  # from models of zero, so it has changed
        assert moved[first]


@few
@given(runs())
def test_the_gates_sum_to_zero(result: Run) -> None:
    """Would catch a stale gate step whose slopes are not those of one softmax over all servers."""
    scale = size(result.states.gates, result.states.gate_step)
    assert close(result.states.gates.sum(axis=1), 0, scale)
    assert close(result.states.gate_step.sum(axis=1), 0, scale)


@few
@given(runs())
def test_probabilities_are_a_softmax_over_all_servers(result: Run) -> None:
    """Would catch probabilities over the idle servers only, or ones that leave the simplex."""
    outputs = np.einsum("tmp,tps->tm", result.states.gates, result.arrivals.features)
    assert close(result.infos.gate_outputs, outputs, size(outputs))
    M = int(result.params.num_experts)
    weights = np.exp(outputs[:, :M] - outputs[:, :M].max(axis=1, keepdims=True))
    expected = weights / weights.sum(axis=1, keepdims=True)
    assert close(result.infos.gate_probabilities[:, :M], expected, size(outputs))


@few
@given(runs())
def test_padded_experts_take_no_part(result: Run) -> None:
    """Would catch a server beyond num_experts that is chosen, moves, has a gate or a probability."""
    absent = ~result.exists
    assert np.all(result.infos.expert < result.params.num_experts)
    assert np.all(result.states.pending_server < result.params.num_experts)
    for leaf in (result.states.experts, result.states.gates, result.states.gate_step, result.states.visits):
        assert not np.any(leaf[:, absent])
    assert not np.any(result.states.residuals[:, absent])
    assert not np.any(result.infos.gate_probabilities[:, absent])


@few
@given(runs(), st.integers(0, 2**32 - 1))
def test_what_padded_experts_hold_changes_nothing(result: Run, seed: int) -> None:
    """Would catch an absent server whose delay, distance or perturbation reaches the others; to the bit."""
    rng = np.random.default_rng(seed)
    absent = ~result.exists
    shape = result.arrivals.distance.shape
    arrivals = result.arrivals._replace(
        transfer_delay=np.where(absent, rng.integers(0, 3, shape), result.arrivals.transfer_delay).astype(np.int32),
        distance=np.where(absent, -1, result.arrivals.distance),
        perturbation=np.where(absent, 1e6, result.arrivals.perturbation),
        uniform=np.where(absent, 2, result.arrivals.uniform),
    )
    start = result.start._replace(execution_delay=np.where(absent, 1, result.start.execution_delay).astype(np.int32))
    other = run(result.dims, start, arrivals, result.params, result.policy)
    for name in ("experts", "gates", "visits", "busy_until", "dropped", "squared_error", "pending_slopes"):
        np.testing.assert_array_equal(getattr(other.states, name), getattr(result.states, name), name)
    for name in result.infos._fields:
        np.testing.assert_array_equal(getattr(other.infos, name), getattr(result.infos, name), name)


@few
@given(runs())
def test_errors_are_those_of_the_history(result: Run) -> None:
    """Would catch a streamed (20) that leaves its definition: own truths, routed tasks, models now or flushed."""
    tasks = routed_tasks(result)
    truths = np.array([result.arrivals.truth[task.arrival] for task in tasks])
    servers = np.array([task.server for task in tasks])
    for time in range(1, NUM_ROUNDS + 1, 3):
        known = np.array([task.routed <= time for task in tasks])
        models = result.states.experts[time - 1].copy()
        expected = np.mean(np.sum((models[servers[known]] - truths[known]) ** 2, axis=1)) if known.any() else 0
        assert close(result.infos.generalization_error[time - 1], expected, 1 + size(models, truths) ** 2)
        pending = [task for task, is_known in zip(tasks, known, strict=True) if is_known and task.until > time]
        for task in sorted(pending, key=lambda task: task.until):  # stable: of one end, in the order of routing
            X, truth = result.arrivals.features[task.arrival], result.arrivals.truth[task.arrival]
            models[task.server] += X @ np.linalg.pinv(X) @ (truth - models[task.server])
        expected = np.mean(np.sum((models[servers[known]] - truths[known]) ** 2, axis=1)) if known.any() else 0
        assert close(result.infos.generalization_error_flushed[time - 1], expected, 1 + size(models, truths) ** 2)


@few
@given(runs(PAPER))
def test_the_idle_server_of_the_best_score_is_chosen(result: Run) -> None:
    """Would catch a policy that is not asked, or asked about the servers before the round's completions and steps."""
    free_from = np.concatenate([np.zeros_like(result.states.busy_until[:1]), result.states.busy_until[:-1]])
    scores = [
        result.infos.gate_outputs + result.arrivals.perturbation,
        -result.arrivals.distance,
        np.broadcast_to(-result.start.execution_delay.astype(float), result.arrivals.distance.shape),
        result.arrivals.uniform,
    ][result.policy]
    for time in range(1, NUM_ROUNDS + 1):
        idle = result.exists & (free_from[time - 1] <= time)
        if np.any(idle):
            assert result.infos.expert[time - 1] == np.argmax(np.where(idle, scores[time - 1], -np.inf))


@few
@given(runs(DROPPING), st.permutations(range(5)))
def test_servers_are_exchangeable(result: Run, order: list[int]) -> None:
    """Would catch a round that treats servers by their number, but for ties."""
    if POLICIES[result.policy] is edge.policies.fastest:  # full of ties
        return
    M, padded = int(result.params.num_experts), result.dims.max_experts
    order = [*(place for place in order if place < M), *range(M, padded)]
    per_server = ("transfer_delay", "distance", "perturbation", "uniform")
    arrivals = result.arrivals._replace(**{name: getattr(result.arrivals, name)[:, order] for name in per_server})
    start = result.start._replace(execution_delay=result.start.execution_delay[order])
    other = run(result.dims, start, arrivals, result.params, result.policy)
    place_of = np.argsort(order)
    went = np.where(result.infos.expert >= 0, place_of[result.infos.expert], result.infos.expert)
    np.testing.assert_array_equal(other.infos.expert, went)
    scale = size(result.states.experts, result.states.gates)
    assert close(other.states.experts, result.states.experts[:, order], scale, 1e-7)
    assert close(other.states.gates, result.states.gates[:, order], scale, 1e-7)


@pytest.mark.parametrize("policy", range(len(POLICIES)))
def test_the_tried_runs_are_busy(policy: int) -> None:
    """Would catch invariants that hold because nothing happens: no drops, no queues, no joint completions."""
    rng, together = np.random.default_rng(policy), []
    for dims in DROPPING + QUEUES:
        params = edge.Params(num_experts=2, capacity=1, max_transfer_delay=3, max_execution_delay=3)
        truths = rng.normal(size=(N, P))
        pool = edge.Pool(truths, truths, np.arange(N))
        with jax.enable_x64(True):
            start = jax.device_get(edge.begin(dims, params, pool, np.full(dims.max_experts, 3)))
        result = run(dims, start, draw_arrivals(rng, dims, pool, 3), params, policy)
        assert result.infos.dropped[-1] >= 3
        together.append(result.infos.num_completed.max())
        if result.states.queue is not None:
            assert np.any(result.infos.expert == edge.WAITING)
        if dims.when_busy == "soonest":
            assert result.infos.wait.max() >= 3
    assert max(together) == 2


class Kept(NamedTuple):
    """What a long run keeps to compute its errors anew."""

    truth: Any
    expert: Any
    experts: Any
    error: Any


@pytest.mark.parametrize(
    ("dims", "changes"),
    [
        (edge.Dims(10, 10, 15, 10), {}),
        (edge.Dims(10, 1, 15, 10, max_capacity=2), {"capacity": 2, "cluster_spread": 1e-3}),
    ],
    ids=["orthogonal", "tiny-errors"],
)
def test_the_streamed_error_stays_accurate_in_float32(dims: edge.Dims, changes: dict[str, Any]) -> None:
    """Would catch cancellation: a sum that drifts from its definition where errors are small, over 3000 rounds."""
    params = edge.reading("orthogonal-signal").params(num_experts=10, **changes)
    system = edge.system(dims)

    def step(key, state, params):
        arrival = edge.draw(key, dims, state.pool, state.positions, params, edge.delays.uniform)
        after, info = edge.learn(state, arrival, params, dims=dims)
        return after, Kept(arrival.truth, info.expert, after.experts, info.generalization_error)

    with jax.enable_x64(False):
        _, kept = jax.device_get(mt.simulate(mt.System(system.init, step), mt.root_key(3), params, 3000))
    assert kept.error.dtype == kept.experts.dtype == np.float32
    for time in range(100, 3001, 100):
        truth, expert, models = kept.truth[:time], kept.expert[:time], kept.experts[time - 1].astype(np.float64)
        gaps = models[expert[expert >= 0]] - truth[expert >= 0]
        expected = np.mean(np.sum(gaps**2, axis=1))
        assert abs(kept.error[time - 1] / expected - 1) < 1e-4
    assert expected < 1e-2 or not changes
