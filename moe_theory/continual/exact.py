"""Exact expected metrics of a single expert (M = 1), where Proposition 4 of `continual` has an approximation.

**An arrival.** Task n has the truth w_n and the unit signal u_n = v_n / |v_n|. One column of X is along u_n, the others
are N(0, sigma_t^2 I), so X spans u_n and a uniformly random (s - 1)-dimensional subspace of u_n's complement, whose
projector is Pi_n = I - u_n u_n'. Strength, noise scale and the column's place drop out. The expert becomes
w+ = w_n + S (w - w_n), where S = I - P is the projector on a uniformly random (Haar) subspace of that complement, of
rank p = d - s in D = d - 1 dimensions.

**Moments of S.** Rotations of the complement leave S's law unchanged, hence E[S] = (p/D) Pi and, for symmetric A,
E[S A S] = k1 Pi A Pi + k2 tr(Pi A) Pi. The trace gives k1 + D k2 = p/D. For a unit x, x'Sx is Beta(p/2, (D-p)/2) with
second moment p(p+2)/(D(D+2)) and A = x x' gives k1 + k2 = E[(x'Sx)^2]. Therefore k2 = p(D-p) / (D(D-1)(D+2)) and
k1 = p(Dp+D-2) / (D(D-1)(D+2)); for p = D, S = Pi.

**Moments of w.** n_t is independent of the past, so with mu = E[w], Sigma = E[w w'] before the arrival, avg over n,
A_n = E[(w - w_n)(w - w_n)'] = Sigma - mu w_n' - w_n mu' + w_n w_n', B_n = E[S A_n S] and m_n = (p/D) Pi_n (mu - w_n):

    mu+    = avg(w_n + m_n)
    Sigma+ = avg(w_n w_n' + m_n w_n' + w_n m_n' + B_n)
    e_t    = E|w_t - w_{n_t}|^2 = avg tr B_n

**Metrics.** With W = avg |w_n|^2 and wbar = avg w_n, a task independent of w_t would have the error
g_t = tr Sigma_t + W - 2 mu_t.wbar. An earlier task is not independent; the covariances C_{t,tau} = Cov(w_t, w_{n_tau})
enter as J_t = sum_{tau<=t} C_{t,tau}. Given the past, w_t has the mean Sbar w_{t-1} + constant, Sbar = (p/D) avg Pi_n,
so C_{t,tau} = Sbar C_{t-1,tau} for tau < t, and C_{t,t} = avg(w_n + m_n - mu_t) w_n'. Hence

    J_t        = Sbar J_{t-1} + C_{t,t}
    E[G_t]     = g_t - 2 tr(J_t) / t
    (t-1)E[F_t] = (t-1) g_t - 2 tr(Sbar J_{t-1}) - sum_{tau<t} e_tau
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.continual import theory
from moe_theory.core.errors import InvalidParamsError, InvalidRunError
from moe_theory.core.tasks import Pool


class Exact(NamedTuple):
    """Expected metrics of a single expert; entry t - 1 belongs to round t."""

    forgetting: Float[np.ndarray, " T"]  # E[F_t] of (15); 0 for t = 1, where F is an empty mean
    generalization_error: Float[np.ndarray, " T"]  # E[G_t] of (16)
    error: Float[np.ndarray, " T"]  # e_t = E|w_t - w_{n_t}|^2, of the task just learned


def single_expert(pool: Pool, num_samples: int, num_rounds: int) -> Exact:
    """Exact expected metrics for M = 1 and the arrivals of Definition 1: one signal column, the others Gaussian.

    Tasks arrive uniformly; the expectation is over tasks and features, for this `pool`. Float64; O(T (N d^2 + d^3)).

    Source: derivation above, in place of Proposition 4 of `continual`.
    Raises: InvalidDimsError unless 1 <= num_samples < d; InvalidParamsError for a zero signal; InvalidRunError if
        num_rounds < 1.
    """
    truths, units = _validated(pool, num_samples, num_rounds)
    num_tasks, num_features = truths.shape
    dimension, rank = num_features - 1, num_features - num_samples
    shrinkage = rank / dimension
    mean_residual = shrinkage * (np.eye(num_features) - units.T @ units / num_tasks)  # Sbar
    truth_outers = _outer(truths, truths)

    mean = np.zeros(num_features)
    second_moment = np.zeros((num_features, num_features))
    covariance = np.zeros((num_features, num_features))  # J_t
    forgetting, generalization_error, error = np.zeros((3, num_rounds))
    for index in range(num_rounds):
        cross = _outer(np.broadcast_to(mean, truths.shape), truths)
        deviation_moments = second_moment - cross - cross.mT + truth_outers  # A_n
        residual_moments = _sandwich_moments(deviation_moments, units, rank, dimension)  # B_n
        deviations = mean - truths
        residuals = shrinkage * (deviations - _along(units, deviations))  # m_n
        kept = _outer(residuals, truths)
        mean = np.mean(truths + residuals, axis=0)
        second_moment = np.mean(truth_outers + kept + kept.mT + residual_moments, axis=0)
        own_covariance = (truths + residuals - mean).T @ truths / num_tasks  # C_{t,t}
        earlier_covariance = mean_residual @ covariance
        covariance = earlier_covariance + own_covariance

        fresh_error = np.trace(second_moment) + np.mean(np.sum(truths**2, axis=1)) - 2 * mean @ np.mean(truths, axis=0)
        error[index] = np.mean(np.trace(residual_moments, axis1=1, axis2=2))
        generalization_error[index] = fresh_error - 2 * np.trace(covariance) / (index + 1)
        if index > 0:
            excess = 2 * np.trace(earlier_covariance) + np.sum(error[:index])
            forgetting[index] = fresh_error - excess / index
    return Exact(forgetting, generalization_error, error)


def single_expert_gaussian(pool: Pool, num_samples: int, num_rounds: int) -> Exact:
    """Exact expected metrics for M = 1 if every column of X were Gaussian, the setting of Proposition 4's proof.

    Then Pi_n = I and D = d, and with r = 1 - s/d every error is a mean over the truths learned before:
    E|w_t - w_{n_tau}|^2 = r^t W + (1 - r^t - (1-r) r^(t-tau)) Delta. The last term, absent from (17) and (18), is the
    arrival of the task itself, at distance 0. Float64; O(T).

    Source: Lemma 16, (42), of `continual`, summed without dropping l = i.
    Raises: InvalidDimsError unless 1 <= num_samples < d; InvalidRunError if num_rounds < 1.
    """
    truths = np.asarray(pool.truths, np.float64)
    num_features = truths.shape[1]
    ratio = theory.overparameterization_ratio(num_features, num_samples)
    _require_rounds(num_rounds)
    pool_gaps = theory.gaps(pool._replace(truths=truths, clusters=np.asarray(pool.clusters)))
    norm, gap = pool_gaps.truth_norm, pool_gaps.task_gap
    rounds = np.arange(1, num_rounds + 1)
    powers = ratio**rounds
    power_sums = np.concatenate([[0.0], np.cumsum(powers)[:-1]])  # sum over tau < t
    mean_powers = power_sums / np.maximum(rounds - 1, 1)
    forgetting = (powers - mean_powers) * norm + (1 - ratio - powers + ratio * mean_powers) * gap
    forgetting[0] = 0.0
    return Exact(
        forgetting=forgetting,
        generalization_error=powers * norm + (1 - powers) * (1 - 1 / rounds) * gap,
        error=powers * norm + (ratio - powers) * gap,
    )


def _validated(pool, num_samples, num_rounds):
    truths = np.asarray(pool.truths, np.float64)
    signals = np.asarray(pool.signals, np.float64)
    theory.require_overparameterized(truths.shape[1], num_samples)
    _require_rounds(num_rounds)
    lengths = np.linalg.norm(signals, axis=1, keepdims=True)
    if not np.all(lengths > 0):
        raise InvalidParamsError(
            f"signals[{np.argmin(lengths)}] is zero, and must have a direction: its column would leave X'X singular. "
            "Give every task a non-zero signal."
        )
    return truths, signals / lengths


def _require_rounds(num_rounds):
    if num_rounds < 1:
        raise InvalidRunError(f"num_rounds={num_rounds} must be at least 1: rounds count from 1. Raise num_rounds.")


def _sandwich_moments(matrices, units, rank, dimension):
    """E[S A S] for each symmetric A of `matrices` (N, d, d) in the complement of each of `units` (N, d)."""
    own, spread = _projector_moments(rank, dimension)
    images = np.einsum("nij,nj->ni", matrices, units)
    along = np.sum(images * units, axis=1)
    crossed = _outer(images, units)
    unit_outers = _outer(units, units)
    projected = matrices - crossed - crossed.mT + along[:, None, None] * unit_outers
    traces = np.trace(matrices, axis1=1, axis2=2) - along
    complements = np.eye(units.shape[1]) - unit_outers
    return own * projected + spread * traces[:, None, None] * complements


def _projector_moments(rank, dimension):
    """k1 and k2 of a Haar projector."""
    if rank == dimension:  # the general form is 0/0 in one dimension
        return 1.0, 0.0
    denominator = dimension * (dimension - 1) * (dimension + 2)
    own = rank * (dimension * rank + dimension - 2) / denominator
    spread = rank * (dimension - rank) / denominator
    return own, spread


def _along(units, vectors):
    return np.sum(units * vectors, axis=1, keepdims=True) * units


def _outer(lefts, rights):
    return lefts[:, :, None] * rights[:, None, :]
