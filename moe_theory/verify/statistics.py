"""Tests of each kind of claim: what simultaneous intervals decide, and what they could have seen.

A test of means works on one difference a replicate and component, so that what varies between replicates (their pools,
their arrivals) cancels. A claim is REFUTED where some component's interval lies beyond its margin, SUPPORTED where all
lie within; intervals are two-sided at the whole error, so that each way of being wrong has at most half of it.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from moe_theory.verify.intervals import POWER, clopper_pearson, intervals, mean_and_error, scheme_for, student_tail
from moe_theory.verify.verdict import Status


class Judgement(NamedTuple):
    """What a test says, and of which component it is most in doubt."""

    status: Status
    worst: int  # the component that decides, or comes nearest to deciding otherwise
    low: Float[np.ndarray, " V"]  # simultaneous intervals of observed - predicted
    high: Float[np.ndarray, " V"]
    margin: float  # of the worst component, in the difference's own unit
    smallest_discrepancy: float  # what would have been refuted with probability `POWER`, in the same unit
    method: str  # of the intervals
    is_exact: bool


def judge_equality(
    observed: Float[np.ndarray, "B V"],
    predicted: Float[np.ndarray, "B V"],
    allowed: Float[np.ndarray, "B V"],
    error: float,
) -> Judgement:
    """Two one-sided tests of |E[observed] - E[predicted]| < E[allowed], for every component at once."""
    difference = observed - predicted
    return _judge_means(difference, [difference - allowed, -difference - allowed], allowed, error)


def judge_upper_bound(
    observed: Float[np.ndarray, "B V"],
    bound: Float[np.ndarray, "B V"],
    allowed: Float[np.ndarray, "B V"],
    error: float,
    *,
    is_strict: bool = False,
) -> Judgement:
    """One-sided tests of E[observed] <= E[bound] + E[allowed] (strictly below, if so), for every component at once."""
    difference = observed - bound
    return _judge_means(difference, [difference - allowed], allowed, error, is_strict=is_strict)


def judge_lower_bound(
    observed: Float[np.ndarray, "B V"],
    bound: Float[np.ndarray, "B V"],
    allowed: Float[np.ndarray, "B V"],
    error: float,
) -> Judgement:
    """One-sided tests of E[observed] >= E[bound] - E[allowed], for every component at once."""
    difference = observed - bound
    return _judge_means(difference, [-difference - allowed], allowed, error)


def judge_slopes(
    slopes: Float[np.ndarray, "B V"],
    exponents: Float[np.ndarray, "B V"],
    allowed: Float[np.ndarray, "B V"],
    error: float,
    side: str,
) -> Judgement:
    """Whether slopes are at_most, at_least or equal to exponents: all of them to support it, the last to refute it."""
    test = {"at_most": judge_upper_bound, "at_least": judge_lower_bound, "equal": judge_equality}[side]
    judgement = test(slopes, exponents, allowed, error)
    margins = allowed.mean(axis=0)
    above, below = judgement.low - margins, -judgement.high - margins  # how surely a slope is too high, or too low
    beyond = {"at_most": above, "at_least": below, "equal": np.maximum(above, below)}[side]
    if judgement.status is Status.REFUTED and beyond[-1] <= 0:
        return judgement._replace(status=Status.INCONCLUSIVE)
    if judgement.status is Status.REFUTED:
        return judgement._replace(worst=len(beyond) - 1)
    return judgement


def _judge_means(
    difference: np.ndarray, excesses: list[np.ndarray], allowed: np.ndarray, error: float, *, is_strict: bool = False
) -> Judgement:
    """Whether all means of all excesses are below 0; shown are the intervals of the difference."""
    num_components = difference.shape[1]
    excess = np.concatenate(excesses, axis=1)
    scheme = scheme_for(excess, error)
    decisive = intervals(excess, scheme)
    status = _decide(decisive.high, decisive.low)
    if is_strict and status is Status.SUPPORTED and np.any(decisive.high == 0):
        status = Status.INCONCLUSIVE
    column = int(np.argmax(decisive.low if status is Status.REFUTED else decisive.high))
    shown, worst = intervals(difference, scheme), column % num_components
    margin = float(np.mean(allowed[:, worst]))
    reach = decisive.high[column] - decisive.mean[column]
    reach += student_tail(1 - POWER, len(excess) - 1) * decisive.standard_error[column]
    method = "sup-t by multiplier bootstrap" if scheme.is_bootstrap else "Bonferroni"
    method = f"Student's t, {method}" if num_components > 1 else "Student's t"
    if decisive.is_widened.any():
        method += "; skewed or heavy-tailed, widened by the median of means"
    return Judgement(status, worst, shown.low, shown.high, margin, float(margin + reach), method, is_exact=False)


def judge_identity(errors: Float[np.ndarray, "B V"], tolerance: float, error: float) -> Judgement:
    """Whether every replicate's error is within `tolerance`.

    A single violation refutes. The interval is from 0 to the largest error seen; the smallest discrepancy is the
    frequency of violations that would have shown at least one with probability 1 - `error` (exact, binomial).
    """
    largest = np.max(np.abs(errors), axis=0)
    worst = int(np.argmax(largest))
    status = Status.SUPPORTED if largest[worst] <= tolerance else Status.REFUTED
    frequency = float(-np.expm1(np.log(error) / len(errors)))
    return Judgement(
        status, worst, np.zeros_like(largest), largest, tolerance, frequency, "largest error seen", is_exact=True
    )


def judge_probability(
    happened: Float[np.ndarray, "B V"], claimed: Float[np.ndarray, " V"], margin: float, error: float, *, at_most: bool
) -> Judgement:
    """Clopper-Pearson intervals for the probability of each of V events, against at most (or at least) `claimed`.

    The smallest discrepancy is the excess that the worst event would be refuted with at power `POWER`. Replicates may
    differ in their probabilities, with `claimed` for the mean: such counts scatter less than a binomial (Hoeffding).
    """
    count, num_events = happened.shape
    low, high = clopper_pearson(happened.sum(axis=0), count, error / num_events)
    sign = 1 if at_most else -1
    nearest, farthest = (low, high) if at_most else (high, low)
    beyond, excess = sign * (nearest - claimed) - margin, sign * (farthest - claimed) - margin
    status = _decide(excess, beyond)
    worst = int(np.argmax(beyond if status is Status.REFUTED else excess))
    seen = _detectable_probability(claimed[worst] + sign * margin, count, error / num_events, sign)
    method = "Clopper-Pearson, Bonferroni" if num_events > 1 else "Clopper-Pearson"
    return Judgement(status, worst, low - claimed, high - claimed, margin, seen + margin, method, is_exact=True)


def judge_counterexample(
    violated: Float[np.ndarray, "B V"], allowed: Float[np.ndarray, " V"], error: float
) -> Judgement:
    """Whether instances violate a statement more often than `allowed`: that refutes it, and nothing else is shown."""
    judgement = judge_probability(violated, allowed, 0.0, error, at_most=True)
    return judgement if judgement.status is Status.REFUTED else judgement._replace(status=Status.INCONCLUSIVE)


def _detectable_probability(claimed: float, count: int, error: float, sign: int) -> float:
    """How far a probability must be beyond `claimed` to be refuted with probability `POWER` (NaN: none is)."""
    counts = np.arange(count + 1)
    low, high = clopper_pearson(counts, count, error)
    refuting = counts[low > claimed] if sign > 0 else counts[high < claimed]
    if not refuting.size:
        return float("nan")
    # The least extreme count that refutes is reached with probability POWER at this true probability.
    if sign > 0:
        return float(stats.beta.ppf(POWER, refuting[0], count - refuting[0] + 1) - claimed)
    return float(claimed - stats.beta.ppf(1 - POWER, refuting[-1] + 1, count - refuting[-1]))


def _decide(excess: np.ndarray, beyond: np.ndarray) -> Status:
    if np.any(beyond > 0):
        return Status.REFUTED
    return Status.SUPPORTED if np.all(excess <= 0) else Status.INCONCLUSIVE


__all__ = [
    "POWER",
    "Judgement",
    "judge_counterexample",
    "judge_equality",
    "judge_identity",
    "judge_lower_bound",
    "judge_probability",
    "judge_slopes",
    "judge_upper_bound",
    "mean_and_error",
]
