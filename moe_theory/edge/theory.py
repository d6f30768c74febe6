"""Closed forms of `edge` as printed: (16), T1, (22) and (23), from Propositions 1, 2 and 4 and Theorem 1.

The sums over tasks in (22) and (23) use the experts' loads: sum_t r^{L_T^{(m_t)}} = sum_m L_m r^{L_m}, with |w_t|^2
replaced by its mean. Arguments may be NumPy or JAX arrays, traced or not, and set the precision. Proposition 1's
numbers are computed on the host only. Arguments outside their domains raise InvalidValueError.
"""

from typing import Annotated

import numpy as np
from jaxtyping import ArrayLike, Float, Int, Real

from moe_theory.core import linear
from moe_theory.core.constraints import A_PROBABILITY, Size, Whole, Within, checked
from moe_theory.core.errors import unknown_name
from moe_theory.core.linear import MAX_ROUNDS, Numbers, ceil_to_rounds, one_expert_a_round, power, power_complement
from moe_theory.core.linear import Gaps as Gaps
from moe_theory.core.linear import overparameterization_ratio as overparameterization_ratio
from moe_theory.core.numerics import array_namespace
from moe_theory.core.tasks import Pool

__all__ = [
    "QUANTILES", "RULES", "Gaps", "experts_needed", "exploration_rounds", "gaps", "overparameterization_ratio",
    "proposition_4", "specialists_needed", "tail", "theorem_1",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports

QUANTILES = ("normal", "binomial")  # quantiles of `specialists_needed`
RULES = ("stated", "chernoff")  # rules of `experts_needed`

Amount = Annotated[Float[ArrayLike, "*batch"], Within(low=0, open_low=True)]
Floor = Annotated[Float[ArrayLike, "*batch"], Within(low=0)]
Failure = Annotated[float, A_PROBABILITY]
Specialists = Annotated[float, Within(low=0, why="it is a number of experts")]
Spread = Annotated[Float[ArrayLike, ""], Within(low=0, why="it is a deviation")]


@checked
def gaps(pool: Pool, cluster_spread: Spread) -> Gaps:
    """Return the ground truths' norm and the gaps between arrivals scattered around the centres of a `pool`.

    An arrival of task n has w_t = w_n + xi with independent entries of deviation `cluster_spread` tau. So p features
    add p tau^2 to a squared norm and 2 p tau^2 to the squared distance of two arrivals. As in (22) the task gap
    includes n = n', which contributes 2 p tau^2. Each task is a cluster of its own, so the across gap equals the task
    gap.

    Source: Assumption 1, (22) and (23) of `edge`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import Pool, theory
        >>> pool = Pool(truths=np.eye(2), signals=np.eye(2), clusters=np.arange(2))
        >>> theory.gaps(pool, cluster_spread=0.5).task_gap.item()  # 1 between the centres, and 2 * 2 * 0.5^2
        2.0
    """
    xp = array_namespace(*pool, cluster_spread)
    num_tasks, num_features = pool.truths.shape
    centres = linear.gaps(pool._replace(clusters=xp.arange(num_tasks)))
    return _with_spread(centres, num_features, cluster_spread)


@checked
def specialists_needed(max_delay: Size, num_tasks: Size, failure: Failure, quantile: str = "normal") -> float | int:
    """Return M_th, the experts of a task type that leave one idle with probability 1 - `failure`.

    Appendix B requires P(A_n > M_th) < failure, where A_n ~ Binomial(d_u, 1/N) counts a task's arrivals in a window of
    d_u = `max_delay` rounds.

    - `normal`: (16) as printed, a normal quantile and a real number. P(A_n > M_th) mostly exceeds `failure`, and for a
        small `failure` even after rounding up.
    - `binomial`: the smallest integer k with P(A_n > k) < failure.

    If A_n <= M_th, at most M_th - 1 experts are busy when a task arrives, because it ends the window. Proposition 1 is
    about the larger probability of `corrected.unserved`.

    Source: Proposition 1, (16), and Appendix B of `edge`.
    Raises: UnknownNameError for another `quantile`.

    Examples:
        >>> from moe_theory.edge import theory
        >>> theory.specialists_needed(max_delay=2, num_tasks=2, failure=0.3, quantile="binomial")  # P(A > 1) = 0.25
        1
    """
    from scipy import special  # slow to import

    if quantile == "normal":
        mean = max_delay / num_tasks
        return float(mean - special.ndtri(failure) * np.sqrt(mean * (1 - 1 / num_tasks)))
    if quantile == "binomial":
        too_many = _binomial_tail(np.arange(max_delay + 1), max_delay, num_tasks)
        return int(np.argmax(too_many < failure))
    raise unknown_name("quantile", quantile, QUANTILES)


@checked
def tail(max_delay: Size, num_tasks: Size, specialists: Specialists) -> float:
    """Return P(A_n > specialists), the event of Appendix B, for A_n ~ Binomial(max_delay, 1/num_tasks).

    Source: Appendix B of `edge`.

    Examples:
        >>> from moe_theory.edge import theory
        >>> round(theory.tail(max_delay=2, num_tasks=2, specialists=1), 6)
        0.25
    """
    return float(_binomial_tail(np.floor(specialists), max_delay, num_tasks))


@checked
def experts_needed(
    max_delay: Size, num_tasks: Size, failure: Failure, quantile: str = "normal", rule: str = "stated"
) -> int:
    """Return how many experts M >= 1 give one task its `specialists_needed` with probability 1 - `failure`.

    - `stated`: N M_th ln(1/failure) rounded up, Proposition 1 with the constant 1.
    - `chernoff`: the smallest M > N M_th with exp(-(1 - N M_th / M)^2 M / (2 N)) < failure, as the proof requires: M^2
      - (2 N M_th + b) M + (N M_th)^2 > 0 with b = 2 N ln(1/failure). The proof takes a task's specialists as
      Binomial(M, 1/N).

    A negative M_th, from a `failure` above 1/2, counts as 0.

    Source: Proposition 1 and Appendix B of `edge`.
    Raises: the errors of `specialists_needed`, or UnknownNameError for another `rule`.

    Examples:
        >>> from moe_theory.edge import theory
        >>> theory.experts_needed(max_delay=2, num_tasks=2, failure=0.3, quantile="binomial")  # 2 ln(1 / 0.3) = 2.4
        3
    """
    specialists = max(specialists_needed(max_delay, num_tasks, failure, quantile), 0)
    needed = num_tasks * specialists
    log_inverse = np.log(1 / failure)
    if rule == "stated":
        return max(int(np.ceil(needed * log_inverse)), 1)
    if rule == "chernoff":
        half = num_tasks * log_inverse  # b / 2
        return int(np.floor(needed + half + np.sqrt(half * (2 * needed + half)))) + 1  # above the larger root
    raise unknown_name("rule", rule, RULES)


@checked
def exploration_rounds(
    num_experts: Annotated[Real[ArrayLike, "*batch"], Whole(1)],
    learning_rate: Amount,
    truth_scale: Amount,
    failure: Annotated[Float[ArrayLike, "*batch"], A_PROBABILITY],
    max_delay: Annotated[Int[ArrayLike, "*batch"], Whole(1)],
) -> Int[Numbers, "*batch"]:
    """Return T1 = d_u + ceil(eta^-1 sigma_0^-1/2 M ln(M / failure)), the last round of the exploration stage.

    T1 is rounded as in `core.linear.ceil_to_rounds`, at most `MAX_ROUNDS`.

    Source: Proposition 2 and Appendix C of `edge`.

    Examples:
        >>> from moe_theory.edge import theory
        >>> int(theory.exploration_rounds(10, 0.5, truth_scale=0.25, failure=0.05, max_delay=10))  # 10 + 40 ln 200
        222
    """
    xp = array_namespace(num_experts, learning_rate, truth_scale, failure, max_delay)
    explored = num_experts / learning_rate * truth_scale**-0.5 * xp.log(num_experts / failure)
    rounds = ceil_to_rounds(explored)
    return rounds + xp.minimum(max_delay, MAX_ROUNDS - rounds)  # no sum is above MAX_ROUNDS


@checked
def proposition_4(
    pool_gaps: Gaps, ratio: linear.Ratio, loads: linear.Loads, round: linear.Rounds
) -> Float[Numbers, "*batch"]:
    """Return E[G_T] under routing that ignores the task, for realised `loads` L_T^(m) after `round` = T tasks.

    The error tends to the task gap as all loads grow. Experts without arrivals add nothing.

    Source: Proposition 4, (22), of `edge`.
    Raises: InvalidValueError for loads that do not add up to `round`, as with dropped tasks or top-2 routing. If
        these are traced, the result is NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=0.0, across_gap=3.0)
        >>> round(float(theory.proposition_4(gaps, 0.5, loads=np.array([1, 1]), round=2)), 6)  # 0.5 * 1 + 0.5 * 3
        2.0
    """
    xp = array_namespace(*pool_gaps, ratio, loads, round)
    round = one_expert_a_round(loads, round)
    confused = xp.sum(loads * power_complement(ratio, loads), axis=-1)
    unlearned = xp.sum(loads * power(ratio, loads), axis=-1)
    return (unlearned * pool_gaps.truth_norm + confused * pool_gaps.task_gap) / round


@checked
def theorem_1(
    pool_gaps: Gaps,
    ratio: linear.Ratio,
    loads: linear.Loads,
    explored_loads: linear.ExploredLoads,
    round: linear.Rounds,
    floor: Floor = 0.0,
) -> Float[Numbers, "*batch"]:
    """Return an upper bound on E[G_T] under Algorithm 1, for realised `loads` L_T^(m) after `round` = T tasks.

    Every task's error fades with r^(L_T - L_T1). Experts without arrivals add nothing.

    Args:
        explored_loads: the loads at round min(T, T1).
        floor: the term G^4 = O(sigma_0^2), whose constant is open.
    Source: Theorem 1, (23), of `edge`.
    Raises: InvalidValueError for loads that do not add up to `round`, as with dropped tasks or top-2 routing. If
        these are traced, the result is NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.edge import theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=0.0, across_gap=3.0)
        >>> loads = np.array([1, 1])
        >>> round(float(theory.theorem_1(gaps, 0.5, loads, explored_loads=loads, round=2, floor=0.25)), 6)
        2.25
    """
    xp = array_namespace(*pool_gaps, ratio, loads, explored_loads, round)
    round = one_expert_a_round(loads, round)
    share = power(ratio, loads - explored_loads) * power_complement(ratio, explored_loads)
    unlearned = xp.sum(loads * power(ratio, loads), axis=-1)
    confused = xp.sum(loads * share, axis=-1)
    return (unlearned * pool_gaps.truth_norm + confused * pool_gaps.task_gap) / round + floor


def _with_spread(centres: Gaps, num_features: int, cluster_spread: ArrayLike) -> Gaps:
    noise = num_features * cluster_spread**2
    return Gaps(
        truth_norm=centres.truth_norm + noise,
        task_gap=centres.task_gap + 2 * noise,
        within_gap=centres.within_gap + 2 * noise,
        across_gap=centres.across_gap + 2 * noise,
    )


def _binomial_tail(counts, num_rounds, num_tasks):
    """Return P(A > counts) for A ~ Binomial(num_rounds, 1/num_tasks)."""
    from scipy import special  # slow to import

    return special.bdtrc(np.minimum(counts, num_rounds), num_rounds, 1 / num_tasks)  # `bdtrc` is NaN above num_rounds
