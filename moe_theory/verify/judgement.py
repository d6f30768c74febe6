"""Judgements: the test of a claim's kind at one look, from samples to a verdict and what is said of it in words.

A test of means works on one difference a replicate and component, so that what varies between replicates (their pools,
their arrivals) cancels. A claim is REFUTED where some component's interval lies beyond its margin, SUPPORTED where all
lie within; intervals are two-sided at the whole error, so that each way of being wrong has at most half of it.
"""

import dataclasses
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from moe_theory.verify.claim import Claim
from moe_theory.verify.evidence import Samples
from moe_theory.verify.intervals import (
    POWER,
    asymptotic_end,
    clopper_pearson,
    intervals,
    mean_and_error,
    scheme_for,
    slope_samples,
    student_tail,
)
from moe_theory.verify.verdict import Curve, Look, Status, Verdict

Values = Float[np.ndarray, "B V"]  # a row a replicate, a column a component


def examine(claim: Claim, samples: Samples, labels: list[str], error: float, blank: Verdict) -> tuple[Verdict, Look]:
    """The verdict `blank`, filled in from a look at these samples at this error, and the look. Raises:
    InvalidClaimError where the samples have no verdict, such as means without a logarithm.
    """
    if claim.kind == "rate":
        return _examine_rate(claim, samples, labels, error, blank)
    judgement = _test(claim, samples, error)
    worst, status = judgement.worst, judgement.status
    predicted, observed = samples.predicted.mean(axis=0), samples.observed.mean(axis=0)
    if claim.kind == "identity":
        observed = np.abs(samples.observed).max(axis=0)
    is_count = claim.kind in {"probability", "counterexample"}
    spread = samples.observed if is_count else samples.observed - samples.predicted
    verdict = dataclasses.replace(
        blank,
        status=status,
        reason=_reason(claim, judgement, labels[worst], float(observed[worst]), float(predicted[worst])),
        at=labels[worst],
        predicted=float(predicted[worst]),
        observed=float(observed[worst]),
        standard_error=float("nan") if claim.kind == "identity" else float(mean_and_error(spread)[1][worst]),
        **_numbers(judgement),
        curve=_curve(labels, predicted, observed, judgement.low, judgement.high, samples.allowed.mean(axis=0)),
    )
    verdict = _vacuous(claim, samples, verdict, worst)
    return verdict, _look(verdict, samples, float(observed[worst] - predicted[worst]), error)


class Judgement(NamedTuple):
    """What a test decides, and the component that decides it."""

    status: Status
    worst: int  # the component that decides, or comes nearest to deciding otherwise
    low: Float[np.ndarray, " V"]  # simultaneous intervals of observed - predicted
    high: Float[np.ndarray, " V"]
    margin: float  # of the worst component, in the difference's own unit
    smallest_discrepancy: float  # what would have been refuted with probability `POWER`, in the same unit
    method: str  # of the intervals
    is_exact: bool


def judge_equality(observed: Values, predicted: Values, allowed: Values, error: float) -> Judgement:
    """Two one-sided tests of |E[observed] - E[predicted]| < E[allowed], for every component at once."""
    difference = observed - predicted
    return _judge_means(difference, [difference - allowed, -difference - allowed], allowed, error)


def judge_upper_bound(
    observed: Values, bound: Values, allowed: Values, error: float, *, is_strict: bool = False
) -> Judgement:
    """One-sided tests of E[observed] <= E[bound] + E[allowed] (strictly below, if so), for every component at once."""
    difference = observed - bound
    return _judge_means(difference, [difference - allowed], allowed, error, is_strict=is_strict)


def judge_lower_bound(observed: Values, bound: Values, allowed: Values, error: float) -> Judgement:
    """One-sided tests of E[observed] >= E[bound] - E[allowed], for every component at once."""
    difference = observed - bound
    return _judge_means(difference, [-difference - allowed], allowed, error)


def judge_slopes(slopes: Values, exponents: Values, allowed: Values, error: float, side: str) -> Judgement:
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
    """Whether all means of all excesses are below 0, with the intervals of the difference."""
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


def judge_identity(errors: Values, tolerance: float, error: float) -> Judgement:
    """Whether every replicate's error is within `tolerance`. A single violation refutes. The interval is from 0 to the
    largest error seen; the smallest discrepancy is the frequency of violations that would have shown at least one with
    probability 1 - `error` (exact, binomial).
    """
    largest = np.max(np.abs(errors), axis=0)
    worst = int(np.argmax(largest))
    status = Status.SUPPORTED if largest[worst] <= tolerance else Status.REFUTED
    frequency = float(-np.expm1(np.log(error) / len(errors)))
    return Judgement(
        status, worst, np.zeros_like(largest), largest, tolerance, frequency, "largest error seen", is_exact=True
    )


def judge_probability(
    happened: Values, claimed: Float[np.ndarray, " V"], margin: float, error: float, *, at_most: bool
) -> Judgement:
    """Clopper-Pearson intervals for the probability of each of V events, against at most (or at least) `claimed`. The
    smallest discrepancy is the excess that the worst event would be refuted with at power `POWER`. Replicates may
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


def judge_counterexample(violated: Values, allowed: Float[np.ndarray, " V"], error: float) -> Judgement:
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


def _test(claim: Claim, samples: Samples, error: float) -> Judgement:
    observed, predicted, allowed, _ = samples
    match claim.kind:
        case "identity":
            return judge_identity(observed, claim.margin, error)
        case "probability":
            at_most = claim.side == "at_most"
            return judge_probability(observed, predicted.mean(axis=0), claim.margin, error, at_most=at_most)
        case "counterexample":
            return judge_counterexample(observed, predicted.mean(axis=0) + claim.margin, error)
        case "equality":
            return judge_equality(observed, predicted, allowed, error)
        case "lower_bound":
            return judge_lower_bound(observed, predicted, allowed, error)
        case _:
            is_strict = claim.kind == "ordering"
            return judge_upper_bound(observed, predicted, allowed, error, is_strict=is_strict)


def _examine_rate(
    claim: Claim, samples: Samples, labels: list[str], error: float, blank: Verdict
) -> tuple[Verdict, Look]:
    """Test the slope over the whole grid and that at its asymptotic end; the curve has the means. An exponent is of a
    limit: a grid that shows it at both supports it, and only the end nearest the limit refutes it.
    """
    abscissa, values = np.asarray(claim.abscissa, np.float64), samples.observed
    end, end_name = asymptotic_end(abscissa)
    slopes = np.hstack([slope_samples(values[:, places], abscissa[places]) for places in (slice(None), end)])
    names = ["slope", f"slope at the {end_name} end"]
    if len(abscissa) == 2:
        slopes, names = slopes[:, :1], names[:1]
    exponents, allowed = (np.broadcast_to(part, slopes.shape) for part in (samples.predicted, samples.allowed))
    judgement = judge_slopes(slopes, exponents, allowed, error, claim.side or "equal")
    worst, exponent = judgement.worst, float(exponents.mean())
    measured = slopes.mean(axis=0)
    means = values.mean(axis=0)
    law = np.exp(np.mean(np.log(means)) + exponent * (np.log(abscissa) - np.mean(np.log(abscissa))))
    around = intervals(values, scheme_for(values, error))
    curve = _curve(labels, law, means, around.low - law, around.high - law, np.zeros_like(means))
    numbers = _numbers(judgement)
    numbers["interval_kind"] = numbers["interval_kind"].replace("Student's t", "delta method, Student's t")
    reason = (
        f"{names[worst]} {measured[worst]:.3g}, claimed {_side(claim)}{exponent:.3g}: difference "
        f"{_range(judgement, worst)}{_within(judgement)}"
    )
    if len(names) > 1:
        reason += f"; {names[1 - worst]} {measured[1 - worst]:.3g}, difference {_range(judgement, 1 - worst)}"
    verdict = dataclasses.replace(
        blank,
        status=judgement.status,
        reason=reason,
        at=names[worst],
        predicted=exponent,
        observed=float(measured[worst]),
        standard_error=float(mean_and_error(slopes - exponents)[1][worst]),
        **numbers,
        curve=dataclasses.replace(curve, abscissa=abscissa.tolist()),
    )
    return verdict, _look(verdict, samples, float(measured[worst]) - exponent, error)


def _vacuous(claim: Claim, samples: Samples, verdict: Verdict, worst: int) -> Verdict:
    """VACUOUS in place of SUPPORTED, for a bound that holds anyway."""
    if verdict.status is not Status.SUPPORTED or samples.trivial is None:
        return verdict
    predicted, trivial = samples.predicted.mean(axis=0), samples.trivial.mean(axis=0)
    is_upper = claim.kind == "upper_bound" or claim.side == "at_most"
    if not np.all(predicted >= trivial if is_upper else predicted <= trivial):
        return verdict
    reason = f"holds, but the bound {predicted[worst]:.4g} says no more than the trivial {trivial[worst]:.4g}"
    if claim.kind == "probability" and claim.trivial is not None:
        reason = "holds, but no outcome could contradict it here"
    return dataclasses.replace(verdict, status=Status.VACUOUS, reason=reason, trivial=float(trivial[worst]))


def _numbers(judgement: Judgement) -> dict:
    worst = judgement.worst
    return {
        "interval": (float(judgement.low[worst]), float(judgement.high[worst])),
        "interval_kind": f"{'exact' if judgement.is_exact else 'asymptotic'} ({judgement.method})",
        "is_exact": judgement.is_exact,
        "margin": float(judgement.margin),
        "smallest_discrepancy": float(judgement.smallest_discrepancy),
    }


def _look(verdict: Verdict, samples: Samples, estimate: float, error: float) -> Look:
    low, high = verdict.interval
    return Look(samples.num_replicates, verdict.at, estimate, low, high, error)


def _curve(labels: list[str], *parts: np.ndarray) -> Curve:
    return Curve(labels, *(part.tolist() for part in parts))


def _reason(claim: Claim, judgement: Judgement, label: str, observed: float, predicted: float) -> str:
    if claim.kind == "identity":
        if judgement.status is Status.REFUTED:
            return f"largest error {observed:.3g} exceeds {judgement.margin:.3g} at {label}"
        rare = judgement.smallest_discrepancy
        return f"largest error {observed:.3g} is within {judgement.margin:.3g}; a worse one is rarer than {rare:.2g}"
    within = _range(judgement, judgement.worst)
    if claim.kind == "counterexample":
        about = f"at {label} a share {observed:.4g} of instances violates it, and it allows {predicted:.4g}"
        return f"{about}: difference {within}"
    if claim.kind == "probability":
        about = f"at {label} frequency {observed:.4g}, claimed {_side(claim)}{predicted:.4g}: difference {within}"
    else:
        about = f"at {label} observed - predicted = {observed - predicted:.4g}, {within}"
    return about + _within(judgement)


def _within(judgement: Judgement) -> str:
    return f", margin {judgement.margin:.3g}" if judgement.margin else ""


def _range(judgement: Judgement, place: int) -> str:
    low, high = judgement.low[place], judgement.high[place]
    if not np.isfinite(low) and not np.isfinite(high):
        return "without an interval: replicates are too few for tails like these"
    return f"in [{low:.4g}, {high:.4g}]"


def _side(claim: Claim) -> str:
    return f"{(claim.side or '').replace('_', ' ')} "
