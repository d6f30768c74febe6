"""Criteria, the tests of claims: samples, the values to compare, and the decision of an interim analysis.

`verification.judgement` has the statistics.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.core.errors import DeclarationError
from moe_theory.verification.intervals import (
    Intervals,
    asymptotic_end,
    contrast_limits,
    contrast_samples,
    doubt_of_logs,
    last_decades,
    mean_and_error,
    rounding_of,
    scheme_for,
    slope_weights,
    student_intervals,
    varies,
)
from moe_theory.verification.judgement import (
    Bounds,
    Decision,
    Known,
    Values,
    judge_counterexample,
    judge_identity,
    judge_limit_probability,
    judge_limit_rate,
    judge_means,
    judge_probability,
    judge_slopes,
)
from moe_theory.verification.ranges import Range
from moe_theory.verification.verdict import Curve, Trend

Side = Literal["at_most", "at_least", "equal"]
ONE_SIDED = ("at_most", "at_least")
NEEDS_MARGIN = "an equality needs a margin above 0: no sample shows that two numbers are the same."
LEAST_POINTS = 4  # of the grid of a limit,
LEAST_DECADES = 2  # and how far it reaches at least


class Samples(NamedTuple):
    """Float64 samples of a claim, replicates times components."""

    observed: Float[np.ndarray, "B V"]
    predicted: Float[np.ndarray, "B V"] | None = None  # of a rate (B, 1), its exponent
    scale: Float[np.ndarray, "B V"] | None = None  # what the margin is a fraction of
    trivial: Float[np.ndarray, "B V"] | None = None  # the bound that holds anyway

    @property
    def num_replicates(self) -> int:
        return len(self.observed)

    def rows(self, rows: slice) -> "Samples":
        return Samples(*(None if part is None else part[rows] for part in self))  # pyright: ignore[reportArgumentType]

    def after(self, earlier: "Samples | None") -> "Samples":
        """Return earlier replicates, then these. Raises: DeclarationError for other components."""
        if earlier is None:
            return self
        if earlier.observed.shape[1] != self.observed.shape[1]:
            raise DeclarationError(
                f"observe gave {self.observed.shape[1]} components, and {earlier.observed.shape[1]} for the "
                "replicates before"
            )
        pairs: Any = zip(earlier, self, strict=True)
        parts: Any = (None if now is None else np.concatenate([before, now]) for before, now in pairs)
        return Samples(*parts)


class Prior(NamedTuple):
    ranges: Mapping[str, Range] = {}  # of what is "observed", "predicted" and "scale"
    is_computed: bool = False  # whether nothing random enters


class Compared(NamedTuple):
    observed: Values
    predicted: Values  # of a rate (B, 1), its exponent
    allowed: Values  # the margin in the difference's own unit
    trivial: Values | None = None  # the bound that holds anyway
    known: Known = Known()
    is_computed: bool = False  # whether nothing random enters


class InterimResult(NamedTuple):
    """Result of an interim analysis, for the component that decides or is nearest to the opposite decision."""

    decision: Decision
    at: str  # the component
    predicted: float
    observed: float
    standard_error: float
    curve: Curve
    trend: Trend | None = None


@dataclasses.dataclass(frozen=True)
class Criterion:
    """The test of a claim: the claimed value and the allowed margin.

    `value`, `scale` and `trivial` are numbers, one a component, or functions of the measuring function's arguments.
    """

    value: Any = None  # what is claimed
    margin: float = 0.0  # of `scale`; for an identity the tolerance itself
    side: Side | None = None
    scale: Any = None  # what the margin is a fraction of; |value| unless given
    trivial: Any = None  # what holds anyway
    abscissa: Sequence[float] | None = None  # x at the components, where these are over a grid

    kind: ClassVar[str]
    sides: ClassVar[tuple[Side | None, ...]] = (None,)
    needs_value: ClassVar[bool] = True
    may_be_trivial: ClassVar[bool] = False
    is_over_grid: ClassVar[bool] = False
    is_of_events: ClassVar[bool] = False  # whether a component happens or does not
    is_of_slopes: ClassVar[bool] = False  # whether the value is one exponent for all components
    is_of_instances: ClassVar[bool] = False  # whether single replicates decide

    def require_valid(self, claim: str) -> None:
        """Raise DeclarationError for a criterion that cannot decide."""
        for complaint in self._complaints():
            raise DeclarationError(f"claim {claim}: {complaint}")

    def _complaints(self) -> Iterator[str]:
        if not self.margin >= 0:
            yield f"margin={self.margin} must be a number of at least 0."
        if self.trivial is not None and not self.may_be_trivial:
            yield f"only a bound, or a probability, can be trivial, not one of kind {self.kind}."
        if self.needs_value and self.value is None:
            yield f"a claim of kind {self.kind} needs a value."
        if self.side not in self.sides:
            yield f"side={self.side!r} does not go with kind {self.kind}: it must be one of {self.sides}."
        if self.is_over_grid != (self.abscissa is not None):
            yield "`abscissa` is what a rate or a limit, and no other kind, must declare."
        places = self.abscissa
        if places is not None and (len(set(places)) < 2 or not all(0 < place < math.inf for place in places)):
            yield f"abscissa={list(places)} must be at least two different positive numbers."

    def asked(self) -> list[tuple[str, str, Callable[..., Any] | None]]:
        """Return further fields of samples: field, name in messages, function of the runs."""
        return [
            ("predicted", "predict", self.value),
            ("scale", "scale", self.scale),
            ("trivial", "trivial", self.trivial),
        ]

    def compared(self, samples: Samples, prior: Prior, error: float | None = None) -> Compared:
        """Return the values to compare, at this error of all interim analyses.

        Raises: DeclarationError for contradictory declarations.
        """
        observed, predicted, _, trivial = samples
        if predicted is None:  # of an identity or a counterexample 0, of a limit what the probability tends to
            predicted = np.full_like(observed, self.side == "at_least")
        allowed = self._allowed(samples, predicted)
        if trivial is None and self.is_of_events and not self.is_over_grid:
            trivial = np.full_like(observed, self.side != "at_least")
        if prior.is_computed and any(varies(part).any() for part in (observed, predicted, allowed)):
            raise DeclarationError("it is declared exact, and its replicates differ: something random enters")
        prior_bounds = self._known(prior, observed, predicted, allowed)._replace(error=error)
        return Compared(observed, predicted, allowed, trivial, known=prior_bounds, is_computed=prior.is_computed)

    def _allowed(self, samples: Samples, predicted: Values) -> Values:
        return np.full_like(predicted, self.margin)

    def _known(self, prior: Prior, observed: Values, predicted: Values, allowed: Values) -> Known:
        return Known()

    def decide(self, samples: Compared, error: float) -> Decision:
        """Decide at this error. Raises: DeclarationError for undecidable samples."""
        raise NotImplementedError

    def outcome(self, samples: Compared, labels: list[str], error: float) -> InterimResult:
        decision = self.decide(samples, error)
        worst = decision.worst
        predicted = samples.predicted.mean(axis=0)
        observed, standard_errors = self._measured(samples)
        margins = samples.allowed.mean(axis=0)
        return InterimResult(
            decision=decision,
            at=labels[worst],
            predicted=float(predicted[worst]),
            observed=float(observed[worst]),
            standard_error=float(standard_errors[worst]),
            curve=_curve(labels, predicted, observed, decision.low, decision.high, margins),
        )

    def _measured(self, samples: Compared) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
        _, standard_errors = mean_and_error(samples.observed - samples.predicted)
        return samples.observed.mean(axis=0), standard_errors

    def is_vacuous(self, predicted: Float[np.ndarray, " V"], trivial: Float[np.ndarray, " V"]) -> bool:
        """Return whether the claim holds trivially, from means."""
        is_upper = self.kind == UpperBound.kind or self.side == "at_most"
        return bool(np.all(predicted >= trivial if is_upper else predicted <= trivial))


class _OfMeans(Criterion):
    def _allowed(self, samples: Samples, predicted: Values) -> Values:
        return (np.abs(predicted) if samples.scale is None else samples.scale) * self.margin

    def _known(self, prior: Prior, observed: Values, predicted: Values, allowed: Values) -> Known:
        observed_bounds = _declared_bounds(prior, "observed", observed)
        predicted_bounds = _declared_bounds(prior, "predicted", predicted)
        difference = observed_bounds.less(predicted_bounds)
        if self.margin == 0:
            return Known(difference, Bounds(0.0, 0.0))
        scale = _declared_bounds(prior, "scale", allowed / self.margin)
        if self.scale is None:  # |predicted|
            is_apart = np.sign(predicted_bounds.low) == np.sign(predicted_bounds.high)
            least, most = np.sort(np.abs(np.broadcast_arrays(*predicted_bounds)), axis=0)
            scale = Bounds(np.where(is_apart, least, 0.0), most)
        return Known(difference, scale.times(self.margin))

    def decide(self, samples: Compared, error: float) -> Decision:
        difference = samples.observed - samples.predicted
        return judge_means(difference, samples.allowed, error, self.kind, samples.known)


class Equality(_OfMeans):
    """Test that means agree within a margin."""

    kind = "equality"

    def _complaints(self) -> Iterator[str]:
        yield from super()._complaints()
        if self.margin == 0:
            yield NEEDS_MARGIN


class UpperBound(_OfMeans):
    kind = "upper_bound"
    may_be_trivial = True


class LowerBound(_OfMeans):
    kind = "lower_bound"
    may_be_trivial = True


class Ordering(_OfMeans):
    """Test that one mean is below another on common random numbers."""

    kind = "ordering"


class Identity(Criterion):
    """Test that the largest error over all replicates is within a tolerance."""

    kind = "identity"
    needs_value = False
    is_of_instances = True

    def decide(self, samples: Compared, error: float) -> Decision:
        return judge_identity(samples.observed, self.margin, error)

    def _measured(self, samples: Compared) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
        largest = np.abs(samples.observed).max(axis=0)
        return largest, np.full_like(largest, np.nan)


class _OfEvents(Criterion):
    is_of_events = True

    def _measured(self, samples: Compared) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
        return samples.observed.mean(axis=0), mean_and_error(samples.observed)[1]


class Probability(_OfEvents):
    """Test that an event has at most, or at least, a probability."""

    kind = "probability"
    sides = ONE_SIDED
    may_be_trivial = True

    def decide(self, samples: Compared, error: float) -> Decision:
        at_most = self.side == "at_most"
        claimed = samples.predicted.mean(axis=0)
        return judge_probability(samples.observed, claimed, self.margin, error, at_most=at_most)


class ConstructedCounterexample(_OfEvents):
    """Test that a constructed instance violates the statement more often than it allows."""

    kind = "counterexample"
    needs_value = False
    is_of_instances = True

    def decide(self, samples: Compared, error: float) -> Decision:
        return judge_counterexample(samples.observed, samples.predicted.mean(axis=0) + self.margin, error)


class _Limit(Criterion):
    is_over_grid = True

    def _complaints(self) -> Iterator[str]:
        yield from super()._complaints()
        places = [] if self.abscissa is None else list(self.abscissa)
        is_long = len(places) >= LEAST_POINTS and math.log10(max(places) / min(places)) > LEAST_DECADES - 1e-9
        if not is_long or len(set(places)) < len(places):
            yield (
                f"abscissa={places} must be at least {LEAST_POINTS} different numbers over at least {LEAST_DECADES} "
                "decades: fewer do not show a limit. Add points nearer to it."
            )


class LimitProbability(_Limit, _OfEvents):
    """Test that a probability tends to 0 (at most) or 1 (at least) along a grid."""

    kind = "limit_probability"
    sides = ONE_SIDED
    needs_value = False

    def _complaints(self) -> Iterator[str]:
        yield from super()._complaints()
        if not 0 < self.margin < 1 or self.value is not None:
            yield (
                f"margin={self.margin} must be between 0 and 1, the failure probability that counts as small. The "
                "limit is 0 or 1, as the side says: leave out the value."
            )

    def decide(self, samples: Compared, error: float) -> Decision:
        at_most = self.side == "at_most"
        return judge_limit_probability(samples.observed, self._places, self.margin, error, at_most=at_most)

    def outcome(self, samples: Compared, labels: list[str], error: float) -> InterimResult:
        """Decide, with the frequency of failures two decades before the end as trend."""
        result = super().outcome(samples, labels, error)
        first = int(last_decades(self._places, 2)[0])
        share = float(samples.observed[:, first].mean())
        low = float(result.decision.low[first])
        high = float(result.decision.high[first])
        if self.side == "at_most":
            return result._replace(trend=Trend(labels[first], share, low, high))
        return result._replace(trend=Trend(labels[first], 1 - share, -high, -low))

    @property
    def _places(self) -> Float[np.ndarray, " V"]:
        return np.asarray(self.abscissa, np.float64)


class Rate(Criterion):
    """Test that the slope of log means over a log grid is at least (at most, close to) the claimed exponent.

    A grid supports the exponent if the whole grid and the end nearest to the limit show it, and only that end refutes
    it.
    """

    kind = "rate"
    sides = ("at_most", "at_least", "equal")
    is_over_grid = True
    is_of_slopes = True

    def _complaints(self) -> Iterator[str]:
        yield from super()._complaints()
        if self.margin == 0 and self.side == "equal":
            yield NEEDS_MARGIN

    def outcome(self, samples: Compared, labels: list[str], error: float) -> InterimResult:
        """Decide by slopes, with the means around the claimed power as curve."""
        abscissa = np.asarray(self.abscissa, np.float64)
        around = student_intervals(samples.observed, scheme_for(samples.observed, error))
        weights, names = self._contrasts(abscissa)
        slopes = contrast_samples(samples.observed, weights)
        exponents = np.broadcast_to(self._exponents(samples), slopes.shape)
        allowed = np.broadcast_to(samples.allowed, slopes.shape)
        prior = _known_of_logs(slopes, weights, exponents, samples, around)
        decision = self._judge(slopes, exponents, allowed, error, self.side or "equal", prior)
        method = decision.method.replace("Student's t", "delta method, Student's t")
        decision = decision._replace(method=method, error=None)
        measured = slopes.mean(axis=0)
        exponent = self._exponent(samples, exponents)
        means = samples.observed.mean(axis=0)
        law = np.exp(np.mean(np.log(means)) + exponent * (np.log(abscissa) - np.mean(np.log(abscissa))))
        curve = _curve(labels, law, means, around.low - law, around.high - law, np.zeros_like(means))
        return InterimResult(
            decision=decision,
            at=names[decision.worst],
            predicted=exponent,
            observed=float(measured[decision.worst]),
            standard_error=float(mean_and_error(slopes - exponents)[1][decision.worst]),
            curve=dataclasses.replace(curve, abscissa=abscissa.tolist()),
            trend=self._trend(measured, decision),
        )

    def _contrasts(self, abscissa: Float[np.ndarray, " V"]) -> tuple[Float[np.ndarray, "C V"], list[str]]:
        end, end_name = asymptotic_end(abscissa)
        weights = np.stack([slope_weights(abscissa, places) for places in (slice(None), end)])
        names = ["slope", f"slope at the {end_name} end"]
        if len(abscissa) == 2:
            return weights[:1], names[:1]
        return weights, names

    def _exponents(self, samples: Compared) -> Values:
        return samples.predicted

    def _exponent(self, samples: Compared, exponents: Values) -> float:
        return float(exponents.mean())

    _judge: ClassVar[Callable[..., Decision]] = staticmethod(judge_slopes)

    def _trend(self, measured: Float[np.ndarray, " C"], decision: Decision) -> Trend | None:
        """Return a number before the end of the grid, if any."""


class LimitRate(_Limit, Rate):
    """Test that the slope of log means at a grid's end, where it no longer bends, is the exponent."""

    kind = "limit_rate"

    def _complaints(self) -> Iterator[str]:
        yield from super()._complaints()
        if self.margin == 0:
            yield "margin=0.0 must be above 0: no sample shows that a slope does not bend at all. Say how much it may."

    def _contrasts(self, abscissa: Float[np.ndarray, " V"]) -> tuple[Float[np.ndarray, "C V"], list[str]]:
        _, end_name = asymptotic_end(abscissa)
        window = last_decades(abscissa, 2)
        last = last_decades(abscissa, 1)
        before = slope_weights(abscissa, window[: 1 - len(last)])
        at_end = slope_weights(abscissa, last)
        return np.stack([at_end - before, at_end]), ["bending", f"slope at the {end_name} end"]

    def _exponents(self, samples: Compared) -> Values:
        return np.hstack([np.zeros_like(samples.predicted), samples.predicted])

    def _exponent(self, samples: Compared, exponents: Values) -> float:
        return float(samples.predicted.mean())

    _judge = staticmethod(judge_limit_rate)

    def _trend(self, measured: Float[np.ndarray, " C"], decision: Decision) -> Trend:
        return Trend("", float(measured[0]), float(decision.low[0]), float(decision.high[0]))


KINDS: dict[str, type[Criterion]] = {
    criterion.kind: criterion
    for criterion in (
        Equality,
        UpperBound,
        LowerBound,
        Ordering,
        Identity,
        Probability,
        Rate,
        ConstructedCounterexample,
        LimitProbability,
        LimitRate,
    )
}


def equality(value: Any, *, margin: float, scale: Any = None) -> Criterion:
    """Return the test that the mean is `value` within a fraction of `scale`, by default of |value|."""
    return Equality(value, margin, scale=scale)


def bound(
    *, at_most: Any = None, at_least: Any = None, margin: float = 0.0, scale: Any = None, trivial: Any = None
) -> Criterion:
    """Return the test that the mean is at most, or at least, a bound."""
    side, value = _side(at_most=at_most, at_least=at_least)
    if side == "at_most":
        return UpperBound(value, margin, scale=scale, trivial=trivial)
    return LowerBound(value, margin, scale=scale, trivial=trivial)


def ordering(*, below: Any, margin: float = 0.0, scale: Any = None) -> Criterion:
    return Ordering(below, margin, scale=scale)


def identity(*, within: float) -> Criterion:
    """Return the test that no replicate's size is beyond a tolerance."""
    return Identity(margin=within)


def probability(*, at_most: Any = None, at_least: Any = None, margin: float = 0.0, trivial: Any = None) -> Criterion:
    """Return the test that the event has at most, or at least, this probability."""
    side, value = _side(at_most=at_most, at_least=at_least)
    return Probability(value, margin, side, trivial=trivial)


def rate(
    *, at_most: float | None = None, at_least: float | None = None, equal: float | None = None, margin: float = 0.1
) -> Criterion:
    """Return a test of the slope of log means over the logarithm of the selection's abscissa."""
    side, value = _side(at_most=at_most, at_least=at_least, equal=equal)
    return Rate(value, margin, side)


def counterexample(*, allowed: Any = None, margin: float = 0.0) -> Criterion:
    """Return the test that instances violate the statement more often than allowed."""
    return ConstructedCounterexample(allowed, margin)


def limit_probability(*, to: int, margin: float) -> Criterion:
    """Return the test that the event's probability tends to 0 or 1, with failures up to `margin` rare."""
    return LimitProbability(margin=margin, side="at_least" if to else "at_most")


def limit_rate(
    *, at_most: float | None = None, at_least: float | None = None, equal: float | None = None, margin: float = 0.1
) -> Criterion:
    """Return a test of the slope of log means at the grid's end, where it bends by at most `margin`."""
    side, value = _side(at_most=at_most, at_least=at_least, equal=equal)
    return LimitRate(value, margin, side)


def _side(**sides: Any) -> tuple[Side, Any]:
    named_sides = [(side, value) for side, value in sides.items() if value is not None]
    if len(named_sides) != 1:
        raise DeclarationError(f"name exactly one of {', '.join(sides)}, not {len(named_sides)} of them.")
    return named_sides[0]  # pyright: ignore[reportReturnType]


def _declared_bounds(prior: Prior, name: str, values: Values) -> Bounds:
    if prior.is_computed:
        return Bounds(values[0], values[0])
    declared = prior.ranges.get(name)
    if declared is None:
        return Bounds()
    if declared.is_constant:
        if varies(values).any():
            raise DeclarationError(f"what is {name} is declared the same for all replicates, and differs")
        return Bounds(values[0], values[0])
    low, high, _ = declared
    slack = rounding_of(values, low, high)
    outside = (values < low - slack) | (values > high + slack)
    if outside.any():
        raise DeclarationError(
            f"what is {name} is declared to be in [{low:g}, {high:g}], and is not in "
            f"{np.count_nonzero(outside.any(axis=1)):,} of {len(values):,} replicates, such as {values[outside][0]:g}. "
            "Declare the range that it has."
        )
    return Bounds(low, high)


def _known_of_logs(
    contrasts: Values, weights: np.ndarray, claimed: Values, samples: Compared, means: Intervals
) -> Known:
    if samples.is_computed:
        difference = (contrasts - claimed)[0]
        margin = samples.allowed[0, 0]
        return Known(Bounds(difference, difference), Bounds(margin, margin), samples.known.error)
    low, high = contrast_limits(means, weights)
    exponents = claimed.mean(axis=0)  # the same for all replicates
    return Known(doubt=doubt_of_logs(samples.observed), from_means=Bounds(low - exponents, high - exponents))


def _curve(labels: list[str], *parts: np.ndarray) -> Curve:
    return Curve(labels, *(part.tolist() for part in parts))
