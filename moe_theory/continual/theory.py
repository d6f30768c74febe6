"""Closed forms as `continual` prints them (see `corrected.py`): Proposition 4, both theorems, and Lemmas 11 and 16.

Sums over rounds are geometric sums in the loads, and cost O(M). Arguments may be NumPy or JAX arrays, traced or not,
and set the precision. Arguments outside their domains raise InvalidValueError.
"""

from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import ArrayLike, Float, Int, Real

from moe_theory.core import linear
from moe_theory.core.constraints import Size, Whole, Within, checked
from moe_theory.core.errors import unknown_name
from moe_theory.core.linear import MAX_ROUNDS as MAX_ROUNDS
from moe_theory.core.linear import Gaps as Gaps
from moe_theory.core.linear import Numbers, ceil_to_rounds, one_expert_a_round, power, power_complement, power_drop_sum
from moe_theory.core.linear import error_contraction as error_contraction
from moe_theory.core.linear import gaps as gaps
from moe_theory.core.linear import overparameterization_ratio as overparameterization_ratio
from moe_theory.core.linear import require_overparameterized as require_overparameterized
from moe_theory.core.numerics import array_namespace

__all__ = [
    "FORMS", "MAX_ROUNDS", "Bound", "Gaps", "error_contraction", "exploration_rounds", "gaps", "lemma_11", "lemma_16",
    "overparameterization_ratio", "proposition_4", "require_overparameterized", "termination_rounds", "theorem_1",
    "theorem_2",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports

FORMS = ("printed", "appendix")  # forms of `theorem_2`

Amount = Annotated[Float[ArrayLike, "*batch"], Within(low=0, open_low=True)]


class Bound(NamedTuple):
    """A statement's values of the two metrics after a round."""

    forgetting: Float[Numbers, "*batch"]  # E[F_t] of (15), 0 at t = 1, where F is an empty mean
    generalization_error: Float[Numbers, "*batch"]  # E[G_t] of (16)


@checked
def exploration_rounds(
    num_experts: Annotated[Real[ArrayLike, "*batch"], Whole(1)], learning_rate: Amount
) -> Int[Numbers, "*batch"]:
    """Return T1 = ceil(M / eta), the last round of the exploration stage, in rounds.

    A quotient within float32's rounding of an integer counts as this integer. The result is at most `MAX_ROUNDS`.

    Source: Algorithm 1 of `continual`, input line.

    Examples:
        >>> from moe_theory.continual import theory
        >>> int(theory.exploration_rounds(num_experts=10, learning_rate=0.5))
        20
    """
    return ceil_to_rounds(num_experts / learning_rate)


@checked
def termination_rounds(
    num_experts: Annotated[Real[ArrayLike, "*batch"], Whole(1)], learning_rate: Amount, truth_scale: Amount
) -> Int[Numbers, "*batch"]:
    """Return T2 = ceil(sigma_0^(-1/4) M / eta), the round where gate updates terminate, up to its O() constant.

    Source: Proposition 3 of `continual`.

    Examples:
        >>> from moe_theory.continual import theory
        >>> int(theory.termination_rounds(num_experts=10, learning_rate=0.5, truth_scale=0.0625))
        40
    """
    return ceil_to_rounds(num_experts / learning_rate * truth_scale**-0.25)


@checked
def proposition_4(pool_gaps: Gaps, ratio: linear.Ratio, rounds: linear.Rounds) -> Bound:
    """Return the printed expected metrics of one expert (M = 1), for `ratio` r after `rounds` >= 2.

    Source: Proposition 4, (17) and (18) of `continual`.

    Examples:
        >>> from moe_theory.continual import theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=0.0, across_gap=3.0)
        >>> bound = theory.proposition_4(gaps, ratio=0.5, rounds=2)
        >>> round(float(bound.generalization_error), 6)  # 0.25 * 1 + 0.75 * 3
        2.5
    """
    xp = array_namespace(*pool_gaps, ratio, rounds)
    norm = pool_gaps.truth_norm
    gap = pool_gaps.task_gap
    forgotten = power_drop_sum(ratio, rounds) * (gap - norm)
    return Bound(
        forgetting=forgotten / xp.maximum(rounds - 1, 1),
        generalization_error=power(ratio, rounds) * norm + power_complement(ratio, rounds) * gap,
    )


@checked
def theorem_1(
    pool_gaps: Gaps,
    ratio: linear.Ratio,
    loads: linear.Loads,
    explored_loads: linear.ExploredLoads,
    round: linear.Rounds,
) -> Bound:
    """Return upper bounds for more experts than tasks, after round t = `round` with loads L_t(m).

    `explored_loads` are the loads at round min(t, T1). Since E[F_t] = (T1 - 1)/(t - 1) E[F_T1] after exploration, (19)
    needs no other loads. Experts without arrivals add nothing.

    Source: Theorem 1, (19) and (20) of `continual`.
    Raises: InvalidValueError for loads that top-1 routing cannot give. If these are traced, the result is NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=0.0, across_gap=3.0)
        >>> bound = theory.theorem_1(gaps, 0.5, loads=np.array([1, 1]), explored_loads=np.array([1, 1]), round=2)
        >>> round(float(bound.generalization_error), 6)  # 0.5 * 1 + 0.5 * 3
        2.0
    """
    xp = array_namespace(*pool_gaps, ratio, loads, explored_loads, round)
    round = one_expert_a_round(loads, round)
    norm = pool_gaps.truth_norm
    gap = pool_gaps.task_gap
    forgotten = xp.sum(power_drop_sum(ratio, explored_loads), axis=-1) * (gap - norm)
    unlearned = xp.sum(loads * power(ratio, explored_loads), axis=-1)
    confused = xp.sum(loads * power_complement(ratio, explored_loads), axis=-1)
    return Bound(
        forgetting=forgotten / xp.maximum(round - 1, 1),
        generalization_error=(unlearned * norm + confused * gap) / round,
    )


@checked
def theorem_2(
    pool_gaps: Gaps,
    ratio: linear.Ratio,
    loads: linear.Loads,
    explored_loads: linear.ExploredLoads,
    round: linear.Rounds,
    form: str = "printed",
) -> Bound:
    """Return upper bounds for fewer experts than tasks, after round t = `round` with loads L_t(m).

    `explored_loads` are the loads at round min(t, T1). Up to T1 every form is (19) and (20). After T1:

    - `printed`: the theorem.
    - `appendix`: (22) as its proof ends, with r^(L_T - L_T1 - 1) in both sums of 1 - r^(...). Taken literally, an
        expert without arrivals after T1 then contributes less than 0.

    Source: Theorem 2, (21) and (22), and Appendix J of `continual`.
    Raises: UnknownNameError for another `form`, or InvalidValueError for loads that top-1 routing cannot give. If these
        are traced, the result is NaN.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import theory
        >>> gaps = theory.Gaps(truth_norm=1.0, task_gap=3.0, within_gap=0.0, across_gap=3.0)
        >>> loads = np.array([2, 1])
        >>> first, second = theory.theorem_1(gaps, 0.5, loads, loads, 3), theory.theorem_2(gaps, 0.5, loads, loads, 3)
        >>> bool(np.allclose(first, second))  # they part after T1
        True
    """
    if form not in FORMS:
        raise unknown_name("form", form, FORMS)
    xp = array_namespace(*pool_gaps, ratio, loads, explored_loads, round)
    round = one_expert_a_round(loads, round)
    exploited_loads = loads - explored_loads
    repeated = xp.sum(power_drop_sum(ratio, loads), axis=-1)
    explored = xp.sum(power_drop_sum(ratio, explored_loads), axis=-1)
    # sum over j = 1..k of 1 - r^(k - j), for an expert with k arrivals after T1.
    newer = exploited_loads - power_complement(ratio, exploited_loads) / (1 - ratio)
    drift = newer * power(ratio, exploited_loads - 1)
    forgotten = (
        explored * pool_gaps.task_gap - repeated * pool_gaps.truth_norm + xp.sum(drift, axis=-1) * pool_gaps.within_gap
    )
    has_exploited = xp.sum(exploited_loads, axis=-1, keepdims=True) > 0
    lag = 1 * has_exploited if form == "appendix" else 0  # 1 once there are rounds after T1
    overwritten = power_complement(ratio, exploited_loads - lag)
    share = power(ratio, exploited_loads) * power_complement(ratio, explored_loads)
    errors = (
        xp.sum(loads * power(ratio, loads), axis=-1) * pool_gaps.truth_norm
        + xp.sum(explored_loads * share, axis=-1) * pool_gaps.task_gap
        + xp.sum(explored_loads * overwritten + exploited_loads * share, axis=-1) * pool_gaps.across_gap
        + xp.sum(exploited_loads * overwritten, axis=-1) * pool_gaps.within_gap
    )
    return Bound(forgetting=forgotten / xp.maximum(round - 1, 1), generalization_error=errors / round)


@checked
def lemma_11(num_sets: Size, num_experts: Size) -> float:
    """Return (1 - (1 - 1/N)^M)^N, as if N sets were filled by M experts independently of each other.

    The proof claims that this is below the probability that no set is empty, but it is above.

    Source: proof of Lemma 11 of `continual`.

    Examples:
        >>> from moe_theory.continual import theory
        >>> theory.lemma_11(num_sets=2, num_experts=2)
        0.5625
    """
    return (1 - (1 - 1 / num_sets) ** num_experts) ** num_sets


@checked
def lemma_16(
    tasks: Annotated[Int[np.ndarray, "T B"], Whole(0)],
    experts: Annotated[Int[np.ndarray, "T B"], Whole(0)],
    truths: Annotated[Float[np.ndarray, "N d B"], Within()],
    ratio: linear.Ratio,
) -> Float[np.ndarray, " B"]:
    """Return the right side of (42), averaged over T arrivals, from their tasks, experts and a pool's ground truths.

    Source: Lemma 16, (42) of `continual`.

    Examples:
        >>> import numpy as np
        >>> from moe_theory.continual import theory
        >>> theory.lemma_16(np.array([[0]]), np.array([[0]]), np.array([[[3.0], [4.0]]]), ratio=0.5).tolist()
        [12.5]
    """
    own_truths = np.take_along_axis(truths, tasks[:, None, :], axis=0)  # truth of each arrival's task, (T, d, B)
    share_expert = experts[:, None] == experts[None, :]
    loads = share_expert.sum(axis=1)
    is_successor = np.triu(np.ones(share_expert.shape[:2]), 1)[:, :, None] * share_expert  # 0 or 1
    weights = (1 - ratio) * ratio ** is_successor.sum(axis=1)  # the l-th of L arrivals has L - l successors
    distances = np.sum((own_truths[:, None] - own_truths[None, :]) ** 2, axis=2)
    norms = np.sum(own_truths**2, axis=1)
    errors = ratio**loads * norms + np.sum(share_expert * weights[:, None] * distances, axis=0)
    return errors.mean(axis=0)
