"""Simultaneous intervals for means over replicates, and what they decide of each kind of claim.

Every test works on one difference a replicate and component, so that what varies between replicates (their pools,
their arrivals) cancels. Over V components the error is split evenly (Bonferroni), and over the two sides of an
interval. Intervals are Student's t: asymptotic, since differences need not be normal.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

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
    varies = np.ptp(samples, axis=0) > 0
    return bool(np.any(50 * np.square(stats.skew(samples[:, varies], axis=0)) > len(samples)))


def _detectable(samples: np.ndarray, critical: float) -> float:
    """Distance beyond a margin, in standard errors, that is refuted with probability `POWER`."""
    return critical + float(stats.t.ppf(POWER, len(samples) - 1))


def _decide(excess: np.ndarray, beyond: np.ndarray) -> Status:
    if np.any(beyond > 0):
        return Status.REFUTED
    return Status.SUPPORTED if np.all(excess <= 0) else Status.INCONCLUSIVE
