"""Judgements, which test a claim by its kind at one interim analysis.

A test of means has one difference for each replicate and component. A claim is REFUTED if the interval of some
component lies beyond its margin, and SUPPORTED if all intervals lie within. Intervals are two-sided at the whole error,
which bounds the sum of both kinds of error.

Values with a declared range have an exact interval for all interim analyses, and values without randomness are their
own interval. Other means have intervals by Student's t. If t cannot be trusted for a slope, its interval follows from
those of its means. In both cases each kind of error has at most half of the probability.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
import scipy
from jaxtyping import Float

from moe_theory.verification.intervals import (
    POWER,
    Intervals,
    Scheme,
    betting_intervals,
    clopper_pearson,
    last_decades,
    mean_and_error,
    scheme_for,
    student_intervals,
    student_tail,
)
from moe_theory.verification.verdict import SLOWEST_FALL, Status

Values = Float[np.ndarray, "B V"]  # one row per replicate, one column per component


class Bounds(NamedTuple):
    low: Any = -np.inf
    high: Any = np.inf

    def less(self, other: "Bounds") -> "Bounds":
        return Bounds(np.subtract(self.low, other.high), np.subtract(self.high, other.low))

    def times(self, factor: float) -> "Bounds":
        low, high = np.multiply(factor, self) if factor else (0.0, 0.0)
        return Bounds(low, high) if factor >= 0 else Bounds(high, low)


class Prior(NamedTuple):
    difference: Bounds = Bounds()  # observed - predicted
    allowed: Bounds = Bounds()
    error: float | None = None  # error of all looks together, by default that of the one look
    doubt: str = ""  # a reason to distrust t, whatever the samples
    from_means: Bounds = Bounds()  # bounds on the mean difference, for when t is not trusted


class Decision(NamedTuple):
    status: Status
    worst: int  # the component that decides, or is closest to the opposite decision
    low: Float[np.ndarray, " V"]  # simultaneous intervals of observed - predicted
    high: Float[np.ndarray, " V"]
    margin: float  # margin of the worst component, in the unit of the difference
    smallest_discrepancy: float  # smallest difference refuted with probability `POWER`, in the same unit
    method: str  # method of the intervals
    is_exact: bool
    doubt: str = ""  # why there is no interval
    error: float | None = None  # error of intervals that hold at all looks together


SIGNS: dict[str, tuple[int, ...]] = {  # of a difference that must not be large, by kind of claim or side of slope
    "equality": (1, -1),
    "equal": (1, -1),
    "upper_bound": (1,),
    "ordering": (1,),
    "at_most": (1,),
    "lower_bound": (-1,),
    "at_least": (-1,),
}


def judge_means(difference: Values, allowed: Values, error: float, side: str, prior: Prior) -> Decision:
    """Test the means of observed - predicted, with the `SIGNS` of the side, for all components at once.

    They must be at most the allowed means, and for an ordering strictly below.
    """
    signs = SIGNS[side]
    num_components = difference.shape[1]
    excess = np.concatenate([sign * difference - allowed for sign in signs], axis=1)
    scheme = scheme_for(excess, error)
    margins = allowed.mean(axis=0)

    def of_excess(difference: Bounds, allowed: Bounds) -> Bounds:
        sides = [difference.times(sign).less(allowed) for sign in signs]
        ends = ([np.broadcast_to(end, num_components) for end in pair] for pair in zip(*sides, strict=True))
        return Bounds(*map(np.concatenate, ends))

    low, high = bounds = of_excess(prior.difference, prior.allowed)
    is_mirrored = len(signs) == 2 and np.all(np.equal(*prior.allowed))
    otherwise = of_excess(prior.from_means, Bounds(margins, margins))
    decisive = _intervals(excess, bounds, otherwise, scheme, error=error, prior=prior, mirrored=2 if is_mirrored else 1)
    status = _decide(decisive.high, decisive.low)
    if side == "ordering" and status is Status.SUPPORTED and np.any(decisive.high == 0):
        status = Status.INCONCLUSIVE
    column = int(np.argmax(decisive.low if status is Status.REFUTED else decisive.high))
    worst = column % num_components
    interval = _intervals(difference, prior.difference, prior.from_means, scheme=scheme, error=error, prior=prior)
    margin = float(margins[worst])
    reach = decisive.high[column] - decisive.mean[column]
    reach += student_tail(1 - POWER, len(excess) - 1) * decisive.standard_error[column]
    is_bounded = {Status.REFUTED: low[column], Status.SUPPORTED: high.max()}.get(status, high[column] - low[column])
    method = _method(bounds, scheme, num_components)
    is_exact = bool(np.isfinite(is_bounded))
    is_open = bool(np.isinf([decisive.low[column], decisive.high[column]]).any())
    doubt = decisive.doubts[column] if is_open else ""
    if decisive.doubts[column] and not is_open and not is_exact:
        method += ", of the means"
    all_looks = prior.error if np.all(np.isfinite(low) & np.isfinite(high)) else None
    discrepancy = float(margin + reach)
    return Decision(status, worst, interval.low, interval.high, margin, discrepancy, method, is_exact, doubt, all_looks)


def _intervals(
    values: Values, bounds: Bounds, otherwise: Bounds, scheme: Scheme, error: float, prior: Prior, mirrored: int = 1
) -> Intervals:
    """Return simultaneous intervals of means, by betting if bounded, else by t if trusted, else `otherwise`."""
    by_t = student_intervals(values, scheme)
    doubts = [prior.doubt] * len(by_t.mean) if prior.doubt else by_t.doubts
    is_doubted = [bool(doubt) for doubt in doubts]
    lowest = np.where(is_doubted, otherwise.low, by_t.low)
    highest = np.where(is_doubted, otherwise.high, by_t.high)
    by_t = Intervals(by_t.mean, by_t.standard_error, lowest, highest, doubts)
    low, high = (np.broadcast_to(end, by_t.mean.shape) for end in bounds)
    bottom, top = betting_intervals(values, low, high, (prior.error or error) * mirrored)
    is_below = np.isfinite(low)
    is_above = np.isfinite(high)
    return by_t._replace(low=np.where(is_below, bottom, by_t.low), high=np.where(is_above, top, by_t.high))


def _method(bounds: Bounds, scheme: Scheme, num_components: int) -> str:
    ends = np.isfinite(np.stack(bounds))
    by_t = "Student's t"
    betting = "betting, at all looks together"
    if num_components > 1:
        betting += ", Bonferroni"
        by_t += ", sup-t by multiplier bootstrap" if scheme.is_bootstrap else ", Bonferroni"
    if not ends.any():
        return by_t
    if np.all(np.equal(*bounds)):
        return "computed: nothing random enters"
    if ends.all():
        return betting
    return f"{betting}, on the side that values have a bound on; {by_t} on the other"


def judge_probability(
    happened: Values, claimed: Float[np.ndarray, " V"], margin: float, error: float, *, at_most: bool
) -> Decision:
    """Test by Clopper-Pearson intervals whether V events' probabilities are at most (or at least) `claimed`.

    The smallest discrepancy is the excess at which the worst event is refuted with power `POWER`. `claimed` refers to
    the mean probability, because counts with unequal probabilities scatter less than a binomial (Hoeffding).
    """
    count, num_events = happened.shape
    low, high = clopper_pearson(happened.sum(axis=0), count, error / num_events)
    sign = 1 if at_most else -1
    nearest, farthest = (low, high) if at_most else (high, low)
    beyond = sign * (nearest - claimed) - margin
    excess = sign * (farthest - claimed) - margin
    status = _decide(excess, beyond)
    worst = int(np.argmax(beyond if status is Status.REFUTED else excess))
    discrepancy = _detectable_probability(claimed[worst] + sign * margin, count, error / num_events, sign)
    method = "Clopper-Pearson, Bonferroni" if num_events > 1 else "Clopper-Pearson"
    return Decision(status, worst, low - claimed, high - claimed, margin, discrepancy + margin, method, is_exact=True)


def judge_limit_probability(
    happened: Values, abscissa: Float[np.ndarray, " V"], margin: float, error: float, *, at_most: bool
) -> Decision:
    """Test that the probability of an event tends to 0 (at_most) or to 1 along the grid.

    The failure probability must tend to 0. The claim is SUPPORTED if this probability is at most the margin at the end,
    falls over the last two decades or stays within the margin there, and is nowhere there provably lower than at the
    end. The claim is REFUTED if the probability is above the margin at the end, and falls over the last two decades
    with an exponent below `SLOWEST_FALL` or not at all. Other cases stay open. Clopper-Pearson intervals are
    simultaneous.

    So a fall like 1/log(1/x) below x = 1e-10 counts as no fall.
    """
    claimed = np.full(happened.shape[1], float(not at_most))
    judgement = judge_probability(happened, claimed, margin, error, at_most=at_most)
    low, high = (judgement.low, judgement.high) if at_most else (-judgement.high, -judgement.low)
    window = last_decades(abscissa, 2)
    first = int(window[0])
    last = int(window[-1])
    is_small = high <= margin
    has_risen = np.any(low[last] > high[window])
    least_ratio = float(np.exp(-SLOWEST_FALL * abs(np.log(abscissa[last] / abscissa[first]))))
    status = Status.INCONCLUSIVE
    if is_small[last] and not has_risen and (high[last] < low[first] or np.all(is_small[window])):
        status = Status.SUPPORTED
    elif low[last] > margin and low[last] > least_ratio * high[first]:
        status = Status.REFUTED
    discrepancy = _detectable_limit(margin, len(happened), error / len(claimed), least_ratio)
    return judgement._replace(status=status, worst=last, smallest_discrepancy=discrepancy)


def detectable_slope(slopes: Values, reach: Float[np.ndarray, " V"], margin: float) -> float:
    """Return the excess at which the slope of a limit is refuted with probability `POWER` if it does not bend, or NaN.

    Refutations are rarer if bending back cannot be excluded.
    """
    spread = mean_and_error(slopes)[1]
    freedom = len(slopes) - 1
    not_excluded = scipy.stats.t.sf((margin - reach[0]) / spread[0], freedom) if spread[0] else reach[0] > margin
    missed = 1 - POWER - float(not_excluded)
    if missed > 0:
        return float(margin + reach[1] + student_tail(missed, freedom) * spread[1])
    return float("nan")


@functools.lru_cache(maxsize=256)
def _detectable_limit(margin: float, count: int, error: float, least_ratio: float) -> float:
    """Return the smallest constant failure probability that is refuted with probability `POWER`, or NaN."""
    counts = np.arange(count + 1)
    low, high = clopper_pearson(counts, count, error)
    refuting = np.where(low > margin, np.searchsorted(high, low / least_ratio), 0)  # counts at the first point

    def excess_power(probability: float) -> float:
        cumulative = np.r_[0, scipy.stats.binom.cdf(counts, count, probability)]
        return float(scipy.stats.binom.pmf(counts, count, probability) @ cumulative[refuting]) - POWER

    if excess_power(1) <= 0:
        return float("nan")
    return float(scipy.optimize.root_scalar(excess_power, bracket=(margin, 1), xtol=1e-6).root)


def _detectable_probability(claimed: float, count: int, error: float, sign: int) -> float:
    counts = np.arange(count + 1)
    low, high = clopper_pearson(counts, count, error)
    refuting = counts[low > claimed] if sign > 0 else counts[high < claimed]
    if not refuting.size:
        return float("nan")
    # At this true probability, the least extreme refuting count is reached with probability POWER.
    if sign > 0:
        return float(scipy.stats.beta.ppf(POWER, refuting[0], count - refuting[0] + 1) - claimed)
    return float(claimed - scipy.stats.beta.ppf(1 - POWER, refuting[-1] + 1, count - refuting[-1]))


def _decide(excess: np.ndarray, beyond: np.ndarray) -> Status:
    if np.any(beyond > 0):
        return Status.REFUTED
    if np.all(excess <= 0):
        return Status.SUPPORTED
    return Status.INCONCLUSIVE
