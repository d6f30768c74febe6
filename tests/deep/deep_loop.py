"""The deep experiments of `continual` and `edge` for one replicate, in plain NumPy float64, from the papers alone."""

import copy
import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ..golden.continual_loop import probability_gradient, softmax


class Data(NamedTuple):
    """Images as bytes and which class each shows; -1 for none of those that tasks recognise."""

    train: np.ndarray  # (n, h, w, c)
    train_labels: np.ndarray  # (n,)
    test: np.ndarray
    test_labels: np.ndarray
    mean: np.ndarray  # (c,) of the pixels in [0, 1]
    deviation: np.ndarray

    def inputs(self, pixels: np.ndarray) -> np.ndarray:
        """What an expert reads, a row an image."""
        return ((pixels / 255.0 - self.mean) / self.deviation).reshape(len(pixels), -1)


class Settings(NamedTuple):
    """What the papers leave to the user, in their symbols where they have some."""

    M: int
    eta: float
    alpha: float = 0.0
    gamma: float = math.inf
    terminate: bool = True
    accumulate: bool = True
    power: float = 1.0
    per_parameter: bool = False
    scale: float = 1.0
    centre: bool = True
    first_rate: float = 0.1
    last_rate: float = 0.1
    T: int = 1
    decay: float = 0.0
    adam: bool = False
    multi_class: bool = False
    squared_loss: bool = False
    policy: str = "adaptive"
    gate_lag: int = 1


class Task(NamedTuple):
    """What arrives in a round."""

    n: int
    images: np.ndarray  # (s,) rows
    batches: np.ndarray  # (steps, b) places among these
    tests: np.ndarray  # rows
    r: np.ndarray  # (M,)
    uniform: np.ndarray = np.zeros(0)
    distance: np.ndarray = np.zeros(0)
    transfer_delay: np.ndarray = np.zeros(0)


class Model:
    """One expert's weights W1 (p, h), b1, W2 (h, K), b2."""

    def __init__(self, arrays: list[np.ndarray]) -> None:
        self.arrays = [np.array(array, float) for array in arrays]

    def forward(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        W1, b1, W2, b2 = self.arrays
        hidden = np.maximum(x @ W1 + b1, 0)
        return hidden, hidden @ W2 + b2

    def gradient(self, x: np.ndarray, outputs_gradient) -> list[np.ndarray]:
        hidden, outputs = self.forward(x)
        d_outputs = outputs_gradient(outputs) / len(x)
        d_hidden = (d_outputs @ self.arrays[2].T) * (hidden > 0)
        return [x.T @ d_hidden, d_hidden.sum(axis=0), hidden.T @ d_outputs, d_outputs.sum(axis=0)]

    def distance(self, other: "Model") -> float:
        return math.sqrt(sum(np.sum((a - b) ** 2) for a, b in zip(self.arrays, other.arrays, strict=True)))

    @property
    def size(self) -> int:
        return sum(array.size for array in self.arrays)


def sigmoid(o: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-o))


def outputs_gradient(settings: Settings, labels: np.ndarray, n: int):
    """The derivative of each image's loss in the network's outputs."""

    def binary(o):
        p, y = sigmoid(o[:, 0]), (labels == n).astype(float)
        gradient = np.zeros_like(o)
        gradient[:, 0] = 2 * (p - y) * p * (1 - p) if settings.squared_loss else p - y
        return gradient

    def among(o):
        p, y = softmax(o), np.eye(o.shape[1])[labels]
        if not settings.squared_loss:
            return p - y
        rows = []
        for p_i, y_i in zip(p, y, strict=True):
            jacobian = np.diag(p_i) - np.outer(p_i, p_i)
            rows.append(2 * jacobian @ (p_i - y_i))
        return np.array(rows)

    return among if settings.multi_class else binary


def trained(model: Model, settings: Settings, data: Data, task: Task, t: int) -> Model:
    """A copy of the expert after its gradient steps on the task."""
    x, labels = data.inputs(data.train[task.images]), data.train_labels[task.images]
    model = copy.deepcopy(model)
    fall = (1 + math.cos(math.pi * min((t - 1) / max(settings.T - 1, 1), 1))) / 2
    rate = settings.last_rate + (settings.first_rate - settings.last_rate) * fall
    first = [np.zeros_like(array) for array in model.arrays]
    second = [np.zeros_like(array) for array in model.arrays]
    for step, batch in enumerate(task.batches, start=1):
        gradients = model.gradient(x[batch], outputs_gradient(settings, labels[batch], task.n))
        for i, (array, gradient) in enumerate(zip(model.arrays, gradients, strict=True)):
            gradient = gradient + settings.decay * array
            if settings.adam:
                first[i] = 0.9 * first[i] + 0.1 * gradient
                second[i] = 0.999 * second[i] + 0.001 * gradient**2
                unbiased = first[i] / (1 - 0.9**step), second[i] / (1 - 0.999**step)
                gradient = unbiased[0] / (np.sqrt(unbiased[1]) + 1e-8)
            model.arrays[i] = array - rate * gradient
    return model


@dataclass
class Routed:
    """A past task and the expert that it went to."""

    task: Task
    expert: int
    learned: float = math.nan  # E_t(w_t)


@dataclass
class Experiment:
    """What both papers share: the gate's input, test errors, and what past tasks show of the experts."""

    settings: Settings
    data: Data
    models: list[Model]
    t: int = 0
    seen: list[np.ndarray] = field(default_factory=list)
    past: list[Routed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.theta = np.zeros((self.settings.M, self.data.train[0].size))

    def gate_input(self, task: Task) -> np.ndarray:
        image = (self.data.train[task.images] / 255.0).mean(axis=0).ravel()
        self.seen.append(image / np.linalg.norm(image))
        centre = np.mean(self.seen, axis=0) if self.settings.centre else 0.0
        return self.settings.scale * (self.seen[-1] - centre)

    def variance(self) -> float:
        return float(np.var(self.seen, axis=0).mean())

    def move(self, new: Model, old: Model) -> float:
        divisor = math.sqrt(new.size) if self.settings.per_parameter else 1.0
        return new.distance(old) / divisor

    def error_and_accuracy(self, model: Model, task: Task) -> tuple[float, float]:
        outputs = model.forward(self.data.inputs(self.data.test[task.tests]))[1]
        labels = self.data.test_labels[task.tests]
        errors, hits = [], []
        for o, label in zip(outputs, labels, strict=True):
            if self.settings.multi_class:
                wanted = np.zeros(len(o))
                if label >= 0:
                    wanted[label] = 1
                errors.append(np.sum((softmax(o) - wanted) ** 2))
                hits.append(np.argmax(o) == label)
            else:
                errors.append((sigmoid(o[0]) - (label == task.n)) ** 2)
                hits.append((o[0] > 0) == (label == task.n))
        return float(np.mean(errors)), float(np.mean(hits))

    def measures(self, models: list[Model]) -> tuple[float, float, float]:
        """F_t (15), G_t (16) and the accuracy, by a forward pass for every past task."""
        pairs = [self.error_and_accuracy(models[routed.expert], routed.task) for routed in self.past]
        if not pairs:
            return 0.0, 0.0, 0.0
        earlier = [pair[0] - routed.learned for pair, routed in zip(pairs, self.past, strict=True)][:-1]
        forgetting = sum(earlier) / len(earlier) if earlier else 0.0
        return forgetting, float(np.mean([error for error, _ in pairs])), float(np.mean([hit for _, hit in pairs]))


class Continual(Experiment):
    """Algorithm 1 of `continual`."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.loads = np.zeros(self.settings.M)
        self.flags = np.zeros(self.settings.M, bool)
        self.stopped = False

    def learn(self, task: Task) -> dict:
        settings, M = self.settings, self.settings.M
        self.t += 1
        g = self.gate_input(task)
        h = self.theta @ g
        pi = softmax(h)
        m_t = int(np.argmax(h + task.r[:M]))  # (1)
        before = self.models[m_t]
        after = trained(before, settings, self.data, task, self.t)
        self.models[m_t] = after
        locality = self.move(after, before)
        self.loads[m_t] += 1
        self.past.append(Routed(task, m_t, self.error_and_accuracy(after, task)[0]))

        if self.t > math.ceil(M / settings.eta):  # lines 6 to 10
            near = np.abs(h - h[m_t]) < settings.gamma
            self.flags = near | (self.flags & settings.accumulate)
        self.stopped = settings.terminate and (self.stopped or bool(np.all(self.flags)))
        if not self.stopped:  # lines 11 to 13, with (6)-(9)
            weight = locality**settings.power + settings.alpha * M * self.loads[m_t] / self.t / self.t
            self.theta = self.theta - settings.eta * weight * probability_gradient(pi, m_t, g)
        forgetting, generalization_error, accuracy = self.measures(self.models)
        return {
            "expert": m_t,
            "gate_outputs": h,
            "gate_probabilities": pi,
            "locality": locality,
            "drive": settings.eta * (g @ g) * locality,
            "variance": self.variance(),
            "error": self.past[-1].learned,
            "forgetting": forgetting,
            "generalization_error": generalization_error,
            "accuracy": accuracy,
            "terminated": self.stopped,
        }


@dataclass
class Work:
    """A task under way, or done: an event due at the start of round `ends`."""

    server: int
    ends: int
    model: Model  # once it is done
    cost: float
    pi: np.ndarray
    g: np.ndarray


class Edge(Experiment):
    """Algorithm 1 of `edge`."""

    execution_delay: np.ndarray

    def __post_init__(self) -> None:
        super().__post_init__()
        self.under_way: list[Work] = []
        self.due: list[tuple[int, Work]] = []  # gate steps, and the round that they are visible in
        self.dropped = 0

    def learn(self, task: Task) -> dict:
        settings, M = self.settings, self.settings.M
        self.t += 1
        self._take_gate_steps()
        for work in [work for work in self.under_way if work.ends == self.t]:
            self.models[work.server] = work.model
            self.under_way.remove(work)
            self.due.append((self.t + settings.gate_lag, work))
        self._take_gate_steps()

        busy = {work.server for work in self.under_way}
        g = self.gate_input(task)
        h = self.theta @ g
        scores = {
            "adaptive": h + task.r[:M],
            "nearest": -task.distance[:M],
            "fastest": -self.execution_delay[:M],
            "uniform": task.uniform[:M],
        }[settings.policy]
        idle = [m for m in range(M) if m not in busy]
        server, delay, locality = -1, 0, 0.0
        if idle:
            server = max(idle, key=lambda m: (scores[m], -m))
            delay = int(task.transfer_delay[server] + self.execution_delay[server])
            model = trained(self.models[server], settings, self.data, task, self.t)
            locality = self.move(model, self.models[server])
            self.under_way.append(Work(server, self.t + delay, model, locality, softmax(h), g))
            self.past.append(Routed(task, server))
        else:
            self.dropped += 1
        flushed = list(self.models)
        for work in self.under_way:
            flushed[work.server] = work.model
        _, generalization_error, accuracy = self.measures(self.models)
        return {
            "expert": server,
            "delay": delay,
            "num_busy": len(busy),
            "gate_outputs": h,
            "locality": locality,
            "drive": settings.eta * (g @ g) * locality,
            "variance": self.variance(),
            "generalization_error": generalization_error,
            "generalization_error_flushed": self.measures(flushed)[1],
            "accuracy": accuracy,
            "dropped": self.dropped,
        }

    def _take_gate_steps(self) -> None:
        """(13) of every step that is visible from this round on: stale outputs and inputs, (24)-(26)."""
        for when, work in [step for step in self.due if step[0] == self.t]:
            step = self.settings.eta * work.cost * probability_gradient(work.pi, work.server, work.g)
            self.theta = self.theta - step
            self.due.remove((when, work))
