"""Pools on which linear experts and their gates are solved exactly; proofs in `docs/pages/derivations/solvable.md`.

They are inside Definition 1 of `continual` and `edge` and no readings of either: no claim is judged by them. One
arrival of task n moves a model along the unit signal v_n alone, so that a model is a sum of what it has met, and the
gates follow it. `python examples/solvable.py` runs three experts on two orthogonal truths: in the end each has both.
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

import moe_theory as mt
from moe_theory import continual, edge
from moe_theory.continual.params import in_order
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.system import System
from moe_theory.core.tasks import INDEPENDENT, Pool


class Solvable(NamedTuple):
    """A pool of unit signals, and how far it lets models go."""

    pool: Pool
    scale: float  # sigma_0
    reach: float  # A: no move is longer, and no two models differ by more along a signal
    unseen: float = 0.0  # a, the length of what all truths have off every signal


class SolvableCell(NamedTuple):
    """Arguments of `simulate_batch` for a solvable pool."""

    system: System
    params: Any  # the paper's `Params` and `Dims`
    dims: Any


class Errors(NamedTuple):
    """Expected metrics where every task goes to any expert alike; entry t - 1 belongs to round t."""

    forgetting: Float[np.ndarray, " T"]  # E[F_t]; 0 for t = 1, where F is an empty mean
    generalization_error: Float[np.ndarray, " T"]  # E[G_t]


def opposite_truths(scale: float = 0.01, num_features: int = 4) -> Solvable:
    """Two opposite truths w = +-sigma_0 e with the signals v = +-e.

    Theorem. A model is the last truth that it met, whatever s, beta, the noise, routes and delays are: each arrival's
    samples span e, and models and truths lie on its line. An earlier task's error is 0 or 4 sigma_0^2.

    Raises: InvalidValueError unless 0 < scale < 1; InvalidValueError for fewer features than 2.
    """
    return simplex(2, scale, num_features)


def simplex(num_tasks: int = 3, scale: float = 0.01, num_features: int = 4) -> Solvable:
    """Truths w_n = sigma_0 v_n, where the signals v_n are the corners of a simplex: three are at 120 degrees.

    Theorem, for s = 1. Over the next task, the mean length of an expert's move is sigma_0, whatever it has learned: the
    signals add up to 0, so do a model's projections on them, and none of these exceeds sigma_0. No model ever settles.

    Raises: InvalidValueError unless 0 < scale < 1; InvalidValueError for fewer features than tasks, or tasks than 2.
    """
    _check(num_tasks, scale, num_features)
    corners = np.eye(num_tasks) - 1 / num_tasks
    basis, triangle = np.linalg.qr(corners[:-1].T)  # of the space that corners span, of N - 1 dimensions
    signals = np.zeros((num_tasks, num_features))
    signals[:, : num_tasks - 1] = corners @ basis * np.sign(np.diag(triangle))
    signals /= np.linalg.norm(signals, axis=1, keepdims=True)
    return Solvable(_pool(scale * signals, signals), scale, num_tasks * scale)


def orthonormal(num_tasks: int = 3, scale: float = 0.01, num_features: int | None = None) -> Solvable:
    """Truths w_n = sigma_0 v_n, where the signals v_n are orthonormal.

    Theorem, for s = 1. A model is the sum of the truths that it has met. An expert that has not had task n yet has the
    largest gate output for n, so that an arrival of n that finds it idle reaches it with chance 1/M or more, and every
    expert meets every task: G_T ends at (N - 1) sigma_0^2, as with one expert, whatever M, alpha, lambda > 0, Gamma,
    eta, beta and delays are.

    Args:
        num_features: d; N + 1 unless given.
    Raises: InvalidValueError unless 0 < scale < 1; InvalidValueError for fewer features than tasks, or tasks than 2.
    """
    num_features = num_tasks + 1 if num_features is None else num_features
    _check(num_tasks, scale, num_features)
    signals = np.eye(num_tasks, num_features)
    return Solvable(_pool(scale * signals, signals), scale, scale)


def unseen_part(num_tasks: int = 3, scale: float = 0.01, unseen: float = 1.0) -> Solvable:
    """Truths w_n = a e + sigma_0 v_n with orthonormal signals v_n and e off all of them.

    Theorem, for s = 1. No expert moves along e, so that every error is a^2 and that of `orthonormal`, on every path.

    Raises: InvalidValueError unless 0 < scale < 1 and the part is finite; InvalidValueError for fewer tasks than 2.
    """
    if not math.isfinite(unseen):
        raise InvalidValueError(
            f"unseen={unseen} must be finite: it is the length of a part of each truth. Change it.", argument="unseen"
        )
    pool, *_ = orthonormal(num_tasks, scale)
    truths = pool.truths + unseen * np.eye(num_tasks + 1)[-1]
    return Solvable(_pool(truths, np.asarray(pool.signals)), scale, scale, abs(unseen))


def many_tasks(scale: float = 0.01, times: float = 4.0) -> Solvable:
    """`orthonormal` with many times more tasks than the 1/eta arrivals that an expert has up to T1; eta = sigma_0^0.5.

    Theorem, for s = 1, alpha = 0 and sigma_0 < 1/16. While a task has reached no more than half of the experts, an
    expert's favourite is, of the tasks that it has not met, the one with the largest output among those who have not;
    of these outputs there is one order for all. So no more tasks have experts than one expert has met, and one more.

    Args:
        times: N over 1/eta.
    Raises: as `orthonormal`; InvalidValueError where `times` leaves less than two tasks.
    """
    num_tasks = math.ceil(times / scale**0.5 - 1e-9) if 0 < scale < 1 and math.isfinite(times) else 0
    if num_tasks < 2:
        raise InvalidValueError(
            f"scale={scale} and times={times} leave {num_tasks} tasks: two are the least. Raise them.", argument="scale"
        )
    return orthonormal(num_tasks, scale)


def last_truths(
    solvable: Solvable, tasks: Int[np.ndarray, " T"], routes: Int[np.ndarray, " T"], num_experts: int
) -> Float[np.ndarray, "M d"]:
    """The models after a history of `opposite_truths`: the truth that each expert met last, 0 before its first."""
    models = np.zeros((num_experts, solvable.pool.truths.shape[1]))
    for task, route in zip(tasks, routes, strict=True):
        models[route] = solvable.pool.truths[task]
    return models


def truths_met(
    solvable: Solvable, tasks: Int[np.ndarray, " T"], routes: Int[np.ndarray, " T"], num_experts: int
) -> Float[np.ndarray, "M d"]:
    """The models after a history with orthonormal signals: the sum of what signals show of the truths each has met."""
    met = np.zeros((num_experts, len(solvable.pool.truths)))
    met[routes, tasks] = 1
    return met @ (solvable.scale * np.asarray(solvable.pool.signals))


def telescoped_gates(models: Float[np.ndarray, "M d *batch"], learning_rate: float) -> Float[np.ndarray, "M d *batch"]:
    """The gates that go with such models, -(eta/M)(w_m - mean w), up to `gate_remainder`: minus the models."""
    return -learning_rate / len(models) * (models - models.mean(axis=0))


def gate_remainder(
    solvable: Solvable, num_experts: int, learning_rate: float, num_rounds: int, balance_weight: float = 0.0
) -> float:
    """Largest distance of gates from `telescoped_gates` after t rounds: 8 A^2 (eta/M)^2 t + 2 eta alpha (1 + ln t).

    A is the pool's `reach`, and t counts only rounds in which a model moves: N M at most where signals are orthonormal.
    Infinite where the proof ends: beyond half of eta A / M, or where 4 eta A exceeds M.
    """
    step = learning_rate * solvable.reach / num_experts
    bound = 8 * step**2 * num_rounds + 2 * learning_rate * balance_weight * (1 + math.log(max(num_rounds, 1)))
    return bound if 4 * step <= 1 and bound <= step / 2 else math.inf


def chance_deviation(solvable: Solvable, num_experts: int, learning_rate: float, perturbation_scale: float) -> float:
    """2 eta A / (lambda M): how far a task's chance of reaching an expert is at most from 1/M, as long as outputs are
    those of `telescoped_gates` up to a finite `gate_remainder`.

    Raises: InvalidValueError unless `perturbation_scale` is positive.
    """
    if not perturbation_scale > 0:
        raise InvalidValueError(
            f"perturbation_scale={perturbation_scale} must be positive: it divides. Raise it.",
            argument="perturbation_scale",
        )
    return 2 * learning_rate * solvable.reach / (perturbation_scale * num_experts)


def unmet_probability(num_tasks: int, num_experts: int, num_rounds: int) -> float:
    """An upper bound on the chance that after t rounds of `orthonormal` some expert has not met some task.

    Each of the N M pairs is met in a round with chance 1/(N M) or more.
    """
    pairs = num_tasks * num_experts
    return min(pairs * math.exp(num_rounds * math.log1p(-1 / pairs)), 1.0) if pairs > 1 else float(num_rounds < 1)


def limit_error(solvable: Solvable) -> float:
    """G_T once every expert has met every task of orthonormal signals: (N - 1) sigma_0^2 + a^2, whatever M is."""
    return (len(solvable.pool.truths) - 1) * solvable.scale**2 + solvable.unseen**2


def opposite_errors(scale: float, num_experts: int, num_rounds: int) -> Errors:
    """E[F_t] and E[G_t] of `opposite_truths` where every task goes to any of M experts alike; M = 1 is one expert.

    An earlier task's error is 4 sigma_0^2 if its expert's last task is unlike it: half of the time, once there is one.
    """
    rounds = np.arange(1, num_rounds + 1)
    later = np.cumsum((1 - 1 / num_experts) ** (rounds - 1.0))  # over tau <= t, of the chance of none after tau
    forgotten = rounds - later
    return Errors(*(2 * scale**2 * forgotten / over for over in (np.maximum(rounds - 1, 1), rounds)))


def orthonormal_errors(solvable: Solvable, num_experts: int, num_rounds: int) -> Errors:
    """E[F_t] and E[G_t] of orthonormal signals where every task goes to any of M experts alike; M = 1 is one expert.

    An error is sigma_0^2 for every other task that the expert has met, and a^2.
    """
    num_tasks = len(solvable.pool.truths)
    rounds = np.arange(1, num_rounds + 1)
    unmet = (1 - 1 / (num_tasks * num_experts)) ** (rounds - 1.0)  # another pair, in the other rounds
    others = (num_tasks - 1) * solvable.scale**2
    earlier = (np.cumsum(unmet) - unmet) / np.maximum(rounds - 1, 1)  # the mean over tau < t
    return Errors(others * np.where(rounds > 1, earlier - unmet, 0), others * (1 - unmet) + solvable.unseen**2)


def _check(num_tasks: int, scale: float, num_features: int) -> None:
    if not 0 < scale < 1:
        raise InvalidValueError(f"scale={scale} must be in (0, 1), as sigma_0 is. Change it.", argument="scale")
    if num_tasks < 2:
        raise InvalidValueError(
            f"num_tasks={num_tasks} must be at least 2: a router has nothing to learn from one task. Raise it.",
            argument="num_tasks",
        )
    if num_features < num_tasks:
        raise InvalidValueError(
            f"num_features={num_features} must be at least num_tasks={num_tasks}. Raise num_features.",
            argument="num_features",
        )


def _pool(truths: Float[np.ndarray, "N d"], signals: Float[np.ndarray, "N d"]) -> Pool:
    return Pool(truths, signals, np.arange(len(truths)))


# The instances by name; each function makes the pool, and says which theorem solves it.
INSTANCES = {
    "opposite-truths": opposite_truths,
    "three-directions": simplex,
    "orthonormal-one-sample": orthonormal,
    "unseen-part": unseen_part,
    "many-tasks": many_tasks,
}


def continual_cell(solvable: Solvable, num_experts: int, num_samples: int = 1, **choices: Any) -> SolvableCell:
    """Algorithm 1 on a pool of `INSTANCES`, at the paper's orders in its sigma_0, without its auxiliary loss.

    Args:
        num_samples: s, the signal included.
        choices: any of `Params`; unless given eta = sigma_0^0.5, lambda = Gamma = sigma_0^1.25, alpha = 0 and beta = 1.
    Raises: as `on_pool`; InvalidValueError for a parameter that does not exist.
    """
    num_tasks, num_features = solvable.pool.truths.shape
    dims = continual.Dims(num_experts, num_tasks, num_features, num_samples)
    scale = solvable.scale
    orders = continual.Params(
        num_experts=num_experts,
        **in_order(scale) | {"balance_weight": 0.0, "cluster_spread": 0.0},
        truth_scale=scale,
        signal_scale=1 / scale,
        noise_scale=scale,
        num_clusters=num_tasks,
    )
    params = continual.Reading("solvable", "a pool that is solved exactly", orders).params(**choices)
    return SolvableCell(continual.on_pool(dims, solvable.pool), params, dims)


def edge_cell(
    solvable: Solvable,
    num_experts: int,
    num_samples: int = 1,
    execution_delay: Int[np.ndarray, " M"] | None = None,
    policy: edge.policies.Policy = edge.policies.adaptive,
    **choices: Any,
) -> SolvableCell:
    """Algorithm 1 on a pool of `INSTANCES`, a kind of tasks to a truth, none of them differing inside a kind.

    Args:
        num_samples: s, the signal included.
        execution_delay: d^ex of each server, in rounds; 1 unless given. Transfers take up to 2 rounds.
        policy: from `policies`, or your own.
        choices: any of `Params`; unless given eta = sigma_0^0.5, r is uniform on (0, sigma_0^1.25) and beta = 1.
    Raises: InvalidValueError for delays or samples that do not fit; InvalidValueError for parameters that are outside
        their range or do not exist, and delays that are no whole rounds.
    """
    num_tasks, num_features = solvable.pool.truths.shape
    dims = edge.Dims(num_experts, num_tasks, num_features, num_samples)
    delays = np.ones(num_experts, int) if execution_delay is None else np.asarray(execution_delay)
    orders = edge.Params(
        num_experts=num_experts,
        learning_rate=solvable.scale**0.5,
        perturbation_scale=solvable.scale**1.25,
        truth_scale=solvable.scale,
        cluster_spread=0.0,
        signal_law=INDEPENDENT,  # those of the pool
        noise_scale=solvable.scale,
        max_transfer_delay=2,
        max_execution_delay=int(delays.max()),
    )
    params = edge.Reading("solvable", "a pool that is solved exactly", orders).params(**choices)
    return SolvableCell(edge.on_pool(dims, solvable.pool, delays, policy), params, dims)


if __name__ == "__main__":
    system, params, _ = continual_cell(orthonormal(2), num_experts=3)
    state, _ = mt.simulate(system, mt.root_key(0), params, num_rounds=100)
    print(np.round(100 * np.asarray(state.experts)))
