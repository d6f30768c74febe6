"""Algorithm 1 of `edge` for one replicate, event by event in plain NumPy float64, as close to the page as possible.

Written from the paper alone: it imports nothing from the package and shares no formula with it. Nothing here is fast:
every task is kept with its own ground truth, and the overall generalization error (20) is a sum over all of them.

Rounds count from 1. A task routed in round t with delay d occupies its server in t..t+d-1. Round t+d opens with the
server's new model, and the server may be picked in it. `capacity` is the extension of footnote 1: a server holds up to
that many tasks at once, and (9) starts from the model it has when a task completes.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

RANK_TOLERANCE = 1e-12  # singular values of X below this fraction of the largest are zero


class Settings(NamedTuple):
    """What Algorithm 1 leaves to the user, in the paper's symbols."""

    M: int  # servers
    eta: float  # learning rate
    policy: str = "adaptive"  # how the router scores the idle servers
    gate_lag: int = 1  # rounds from a task's completion to its gate step; (13) says 1
    capacity: int = 1  # tasks that a server holds at once


class Arrival(NamedTuple):
    """The task of a round, and what the router is told about it."""

    X: np.ndarray  # (p, s)
    truth: np.ndarray  # (p,) w_t
    transfer_delay: np.ndarray  # (M,) d^tr to every server
    distance: np.ndarray  # (M,)
    perturbation: np.ndarray  # (M,) r_t
    uniform: np.ndarray  # (M,)


@dataclass(eq=False)
class Server:
    """One expert."""

    index: int
    execution_delay: int  # d^ex
    w: np.ndarray  # local model
    theta: np.ndarray  # gate
    tasks: list["Task"] = field(default_factory=list)  # those it is working on
    visits: int = 0


@dataclass(eq=False)
class Task:
    """A routed task: an event due at the start of round `completes_in`."""

    number: int  # tasks routed before it
    server: Server
    arrival: Arrival
    pi: list[float]  # (5) over all servers, when it was routed
    completes_in: int  # t + d_t
    cost: float = math.nan  # |w_{t+d} - w_{t+d-1}|, known on completion


@dataclass(eq=False)
class GateStep:
    """Equation (13) for one completed task: an event due at the start of round `visible_in`."""

    task: Task
    visible_in: int


class Outcome(NamedTuple):
    """What one round showed."""

    expert: int  # m_t, or -1 for a dropped task
    delay: int  # d_t, 0 for a dropped task
    num_busy: int  # servers that could not take the task
    completed: list[Task]  # tasks that completed at the start of the round
    clearance: float  # how far the best score of an idle server was above the second best
    generalization_error: float  # (20) over the tasks routed so far
    generalization_error_flushed: float  # the same, as if all of them had completed


class Reference:
    """One run of Algorithm 1."""

    def __init__(self, settings: Settings, execution_delay: np.ndarray, num_features: int) -> None:
        self.settings = settings
        self.servers = [
            Server(m, int(execution_delay[m]), np.zeros(num_features), np.zeros(num_features))
            for m in range(settings.M)
        ]
        self.t = 0
        self.dropped = 0
        self.routed: list[Task] = []
        self.pending: list[Task] = []
        self.waiting: list[GateStep] = []

    @property
    def w(self) -> np.ndarray:
        return np.array([server.w for server in self.servers])

    @property
    def theta(self) -> np.ndarray:
        return np.array([server.theta for server in self.servers])

    @property
    def visits(self) -> np.ndarray:
        return np.array([server.visits for server in self.servers])

    def learn(self, arrival: Arrival) -> Outcome:
        """Round t: what became due, then line 6 on the round's own task."""
        self.t += 1
        self._take_gate_steps()
        completed = self._complete_tasks()
        self._take_gate_steps()

        idle = [server for server in self.servers if self.is_idle(server)]
        num_busy = len(self.servers) - len(idle)
        if idle:
            scores = {server.index: self.score(server, arrival) for server in idle}
            best = max(idle, key=lambda server: (scores[server.index], -server.index))
            others = [scores[server.index] for server in idle if server is not best]
            clearance = scores[best.index] - max(others, default=-math.inf)
            delay = self._assign(arrival, best)
            expert = best.index
        else:
            self.dropped += 1
            expert, delay, clearance = -1, 0, math.inf
        return Outcome(expert, delay, num_busy, completed, clearance, self.generalization_error(), self.flushed_error())

    def _take_gate_steps(self) -> None:
        """(13) for every step that is due; (24)-(26) at the gates of the round in which the task was routed."""
        for step in [step for step in self.waiting if step.visible_in == self.t]:
            for server, row in zip(self.servers, gate_gradient(step.task), strict=True):
                server.theta = server.theta - self.settings.eta * row
            self.waiting.remove(step)

    def _complete_tasks(self) -> list[Task]:
        """Line 7 for every task that is due, in the order in which they were routed."""
        due = [task for task in self.pending if task.completes_in == self.t]
        for task in sorted(due, key=lambda task: task.number):
            server = task.server
            w_before = server.w
            server.w = minimum_norm_update(w_before, task.arrival)
            task.cost = float(np.linalg.norm(server.w - w_before))
            server.tasks.remove(task)
            self.pending.remove(task)
            self.waiting.append(GateStep(task, self.t + self.settings.gate_lag))
        return due

    def is_idle(self, server: Server) -> bool:
        """(2), with the capacity of footnote 1."""
        return len(server.tasks) < self.settings.capacity

    def free_in(self, server: Server) -> int:
        """The first round after this one in which the server could take a task, if it got no other before."""
        if self.is_idle(server):
            return self.t + 1
        return min(task.completes_in for task in server.tasks)

    def score(self, server: Server, arrival: Arrival) -> float:
        """What the router maximises over the idle servers: (4), or what a baseline puts in its place."""
        m = server.index
        match self.settings.policy:
            case "adaptive":
                return gate_output(server, arrival) + arrival.perturbation[m]
            case "nearest":
                return -arrival.distance[m]
            case "fastest":
                return -server.execution_delay
            case "uniform":
                return arrival.uniform[m]
        raise ValueError(f"policy={self.settings.policy!r}")

    def _assign(self, arrival: Arrival, server: Server) -> int:
        """Hand the task over and return its delay (1). Its (5) uses the gates that the router has just used."""
        delay = int(arrival.transfer_delay[server.index]) + server.execution_delay
        assert delay >= 1
        pi = softmax([gate_output(other, arrival) for other in self.servers])
        task = Task(len(self.routed), server, arrival, pi, self.t + delay)
        server.tasks.append(task)
        server.visits += 1
        self.routed.append(task)
        self.pending.append(task)
        return delay

    def generalization_error(self) -> float:
        """(20) over the tasks routed so far, with the servers' models of this moment."""
        return self._mean_error([server.w for server in self.servers])

    def flushed_error(self) -> float:
        """(20) with every task routed so far completed, each at its own time."""
        models = [server.w for server in self.servers]
        for task in sorted(self.pending, key=lambda task: (task.completes_in, task.number)):
            m = task.server.index
            models[m] = minimum_norm_update(models[m], task.arrival)
        return self._mean_error(models)

    def _mean_error(self, models: list[np.ndarray]) -> float:
        if not self.routed:
            return 0.0
        gaps = [models[task.server.index] - task.arrival.truth for task in self.routed]
        return float(sum(gap @ gap for gap in gaps) / len(gaps))


def gate_output(server: Server, arrival: Arrival) -> float:
    """h_m of (3)."""
    return float(server.theta @ arrival.X.sum(axis=1))


def softmax(h: list[float]) -> list[float]:
    """(5)."""
    weights = [math.exp(h_m - max(h)) for h_m in h]
    return [weight / sum(weights) for weight in weights]


def gate_gradient(task: Task) -> list[np.ndarray]:
    """(24)-(26): the gradient of (11) in every server's gate, at the gates that routed the task."""
    chosen = task.server.index
    X_sum = task.arrival.X.sum(axis=1)
    rows = []
    for m in range(len(task.pi)):
        if m == chosen:
            slope = task.pi[chosen] * sum(task.pi[j] for j in range(len(task.pi)) if j != chosen)  # (25)
        else:
            slope = -task.pi[chosen] * task.pi[m]  # (26)
        rows.append(task.cost * slope * X_sum)
    return rows


def minimum_norm_update(w: np.ndarray, arrival: Arrival) -> np.ndarray:
    """(8), whose solution is (9) where X'X can be inverted: the nearest model to w that fits X'w = y."""
    y = arrival.X.T @ arrival.truth
    return w + np.linalg.pinv(arrival.X.T, rcond=RANK_TOLERANCE) @ (y - arrival.X.T @ w)
