"""Judgements, which test a claim by its kind at one interim analysis.

A test of means has a difference for each replicate and component. A claim is REFUTED if some component's interval lies
beyond its margin, and SUPPORTED if all lie within. The error of the two-sided intervals bounds both errors together.

Values with a declared range have an exact interval for all interim analyses, and values without randomness are their
own interval. Other means have intervals by Student's t. If t cannot be trusted for a slope, its interval follows from
the intervals of its means. In both cases each kind of error has at most half of the probability.
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

    def minus(self, other: "Bounds") -> "Bounds":
        return Bounds(np.subtract(self.low, other.high), np.subtract(self.high, other.low))

    def times(self, factor: float) -> "Bounds":
        if factor == 0:  # 0 times an infinite bound would be NaN
            return Bounds(0.0, 0.0)
        low, high = np.multiply(factor, self)
        return Bounds(low, high) if factor > 0 else Bounds(high, low)


class Prior(NamedTuple):  # what is known about means apart from their samples
    difference: Bounds = Bounds()  # observed - predicted
    allowed: Bounds = Bounds()
    error: float | None = None  # of all analyses together, for betting. By default that of the one analysis
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
    error: float | None = None  # error of intervals that hold at all analyses together


# Signs s for which s * difference must not be large, by the kind of a claim or the side of a slope.
SIGNS: dict[str, tuple[int, ...]] = {
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

    The means must be at most the allowed means, and for an ordering strictly below.
    """
    signs = SIGNS[side]
    num_components = difference.shape[1]
    excess = np.concatenate([sign * difference - allowed for sign in signs], axis=1)
    scheme = scheme_for(excess, error)
    margins = allowed.mean(axis=0)

    def bounds_of_excess(difference_bounds: Bounds, allowed_bounds: Bounds) -> Bounds:
        by_sign = [difference_bounds.times(sign).minus(allowed_bounds) for sign in signs]
        lows = [np.broadcast_to(bounds.low, num_components) for bounds in by_sign]
        highs = [np.broadcast_to(bounds.high, num_components) for bounds in by_sign]
        return Bounds(np.concatenate(lows), np.concatenate(highs))

    bounds = bounds_of_excess(prior.difference, prior.allowed)
    from_means = bounds_of_excess(prior.from_means, Bounds(margins, margins))
    # With a fixed margin the intervals of both signs mirror each other. Each has the error of both.
    is_mirrored = len(signs) == 2 and np.all(np.equal(*prior.allowed))
    num_alike = 2 if is_mirrored else 1
    decisive = _intervals(excess, bounds, from_means, scheme, error=error, prior=prior, num_alike=num_alike)
    status = _decide(high=decisive.high, low=decisive.low)
    if side == "ordering" and status is Status.SUPPORTED and np.any(decisive.high == 0):
        status = Status.INCONCLUSIVE
    deciding_ends = decisive.low if status is Status.REFUTED else decisive.high
    column = int(np.argmax(deciding_ends))
    worst = column % num_components  # each sign has a column for every component
    interval = _intervals(difference, prior.difference, prior.from_means, scheme=scheme, error=error, prior=prior)
    margin = float(margins[worst])
    # A mean that exceeds its bound by `reach` is refuted with probability `POWER`.
    reach = decisive.high[column] - decisive.mean[column]
    reach += student_tail(1 - POWER, len(excess) - 1) * decisive.standard_error[column]
    # The bounds behind the decision, from declared ranges. If nothing is decided, both must be finite.
    deciding_bounds = {Status.REFUTED: bounds.low[column], Status.SUPPORTED: bounds.high.max()}
    deciding_bound = deciding_bounds.get(status, bounds.high[column] - bounds.low[column])
    is_exact = bool(np.isfinite(deciding_bound))
    method = _method(bounds, scheme, num_components)
    has_infinite_end = bool(np.isinf([decisive.low[column], decisive.high[column]]).any())
    if decisive.doubts[column] and not has_infinite_end and not is_exact:  # the interval is from `from_means`
        method += ", of the means"
    is_bounded = np.all(np.isfinite(bounds.low) & np.isfinite(bounds.high))
    return Decision(
        status,
        worst,
        low=interval.low,
        high=interval.high,
        margin=margin,
        smallest_discrepancy=float(margin + reach),
        method=method,
        is_exact=is_exact,
        doubt=decisive.doubts[column] if has_infinite_end else "",
        error=prior.error if is_bounded else None,
    )


def _intervals(
    values: Values, bounds: Bounds, from_means: Bounds, scheme: Scheme, error: float, prior: Prior, num_alike: int = 1
) -> Intervals:
    """Return simultaneous intervals of means, by betting if bounded, else by t if trusted, else `from_means`."""
    by_t = student_intervals(values, scheme)
    doubts = [prior.doubt] * len(by_t.mean) if prior.doubt else by_t.doubts
    is_doubted = [bool(doubt) for doubt in doubts]
    low = np.where(is_doubted, from_means.low, by_t.low)
    high = np.where(is_doubted, from_means.high, by_t.high)
    least = np.broadcast_to(bounds.low, by_t.mean.shape)
    most = np.broadcast_to(bounds.high, by_t.mean.shape)
    betting_low, betting_high = betting_intervals(values, least, most, (prior.error or error) * num_alike)
    low = np.where(np.isfinite(least), betting_low, low)
    high = np.where(np.isfinite(most), betting_high, high)
    return Intervals(by_t.mean, by_t.standard_error, low, high, doubts)


def _method(bounds: Bounds, scheme: Scheme, num_components: int) -> str:
    ends = np.isfinite(np.stack(bounds))
    by_t = "Student's t"
    betting = "betting, at all analyses together"
    if num_components > 1:
        betting += ", Bonferroni"
        by_t += ", sup-t by multiplier bootstrap" if scheme.is_bootstrap else ", Bonferroni"
    if not ends.any():
        return by_t
    if np.all(np.equal(*bounds)):
        return "computed without randomness"
    if ends.all():
        return betting
    return f"{betting}, on the bounded side, and {by_t} on the other"


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
    nearest, farthest = (low, high) if at_most else (high, low)  # ends of the intervals, from the allowed side
    beyond = sign * (nearest - claimed) - margin
    excess = sign * (farthest - claimed) - margin
    status = _decide(high=excess, low=beyond)
    deciding_ends = beyond if status is Status.REFUTED else excess
    worst = int(np.argmax(deciding_ends))
    discrepancy = _detectable_probability(claimed[worst] + sign * margin, count, error / num_events, sign)
    return Decision(
        status,
        worst,
        low=low - claimed,
        high=high - claimed,
        margin=margin,
        smallest_discrepancy=discrepancy + margin,
        method="Clopper-Pearson, Bonferroni" if num_events > 1 else "Clopper-Pearson",
        is_exact=True,
    )


def judge_limit_probability(
    happened: Values, abscissa: Float[np.ndarray, " V"], margin: float, error: float, *, at_most: bool
) -> Decision:
    """Test that the probability of an event tends to 0 (at_most) or to 1 along the grid.

    The failure probability must tend to 0. The claim is SUPPORTED if this probability is at most the margin at the end.
    It must also fall over the last two decades, or stay within the margin there. Nowhere there may it be provably lower
    than at the end. The claim is REFUTED if the probability is above the margin at the end, and falls over the last two
    decades with an exponent below `SLOWEST_FALL` or not at all. Other cases stay open. Intervals are simultaneous.

    So a fall like 1/log(1/x) below x = 1e-10 counts as no fall.
    """
    claimed = np.full(happened.shape[1], float(not at_most))
    judgement = judge_probability(happened, claimed, margin, error, at_most=at_most)
    # Intervals of the failure probability.
    low, high = (judgement.low, judgement.high) if at_most else (-judgement.high, -judgement.low)
    window = last_decades(abscissa, number=2)
    first = int(window[0])
    last = int(window[-1])
    is_small = high <= margin
    has_risen = np.any(low[last] > high[window])
    # If the failure probability falls by less than this factor, it counts as constant.
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

    Refutations are rarer if bending back cannot be excluded. `reach` has the half-widths of the two intervals.
    """
    _, standard_errors = mean_and_error(slopes)
    bending_error, slope_error = standard_errors
    bending_reach, slope_reach = reach
    freedom = len(slopes) - 1
    if bending_error:
        may_bend = scipy.stats.t.sf((margin - bending_reach) / bending_error, freedom)
    else:
        may_bend = bending_reach > margin
    missed = 1 - POWER - float(may_bend)
    if missed > 0:
        return float(margin + slope_reach + student_tail(missed, freedom) * slope_error)
    return float("nan")


@functools.lru_cache(maxsize=256)
def _detectable_limit(margin: float, count: int, error: float, least_ratio: float) -> float:
    """Return the smallest constant failure probability that is refuted with probability `POWER`, or NaN."""
    counts = np.arange(count + 1)
    low, high = clopper_pearson(counts, count, error)
    # For each count at the end, how many of the counts 0, 1, ... at the first point lead to REFUTED.
    num_refuting = np.where(low > margin, np.searchsorted(high, low / least_ratio), 0)

    def excess_power(probability: float) -> float:
        cumulative = np.r_[0, scipy.stats.binom.cdf(counts, count, probability)]
        frequencies = scipy.stats.binom.pmf(counts, count, probability)
        return float(frequencies @ cumulative[num_refuting]) - POWER

    if excess_power(1) <= 0:
        return float("nan")
    return float(scipy.optimize.root_scalar(excess_power, bracket=(margin, 1), xtol=1e-6).root)


def _detectable_probability(claimed: float, count: int, error: float, sign: int) -> float:
    """Return the excess over `claimed`, or the deficit, that is refuted with probability `POWER`, or NaN."""
    counts = np.arange(count + 1)
    low, high = clopper_pearson(counts, count, error)
    refuting = counts[low > claimed] if sign > 0 else counts[high < claimed]
    if not refuting.size:
        return float("nan")
    # At this true probability, the least extreme refuting count is reached with probability POWER.
    if sign > 0:
        return float(scipy.stats.beta.ppf(POWER, refuting[0], count - refuting[0] + 1) - claimed)
    return float(claimed - scipy.stats.beta.ppf(1 - POWER, refuting[-1] + 1, count - refuting[-1]))


def _decide(high: np.ndarray, low: np.ndarray) -> Status:  # ends of the intervals of what must be at most 0
    if np.any(low > 0):
        return Status.REFUTED
    if np.all(high <= 0):
        return Status.SUPPORTED
    return Status.INCONCLUSIVE
