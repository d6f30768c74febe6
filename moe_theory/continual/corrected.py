"""Corrections of false or approximate statements of `continual`. InvalidValueError refuses arguments out of range."""

import math
from typing import Annotated

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float, Int, Real

from moe_theory.continual import theory
from moe_theory.core import linear
from moe_theory.core import single_expert as recursion
from moe_theory.core.constraints import AtMost, Features, Size, Whole, Within, checked
from moe_theory.core.critical import critical_drive as critical_drive
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.linear import one_expert_a_round, power, power_complement, power_drop_sum
from moe_theory.core.numerics import Numbers, array_namespace
from moe_theory.core.single_expert import Exact as Exact
from moe_theory.core.single_expert import _projection_moments
from moe_theory.core.tasks import Pool

__all__ = [
    "Exact", "blind_limit", "coverage_probability", "critical_drive", "given_routes", "lemma_2", "lemma_11", "lemma_16",
    "random_routing", "route_tilt", "routing_probabilities", "single_expert", "single_expert_gaussian", "theorem_1",
    "theorem_2",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports

Perturbation = Annotated[float, Within(low=0, open_low=True, why="without a perturbation routes are fixed")]


@checked
def single_expert(pool: Pool, num_samples: Size, num_rounds: Size) -> Exact:
    """Return exact expected metrics for M = 1 and arrivals of Definition 1: one signal column and Gaussian others.

    The expectation is over uniform tasks and features. Float64, O(N d^3 + T (N d^2 + d^3)).

    Source: `core/single_expert.py`. Replaces Proposition 4, (17) and (18), of `continual`.
    Raises: InvalidValueError unless 1 <= num_samples < d and num_rounds >= 1, or for a zero signal.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import Pool, exact
        >>> pool = Pool(truths=np.eye(1, 4), signals=np.eye(1, 4), clusters=np.arange(1))
        >>> metrics = exact.single_expert(pool, num_samples=2, num_rounds=3)
        >>> metrics.error.shape, np.allclose(metrics.error, 0)
        ((3,), True)
    """
    return recursion.single_expert(pool.truths, pool.signals, num_samples, num_rounds)


@checked
def single_expert_gaussian(pool: Pool, num_samples: Size, num_rounds: Size) -> Exact:
    """Return exact expected metrics for M = 1 if all of X were Gaussian, as in Proposition 4's proof.

    Then Pi_n = I and D = d. With r = 1 - s/d every error is a mean over the tasks learned:
    E|w_t - w_{n_tau}|^2 = r^t W + (1 - r^t - (1-r) r^(t-tau)) Delta. Float64, O(T).

    Source: Lemma 16, (42), of `continual`, summed including the term l = i.
    Raises: InvalidValueError unless 1 <= num_samples < d and num_rounds >= 1.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import Pool, exact
        >>> pool = Pool(truths=np.eye(1, 4), signals=np.eye(1, 4), clusters=np.arange(1))
        >>> exact.single_expert_gaussian(pool, num_samples=2, num_rounds=3).error.tolist()
        [0.5, 0.25, 0.125]
    """
    truths = np.asarray(pool.truths, np.float64)
    num_features = truths.shape[1]
    ratio = linear.overparameterization_ratio(num_features, num_samples)
    pool_gaps = linear.gaps(pool._replace(truths=truths, clusters=np.asarray(pool.clusters)))
    rounds = np.arange(1, num_rounds + 1)
    powers = ratio**rounds
    error = powers * pool_gaps.truth_norm + (ratio - powers) * pool_gaps.task_gap
    return Exact(*map(np.asarray, theorem_1(pool_gaps, ratio, rounds[:, None])), error=error)


@checked
def given_routes(
    pool: Pool,
    num_samples: Size,
    tasks: Annotated[Int[np.ndarray, "T B"], Whole(0)],
    experts: Annotated[Int[np.ndarray, "T B"], Whole(0)],
) -> Exact:
    """Return expected metrics of M experts along routes (T, B): each round's task and expert.

    `pool` holds the pools of a batch, with replicates on the last axis. Each expert has the moments of a single expert
    that learns its tasks, with one signal column and Gaussian others. They are exact if routes depend on features only
    through the task, as under a large lambda. Under Algorithm 1 the noise moves the mean by about a percent at Fig. 2's
    sizes. Float64, O(T B d^2) for any M.

    Source: `core/single_expert.py`. Replaces Theorems 1 and 2, (19) to (22), and Lemma 16, (42), of `continual`.
    Raises: InvalidValueError unless 1 <= num_samples < d, for a zero signal, without rounds, or for negative tasks or
        experts.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import Pool, corrected
        >>> truths = np.eye(2, 4)[:, :, None]
        >>> pool, routes = Pool(truths, truths, np.arange(2)[:, None]), np.array([[0], [1], [0]])
        >>> corrected.given_routes(pool, num_samples=2, tasks=routes, experts=routes).generalization_error.ravel()
        array([0., 0., 0.])
    """
    return recursion.given_routes(pool.truths, pool.signals, num_samples, tasks=tasks, experts=experts)


@checked
def route_tilt(
    gates: Annotated[Float[ArrayLike, "M d"], Within()],
    noise_scale: Annotated[float, Within(low=0)],
    perturbation_scale: Perturbation,
    num_samples: Size,
) -> float:
    """Return a bound on how much the features' span can change a route's distribution, with fixed gates.

    Knowing the span changes the route's distribution by at most M^2 (s - 1) (sigma_t / lambda)^2 sum_m |theta_m|^2, in
    total variation and in the mean over features. The bound is capped at 1. It also bounds the error of `given_routes`
    in a round. It has no term of first order in sigma_t.

    Source: docs/pages/derivations/loads.md. See Theorems 1 and 2 of `continual`.
    Raises: InvalidValueError unless perturbation_scale > 0 and the gates add up to 0 (Lemma 4).

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import corrected
        >>> round(corrected.route_tilt(0.01 * np.array([[1.0, 0.0], [-1.0, 0.0]]), 0.1, 0.5, num_samples=2), 8)
        3.2e-05
    """
    theta = np.asarray(gates, np.float64)
    if np.abs(theta.sum(axis=0)).max() > 1e-4 * np.abs(theta).max():  # a bound far above float32's rounding
        raise InvalidValueError(
            "gates must add up to 0 over experts, as they do by Lemma 4. Subtract their mean.", argument="gates"
        )
    squares = float(np.sum(theta**2)) * (num_samples - 1) * (noise_scale / perturbation_scale) ** 2
    return min(1.0, len(theta) ** 2 * squares)


@checked
def theorem_1(pool_gaps: theory.Gaps, ratio: linear.Ratio, loads: linear.Loads) -> theory.Bound:
    """Return expected metrics after t = sum_m L_m rounds, given the loads L_m: (19) and (20) as equalities.

    Routes depend on neither tasks nor features, and all columns are Gaussian. Let W and Delta be the means of |w_n|^2
    and |w_n - w_n'|^2 over tasks. Then an expert with L arrivals adds

        t E[G_t]:      L r^L W + (1 - r^L) (L - 1) Delta
        (t-1) E[F_t]:  S (Delta - W) + [(1 - r) (L - 1) - r + r^L] Delta,   S = sum_{l<=L} (r^l - r^L).

    The factor L - 1 in place of L, and the bracket, come from the task's own term, which (19) and (20) leave out. If
    each expert has its own set of tasks, Delta is the gap within a set.

    Source: replaces Theorem 1, (19) and (20), of `continual`. Derivation on the site's page on loads.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import corrected, theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=2.0, within_gap=0.0, across_gap=2.0)
        >>> float(corrected.theorem_1(gaps, 0.5, loads=np.array([1, 1])).generalization_error)  # r |w|^2, each its own
        0.5
    """
    xp = array_namespace(*pool_gaps, ratio, loads)
    norm = pool_gaps.truth_norm
    gap = pool_gaps.task_gap
    unlearned = power(ratio, loads)
    rounds = xp.sum(loads, axis=-1)
    last_term = (1 - ratio) * (loads - 1) - ratio + unlearned  # 0 without arrivals
    forgotten = xp.sum(power_drop_sum(ratio, loads), axis=-1) * (gap - norm) + xp.sum(last_term, axis=-1) * gap
    confused = xp.sum(power_complement(ratio, loads) * (loads - 1), axis=-1)
    return theory.Bound(
        forgetting=forgotten / xp.maximum(rounds - 1, 1),
        generalization_error=(xp.sum(loads * unlearned, axis=-1) * norm + confused * gap) / xp.maximum(rounds, 1),
    )


@checked
def blind_limit(
    num_tasks: Annotated[int, Whole(1), AtMost("num_features", "truths are orthonormal")],
    num_features: Features,
    num_samples: Size,
) -> float:
    """Return lim E[G_t] in units of |w|^2 for orthonormal w_n along signals, if routing ignores tasks.

    The limit holds for any M once each expert has learned many tasks. With D = d - 1, p = d - s, c = p/D, b = 1 - 1/N
    it is 2 + c R - 2 m, m = (1/N)/(1 - b c), R = b (1 - k1)/((1 - b k1)(1 - c) + b k2). The mean task gap is 2 b.

    Source: docs/pages/derivations/loads.md. See Theorems 1 and 2 of `continual`.
    Raises: InvalidValueError unless 1 <= num_samples < d and num_tasks <= d.

    Examples:
        >>> from moe_theory.continual import corrected
        >>> corrected.blind_limit(num_tasks=3, num_features=5, num_samples=1)
        2.0
    """
    linear.require_overparameterized(num_features, num_samples)
    shrinkage, own_moment, spread = _projection_moments(num_features, num_samples)  # c, k1 and k2
    other_share = 1 - 1 / num_tasks
    if num_samples == 1:
        return float(num_tasks - 1)
    denominator = (1 - other_share * own_moment) * (1 - shrinkage) + other_share * spread
    hidden = other_share * (1 - own_moment) / denominator  # R
    return 2 + shrinkage * hidden - 2 / num_tasks / (1 - other_share * shrinkage)


@checked
def random_routing(
    pool_gaps: theory.Gaps,
    ratio: linear.Ratio,
    num_experts: Annotated[Real[ArrayLike, "*batch"], Whole(1)],
    rounds: linear.Rounds,
) -> theory.Bound:
    """Return the mean of `theorem_1` over loads, if each task goes to each of M experts with equal probability.

    In every round the mean of r^L falls by the factor q = 1 - (1 - r)/M. With it,

        E[G_t] = Delta + r q^(t-1) (W - Delta) - M Delta (1 - q^t)/t
        (t-1) E[F_t] = [(1 - r) (t - 1) - M q (1 - q^(t-1))] Delta - r (W - Delta) D,
        D = M (1 - q^(t-1))/(1 - r) - (t - 1) q^(t-1).

    Source: replaces Theorem 1, (19) and (20), of `continual` for task-independent routing. Derivation on the site's
    page on loads.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import corrected, theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=2.0, within_gap=0.0, across_gap=2.0)
        >>> random, given = corrected.random_routing(gaps, 0.5, 1, 7), corrected.theorem_1(gaps, 0.5, np.array([7]))
        >>> np.allclose(random, given)
        True
    """
    xp = array_namespace(*pool_gaps, ratio, num_experts, rounds)
    norm = pool_gaps.truth_norm
    gap = pool_gaps.task_gap
    factor = 1 - (1 - ratio) / num_experts  # q
    before = rounds - 1  # t - 1
    remaining = power(factor, before)
    lost = power_complement(factor, before)
    drops = num_experts * lost / (1 - ratio) - before * remaining  # sum over tau < t of q^(tau-1) - q^(t-1)
    forgotten = ((1 - ratio) * before - num_experts * factor * lost) * gap - ratio * (norm - gap) * drops
    own_term = num_experts * gap * power_complement(factor, rounds) / rounds
    return theory.Bound(
        forgetting=forgotten / xp.maximum(before, 1),
        generalization_error=gap + ratio * remaining * (norm - gap) - own_term,
    )


@checked
def theorem_2(
    pool_gaps: theory.Gaps,
    ratio: linear.Ratio,
    loads: linear.Loads,
    explored_loads: linear.ExploredLoads,
    round: linear.Rounds,
) -> theory.Bound:
    """Return the bounds of Theorem 2 with r^(L_tau - L_T1) in the third term of (21) in place of r^(L_t - L_T1 - 1).

    Source: Theorem 2, (21), and Appendix J of `continual`.
    Raises: InvalidValueError for loads that top-1 routing cannot give. If these are traced, the result is NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import corrected, theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=1.0, across_gap=3.0)
        >>> loads = gaps, 0.5, np.array([6, 5]), np.array([2, 1]), 11
        >>> bool(corrected.theorem_2(*loads).forgetting > theory.theorem_2(*loads).forgetting)
        True
    """
    xp = array_namespace(*pool_gaps, ratio, loads, explored_loads, round)
    round = one_expert_a_round(loads, round)
    repeated = xp.sum(power_drop_sum(ratio, loads), axis=-1)
    explored = xp.sum(power_drop_sum(ratio, explored_loads), axis=-1)
    drift = power_drop_sum(ratio, loads - explored_loads)
    forgotten = (
        explored * pool_gaps.task_gap - repeated * pool_gaps.truth_norm + xp.sum(drift, axis=-1) * pool_gaps.within_gap
    )
    printed = theory.theorem_2(pool_gaps, ratio, loads, explored_loads, round)
    return printed._replace(forgetting=forgotten / xp.maximum(round - 1, 1))


@checked
def lemma_2(perturbation_scale: Perturbation) -> float:
    """Return 2 / lambda, the least L with |p - p^|_inf <= L |h - h^|_inf for all outputs and all M >= 2.

    dp_m/dh_m = sum_j c_j and dp_m/dh_j = -c_j with c_j >= 0, and sum_j c_j is 1/lambda times the increase of prod_j F(u
    + (h_m - h_j) / lambda) over u in [0, 1], which is at most 1. Equal outputs attain this bound.

    Source: replaces Lemma 2 of `continual`, which has lambda M^2.

    Examples:
        >>> from moe_theory.continual import corrected
        >>> corrected.lemma_2(perturbation_scale=0.5)
        4.0
    """
    return 2 / perturbation_scale


@checked
def routing_probabilities(
    outputs: Annotated[Float[np.ndarray, "*batch M"], Within()], perturbation_scale: Perturbation
) -> Float[np.ndarray, "*batch M"]:
    """Return P(argmax_j h_j + r_j = m) for independent r_j ~ U[0, lambda], in float64.

    If its perturbation is u lambda, expert m wins with probability prod_j F(u + (h_m - h_j) / lambda), where F is the
    distribution function of U[0, 1]. Gauss-Legendre quadrature integrates this piecewise polynomial of degree M - 1 in
    u exactly.

    Source: Eq. (1) and Appendix B of `continual`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import corrected
        >>> corrected.routing_probabilities(np.array([0.0, 0.5]), perturbation_scale=1.0).tolist()
        [0.125, 0.875]
    """
    outputs = np.asarray(outputs, np.float64) / perturbation_scale
    num_experts = outputs.shape[-1]
    leads = outputs[..., :, None] - outputs[..., None, :]  # (..., M, M): h_m - h_j, where j = m is left out below
    other_leads = leads[..., ~np.eye(num_experts, dtype=bool)].reshape(*outputs.shape, num_experts - 1)
    kinks = np.concatenate(
        [-other_leads, 1 - other_leads, np.zeros_like(outputs)[..., None], np.ones_like(outputs)[..., None]], -1
    )
    ends = np.sort(np.clip(kinks, 0, 1), axis=-1)  # ends of the polynomial's pieces
    middles = (ends[..., 1:] + ends[..., :-1]) / 2
    halves = (ends[..., 1:] - ends[..., :-1]) / 2
    nodes, weights = np.polynomial.legendre.leggauss(num_experts // 2 + 1)  # exact at least to degree M
    total = np.zeros(outputs.shape)
    for node, weight in zip(nodes, weights, strict=True):
        places = middles + halves * node
        wins = np.clip(places[..., :, None] + other_leads[..., None, :], 0, 1).prod(axis=-1)
        total += weight * np.sum(halves * wins, axis=-1)
    return total


@checked
def lemma_11(num_sets: Size, num_experts: Size) -> float:
    """Return 1 - N (1 - 1/N)^M, a lower bound on `coverage_probability` by the union bound.

    Source: replaces the product in the proof of Lemma 11 of `continual`.

    Examples:
        >>> from moe_theory.continual import corrected
        >>> corrected.lemma_11(num_sets=2, num_experts=3)
        0.75
    """
    return 1 - num_sets * (1 - 1 / num_sets) ** num_experts


@checked
def coverage_probability(num_sets: Size, num_experts: Size) -> float:
    """Return the probability that M experts, each in one of N sets uniformly at random, leave no set empty.

    Source: Lemma 11 of `continual`, which bounds it.

    Examples:
        >>> from moe_theory.continual import corrected
        >>> corrected.coverage_probability(num_sets=2, num_experts=3)
        0.75
    """
    # Inclusion and exclusion, over the sets that are empty.
    ways = ((-1) ** empty * math.comb(num_sets, empty) * (num_sets - empty) ** num_experts for empty in range(num_sets))
    return sum(ways) / num_sets**num_experts


@checked
def lemma_16(
    expert: Annotated[Float[Array, " d"], Within()],
    truth: Annotated[Float[Array, " d"], Within()],
    signal: Annotated[Float[Array, " d"], Within()],
    others: Annotated[Float[Numbers, "N d"], Within()],
    num_samples: Size,
) -> Float[Array, " N"]:
    """Return E |w' - w_n|^2 for each ground truth w_n in `others`, after w learns a task (`truth`, `signal`).

    With b = truth - w_n, the parts of w' - w_n = (I - P)(w - w_n) + P b are orthogonal. I - P is a uniformly random
    projector of rank d - s inside the signal's complement, which has d - 1 dimensions.

    Source: replaces the step behind (42), Lemma 16 of `continual`.
    Raises: InvalidValueError unless 1 <= num_samples < d.

    Examples:
        >>> import jax.numpy as jnp
        >>> from moe_theory.continual import corrected
        >>> truth = jnp.array([1.0, 3.0, 0.0, 0.0])
        >>> corrected.lemma_16(jnp.zeros(4), truth, jnp.eye(4)[0], truth[None], num_samples=2).round(4).tolist()
        [6.0]
    """
    unit = signal / jnp.sqrt(jnp.sum(signal**2))
    contraction = linear.error_contraction(expert.shape[0], num_samples)

    def across(vectors: Float[Array, "N d"]) -> Float[Array, " N"]:
        return jnp.sum(vectors**2, axis=1) - jnp.sum(vectors * unit[None, :], axis=1) ** 2

    differences = truth[None, :] - others
    return contraction * (across(expert[None, :] - others) - across(differences)) + jnp.sum(differences**2, axis=1)
