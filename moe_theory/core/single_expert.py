"""Exact expected metrics of one expert on random linear tasks, and of many experts on given routes.

**An arrival.** Its task n is uniform on N tasks. Its own ground truth is w = w_n + xi, with xi ~ N(0, tau^2 I), and its
unit signal is u. One column of X is along u, and the others are N(0, sigma_t^2 I). So X spans u and a uniformly random
(s - 1)-dimensional subspace of the complement of u, whose projector is Pi = I - u u'. The strength, the noise scale and
the signal's column do not matter. The expert becomes v+ = w + S (v - w). Here S = I - P projects onto a uniformly
random subspace of that complement, of rank p = d - s in D = d - 1 dimensions.

**Moments of S.** Rotations of the complement leave the distribution of S unchanged. So E[S] = (p/D) Pi, and E[S A S] =
k1 Pi A Pi + k2 tr(Pi A) Pi for symmetric A. The trace gives k1 + D k2 = p/D. For a unit x, x'Sx is Beta(p/2, (D-p)/2),
so E[(x'Sx)^2] = p(p+2)/(D(D+2)). With A = x x' this is k1 + k2. Therefore k2 = p(D-p) / (D(D-1)(D+2)) and
k1 = p(Dp+D-2) / (D(D-1)(D+2)). If p = D, then S = Pi.

**Moments of v.** Arrivals are independent of the past. Let mu = E[v] and Sigma = E[v v'] before the arrival, let E
average over the arrival, and let q = Pi w and U = E[u u']. Then

    mu+    = (p/D) (I - U) mu + E[w] - (p/D) E[q]
    Sigma+ = E[S Sigma S] + R(mu) + R(mu)' - E[S (mu w' + w mu') S] + E[(I-S) w w' (I-S)],   R(mu) = (p/D) E[Pi mu w']
    e_t    = E|S (v - w)|^2 = (p/D) (tr((I-U) Sigma) - 2 mu.E[q] + E|q|^2)

Each term is linear in Sigma or mu. The coefficients are moments of (w, u), which `Arrivals` contains.

**Metrics.** A task independent of v_t would have the error g_t = tr Sigma_t + E|w|^2 - 2 mu_t.E[w]. For an earlier task
the covariances C_{t,tau} = Cov(v_t, w_tau) enter through J_t = sum_{tau<=t} C_{t,tau}. Given the past, v_t has mean
Sbar v_{t-1} + constant with Sbar = (p/D) (I - U). So C_{t,tau} = Sbar C_{t-1,tau} for tau < t, and C_{t,t} = E[(I-S) w
w'] + R(mu_{t-1}) - mu_t E[w]'. Hence

    J_t        = Sbar J_{t-1} + C_{t,t}
    E[G_t]     = g_t - 2 tr(J_t) / t
    (t-1)E[F_t] = (t-1) g_t - 2 tr(Sbar J_{t-1}) - sum_{tau<t} e_tau

**Many experts on given routes.** Assume that features do not depend on each round's task and expert. An expert then
learns a fixed sequence of (w, u). With M = E[(v - w)(v - w)'] before an arrival,

    M+ = E[S M S] = k1 Pi M Pi + k2 tr(Pi M) Pi,   E[v+] - w = (p/D) Pi (E[v] - w)

and the expected error of a task l at this expert is tr E[v v'] + |w_l|^2 - 2 E[v].w_l. If V is the sum of the ground
truths of its L tasks so far, these errors add up to L tr E[v v'] - 2 E[v].V + sum |w_l|^2.

**Where the signal points.** In `fixed_signals`, u = u_n for every xi, and only the covariance of xi matters. In
`signals_along_truths`, u = w / |w|. Then q = 0, and w is symmetric about the axis e = w_n / |w_n|. So the second moment
of u has the form a e e' + b I, and higher moments have similar forms. Let c = e.w and l = |w_n|. Then (c / tau)^2 is a
chi-square variable with 1 + 2J degrees of freedom, where J ~ Poisson(l^2 / (2 tau^2)). Hence (e.u)^2 given J is
Beta(J + 1/2, D/2), and E[c h(c^2)] = l E[h] with 3 + 2J degrees of freedom in place of 1 + 2J. Let E average over J.
The moments of Beta variables give:

    u u'    : E[2J/(2J+d)] e e' + E[1/(2J+d)] I
    u u u u : E[4J(J-1)/k] eeee + E[2J/k] (e e I and its 6 orders) + E[1/k] (I I and its 3 orders), k = (2J+d)(2J+d+2)
    w u u   : l E[2J/(2J+d+2)] eee + l E[1/(2J+d+2)] (e I and its 3 orders)
"""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Shaped

from moe_theory.core import programs
from moe_theory.core.constraints import Count, NonNegative, require
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.linear import require_overparameterized
from moe_theory.core.numerics import Numbers

# Above this mean, a Poisson variable's relative deviation is below the rounding of the moments.
CERTAIN_POISSON_MEAN = 1e6


class Exact(NamedTuple):
    """Expected metrics. Entry t - 1 is for round t."""

    forgetting: Float[np.ndarray, "T *batch"]  # E[F_t], 0 for t = 1, where F is an empty mean
    generalization_error: Float[np.ndarray, "T *batch"]  # E[G_t], of the model after round t on all arrivals so far
    error: Float[np.ndarray, "T *batch"]  # e_t = E|v_t - w_t|^2, of the task just learned


class Arrivals(NamedTuple):
    """Moments of an arrival's own ground truth w and unit signal u, averaged over the tasks.

    Here Pi = I - u u' and q = Pi w. E[(u'Au) u u'] = sum_n axis_weights_n (e_n'A e_n) e_n e_n' + the terms of
    `signal_mixed` and `signal_free`.
    """

    truth_mean: Float[np.ndarray, " d"]  # E[w]
    truth_outer: Float[np.ndarray, "d d"]  # E[w w']
    truth_coupling: Float[np.ndarray, "d d d"]  # E[Pi_ij w_k]
    residual_mean: Float[np.ndarray, " d"]  # E[q]
    residual_truth: Float[np.ndarray, "d d"]  # E[q w']
    residual_outer: Float[np.ndarray, "d d"]  # E[q q']
    residual_spread: Float[np.ndarray, "d d"]  # E[|q|^2 Pi]
    residual_coupling: Float[np.ndarray, "d d d"]  # E[Pi_ij q_k]
    signal_outer: Float[np.ndarray, "d d"]  # E[u u']
    axes: Float[np.ndarray, "N d"]  # e_n
    axis_weights: Float[np.ndarray, " N"]
    signal_mixed: Float[np.ndarray, "d d"]  # Q in (tr QA) I + (tr A) Q + 2 QA + 2 AQ
    signal_free: Float[np.floating, ""] | float  # c in c (tr A) I + 2 c A


def single_expert(
    truths: Float[Numbers, "N d"],
    signals: Float[Numbers, "N d"],
    num_samples: int,
    num_rounds: int,
    own_spread: float = 0.0,
) -> Exact:
    """Return exact expected metrics for M = 1. One column is a signal of fixed direction, and the others are Gaussian.

    The expectation is over uniform tasks, features and the arrivals' own ground truths, with deviation `own_spread`
    (tau). The computation takes O(N d^3 + T (N d^2 + d^3)) time, in float64.

    Source: derivation above, from Definition 1 of `continual` and `edge`.
    """
    return learn_arrivals(fixed_signals(truths, signals, own_spread), num_samples, num_rounds)


def fixed_signals(truths: Float[Numbers, "N d"], signals: Float[Numbers, "N d"], own_spread: float = 0.0) -> Arrivals:
    """Return arrivals with the signal of their task, of any length, whatever their own ground truths."""
    truths = np.asarray(truths, np.float64)
    signals = np.asarray(signals, np.float64)
    require(NonNegative, own_spread=own_spread)
    units = _directions(signals)
    num_tasks, num_features = truths.shape
    variance = own_spread**2
    identity = np.eye(num_features)
    residuals = truths - np.sum(units * truths, axis=1, keepdims=True) * units
    signal_outer = units.T @ units / num_tasks
    complement = identity - signal_outer
    residual_squares = np.sum(residuals**2, axis=1)  # |q|^2
    return Arrivals(
        truth_mean=np.mean(truths, axis=0),
        truth_outer=truths.T @ truths / num_tasks + variance * identity,
        truth_coupling=_coupling(units, truths),
        residual_mean=np.mean(residuals, axis=0),
        residual_truth=residuals.T @ truths / num_tasks + variance * complement,
        residual_outer=residuals.T @ residuals / num_tasks + variance * complement,
        residual_spread=np.mean(residual_squares) * identity
        - (units.T * residual_squares) @ units / num_tasks
        + variance * (num_features - 1) * complement,
        residual_coupling=_coupling(units, residuals),
        signal_outer=signal_outer,
        axes=units,
        axis_weights=np.full(num_tasks, 1 / num_tasks),
        signal_mixed=np.zeros((num_features, num_features)),
        signal_free=0.0,
    )


def signals_along_truths(truths: Float[Numbers, "N d"], own_spread: float) -> Arrivals:
    """Return arrivals with signals along their own ground truths w_n + xi, where xi ~ N(0, `own_spread`^2 I)."""
    require(NonNegative, own_spread=own_spread)
    truths = np.asarray(truths, np.float64)
    if own_spread == 0:
        return fixed_signals(truths, truths)
    num_tasks, num_features = truths.shape
    identity = np.eye(num_features)
    lengths = np.linalg.norm(truths, axis=1)
    # The direction of a zero truth does not matter, because its J and the weights of its axis are 0.
    axes = truths / np.where(lengths > 0, lengths, 1.0)[:, None]
    # For each row of the table in the module's docstring, its coefficients from the left.
    second, fourth, cubic = _axial_moments(lengths, own_spread, num_features)
    axial_cubic = lengths * cubic[0] * axes.T / num_tasks  # of e e e, with a column for each task
    isotropic_cubic = lengths * cubic[1] @ axes / num_tasks  # of e I, added up over tasks
    mean = np.mean(truths, axis=0)
    residual_zeros = np.zeros((num_features,) * 3)  # q = 0. Its first matrix and vector serve for other shapes
    product = identity[:, :, None] * isotropic_cubic
    three_orders = product + product.swapaxes(1, 2) + product.transpose(2, 0, 1)  # A_ij x_k + A_ik x_j + A_jk x_i
    return Arrivals(
        truth_mean=mean,
        truth_outer=truths.T @ truths / num_tasks + own_spread**2 * identity,
        truth_coupling=identity[:, :, None] * mean - np.einsum("in,nj,nk->ijk", axial_cubic, axes, axes) - three_orders,
        residual_mean=residual_zeros[0, 0],
        residual_truth=residual_zeros[0],
        residual_outer=residual_zeros[0],
        residual_spread=residual_zeros[0],
        residual_coupling=residual_zeros,
        signal_outer=(axes.T * second[0]) @ axes / num_tasks + np.mean(second[1]) * identity,
        axes=axes,
        axis_weights=fourth[0] / num_tasks,
        signal_mixed=(axes.T * fourth[1]) @ axes / num_tasks,
        signal_free=np.mean(fourth[2]),
    )


def learn_arrivals(arrivals: Arrivals, num_samples: int, num_rounds: int) -> Exact:
    """Return exact expected metrics of one expert that learns independent `arrivals` with `num_samples` columns."""
    num_features = arrivals.truth_mean.size
    require_overparameterized(num_features, num_samples)
    require(Count, num_rounds=num_rounds)
    shrinkage, own_moment, trace_moment = _projection_moments(num_features, num_samples)
    complement = np.eye(num_features) - arrivals.signal_outer  # I - U = E[Pi]
    mean_residual = shrinkage * complement  # Sbar
    residual_map = shrinkage * arrivals.truth_coupling.swapaxes(1, 2)  # R
    half_drift = residual_map - own_moment * arrivals.residual_coupling.swapaxes(1, 2)
    drift = half_drift + half_drift.swapaxes(0, 1) - 2 * trace_moment * arrivals.residual_coupling
    learned_truth = arrivals.truth_outer - shrinkage * arrivals.residual_truth  # E[(I-S) w w']
    learned_outer = learned_truth - shrinkage * arrivals.residual_truth.T
    learned_outer = learned_outer + own_moment * arrivals.residual_outer + trace_moment * arrivals.residual_spread
    learned_mean = arrivals.truth_mean - shrinkage * arrivals.residual_mean
    truth_square = np.trace(arrivals.truth_outer)
    residual_square = np.trace(arrivals.residual_outer)

    mean = np.zeros(num_features)
    second_moment, covariance = np.zeros((2, num_features, num_features))  # Sigma, J_t
    states = [(mean, second_moment, covariance)]  # up to the last three
    metrics: list[tuple[Any, ...]] = []  # e_t, g_t, tr J_t, tr Sbar J_{t-1}
    while len(metrics) < num_rounds:
        deviation = np.vdot(complement, second_moment) - 2 * mean @ arrivals.residual_mean + residual_square
        sandwich = _mean_sandwich(arrivals, second_moment, own_moment, trace_moment)
        second_moment = sandwich + drift @ mean + learned_outer
        own_covariance = learned_truth + residual_map @ mean
        mean = mean_residual @ mean + learned_mean
        earlier_covariance = mean_residual @ covariance
        covariance = earlier_covariance + own_covariance - np.outer(mean, arrivals.truth_mean)
        independent_error = np.trace(second_moment) + truth_square - 2 * mean @ arrivals.truth_mean
        metrics.append((shrinkage * deviation, independent_error, np.trace(covariance), np.trace(earlier_covariance)))
        states = [*states[-2:], (mean, second_moment, covariance)]
        if all(map(np.array_equal, states[0], states[-1])):  # as two rounds before, so the last two rounds recur
            rounds_left = num_rounds - len(metrics)
            metrics += (metrics[-2:] * rounds_left)[:rounds_left]
    error, independent_error, covariance_trace, earlier_trace = np.transpose(metrics)
    rounds = np.arange(1, num_rounds + 1)
    num_earlier = np.maximum(rounds - 1, 1)  # round 1 has no earlier task, and its forgetting is set to 0
    excess = 2 * earlier_trace + [np.sum(error[:index]) for index in range(num_rounds)]
    forgetting = np.where(rounds > 1, independent_error - excess / num_earlier, 0.0)
    return Exact(forgetting, independent_error - 2 * covariance_trace / rounds, error)


def given_routes(
    truths: Float[Numbers, "N d B"],
    signals: Float[Numbers, "N d B"],
    num_samples: int,
    tasks: Int[np.ndarray, "T B"],
    experts: Int[np.ndarray, "T B"],
) -> Exact:
    """Return the metrics expected over features, given all tasks and experts. Features must not depend on them.

    Entries have shape (T, B). The computation takes O(T B d^2) time for any number of experts, in float64.
    Source: derivation above.
    """
    require(Count, num_rounds=len(tasks))
    return _all_metrics(truths, signals, num_samples, tasks, experts)


def given_arrivals(
    truths: Float[Numbers, "T d B"], signals: Float[Numbers, "T d B"], num_samples: int, experts: Int[np.ndarray, "T B"]
) -> Exact:
    """Return the metrics of `given_routes` if every arrival has its own ground truth and signal.

    A task with expert -1 does not count in any metric. Source: derivation above.
    """
    require(Count, num_rounds=len(truths))
    rounds = np.broadcast_to(np.arange(len(experts))[:, None], experts.shape)  # every round has its own row
    return _all_metrics(truths, signals, num_samples, tasks=rounds, experts=experts)


def _all_metrics(truths: Numbers, signals: Numbers, num_samples: int, tasks: np.ndarray, experts: np.ndarray) -> Exact:
    """Return the metrics if the arrival in round t of replicate b has row tasks[t, b] of its truths and signals."""
    truths = np.moveaxis(np.asarray(truths, np.float64), -1, 0)  # the replicate axis goes to the front
    signals = np.moveaxis(np.asarray(signals, np.float64), -1, 0)
    require_overparameterized(truths.shape[-1], num_samples)
    moments = _projection_moments(truths.shape[-1], num_samples)
    num_experts = max(int(np.max(experts)) + 1, 1)  # 1 if no task has an expert, because arrays need a row
    units = _directions(signals)
    with jax.enable_x64(True):
        errors = _learn_routes(truths, units, np.asarray(tasks), np.asarray(experts), moments, num_experts=num_experts)
    error, total_error = map(np.asarray, errors)
    num_served = np.cumsum(experts >= 0, axis=0)
    rise = total_error - np.cumsum(error, axis=0)
    forgetting = np.where(num_served > 1, rise / np.maximum(num_served - 1, 1), 0.0)
    return Exact(forgetting, total_error / np.maximum(num_served, 1), error)


@functools.partial(programs.jit, static_argnums=5)  # num_experts
def _learn_routes(
    truths: Float[Array, "B N d"],
    units: Float[Array, "B N d"],
    tasks: Int[Array, "T B"],
    experts: Int[Array, "T B"],
    moments: tuple[float, float, float],
    num_experts: int,
) -> tuple[Float[Array, "T B"], Float[Array, "T B"]]:
    """Return e_t, and after round t the sum of the errors of all tasks so far."""
    shrinkage, own_moment, trace_moment = moments
    num_replicates, _, num_features = truths.shape
    replicates = jnp.arange(truths.shape[0])
    models_shape = (num_replicates, num_experts, num_features)

    def inner(left: Array, right: Array) -> Array:
        return jnp.sum(left * right, axis=1, keepdims=True)

    def learn(carry: tuple[Array, ...], route: tuple[Array, Array]) -> tuple[tuple[Array, ...], tuple[Array, Array]]:
        # E[v], E[v v'], V, L and the summed errors (without |w_l|^2) of each expert, and the sum of |w_l|^2
        means, second_moments, truth_sums, loads, losses, truth_squares = carry
        task, expert = route
        is_served = expert >= 0
        place = (replicates, jnp.where(is_served, expert, num_experts))  # nothing is written beyond the last expert
        truth = truths[replicates, task]
        unit = units[replicates, task]
        mean = means[place]
        second = second_moments[place]
        # M u, u'M u and tr Pi M of M = E[(v - w)(v - w)']
        unit_truth = inner(unit, truth)
        unit_mean = inner(unit, mean)
        product = jnp.einsum("bij,bj->bi", second, unit) - truth * unit_mean - mean * unit_truth + truth * unit_truth
        quadratic = inner(unit, product)
        trace = jnp.trace(second, axis1=1, axis2=2)[:, None] + inner(truth, truth - 2 * mean) - quadratic
        # k1 Pi M Pi + k2 tr(Pi M) Pi and the other terms of E[v v'], as factors of w and u
        by_unit = own_moment * (quadratic / 2 * unit - product) - trace_moment / 2 * trace * unit
        updated = truth + shrinkage * (mean - truth - unit * (unit_mean - unit_truth))
        by_truth = updated - own_moment * mean + (own_moment - 1) / 2 * truth
        half = truth[:, :, None] * by_truth[:, None, :] + unit[:, :, None] * by_unit[:, None, :]
        isotropic = (trace_moment * trace)[:, :, None] * jnp.eye(num_features)
        second = own_moment * second + half + half.swapaxes(1, 2) + isotropic  # half of the terms are transposes
        means = means.at[place].set(updated)
        second_moments = second_moments.at[place].set(second)
        truth_sums = truth_sums.at[place].add(truth)
        loads = loads.at[place].add(1.0)
        model_square = jnp.trace(second, axis1=1, axis2=2)
        loss = loads[place] * model_square - 2 * jnp.sum(updated * truth_sums[place], axis=1)  # L tr E[v v'] - 2 E[v].V
        losses = losses.at[place].set(loss)
        truth_squares += jnp.where(is_served, jnp.sum(truth**2, axis=1), 0.0)
        error = jnp.where(is_served, (own_moment + trace_moment * (num_features - 1)) * trace[:, 0], 0.0)
        total_error = jnp.sum(losses, axis=1) + truth_squares
        return (means, second_moments, truth_sums, loads, losses, truth_squares), (error, total_error)

    per_expert = models_shape[:2]
    carry_shapes = (models_shape, (*models_shape, num_features), models_shape, per_expert, per_expert, num_replicates)
    _, errors = jax.lax.scan(learn, tuple(map(jnp.zeros, carry_shapes)), (tasks, experts))
    return errors


def _directions(signals: np.ndarray) -> np.ndarray:
    """Return the signals (..., N, d) with length 1. Raises: InvalidValueError for a signal of length 0."""
    lengths = np.linalg.norm(signals, axis=-1, keepdims=True)
    if not np.all(lengths > 0):
        task = np.argmin(lengths) % signals.shape[-2]  # `argmin` counts through all replicates
        raise InvalidValueError(
            f"signals[{task}] is zero, so X'X is singular. Give every task a signal.", argument="signals"
        )
    return signals / lengths


def _projection_moments(num_features: int, num_samples: int) -> tuple[float, float, float]:
    """Return p/D, k1 and k2 of the projection S in the module's docstring."""
    dimension = num_features - 1
    rank = num_features - num_samples
    if rank == dimension:  # in one dimension the general form is 0/0
        return 1.0, 1.0, 0.0
    denominator = dimension * (dimension - 1) * (dimension + 2)
    own_moment = rank * (dimension * rank + dimension - 2) / denominator
    return rank / dimension, own_moment, rank * (dimension - rank) / denominator


def _mean_sandwich(arrivals, matrix, own_moment, trace_moment):
    """Return E[S A S] for A = `matrix`, where the expectation is also over the arrival."""
    identity = np.eye(len(matrix))
    trace = np.trace(matrix)
    along = arrivals.signal_outer @ matrix
    projected_trace = trace - np.trace(along)
    axes = arrivals.axes
    mixed = arrivals.signal_mixed
    free = arrivals.signal_free
    weights = arrivals.axis_weights * np.sum((axes @ matrix) * axes, axis=1)
    product = mixed @ matrix
    isotropic = np.trace(product) + free * trace
    rotated = 2 * (product + product.T + free * matrix) + trace * mixed
    fourth = (axes.T * weights) @ axes + isotropic * identity + rotated  # E[(u'Au) u u']
    projected = matrix - along - along.T + fourth  # E[Pi A Pi]
    isotropic_part = projected_trace * identity - trace * arrivals.signal_outer + fourth  # E[tr(Pi A) Pi]
    return own_moment * projected + trace_moment * isotropic_part


def _coupling(units, vectors):
    """Return the mean of Pi_ij x_k over pairs of a unit signal and a vector x."""
    identity = np.eye(units.shape[1])
    mean = np.mean(vectors, axis=0)
    return identity[:, :, None] * mean - np.einsum("ni,nj,nk->ijk", units, units, vectors) / len(units)


def _axial_moments(lengths, own_spread, num_features):
    """Return the coefficients of u u', u u u u and, up to the factor l, w u u, for each length."""
    d = num_features

    def coefficients(j):  # for counts j (J,), the seven coefficients (7, J)
        pair = (2 * j + d) * (2 * j + d + 2)
        second = (2 * j / (2 * j + d), 1 / (2 * j + d))
        fourth = (4 * j * (j - 1) / pair, 2 * j / pair, 1 / pair)
        cubic = (2 * j / (2 * j + d + 2), 1 / (2 * j + d + 2))
        return np.stack([*second, *fourth, *cubic])

    with np.errstate(over="ignore"):
        means = np.minimum((lengths / own_spread) ** 2 / 2, 1e100)  # the square of an infinite mean would give NaN
    moments = np.transpose([_poisson_mean(mean, coefficients) for mean in means])
    return moments[:2], moments[2:5], moments[5:]


def _poisson_mean(
    mean: float, function: Callable[[Float[np.ndarray, " J"]], Float[np.ndarray, "K J"]]
) -> Shaped[np.ndarray, " K"]:
    if mean > CERTAIN_POISSON_MEAN:
        return function(np.array([mean]))[:, 0]
    from scipy import special  # takes longer to import than the paper

    reach = 10 * np.sqrt(mean) + 40  # the probability of counts further from the mean is below rounding
    counts = np.arange(np.floor(max(mean - reach, 0)), np.ceil(mean + reach) + 1)
    weights = np.exp(special.xlogy(counts, mean) - special.gammaln(counts + 1) - mean)
    return function(counts) @ (weights / np.sum(weights))
