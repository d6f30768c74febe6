"""Algorithm 1 of `edge` for one replicate, event by event in NumPy; `capacity` is the extension of footnote 1."""

import heapq
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .continual_loop import minimum_norm_update, probability_gradient, softmax


class Settings(NamedTuple):
    """What Algorithm 1 leaves to the user, in the paper's symbols."""

    M: int  # servers
    eta: float  # learning rate
    policy: str = "adaptive"  # how the router scores the idle servers
    gate_lag: int = 1  # rounds from a task's completion to its gate step; (13) says 1
    capacity: int = 1  # tasks that a server works on at once
    when_busy: str = "drop"
    max_waiting: int = 0  # length of the queue


class Arrival(NamedTuple):
    """The task of a round, and what the router is told about it."""

    X: np.ndarray  # (p, s)
    truth: np.ndarray  # (p,) w_t
    transfer_delay: np.ndarray  # (M,) d^tr to every server
    distance: np.ndarray  # (M,)
    perturbation: np.ndarray  # (M,) r_t
    uniform: np.ndarray  # (M,)

    @property
    def y(self):
        return self.X.T @ self.truth


@dataclass(eq=False)
class Server:
    """One expert."""

    index: int
    execution_delay: int  # d^ex
    w: np.ndarray  # local model
    theta: np.ndarray  # gate
    tasks: list["Task"] = field(default_factory=list)  # those it is working on
    waiting: list["Task"] = field(default_factory=list)
    visits: int = 0


@dataclass(eq=False)
class Task:
    """A routed task: an event due at the start of round `completes_in`."""

    number: int  # tasks routed before it
    server: Server
    arrival: Arrival
    pi: np.ndarray  # (5) over all servers, when it was routed
    delay: int  # d_t
    starts_in: int  # t, or later where it waits at its server
    cost: float = math.nan  # |w_{t+d} - w_{t+d-1}|, known on completion

    @property
    def completes_in(self):
        return self.starts_in + self.delay


@dataclass(eq=False)
class GateStep:
    """Equation (13) for one completed task: an event due at the start of round `visible_in`."""

    task: Task
    visible_in: int


class Outcome(NamedTuple):
    """What one round showed."""

    expert: int  # m_t; -1 for a dropped task, -2 for one that waits at the router
    delay: int  # d_t, 0 for a task that went to no server
    wait: int  # rounds until its server starts on it
    num_busy: int  # servers that could not take the task
    completed: list[Task]  # tasks that completed at the start of the round
    clearance: float  # how far the best score of an idle server was above the second best, at least
    generalization_error: float  # (20) over the tasks routed so far
    generalization_error_flushed: float  # the same, as if all of them had completed


class Reference:
    """One run of Algorithm 1."""

    def __init__(self, settings, execution_delay, num_features):
        self.settings = settings
        self.servers = [
            Server(m, int(execution_delay[m]), np.zeros(num_features), np.zeros(num_features))
            for m in range(settings.M)
        ]
        self.t = 0
        self.dropped = 0
        self.routed: list[Task] = []
        self.pending: list[Task] = []
        self.steps: list[GateStep] = []

    @property
    def w(self):
        return np.array([server.w for server in self.servers])

    @property
    def theta(self):
        return np.array([server.theta for server in self.servers])

    @property
    def visits(self):
        return np.array([server.visits for server in self.servers])

    def learn(self, arrival):
        """Round t: what became due, then line 6 on the round's own task."""
        self.t += 1
        self._take_gate_steps()
        completed = self._complete_tasks()
        self._take_gate_steps()

        num_busy = len(self.servers) - len(self.idle())
        self.clearance = math.inf
        server = self.server_for(arrival)
        if server is None:
            self.dropped += 1
            expert, delay, wait = -1, 0, 0
        else:
            task = self._assign(arrival, server)
            expert, delay, wait = server.index, task.delay, task.starts_in - self.t
        errors = self.generalization_error(), self.flushed_error()
        return Outcome(expert, delay, wait, num_busy, completed, self.clearance, *errors)

    def idle(self):
        return [server for server in self.servers if self.is_idle(server)]

    def server_for(self, arrival):
        """The idle server of the best score; with none idle and queues at the servers, the one that is free first."""
        if idle := self.idle():
            scores = {server.index: self.score(server, arrival) for server in idle}
            best = max(idle, key=lambda server: (scores[server.index], -server.index))
            others = [scores[server.index] for server in idle if server is not best]
            self.clearance = min(self.clearance, scores[best.index] - max(others, default=-math.inf))
            return best
        if self.settings.when_busy != "soonest":
            return None
        shorter = [server for server in self.servers if len(server.waiting) < self.settings.max_waiting]
        return min(shorter, key=lambda server: (self.free_in(server), server.index), default=None)

    def _take_gate_steps(self):
        """(13) for every step that is due; (24)-(26) at the gates of the round in which the task was routed."""
        for step in [step for step in self.steps if step.visible_in == self.t]:
            task = step.task
            gradient = task.cost * probability_gradient(task.pi, task.server.index, task.arrival.X.sum(axis=1))
            for server, row in zip(self.servers, gradient, strict=True):
                server.theta = server.theta - self.settings.eta * row
            self.steps.remove(step)

    def _complete_tasks(self):
        """Line 7 for every task that is due, in the order in which they were routed."""
        due = [task for task in self.pending if task.completes_in == self.t]
        for task in sorted(due, key=lambda task: task.number):
            server = task.server
            w_before = server.w
            server.w = minimum_norm_update(w_before, task.arrival.X, task.arrival.y)
            task.cost = float(np.linalg.norm(server.w - w_before))
            server.tasks.remove(task)
            self.pending.remove(task)
            self.steps.append(GateStep(task, self.t + self.settings.gate_lag))
        for server in self.servers:
            while server.waiting and self.is_idle(server):
                assert server.waiting[0].starts_in == self.t, "a server starts another time than it was expected to"
                server.tasks.append(server.waiting.pop(0))
        return due

    def is_idle(self, server):
        """(2), with the capacity of footnote 1."""
        return len(server.tasks) < self.settings.capacity

    def free_in(self, server):
        """The first round after this one in which the server could start a task, if it got no other before."""
        if self.is_idle(server):
            return self.t + 1
        ends = [task.completes_in for task in server.tasks]
        heapq.heapify(ends)
        for task in server.waiting:  # played to its end
            heapq.heappush(ends, heapq.heappop(ends) + task.delay)
        return ends[0]

    def score(self, server, arrival):
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

    def _assign(self, arrival, server):
        """Hand the task over, with its delay (1). Its (5) uses the gates that the router has just used."""
        delay = int(arrival.transfer_delay[server.index]) + server.execution_delay
        assert delay >= 1
        pi = softmax(np.array([gate_output(other, arrival) for other in self.servers]))
        starts_in = self.t if self.is_idle(server) else self.free_in(server)
        task = Task(len(self.routed), server, arrival, pi, delay, starts_in)
        (server.tasks if self.is_idle(server) else server.waiting).append(task)
        server.visits += 1
        self.routed.append(task)
        self.pending.append(task)
        return task

    def generalization_error(self):
        """(20) over the tasks routed so far, with the servers' models of this moment."""
        return self._mean_error([server.w for server in self.servers])

    def flushed_error(self):
        """(20) with every task routed so far completed, each at its own time."""
        models = [server.w for server in self.servers]
        for task in sorted(self.pending, key=lambda task: (task.completes_in, task.number)):
            m = task.server.index
            models[m] = minimum_norm_update(models[m], task.arrival.X, task.arrival.y)
        return self._mean_error(models)

    def _mean_error(self, models):
        if not self.routed:
            return 0.0
        served = np.take(models, [task.server.index for task in self.routed], axis=0)
        gaps = served - np.array([task.arrival.truth for task in self.routed])
        return float(np.sum(gaps**2) / len(gaps))


def gate_output(server, arrival):
    """h_m of (3)."""
    return float(server.theta @ arrival.X.sum(axis=1))
