"""From samples to a verdict: the test of the claim's kind at one look, and what is said of it in words."""

import dataclasses
from typing import NamedTuple

import numpy as np

from moe_theory.verify import statistics
from moe_theory.verify.claim import Claim
from moe_theory.verify.evidence import Samples
from moe_theory.verify.intervals import asymptotic_end, intervals, mean_and_error, scheme_for, slope_samples
from moe_theory.verify.statistics import Judgement
from moe_theory.verify.verdict import Curve, Look, Status, Verdict


class Finding(NamedTuple):
    """What one look finds."""

    verdict: Verdict
    look: Look


def examine(claim: Claim, samples: Samples, labels: list[str], error: float, blank: Verdict) -> Finding:
    """The verdict `blank`, filled in from a look at these samples at this error.

    Raises: InvalidClaimError where the samples have no verdict, such as means without a logarithm.
    """
    if claim.kind == "rate":
        return _examine_rate(claim, samples, labels, error, blank)
    judgement = _test(claim, samples, error)
    worst, status = judgement.worst, judgement.status
    predicted, observed = samples.predicted.mean(axis=0), _shown(claim, samples)
    verdict = dataclasses.replace(
        blank,
        status=status,
        reason=_reason(claim, judgement, labels[worst], float(observed[worst]), float(predicted[worst])),
        at=labels[worst],
        predicted=float(predicted[worst]),
        observed=float(observed[worst]),
        standard_error=_standard_error(claim, samples, worst),
        **_numbers(judgement),
        curve=_curve(labels, predicted, observed, judgement.low, judgement.high, samples.allowed.mean(axis=0)),
    )
    verdict = _vacuous(claim, samples, verdict, worst)
    return Finding(verdict, _look(verdict, samples, float(observed[worst] - predicted[worst]), error))


def _test(claim: Claim, samples: Samples, error: float) -> Judgement:
    observed, predicted, allowed, _ = samples
    match claim.kind:
        case "identity":
            return statistics.judge_identity(observed, claim.margin, error)
        case "probability":
            at_most = claim.side == "at_most"
            return statistics.judge_probability(observed, predicted.mean(axis=0), claim.margin, error, at_most=at_most)
        case "counterexample":
            return statistics.judge_counterexample(observed, predicted.mean(axis=0) + claim.margin, error)
        case "equality":
            return statistics.judge_equality(observed, predicted, allowed, error)
        case "lower_bound":
            return statistics.judge_lower_bound(observed, predicted, allowed, error)
        case _:
            is_strict = claim.kind == "ordering"
            return statistics.judge_upper_bound(observed, predicted, allowed, error, is_strict=is_strict)


def _examine_rate(claim: Claim, samples: Samples, labels: list[str], error: float, blank: Verdict) -> Finding:
    """Test the slope over the whole grid and that at its asymptotic end; the picture shows the means.

    An exponent is one of a limit. Only a grid that shows it at both is a power law that supports it, and only the end
    nearest the limit can refute it.
    """
    abscissa, values = np.asarray(claim.abscissa, np.float64), samples.observed
    end, end_name = asymptotic_end(abscissa)
    slopes = np.hstack([slope_samples(values[:, places], abscissa[places]) for places in (slice(None), end)])
    names = ["slope", f"slope at the {end_name} end"]
    if len(abscissa) == 2:
        slopes, names = slopes[:, :1], names[:1]
    exponents, allowed = (np.broadcast_to(part, slopes.shape) for part in (samples.predicted, samples.allowed))
    judgement = statistics.judge_slopes(slopes, exponents, allowed, error, claim.side or "equal")
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
    return Finding(verdict, _look(verdict, samples, float(measured[worst]) - exponent, error))


def _vacuous(claim: Claim, samples: Samples, verdict: Verdict, worst: int) -> Verdict:
    """A bound that holds and says nothing is VACUOUS."""
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


def _shown(claim: Claim, samples: Samples) -> np.ndarray:
    if claim.kind == "identity":
        return np.abs(samples.observed).max(axis=0)
    return samples.observed.mean(axis=0)


def _standard_error(claim: Claim, samples: Samples, worst: int) -> float:
    if claim.kind == "identity":
        return float("nan")
    is_count = claim.kind in {"probability", "counterexample"}
    spread = samples.observed if is_count else samples.observed - samples.predicted
    return float(mean_and_error(spread)[1][worst])


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


def _curve(
    labels: list[str],
    predicted: np.ndarray,
    observed: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    margin: np.ndarray,
) -> Curve:
    return Curve(labels, *(part.tolist() for part in (predicted, observed, low, high, margin)))


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
