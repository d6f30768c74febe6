"""Simultaneous intervals for means over replicates, and what they decide of each kind of claim.

A test of means works on one difference a replicate and component, so that what varies between replicates (their pools,
their arrivals) cancels. Over V components the error is split evenly (Bonferroni), and over the two sides of an
interval. Intervals are Student's t: asymptotic, since differences need not be normal.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from moe_theory.core.errors import InvalidClaimError
from moe_theory.verify.verdict import Status

POWER = 0.9  # the power that the smallest discrepancy is quoted at


class Judgement(NamedTuple):
    """What a test says, and of which component it is most in doubt."""

    status: Status
    worst: int  # the component that decides, or comes nearest to deciding otherwise
    low: float  # interval of the worst component's mean difference
    high: float
    margin: float  # in the difference's own unit
    smallest_discrepancy: float  # what would have been refuted with probability `POWER`, in the same unit


def judge_equality(
    observed: Float[np.ndarray, "B V"],
    predicted: Float[np.ndarray, "B V"],
    allowed: Float[np.ndarray, "B V"],
    error: float,
) -> Judgement:
    """Two one-sided tests of |E[observed] - E[predicted]| < E[allowed], for every component at once."""
    critical = critical_value(observed, error)
    difference = observed - predicted
    above, above_error = mean_and_error(difference - allowed)
    below, below_error = mean_and_error(-difference - allowed)
    excess = np.maximum(above + critical * above_error, below + critical * below_error)
    beyond = np.maximum(above - critical * above_error, below - critical * below_error)
    mean, standard_error = mean_and_error(difference)
    status = _decide(excess, beyond)
    worst = int(np.argmax(beyond if status is Status.REFUTED else excess))
    margin = float(np.mean(allowed[:, worst]))
    width = critical * standard_error[worst]
    seen = margin + _detectable(observed, critical) * max(above_error[worst], below_error[worst])
    return Judgement(status, worst, mean[worst] - width, mean[worst] + width, margin, float(seen))


def judge_upper_bound(
    observed: Float[np.ndarray, "B V"],
    bound: Float[np.ndarray, "B V"],
    allowed: Float[np.ndarray, "B V"],
    error: float,
    *,
    is_strict: bool = False,
) -> Judgement:
    """One-sided tests of E[observed] <= E[bound] + E[allowed] (strictly below, if so), for every component at once."""
    critical = critical_value(observed, error)
    mean, standard_error = mean_and_error(observed - bound)
    slack, slack_error = mean_and_error(observed - bound - allowed)
    excess, beyond = slack + critical * slack_error, slack - critical * slack_error
    status = _decide(excess, beyond)
    if is_strict and status is Status.SUPPORTED and np.any(excess == 0):
        status = Status.INCONCLUSIVE
    worst = int(np.argmax(beyond if status is Status.REFUTED else excess))
    width = critical * standard_error[worst]
    margin = float(np.mean(allowed[:, worst]))
    seen = margin + _detectable(observed, critical) * slack_error[worst]
    return Judgement(status, worst, mean[worst] - width, mean[worst] + width, margin, float(seen))


def judge_identity(errors: Float[np.ndarray, "B V"], tolerance: float, error: float) -> Judgement:
    """Whether every replicate's error is within `tolerance`.

    A single violation refutes. The interval is from 0 to the largest error seen; the smallest discrepancy is the
    frequency of violations that would have shown at least one with probability 1 - `error` (exact, binomial).
    """
    largest = np.max(np.abs(errors), axis=0)
    worst = int(np.argmax(largest))
    status = Status.SUPPORTED if largest[worst] <= tolerance else Status.REFUTED
    frequency = float(-np.expm1(np.log(error) / len(errors)))
    return Judgement(status, worst, 0.0, float(largest[worst]), tolerance, frequency)


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
    return Judgement(status, worst, low[worst] - claimed[worst], high[worst] - claimed[worst], margin, seen + margin)


def clopper_pearson(
    successes: Float[np.ndarray, " V"], count: int, error: float
) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    """Exact two-sided interval for a binomial probability, of coverage at least 1 - `error`."""
    low = np.where(successes > 0, stats.beta.ppf(error / 2, successes, count - successes + 1), 0.0)
    high = np.where(successes < count, stats.beta.isf(error / 2, successes + 1, count - successes), 1.0)
    return low, high


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


def slope_samples(values: Float[np.ndarray, "B V"], abscissa: Float[np.ndarray, " V"]) -> Float[np.ndarray, "B 1"]:
    """One number a replicate whose mean is the slope of log means over log x, and whose scatter its error.

    The least-squares slope is sum_v a_v log(mean_v); by the delta method a replicate's share in its error is
    sum_v a_v (value_v / mean_v - 1).

    Raises: InvalidClaimError where a mean is not positive, and so has no logarithm.
    """
    means = values.mean(axis=0)
    if not np.all(means > 0):
        raise InvalidClaimError(f"a rate needs positive means, not {means.min():.3g}")
    places = np.log(abscissa) - np.mean(np.log(abscissa))
    weights = places / np.sum(places**2)
    return (weights @ np.log(means) + (values / means - 1) @ weights)[:, None]


def mean_and_error(samples: Float[np.ndarray, "B V"]) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
    """Mean over replicates and its standard error, in float64."""
    samples = np.asarray(samples, np.float64)
    return samples.mean(axis=0), samples.std(axis=0, ddof=1) / np.sqrt(len(samples))


def critical_value(samples: Float[np.ndarray, "B V"], error: float) -> float:
    """Half-width, in standard errors, of simultaneous two-sided intervals for the V components."""
    num_replicates, num_components = samples.shape
    return float(stats.t.isf(error / num_components / 2, num_replicates - 1))


def is_skewed(samples: Float[np.ndarray, "B V"]) -> bool:
    """Whether some component is too skewed, for so few replicates, to trust a t interval far out in its tail.

    The rule n >= 50 skewness^2 is twice Cochran's, who had 5 % errors in mind (Sampling Techniques, 1977, Sec. 2.15).
    """
    varies = np.ptp(samples, axis=0) > 1e-12 * np.max(np.abs(samples), axis=0)  # rounding has no shape to judge
    return bool(np.any(50 * np.square(stats.skew(samples[:, varies], axis=0)) > len(samples)))


def _detectable(samples: np.ndarray, critical: float) -> float:
    """Distance beyond a margin, in standard errors, that is refuted with probability `POWER`."""
    return critical + float(stats.t.ppf(POWER, len(samples) - 1))


def _decide(excess: np.ndarray, beyond: np.ndarray) -> Status:
    if np.any(beyond > 0):
        return Status.REFUTED
    return Status.SUPPORTED if np.all(excess <= 0) else Status.INCONCLUSIVE
