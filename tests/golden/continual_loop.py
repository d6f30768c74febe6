"""Algorithm 1 of `continual` for one replicate in NumPy float64, from the paper alone; k > 1 is top-k routing."""

import math
from typing import NamedTuple

import numpy as np

RANK_TOLERANCE = 1e-12  # singular values of X below this fraction of the largest are zero


class Settings(NamedTuple):
    """What Algorithm 1 leaves to the user, in the paper's symbols."""

    M: int  # experts
    eta: float  # learning rate
    alpha: float  # weight of the auxiliary loss
    Gamma: float  # threshold of line 7
    k: int = 1  # experts trained in a round
    q: float = 1.0  # power of the norm in (6)
    terminate: bool = True  # False: line 12 runs in every round
    accumulate: bool = True  # False: a flag says only whether line 7 held in this round

    @property
    def T1(self):
        """Rounds of exploration, line 1."""
        return math.ceil(self.M / self.eta)


def settings_of(params):
    """The same from the package's parameters."""
    return Settings(
        M=int(params.num_experts),
        eta=params.learning_rate,
        alpha=params.balance_weight,
        Gamma=params.termination_threshold,
        k=int(params.num_active),
        q=params.locality_power,
        terminate=params.terminate,
        accumulate=params.accumulate_flags,
    )


class Outcome(NamedTuple):
    """What one round showed."""

    chosen: list[int]  # m_t first, then the other trained experts
    h: np.ndarray  # (M,) gate outputs before the update
    pi: np.ndarray  # (M,) softmax gate outputs before the update
    update_norm: float  # |w_t - w_{t-1}| over all trained experts together
    gradient: np.ndarray  # (M, d) of the task loss, whether or not it was applied


class Reference:
    """One run of Algorithm 1 on a pool of ground truths `truths` (N, d)."""

    def __init__(self, truths, settings):
        self.truths = np.asarray(truths, dtype=np.float64)
        self.settings = settings
        d = self.truths.shape[1]
        self.w = np.zeros((settings.M, d))  # experts
        self.theta = np.zeros((settings.M, d))  # gates
        self.t = 0
        self.flags = np.zeros(settings.M, dtype=bool)  # I^(m)
        self.terminated = False
        self.visits = np.zeros(settings.M, dtype=int)
        self.pi_sum = np.zeros(settings.M)  # sum over tau of pi_m 1{m trained in tau}
        self.arrived: list[np.ndarray] = []  # the truth of arrival tau; `truths` may change between rounds
        self.chosen: list[list[int]] = []  # experts trained in round tau
        self.models: list[np.ndarray] = []  # w_tau, all experts after round tau

    def learn(self, task, X, r, chosen=None):
        """Lines 5 to 13 on the arrival (n_t, X_t). `chosen`, if given, replaces the choice of (1)."""
        X = np.asarray(X, dtype=np.float64)
        self.t += 1
        h = gate_outputs(self.theta, X)
        pi = softmax(h)
        if chosen is None:
            chosen = route(h + np.asarray(r, dtype=np.float64), self.settings.k)

        w_before = self.w.copy()
        y = X.T @ self.truths[task]
        for m in chosen:
            self.w[m] = minimum_norm_update(w_before[m], X, y)

        self._raise_flags(h, chosen)
        gradient = self.gradient(X, w_before, chosen)
        if not (self.settings.terminate and (self.terminated or self.flags.all())):
            self.theta = self.theta - self.settings.eta * gradient
        else:
            self.terminated = True

        for m in chosen:
            self.visits[m] += 1
            self.pi_sum[m] += pi[m]
        self.arrived.append(self.truths[task].copy())
        self.chosen.append(list(chosen))
        self.models.append(self.w.copy())
        return Outcome(list(chosen), h, pi, math.sqrt(np.sum((self.w - w_before) ** 2)), gradient)

    def _raise_flags(self, h, chosen):
        """Lines 6 to 10."""
        if not self.settings.accumulate:
            self.flags[:] = False
        if self.t > self.settings.T1:
            for m in range(self.settings.M):
                for j in chosen:
                    if abs(h[m] - h[j]) < self.settings.Gamma:
                        self.flags[m] = True

    def gradient(self, X, w_before, chosen):
        """(M, d) gradient of (6) + (7) at the current gates, by (27) to (30)."""
        M, k, t = self.settings.M, self.settings.k, self.t
        pi = softmax(gate_outputs(self.theta, X))
        gradient = np.zeros_like(self.theta)
        for j in chosen:
            f = (self.visits[j] + 1) / (k * t)
            weight = np.linalg.norm(self.w[j] - w_before[j]) ** self.settings.q + self.settings.alpha * M * f / t
            gradient += weight * probability_gradient(pi, j, X.sum(axis=1))
        return gradient

    def error_of_arrival(self, tau, models):
        """E_tau of (14) under `models` (M, d), averaged over the experts that arrival tau (1-based) trained."""
        truth, chosen = self.arrived[tau - 1], self.chosen[tau - 1]
        return float(sum(np.sum((models[m] - truth) ** 2) for m in chosen) / len(chosen))

    def error(self):
        """E_t(w_t), (14)."""
        return self.error_of_arrival(self.t, self.models[self.t - 1])

    def forgetting(self):
        """F_t, (15); from round 2 on."""
        now = self.models[self.t - 1]
        return sum(
            self.error_of_arrival(tau, now) - self.error_of_arrival(tau, self.models[tau - 1])
            for tau in range(1, self.t)
        ) / (self.t - 1)

    def generalization_error(self):
        """G_t, (16)."""
        now = self.models[self.t - 1]
        return sum(self.error_of_arrival(tau, now) for tau in range(1, self.t + 1)) / self.t


def gate_outputs(theta, X):
    """h of (1) and (2), over all samples. Equal gates give equal bits, so that ties are ties."""
    return (theta * X.sum(axis=1)).sum(axis=1)


def softmax(h):
    """(2), along the last axis."""
    weights = np.exp(h - h.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


def probability_gradient(pi, j, gate_input):
    """(M, d) derivatives of pi_j in all gates: (28) in its own and (29) in the others; (25) and (26) of `edge`."""
    M = len(pi)
    own = pi[j] * sum(pi[i] for i in range(M) if i != j)
    return np.array([(own if m == j else -pi[j] * pi[m]) * gate_input for m in range(M)])


def route(scores, k):
    """(1): the k experts with the highest scores, best first; the lowest index wins a tie."""
    remaining = list(range(len(scores)))
    chosen = []
    for _ in range(k):
        best = max(remaining, key=lambda m: (scores[m], -m))
        chosen.append(best)
        remaining.remove(best)
    return chosen


def minimum_norm_update(w, X, y):
    """(4), whose solution is (5) where X'X can be inverted: the nearest model to w that fits X'w = y."""
    return w + np.linalg.pinv(X.T, rcond=RANK_TOLERANCE) @ (y - X.T @ w)
