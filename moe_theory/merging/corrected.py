"""Bounds on the tree and on the regret that replace the paper's false lemmas, each proved in its docstring.

The bounds hold for Alg. 1 with the threshold (2), every delta in (0, 1] and any way to pick and split leaves, if the
tree has room. Numbers are float64 on the host. A leaf made by the split in slot s can be picked from slot s + 1 on, and
P counts its pulls. It is split in the first slot t in which it is picked with P >= tau_h(t). With A = C^2 / nu_1^2,
tau_h(t) = A log(t/delta) rho^(-2h). Arguments outside their domains raise InvalidValueError.

Examples:
    >>> from moe_theory.merging import Params, corrected
    >>> times = corrected.split_times(1000, Params(confidence=1.0))
    >>> int(times[0]), len(times) == corrected.depth_bound(1000, Params(confidence=1.0))
    (1, True)
    >>> corrected.depth_bound(1000, Params()) <= corrected.simple_depth_bound(1000, Params())
    True
    >>> corrected.simple_depth_bound(1, Params(confidence=1.0))  # the root is split in the first slot
    1
    >>> corrected.leaf_bound(1, Params(confidence=1.0))  # the root is split in the first slot
    2
    >>> corrected.discretization_bound(1, Params(smoothness=3.0))  # one pull, of the root
    3.0
    >>> corrected.discretization_bound(1000, Params()) <= corrected.simple_discretization_bound(1000, Params())
    True
    >>> round(corrected.regret_exponent(0.5), 6)  # log(4) / log(8)
    0.666667
    >>> corrected.cyclic_exponent(8), corrected.simplex_exponent(9)
    (0.9, 0.9)
    >>> corrected.cyclic_leaves(num_experts=2, depth=2)  # of four squares two only touch it, at (1/2, 1/2)
    4
    >>> box = corrected.cyclic_diameter(num_experts=2, depth=2)
    >>> box.side, round(box.diagonal, 6)  # of a square of side 1/2
    (0.5, 0.707107)
    >>> corrected.least_smoothness(num_experts=2, smoothness_ratio=0.5)
    Diameter(side=inf, diagonal=inf)
    >>> round(corrected.least_ratio(num_experts=2), 6)  # 2^(-1/2)
    0.707107
    >>> corrected.regret_bound(1, neural=2.0, params=Params(smoothness=3.0))
    5.0
"""

import bisect
import functools
import math
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Int

from moe_theory.core.constraints import Amount, PositiveAmount, Size, SizeOrZero, Switch, Whole, Within, checked
from moe_theory.core.errors import InvalidValueError
from moe_theory.merging import theory
from moe_theory.merging.params import Params

__all__ = [
    "FINEST", "NEGLIGIBLE", "Diameter", "cyclic_diameter", "cyclic_exponent", "cyclic_leaves", "depth_bound",
    "discretization_bound", "leaf_bound", "least_ratio", "least_smoothness", "regret_bound", "regret_exponent",
    "simple_depth_bound", "simple_discretization_bound", "simplex_exponent", "split_times",
]  # fmt: skip
__dir__ = __all__.copy  # the names that `dir` shows, without imports

FINEST = 2**20  # largest number of parts into which `cyclic_leaves` cuts a side of the root
Ratio = Annotated[float, Within(0, 1, open_low=True, open_high=True)]
Experts = Annotated[int, Whole(2)]

NEGLIGIBLE = 1e-15  # a part below this share of a sum is left out


@checked
def split_times(num_rounds: Size, params: Params) -> Int[np.ndarray, " H"]:
    """Return e_0 < e_1 < ... <= T, the first slots in which a leaf at depth h can be split.

    e_h is the least whole s > e_{h-1} with s - e_{h-1} >= tau_h(s), and e_{-1} = 0. At delta = 1, e_0 = 1.

    Proof: By induction, a leaf at depth h exists after its parent's split in a slot b >= e_{h-1}. If it is split in
    slot s, it had P <= s - b pulls. So s - e_{h-1} >= P >= tau_h(s) and P >= 1, and e_h is the least such s. The tree
    reaches e_h if the deepest leaf is pulled in every slot until it is split.

    Source: replaces the proof of Lemma 2.
    """
    times = []
    last = 0
    while (split_time := _first_split(last, depth=len(times), num_rounds=num_rounds, params=params)) is not None:
        times.append(split_time)
        last = split_time
    return np.array(times, int)


@checked
def depth_bound(num_rounds: Size, params: Params) -> int:
    """Return the largest depth that the tree can have after T slots, over all ways to pick leaves.

    This is the number of `split_times` up to T, because a leaf at depth h + 1 exists once a leaf at depth h was split.

    Source: replaces Lemma 2, Eq. (7).
    """
    return len(split_times(num_rounds, params))


@checked
def simple_depth_bound(num_rounds: Size, params: Params) -> int:
    """Return a bound on the depth in closed form, for T >= 1.

    The bound is 1 + max(0, floor(log(T / (A log(T/delta))) / (2 log(1/rho)))).

    Proof: Let a leaf at depth h >= 1 be split in slot s <= T. The leaf had at most s - 1 pulls, because the root was
    split earlier. So A log(s/delta) rho^(-2h) <= s - 1. With log(T/delta) <= log(s/delta) + T/s - 1 and log s >= 1 -
    1/s, (s - 1) log(T/delta) <= T log(s/delta). Hence rho^(-2h) <= T / (A log(T/delta)). So h is at most the floor, and
    the leaf's children are at most one deeper.

    Source: replaces Lemma 2, Eq. (7).
    """
    if num_rounds == 1:  # log(T/delta) may be 0
        return 1
    room = math.log(num_rounds / float(theory.split_threshold(float(num_rounds), 0.0, params)))
    return 1 + max(0, math.floor(room / (2 * math.log(1 / params.smoothness_ratio))))


@checked
def leaf_bound(num_rounds: Size, params: Params) -> int:
    """Return an upper bound on the number of leaves after T slots, including inactive ones.

    The bound is 1 + max{sum_h n_h : n_h <= 2^h, sum_h n_h m_h <= T} with m_h = max(1, ceil(tau_h(e_h))). So N_t grows
    as T^(log 2 / log(2/rho^2)) up to logarithms.

    Proof: A split makes one leaf more. There are at most 2^h splits at depth h, and none before slot e_h. Each uses a
        whole number P >= max(1, tau_h(e_h)) of slots that no other split uses. As m_h does not fall with h, the number
        of splits is largest if the smallest depths are filled first.

    Source: replaces Lemma 1, Eq. (5).
    """
    num_splits = 0
    rounds_left = num_rounds
    for depth, time in enumerate(split_times(num_rounds, params)):
        num_pulls = _least_pulls(float(time), depth, params)  # m_h
        splits_at_depth = min(2**depth, rounds_left // num_pulls)
        num_splits += splits_at_depth
        rounds_left -= splits_at_depth * num_pulls
    return 1 + num_splits


@checked
def discretization_bound(num_rounds: Size, params: Params, is_cyclic: Switch = False) -> float:
    """Return an upper bound on the discretization error, whatever leaves are picked.

    The error is sum_t nu_1 rho^(h_t) over T slots. The bound is nu_1 min_H [T rho^H + sum_{h<H} 2^h m_h
    (rho^h - rho^H)] with m_h = max(1, ceil(tau_h(T))).

    Proof: As tau_h(t) <= tau_h(T), the m_h-th pull of a leaf at depth h splits it in any slot. There are at most 2^h
    leaves at depth h, so Q_h <= 2^h m_h of the T pulls are there. Then sum_h Q_h rho^h <= sum_{h<H} Q_h rho^h + (T
    - sum_{h<H} Q_h) rho^H for every H, where the right side grows with every Q_h. T pulls that fill up the smallest
    depths first attain its least value over H.

    Args:
        is_cyclic: use `cyclic_leaves` in place of 2^h, because leaves that miss the simplex are not picked.
    Source: replaces the step to (10).
    """
    total = 0.0
    rounds_left = num_rounds
    depth = 0
    num_leaves = 1  # largest number of leaves at this depth
    while rounds_left > 0:
        if is_cyclic:
            num_leaves = cyclic_leaves(int(params.num_experts), depth)
        num_pulls = min(rounds_left, num_leaves * _least_pulls(float(num_rounds), depth, params))
        total += num_pulls * float(params.smoothness_ratio) ** depth
        rounds_left -= num_pulls
        depth += 1
        num_leaves *= 2
    return float(params.smoothness * total)


@checked
def simple_discretization_bound(num_rounds: Size, params: Params) -> float:
    """Return a simpler bound, nu_1 min_H [sum_{h<H} 2^h (tau_h(T) + 1) rho^h + T rho^H], on the discretization error.

    This bound follows from the smaller `discretization_bound` by m_h <= tau_h(T) + 1, without the subtracted terms. At
    (2/rho^2)^H = T / (A log(T/delta)) both parts are of the order T rho^H, which gives `regret_exponent`.

    Source: replaces the step to (10).
    """
    ratio = float(params.smoothness_ratio)
    least = math.inf
    shallow = 0.0  # sum over h < H
    depth = 0  # H
    while shallow < least and (deep := num_rounds * ratio**depth) > NEGLIGIBLE * shallow:
        least = min(least, shallow + deep)
        threshold = float(theory.split_threshold(float(num_rounds), float(depth), params))
        shallow += 2.0**depth * (threshold + 1) * ratio**depth
        depth += 1
    return float(params.smoothness * least)


@checked
def regret_exponent(smoothness_ratio: Ratio) -> float:
    """Return the exponent a = log(2/rho) / log(2/rho^2), in (1/2, 1), of sum_t nu_1 rho^(h_t) = O(T^a (log T)^(1-a)).

    Proof: In `simple_discretization_bound` sum_{h<H} 2^h tau_h rho^h is at most A log(T/delta) (2/rho)^H / (2/rho - 1).
    At the H given there rho^H = (A log(T/delta) / T)^(log(1/rho) / log(2/rho^2)), so T rho^H = T^a (A
    log(T/delta))^(1-a). The sum of 2^h rho^h is of lower order. No smaller exponent holds. If leaves are pulled
    shallowest first and all children meet the simplex, every leaf at depth h is pulled tau_h(t) times. As a > 1/2,
    sqrt(T) log T does not follow.

    Source: replaces the remark after Theorem 1: R = O(d sqrt(T) log T + T^a (log T)^(1-a)), `regret_bound`.
    """
    return math.log(2 / smoothness_ratio) / math.log(2 / smoothness_ratio**2)


@checked
def cyclic_exponent(num_experts: Experts) -> float:
    """Return (K+1)/(K+2), the `regret_exponent` at 2^(-1/K), the least rho for cyclic splits of the box.

    Source: `regret_exponent` and `least_ratio`.
    """
    return (num_experts + 1) / (num_experts + 2)


@checked
def simplex_exponent(num_experts: Experts) -> float:
    """Return K/(K+1), the `cyclic_exponent` if leaves that miss the simplex do not count.

    Proof: At depth h = mK the boxes are cubes of side 2^-m with corners 2^-m n. A cube meets the simplex when 2^m - K
    <= sum n <= 2^m. There are binom(j + K - 1, K - 1) whole n >= 0 with sum j. So at most (K + 1) binom(2^m + K - 1, K
    - 1) = O(2^(h (K-1)/K)) cubes meet the simplex, and between two such depths at most 2^K times that number. With b^h
    leaves at depth h in place of 2^h, b = 2^((K-1)/K), the exponent is log(b/rho) / log(b/rho^2) = (K-1+1)/(K-1+2).

    Source: sharpens `cyclic_exponent`.
    """
    return num_experts / (num_experts + 1)


@checked
@functools.cache
def cyclic_leaves(num_experts: Experts, depth: SizeOrZero) -> int:
    """Return the exact number of boxes at depth h under cyclic halving that meet the simplex.

    With h = mK + r the first r sides are halved m + 1 times. In units of 2^-(m+1) these have length 1 and begin at
    whole n < M = 2^(m+1). The other sides have length 2 and begin at 2n, n < M/2. A box meets the simplex when M - r -
    2(K - r) <= sum of beginnings <= M. The count, at most 2^h, is a convolution over sides.

    Source: Sec. IV-B, worked out.
    Raises: InvalidValueError for fewer than two experts, or depths at which M exceeds `FINEST`.
    """
    turns, extra = divmod(depth, num_experts)
    side = 2 ** (turns + 1)
    if side > FINEST:
        raise InvalidValueError(
            f"depth={depth} gives too many boxes to count, with sides below 2^-20. Lower depth.", argument="depth"
        )
    counts = [1] + [0] * side  # number of ways to reach each sum of beginnings, from 0 to M
    for dimension in range(num_experts):
        step = 1 if dimension < extra else 2  # between beginnings
        counts = _with_one_more_side(counts, step, side // step)
    smallest_sum = side - extra - 2 * (num_experts - extra)
    return sum(counts[max(0, smallest_sum) :])


class Diameter(NamedTuple):
    """Diameter of a box: the longest side in the sup norm, and the diagonal in the Euclidean norm."""

    side: float
    diagonal: float


@checked
def cyclic_diameter(num_experts: Experts, depth: SizeOrZero) -> Diameter:
    """Return the diameters of boxes after h cyclic halvings.

    With h = mK + r, r sides have length 2^-(m+1) and K - r sides have length 2^-m. So the longest side is
    2^-floor(h/K), and the diagonal is 2^-m sqrt(K - r + r/4).

    Source: Assumption 1, ii a), worked out.
    """
    turns, extra = divmod(depth, num_experts)
    return Diameter(2.0**-turns, 2.0**-turns * math.sqrt(num_experts - extra + extra / 4))


@checked
def least_smoothness(num_experts: Experts, smoothness_ratio: Ratio) -> Diameter:
    """Return the least nu_1 for which all boxes of cyclic halving have diameters of at most nu_1 rho^h.

    This nu_1 is sup_h diam(h) rho^-h, for either distance. From h to h + K, diam halves and rho^-h grows by rho^-K. The
    supremum is infinite for 2 rho^K < 1, and otherwise the maximum over h < K. This is rho^-(K-1) for sides, and the
    largest sqrt(K - 3h/4) rho^-h for diagonals.

    Source: Assumption 1, ii a), worked out.
    """
    if smoothness_ratio < least_ratio(num_experts):
        return Diameter(math.inf, math.inf)
    diameters = [cyclic_diameter(num_experts, depth) for depth in range(num_experts)]
    return Diameter(
        max(box.side * smoothness_ratio**-depth for depth, box in enumerate(diameters)),
        max(box.diagonal * smoothness_ratio**-depth for depth, box in enumerate(diameters)),
    )


@checked
def least_ratio(num_experts: Experts, power: PositiveAmount = 1.0, on_simplex: Switch = False) -> float:
    """Return 2^(-q/K), the least rho that Assumption 1 allows for the distance |x - y|^q.

    Below it the assumption fails for every nu_1 and every way to halve boxes.

    Proof: The 2^h boxes at depth h have the volume 1 in total, so one of them has a side of at least 2^(-h/K). Hence
    nu_1 rho^h >= 2^(-qh/K) for all h. (In any norm, up to a constant.) Cyclic halving attains this rho at q = 1.

    Args:
        on_simplex: require this only for the boxes' parts of the simplex, which gives 2^(-q/(K-1)). In K - 1
            dimensions, 2^h parts of diameter nu_1 rho^h have at most 2^h (c nu_1 rho^h)^((K-1)/q) of its volume.
    Source: Assumption 1, ii a). This rules out the rho of the experiments, 0.3 to 0.9, at K = 8 and q = 1.
    """
    return 2.0 ** (-power / (num_experts - int(on_simplex)))


@checked
def regret_bound(num_rounds: Size, neural: Amount, params: Params, linearization: Amount = 0.0) -> float:
    """Return the bound on the regret that follows from Lemma 4, in units of reward.

    The bound is neural + 2 sum_t Gamma-bar + `discretization_bound`, and at most T for rewards in [0, 1].

    Proof: (9) summed over T slots is at most 2 sum_t min(u_t, 1) + 2 sum_t Gamma-bar + sum_t nu_1 rho^(h_t). The first
    part is the neural part of (6), O(d sqrt(T) log T). The last part is at most `discretization_bound`. With sum_t
    Gamma-bar = O(1), as for wide networks, R = O(d sqrt(T) log T + T^a (log T)^(1-a)), where a is `regret_exponent`.

    Args:
        neural: `RegretBound.neural` of Theorem 1. linearization: sum_t Gamma-bar.
    Source: replaces Theorem 1's T + 1 and the remark after it.
    """
    return neural + 2 * linearization + discretization_bound(num_rounds, params)


def _first_split(last: int, depth: int, num_rounds: int, params: Params) -> int | None:
    """Return the least s in (last, T] with s - last >= tau_h(s)."""

    def is_reached(time: int) -> bool:
        return time - last >= float(theory.split_threshold(float(time), float(depth), params))

    if last >= num_rounds:
        return None
    if is_reached(last + 1):
        return last + 1
    if not is_reached(num_rounds):
        return None
    # s - last - tau_h(s) is convex in s, so it changes its sign once between last + 1 and T.
    return bisect.bisect_left(range(num_rounds + 1), True, last + 2, num_rounds, key=is_reached)


def _least_pulls(time: float, depth: int, params: Params) -> int:
    threshold = float(theory.split_threshold(time, float(depth), params))
    return max(1, math.ceil(min(threshold, 1e300)))  # `ceil` refuses infinity


def _with_one_more_side(counts: list[int], step: int, number: int) -> list[int]:
    """Count the ways to reach a sum with one more beginning in {0, step, ..., (number - 1) step}."""
    unlimited = list(counts)  # ways with a beginning in {0, step, ...}
    for total in range(step, len(counts)):
        unlimited[total] += unlimited[total - step]
    too_far = [0] * (number * step) + unlimited  # ways with a beginning in {number step, (number + 1) step, ...}
    return [count - excluded for count, excluded in zip(unlimited, too_far, strict=False)]
