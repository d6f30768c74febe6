"""Tasks that wait for a server, at the router or at the server, against an event loop in plain Python.

The loop knows no table of slots and no formula for the round in which a place becomes free: it keeps lists of tasks,
plays each server's queue to its end to learn when a place becomes free, and starts a waiting task as it does.
"""

import dataclasses
import functools
import heapq
import itertools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import edge

NUM_ROUNDS, N, P, S = 150, 3, 5, 3
MAX_EXPERTS = 4
POLICIES = ("adaptive", "nearest", "fastest")
TOLERANCE = 1e-9
CLEARANCE = 1e-6  # no route of the learned policy that is compared is closer than this


@dataclasses.dataclass(eq=False)
class Task:
    """An arrival, and what became of it."""

    came: int
    X: np.ndarray
    truth: np.ndarray
    transfer_delay: np.ndarray
    distance: np.ndarray
    perturbation: np.ndarray
    number: int = -1  # in the order of routing
    server: int = -1
    delay: int = 0
    starts: int = -1
    ends: int = -1
    slopes: np.ndarray | None = None  # of its probability in the gate outputs, when it was routed


@dataclasses.dataclass(eq=False)
class Server:
    """The tasks that it works on, those that wait at it, and those that it has ever been given."""

    execution_delay: int
    w: np.ndarray
    working: list[Task] = dataclasses.field(default_factory=list)
    waiting: list[Task] = dataclasses.field(default_factory=list)
    given: list[Task] = dataclasses.field(default_factory=list)


class Setting(NamedTuple):
    """A way to queue, and how it is tried."""

    when_busy: str
    places: int = 2  # of the queue
    capacity: int = 1
    max_capacity: int = 2
    policy: str = "adaptive"
    gate_lag: int = 1
    num_experts: int = 3
    max_delay: int | None = None
    delays: tuple[int, int] = (3, 3)  # the largest execution and transfer
    constant_delay: int | None = None  # instead, of every execution, with no transfer


class Loop:
    """A network with queues, event by event."""

    def __init__(self, setting: Setting, execution_delay: np.ndarray, eta: float) -> None:
        self.setting, self.eta, self.t = setting, eta, 0
        self.servers = [Server(int(d), np.zeros(P)) for d in execution_delay[: setting.num_experts]]
        self.theta = np.zeros((setting.num_experts, P))
        self.step = np.zeros_like(self.theta)  # of the tasks completed in the last round
        self.room: list[Task] = []
        self.routed: list[Task] = []
        self.dropped = 0
        self.num_idle = 0  # as the router found the servers in the last round
        self.clearance = np.inf

    def round(self, task: Task) -> int:
        """One round; where the new task went."""
        self.t += 1
        self.theta = self.theta - self.eta * self.step
        self.step = self.complete()
        if self.setting.gate_lag == 0:
            self.theta, self.step = self.theta - self.eta * self.step, np.zeros_like(self.step)
        self.num_idle = len(self.idle())
        return self.wait_at_router(task) if self.setting.when_busy == "wait" else self.wait_at_server(task)

    def complete(self) -> np.ndarray:
        """Ends of tasks, starts of those next in line, and the gates' gradient."""
        gradient = np.zeros_like(self.theta)
        for server in self.servers:
            for task in [task for task in server.working if task.ends == self.t]:
                change = np.linalg.pinv(task.X.T) @ (task.X.T @ (task.truth - server.w))
                server.w = server.w + change
                server.working.remove(task)
                gradient += np.linalg.norm(change) * np.outer(task.slopes, task.X.sum(axis=1))
            while server.waiting and len(server.working) < self.setting.capacity:
                self.start(server, server.waiting.pop(0))
        return gradient

    def start(self, server: Server, task: Task) -> None:
        task.starts, task.ends = self.t, self.t + task.delay
        server.working.append(task)
        server.working.sort(key=lambda task: (task.ends, task.number))

    def idle(self) -> list[int]:
        return [m for m, server in enumerate(self.servers) if len(server.working) < self.setting.capacity]

    def wait_at_router(self, task: Task) -> int:
        line = [*self.room, task]
        while line and self.idle():
            first = line.pop(0)
            self.give(first, self.favourite(first))
        if not line:
            self.room = []
            return task.server
        self.room = line[: self.setting.places]
        if task in self.room:
            return edge.WAITING
        self.dropped += 1
        return edge.DROPPED

    def wait_at_server(self, task: Task) -> int:
        if self.idle():
            return self.give(task, self.favourite(task))
        holding = self.setting.capacity + self.setting.places
        open_ = [m for m, server in enumerate(self.servers) if len(server.working) + len(server.waiting) < holding]
        if open_:
            return self.give(task, min(open_, key=lambda m: (self.place_free(self.servers[m]), m)))
        self.dropped += 1
        return edge.DROPPED

    def place_free(self, server: Server) -> int:
        """The round in which the server would start one more task: its queue, played to the end."""
        ends = [task.ends for task in server.working]
        heapq.heapify(ends)
        for task in server.waiting:
            heapq.heappush(ends, heapq.heappop(ends) + task.delay)
        return ends[0]

    def outputs(self, task: Task) -> np.ndarray:
        return self.theta @ task.X.sum(axis=1)

    def favourite(self, task: Task) -> int:
        M = len(self.servers)
        scores = {
            "adaptive": self.outputs(task) + task.perturbation[:M],
            "nearest": -task.distance[:M],
            "fastest": -np.array([server.execution_delay for server in self.servers]),
        }[self.setting.policy]
        ranked = sorted(self.idle(), key=lambda m: (-scores[m], m))
        if len(ranked) > 1 and self.setting.policy == "adaptive":
            self.clearance = min(self.clearance, scores[ranked[0]] - scores[ranked[1]])
        return ranked[0]

    def give(self, task: Task, m: int) -> int:
        server, h = self.servers[m], self.outputs(task)
        pi = np.exp(h - h.max()) / np.exp(h - h.max()).sum()
        task.slopes = pi[m] * ((np.arange(len(pi)) == m) - pi)
        task.server, task.number = m, len(self.routed)
        task.delay = int(task.transfer_delay[m]) + server.execution_delay
        self.routed.append(task)
        server.given.append(task)
        if len(server.working) < self.setting.capacity:
            self.start(server, task)
        else:
            server.waiting.append(task)
        return m

    def error(self) -> float:
        gaps = [server.w - task.truth for server in self.servers for task in server.given]
        return float(sum(gap @ gap for gap in gaps) / max(len(gaps), 1))


class Seen(NamedTuple):
    """The loop after a round."""

    expert: int
    w: np.ndarray
    theta: np.ndarray
    error: float
    dropped: int
    num_routed: int
    num_idle: int  # as the router found the servers


@functools.cache
def arrays() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(31)
    task = rng.integers(N, size=NUM_ROUNDS)
    centres = rng.normal(size=(N, P))
    features = 0.5 * rng.normal(size=(NUM_ROUNDS, P, S))
    features[:, :, 1] = centres[task]
    per_server = (NUM_ROUNDS, MAX_EXPERTS)
    return {
        "centres": centres,
        "task": task.astype(np.int32),
        "features": features,
        "truth": centres[task] + 0.1 * rng.normal(size=(NUM_ROUNDS, P)),
        "transfer": rng.random(per_server),
        "execution": rng.random(MAX_EXPERTS),
        "distance": rng.random(per_server),
        "perturbation": 0.3 * rng.random(per_server),
        "uniform": rng.random(per_server),
    }


def arrival_delays(setting: Setting) -> tuple[np.ndarray, np.ndarray]:
    """Execution delays from 1, and transfer delays from 0."""
    slowest, farthest = setting.delays
    if setting.constant_delay is not None:
        return np.full(MAX_EXPERTS, setting.constant_delay), np.zeros((NUM_ROUNDS, MAX_EXPERTS), int)
    execution = 1 + np.floor(slowest * arrays()["execution"])
    return execution.astype(np.int32), np.floor((farthest + 1) * arrays()["transfer"]).astype(np.int32)


def play(setting: Setting) -> tuple[Loop, list[Task], list[Seen]]:
    given = arrays()
    execution, transfer = arrival_delays(setting)
    loop, tasks, seen = Loop(setting, execution, eta=0.2), [], []
    for t in range(NUM_ROUNDS):
        task = Task(
            t, given["features"][t], given["truth"][t], transfer[t], given["distance"][t], given["perturbation"][t]
        )
        expert = loop.round(task)
        tasks.append(task)
        seen.append(
            Seen(
                expert,
                np.array([server.w for server in loop.servers]),
                loop.theta,
                loop.error(),
                loop.dropped,
                len(loop.routed),
                loop.num_idle,
            )
        )
    return loop, tasks, seen


@functools.cache
def program(dims: edge.Dims) -> Any:
    """All rounds, with the policy by its number in `POLICIES` and every parameter traced."""

    def scan(state, arrivals, params, policy):
        def numbered(*args):
            return jnp.stack([getattr(edge.policies, name)(*args) for name in POLICIES])[policy]

        def step(state, arrival):
            state, info = edge.learn(state, arrival, params, numbered, dims=dims)
            return state, (state, info)

        return jax.lax.scan(step, state, arrivals)[1]

    return jax.jit(scan)


def run_package(setting: Setting) -> tuple[edge.State, edge.Info]:
    """States and infos after every round; the server that does not exist is nearest, fastest and scores highest."""
    dims = edge.Dims(
        MAX_EXPERTS,
        N,
        P,
        S,
        max_delay=setting.max_delay,
        max_capacity=setting.max_capacity,
        when_busy=setting.when_busy,
        max_waiting=setting.places,
    )
    params = edge.Params(
        num_experts=setting.num_experts,
        capacity=setting.capacity,
        gate_lag=setting.gate_lag,
        learning_rate=0.2,
        max_execution_delay=setting.delays[0],
        max_transfer_delay=setting.delays[1],
    )
    given = arrays()
    execution, transfer = arrival_delays(setting)
    absent = np.arange(MAX_EXPERTS) >= setting.num_experts
    arrivals = edge.Arrival(
        task=given["task"],
        features=given["features"],
        truth=given["truth"],
        transfer_delay=np.where(absent, 0, transfer).astype(np.int32),
        distance=np.where(absent, -1, given["distance"]),
        perturbation=np.where(absent, 1e6, given["perturbation"]),
        uniform=given["uniform"],
    )
    with jax.enable_x64(True):
        pool = edge.Pool(given["centres"], given["centres"], np.arange(N))
        state = jax.device_get(edge.begin(dims, params, pool, np.where(absent, 1, execution)))
        values = edge.Params(*(np.asarray(value) for value in params))
        return jax.device_get(program(dims)(state, arrivals, values, np.asarray(POLICIES.index(setting.policy))))


def assert_agrees(setting: Setting) -> tuple[list[Task], list[Seen], edge.Info]:
    """Compare routes, completions, drops, waits, models, gates and errors of every round."""
    loop, tasks, seen = play(setting)
    states, infos = run_package(setting)
    M = setting.num_experts
    assert loop.clearance > CLEARANCE, "a route hangs on rounding: change the seed"
    np.testing.assert_array_equal(infos.expert, [one.expert for one in seen])
    np.testing.assert_array_equal(states.dropped, [one.dropped for one in seen])
    np.testing.assert_array_equal(states.visits.sum(axis=1), [one.num_routed for one in seen])
    assert np.abs(states.experts[:, :M] - [one.w for one in seen]).max() < TOLERANCE
    assert np.abs(states.gates[:, :M] - [one.theta for one in seen]).max() < TOLERANCE
    assert np.abs(infos.generalization_error - [one.error for one in seen]).max() < TOLERANCE
    np.testing.assert_array_equal(infos.num_idle, [one.num_idle for one in seen])
    assert not np.any(states.visits[:, M:])

    went_at_once = [task for task in tasks if infos.expert[task.came] >= 0]
    for task in went_at_once:
        assert infos.delay[task.came] == task.delay
        if task.starts >= 0:
            assert infos.wait[task.came] == task.starts - 1 - task.came
    stayed = infos.expert < 0
    assert not np.any(infos.delay[stayed])
    assert not np.any(infos.wait[stayed])
    ends = np.array([task.ends for task in loop.routed if task.ends >= 0])
    completed = np.bincount(ends, minlength=NUM_ROUNDS + 1)[1 : NUM_ROUNDS + 1]
    np.testing.assert_array_equal(infos.num_completed, completed)
    for time in range(NUM_ROUNDS):
        slots = np.flatnonzero(states.pending_server[time] >= 0)
        for slot in slots:
            task = loop.routed[states.pending_serial[time, slot]]
            assert states.pending_server[time, slot] == task.server
            assert task.ends in (-1, states.pending_until[time, slot])
    return tasks, seen, infos


@pytest.mark.parametrize("gate_lag", [0, 1])
@pytest.mark.parametrize(("policy", "capacity"), itertools.product(("adaptive", "nearest"), (1, 2)))
def test_tasks_wait_at_the_router(policy: str, capacity: int, gate_lag: int) -> None:
    """Would catch another order than first come first served, stale gates, or room for one task more or fewer."""
    setting = Setting("wait", capacity=capacity, policy=policy, gate_lag=gate_lag, delays=(4, 4 * capacity))
    tasks, seen, infos = assert_agrees(setting)
    assert np.sum(infos.expert == edge.WAITING) >= 30
    assert np.sum(infos.expert == edge.DROPPED) >= 5
    waits = [task.starts - 1 - task.came for task in tasks if task.starts >= 0]
    assert max(waits) >= 2
    routed_a_round = np.diff([one.num_routed for one in seen])
    assert routed_a_round.max() >= 2, "the data never routes two tasks in a round"


@pytest.mark.parametrize("gate_lag", [0, 1])
@pytest.mark.parametrize(("policy", "capacity"), itertools.product(("adaptive", "fastest"), (1, 2)))
def test_tasks_wait_at_the_server_that_is_free_soonest(policy: str, capacity: int, gate_lag: int) -> None:
    """Would catch a wrong forecast of a server's queue, a delay that starts too early, or (9) from the wrong model."""
    num_experts = 3 if capacity == 1 else 2
    setting = Setting(
        "soonest", capacity=capacity, policy=policy, gate_lag=gate_lag, num_experts=num_experts, delays=(4, 7)
    )
    _, _, infos = assert_agrees(setting)
    assert np.sum(infos.wait > 0) >= 30
    assert np.sum(infos.expert == edge.DROPPED) >= 5
    assert len(np.unique(infos.wait)) >= 4


@pytest.mark.parametrize("when_busy", ["wait", "soonest"])
def test_a_longest_delay_and_unused_places_change_nothing(when_busy: str) -> None:
    """Would catch a table of tasks that is too small for a queue that empties at once, or places that are not there."""
    for capacity in (1, 2):
        assert_agrees(Setting(when_busy, 1, capacity, max_capacity=3, max_delay=8, num_experts=2, delays=(4, 4)))


@pytest.mark.parametrize("when_busy", ["wait", "soonest"])
def test_nobody_waits_where_somebody_is_idle(when_busy: str) -> None:
    """Would catch a queue that changes runs in which it is never used."""
    queued = Setting(when_busy, num_experts=4, delays=(2, 1))
    _, _, infos = assert_agrees(queued)
    assert not np.any(infos.expert < 0)
    assert not np.any(infos.wait)
    _, dropping = run_package(queued._replace(when_busy="drop", places=0))
    np.testing.assert_array_equal(dropping.expert, infos.expert)
    assert np.abs(dropping.generalization_error - infos.generalization_error).max() < TOLERANCE


@pytest.mark.parametrize(
    ("when_busy", "experts", "waits"),
    [
        ("wait", [0, -2, -2, -2, -1, -1, -2, -1], [0] * 8),
        ("soonest", [0, 0, 0, 0, -1, -1, 0, -1], [0, 2, 4, 6, 0, 0, 6, 0]),
    ],
)
def test_a_timetable_made_by_hand(when_busy: str, experts: list[int], waits: list[int]) -> None:
    """Would catch both sides being a round early or late.

    One server takes 3 rounds a task, and two tasks may wait: those of rounds 2 and 3. In round 4 the first task is done
    and the second starts, so the newcomer finds room; those of rounds 5 and 6 do not, and round 7 is as round 4.
    """
    setting = Setting(when_busy, max_capacity=1, num_experts=1, constant_delay=3)
    _, seen, infos = assert_agrees(setting)
    assert [one.expert for one in seen[:8]] == experts
    np.testing.assert_array_equal(infos.expert[:8], experts)
    np.testing.assert_array_equal(infos.wait[:8], waits)
    np.testing.assert_array_equal(infos.num_completed[:8], [0, 0, 0, 1, 0, 0, 1, 0])


def test_a_tie_goes_to_the_lowest_index() -> None:
    """Would catch a last-index rule among servers that are free equally soon."""
    _, _, infos = assert_agrees(Setting("soonest", places=1, num_experts=2, policy="fastest", constant_delay=6))
    np.testing.assert_array_equal(infos.expert[:7], [0, 1, 0, 1, -1, -1, 0])
    _, _, infos = assert_agrees(
        Setting("soonest", places=1, num_experts=2, capacity=2, policy="fastest", constant_delay=6)
    )
    np.testing.assert_array_equal(infos.expert[:7], [0, 0, 1, 1, 0, 1, 0])
