"""Criteria, which test claims: samples, the compared values, and the decision of an interim analysis."""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.core.errors import DeclarationError
from moe_theory.verification import intervals, judgement
from moe_theory.verification.intervals import last_decades, mean_and_error, slope_weights, varies
from moe_theory.verification.judgement import Bounds, Decision, Prior, Values
from moe_theory.verification.ranges import Range
from moe_theory.verification.verdict import Curve, Status, Trend, Verdict

Side = Literal["at_most", "at_least", "equal"]
ONE_SIDED = ("at_most", "at_least")
NEEDS_MARGIN = "an equality needs a margin above 0, because samples cannot show that two numbers are equal."
LEAST_POINTS = 4  # fewest grid points that show a limit
LEAST_DECADES = 2  # fewest decades that these grid points span, up to rounding


class Samples(NamedTuple):
    """Samples of a claim in float64, replicates times components."""

    observed: Float[np.ndarray, "B V"]
    predicted: Float[np.ndarray, "B V"] | None = None  # for a rate its exponent, (B, 1)
    scale: Float[np.ndarray, "B V"] | None = None  # the unit of the margin
    trivial: Float[np.ndarray, "B V"] | None = None  # the bound that holds trivially

    @property
    def num_replicates(self) -> int:
        return len(self.observed)

    def rows(self, replicates: slice) -> "Samples":
        parts: Any = (None if part is None else part[replicates] for part in self)
        return Samples(*parts)

    def after(self, earlier: "Samples | None") -> "Samples":
        """Return earlier replicates followed by these. Raises: DeclarationError if the components differ."""
        if earlier is None:
            return self
        if earlier.observed.shape[1] != self.observed.shape[1]:
            raise DeclarationError(
                f"observe returned {self.observed.shape[1]} components, but earlier {earlier.observed.shape[1]}"
            )
        pairs: Any = zip(earlier, self, strict=True)
        parts: Any = (None if later is None else np.concatenate([before, later]) for before, later in pairs)
        return Samples(*parts)


class Compared(NamedTuple):
    observed: Values
    predicted: Values  # for a rate its exponent, (B, 1)
    allowed: Values  # the margin in the unit of the difference
    trivial: Values | None  # the bound that holds trivially
    ranges: Mapping[str, Range]  # for "observed", "predicted" and "scale"
    is_computed: bool  # whether the claim has no randomness
    error: float | None  # of all interim analyses together


@dataclasses.dataclass(frozen=True)
class Criterion:
    """The test of a claim, with the claimed value and the allowed margin.

    `value`, `scale` and `trivial` are numbers, one per component, or functions with the measuring function's arguments.
    """

    value: Any = None  # the claimed value
    margin: float = 0.0  # for means a fraction of `scale`, and otherwise absolute
    side: Side | None = None
    scale: Any = None  # the unit of the margin, by default |value|
    trivial: Any = None  # the bound that holds trivially
    abscissa: Sequence[float] | None = None  # x of the components, if they form a grid

    kind: ClassVar[str]
    sides: ClassVar[tuple[Side | None, ...]] = (None,)
    needs_value: ClassVar[bool] = True
    may_be_trivial: ClassVar[bool] = False
    is_over_grid: ClassVar[bool] = False
    is_of_events: ClassVar[bool] = False  # whether components are events
    is_of_slopes: ClassVar[bool] = False  # whether one exponent is the value for all components
    is_of_instances: ClassVar[bool] = False  # whether single replicates decide

    def complaints(self) -> Iterator[str]:
        if not self.margin >= 0:
            yield f"margin={self.margin} must be a number of at least 0."
        if self.trivial is not None and not self.may_be_trivial:
            yield f"only a bound or a probability can have `trivial`, but this claim is of kind {self.kind}."
        if self.needs_value and self.value is None:
            yield f"a claim of kind {self.kind} needs a value."
        if self.side not in self.sides:
            yield f"side={self.side!r} does not fit kind {self.kind}. It must be one of {self.sides}."
        if self.is_over_grid != (self.abscissa is not None):
            yield "`abscissa` is needed for a rate or a limit, and not allowed for other kinds."
        grid = self.abscissa
        if grid is not None and (len(set(grid)) < 2 or not all(0 < x < math.inf for x in grid)):
            yield f"abscissa={list(grid)} must be at least two different positive numbers."

    def further_samples(self) -> list[tuple[str, str, Callable[..., Any] | None]]:
        """Return each field of samples beside `observed`, its name in messages, and its function of the runs."""
        return [
            ("predicted", "predict", self.value),
            ("scale", "scale", self.scale),
            ("trivial", "trivial", self.trivial),
        ]

    def compared(
        self, samples: Samples, ranges: Mapping[str, Range], is_computed: bool, error: float | None = None
    ) -> Compared:
        """Return the values to compare. Raises: DeclarationError if replicates of an exact claim differ."""
        observed, predicted, _, trivial = samples
        if predicted is None:  # 0, as for an identity or a counterexample, but 1 for a limit of 1
            predicted = np.full_like(observed, self.side == "at_least")
        allowed = self._allowed(samples, predicted)
        if trivial is None and self.is_of_events and not self.is_over_grid:
            trivial = np.full_like(observed, self.side != "at_least")  # any probability is at most 1 and at least 0
        if is_computed and any(varies(part).any() for part in (observed, predicted, allowed)):
            raise DeclarationError("it is declared exact, but its replicates differ, so it has randomness")
        return Compared(observed, predicted, allowed, trivial, ranges=ranges, is_computed=is_computed, error=error)

    def _allowed(self, samples: Samples, predicted: Values) -> Values:
        return np.full_like(predicted, self.margin)

    def decide(self, samples: Compared, error: float) -> Decision:
        """Decide at this error. Raises: DeclarationError if the samples cannot be tested."""
        raise NotImplementedError

    def outcome(self, samples: Compared, labels: list[str], error: float, blank: Verdict) -> tuple[Verdict, Decision]:
        """Return `blank` with the numbers of the component that decides or is closest to the opposite decision."""
        decision = self.decide(samples, error)
        worst = decision.worst
        predicted = samples.predicted.mean(axis=0)
        observed, standard_errors = self._measure(samples)
        margins = samples.allowed.mean(axis=0)
        verdict = dataclasses.replace(
            blank,
            at=labels[worst],
            predicted=float(predicted[worst]),
            observed=float(observed[worst]),
            standard_error=float(standard_errors[worst]),
            curve=_curve(labels, decision.low, decision.high, predicted=predicted, observed=observed, margin=margins),
        )
        return verdict, decision

    def _measure(self, samples: Compared) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
        """Return the observed value of each component, and the standard error of its difference."""
        _, standard_errors = mean_and_error(samples.observed - samples.predicted)
        return samples.observed.mean(axis=0), standard_errors

    def is_vacuous(self, predicted: Float[np.ndarray, " V"], trivial: Float[np.ndarray, " V"]) -> bool:
        """Return whether the claim holds trivially, judged by means."""
        is_upper = self.kind == UpperBound.kind or self.side == "at_most"
        is_trivial = predicted >= trivial if is_upper else predicted <= trivial
        return bool(np.all(is_trivial))


class _OfMeans(Criterion):
    def _allowed(self, samples: Samples, predicted: Values) -> Values:
        scale = np.abs(predicted) if samples.scale is None else samples.scale
        return scale * self.margin

    def decide(self, samples: Compared, error: float) -> Decision:
        predicted_bounds = _declared_bounds(samples, "predicted", samples.predicted)
        observed_bounds = _declared_bounds(samples, "observed", samples.observed)
        allowed_bounds = Bounds(0.0, 0.0)
        if self.margin:
            scale_bounds = _declared_bounds(samples, "scale", samples.allowed / self.margin)
            if self.scale is None:  # the scale is |predicted|, which can be 0 if the ends differ in sign
                has_one_sign = np.sign(predicted_bounds.low) == np.sign(predicted_bounds.high)
                absolute_ends = np.abs(np.broadcast_arrays(*predicted_bounds))
                least, most = np.sort(absolute_ends, axis=0)
                scale_bounds = Bounds(np.where(has_one_sign, least, 0.0), most)
            allowed_bounds = scale_bounds.times(self.margin)
        prior = Prior(observed_bounds.minus(predicted_bounds), allowed_bounds, samples.error)
        difference = samples.observed - samples.predicted
        return judgement.judge_means(difference, samples.allowed, error, side=self.kind, prior=prior)


class Equality(_OfMeans):
    """Test that means agree within a margin."""

    kind = "equality"

    def complaints(self) -> Iterator[str]:
        yield from super().complaints()
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
        """Decide. The interval is from 0 to the largest error.

        The smallest discrepancy is the frequency at which a violation appears with probability 1 - `error`.
        """
        largest, _ = self._measure(samples)
        worst = int(np.argmax(largest))
        status = Status.SUPPORTED if largest[worst] <= self.margin else Status.REFUTED
        return Decision(
            status,
            worst,
            low=np.zeros_like(largest),
            high=largest,
            margin=self.margin,
            smallest_discrepancy=float(-np.expm1(np.log(error) / len(samples.observed))),
            method="largest error seen",
            is_exact=True,
        )

    def _measure(self, samples: Compared) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
        largest = np.abs(samples.observed).max(axis=0)
        return largest, np.full_like(largest, np.nan)  # a largest value has no standard error


class _OfEvents(Criterion):
    is_of_events = True

    def _measure(self, samples: Compared) -> tuple[Float[np.ndarray, " V"], Float[np.ndarray, " V"]]:
        return mean_and_error(samples.observed)


class Probability(_OfEvents):
    """Test that an event has at most, or at least, a probability."""

    kind = "probability"
    sides: ClassVar[tuple[Side | None, ...]] = ONE_SIDED
    may_be_trivial = True

    def decide(self, samples: Compared, error: float) -> Decision:
        at_most = self.side == "at_most"
        claimed = samples.predicted.mean(axis=0)
        return judgement.judge_probability(samples.observed, claimed, self.margin, error, at_most=at_most)


class ConstructedCounterexample(_OfEvents):
    """Test that a constructed instance violates the statement more often than it allows."""

    kind = "counterexample"
    needs_value = False
    is_of_instances = True

    def decide(self, samples: Compared, error: float) -> Decision:
        allowed = samples.predicted.mean(axis=0) + self.margin
        decision = judgement.judge_probability(samples.observed, allowed, 0.0, error, at_most=True)
        if decision.status is Status.REFUTED:
            return decision
        return decision._replace(status=Status.INCONCLUSIVE)  # without violations nothing is decided


class _Limit(Criterion):
    is_over_grid = True

    def complaints(self) -> Iterator[str]:
        yield from super().complaints()
        grid = [] if self.abscissa is None else list(self.abscissa)
        is_long = len(grid) >= LEAST_POINTS and math.log10(max(grid) / min(grid)) > LEAST_DECADES - 1e-9  # for rounding
        if not is_long or len(set(grid)) < len(grid):
            yield (
                f"abscissa={grid} must be at least {LEAST_POINTS} different numbers over at least {LEAST_DECADES} "
                "decades to show a limit. Add points closer to the limit."
            )


class LimitProbability(_Limit, _OfEvents):
    """Test that a probability tends to 0 (at_most) or 1 (at_least) along a grid."""

    kind = "limit_probability"
    sides: ClassVar[tuple[Side | None, ...]] = ONE_SIDED
    needs_value = False

    def complaints(self) -> Iterator[str]:
        yield from super().complaints()
        if not 0 < self.margin < 1 or self.value is not None:
            yield (
                f"margin={self.margin} must be the failure probability that counts as small, between 0 and 1. The side "
                "decides whether the limit is 0 or 1, so leave out the value."
            )

    def decide(self, samples: Compared, error: float) -> Decision:
        at_most = self.side == "at_most"
        return judgement.judge_limit_probability(samples.observed, self._grid, self.margin, error, at_most=at_most)

    def outcome(self, samples: Compared, labels: list[str], error: float, blank: Verdict) -> tuple[Verdict, Decision]:
        """Decide. The trend is the frequency of failures two decades before the end."""
        verdict, decision = super().outcome(samples, labels, error, blank)
        first = int(last_decades(self._grid, number=2)[0])
        share = float(samples.observed[:, first].mean())
        low = float(decision.low[first])
        high = float(decision.high[first])
        trend = Trend(labels[first], 1 - share, low=-high, high=-low)  # the event is a success
        if self.side == "at_most":  # the event is a failure
            trend = Trend(labels[first], share, low, high)
        return dataclasses.replace(verdict, trend=trend), decision

    @property
    def _grid(self) -> Float[np.ndarray, " V"]:
        return np.asarray(self.abscissa, np.float64)


class Rate(Criterion):
    """Test that the slope of log means over a log grid is at least, at most or close to the claimed exponent.

    The whole grid and the end closest to the limit must both support the exponent, but only that end can refute it.
    """

    kind = "rate"
    sides: ClassVar[tuple[Side | None, ...]] = ("at_most", "at_least", "equal")
    is_over_grid = True
    is_of_slopes = True

    def complaints(self) -> Iterator[str]:
        yield from super().complaints()
        if self.margin == 0 and self.side == "equal":
            yield NEEDS_MARGIN

    def outcome(self, samples: Compared, labels: list[str], error: float, blank: Verdict) -> tuple[Verdict, Decision]:
        """Decide by slopes. The curve shows the means around the claimed power."""
        abscissa = np.asarray(self.abscissa, np.float64)
        scheme = intervals.scheme_for(samples.observed, error)
        bands = intervals.student_intervals(samples.observed, scheme)  # of the means
        weights, names = self._contrasts(abscissa)
        slopes = intervals.contrast_samples(samples.observed, weights)
        exponents = np.broadcast_to(self._exponents(samples), slopes.shape)
        allowed = np.broadcast_to(samples.allowed, slopes.shape)
        if samples.is_computed:
            difference = slopes[0] - exponents[0]  # the same for all replicates
            margin = allowed[0, 0]
            prior = Prior(Bounds(difference, difference), Bounds(margin, margin), samples.error)
        else:
            low, high = intervals.contrast_limits(bands, weights)
            claimed = exponents.mean(axis=0)  # equal for all replicates
            doubt = intervals.doubt_of_logs(samples.observed)
            prior = Prior(doubt=doubt, from_means=Bounds(low - claimed, high - claimed))
        decision = self._judge(slopes, exponents, allowed, error=error, prior=prior)
        method = decision.method.replace("Student's t", "delta method, Student's t")
        decision = decision._replace(method=method, error=None)
        mean_slopes = slopes.mean(axis=0)
        _, slope_errors = mean_and_error(slopes - exponents)
        exponent = self._claimed_exponent(samples, exponents)
        means = samples.observed.mean(axis=0)
        log_abscissa = np.log(abscissa)
        # The claimed power of x, times the factor that suits the means best.
        log_power = exponent * (log_abscissa - np.mean(log_abscissa))
        power = np.exp(np.mean(np.log(means)) + log_power)
        low = bands.low - power
        high = bands.high - power
        curve = _curve(labels, low, high, predicted=power, observed=means, margin=np.zeros_like(means))
        verdict = dataclasses.replace(
            blank,
            at=names[decision.worst],
            predicted=exponent,
            observed=float(mean_slopes[decision.worst]),
            standard_error=float(slope_errors[decision.worst]),
            curve=dataclasses.replace(curve, abscissa=abscissa.tolist()),
            trend=self._trend(mean_slopes, decision),
        )
        return verdict, decision

    def _contrasts(self, abscissa: Float[np.ndarray, " V"]) -> tuple[Float[np.ndarray, "C V"], list[str]]:
        """Return the weights of log means in each slope, and the names of the slopes."""
        end, end_name = intervals.asymptotic_end(abscissa)
        weights = np.stack([slope_weights(abscissa), slope_weights(abscissa, end)])
        names = ["slope", f"slope at the {end_name} end"]
        if len(abscissa) == 2:  # both slopes are equal
            return weights[:1], names[:1]
        return weights, names

    def _exponents(self, samples: Compared) -> Values:  # of the slopes, or one for all
        return samples.predicted

    def _claimed_exponent(self, samples: Compared, exponents: Values) -> float:
        return float(exponents.mean())

    def _judge(self, slopes: Values, exponents: Values, allowed: Values, error: float, prior: Prior) -> Decision:
        """Decide. All slopes must support the exponent, but only the last can refute it."""
        side = self.side or "equal"
        decision = judgement.judge_means(slopes - exponents, allowed, error, side=side, prior=prior)
        if decision.status is not Status.REFUTED:
            return decision
        margins = allowed.mean(axis=0)
        # Positive if a slope is surely too high, or too low.
        above = decision.low - margins
        below = -decision.high - margins
        beyond_by_side = {"at_most": above, "at_least": below, "equal": np.maximum(above, below)}
        beyond = beyond_by_side[side]
        if beyond[-1] <= 0:
            return decision._replace(status=Status.INCONCLUSIVE)
        return decision._replace(worst=len(beyond) - 1)

    def _trend(self, measured: Float[np.ndarray, " C"], decision: Decision) -> Trend | None:
        """Return the change of the slope before the end of the grid. Only a limit has one."""


class LimitRate(_Limit, Rate):
    """Test that a quantity is O(), Omega() or Theta() of a power of x, with any constant, in a limit.

    In the limit the slope of log means over log x is at_most, at_least or equal to the exponent. Arrays have a column
    for the bending, whose exponent is 0, and one for the slope over the last decade. The bending is the slope over the
    last decade minus the slope over the decade before. The claim is SUPPORTED if the slope is within the margin and
    provably bends by at most the margin towards the other side. It is REFUTED if the slope is beyond the margin and
    provably bends back by at most the margin. Otherwise the claim stays open.
    """

    kind = "limit_rate"

    def complaints(self) -> Iterator[str]:
        yield from super().complaints()
        if self.margin == 0:
            yield "margin=0.0 must be above 0, because samples cannot show that a slope does not bend at all."

    def _contrasts(self, abscissa: Float[np.ndarray, " V"]) -> tuple[Float[np.ndarray, "C V"], list[str]]:
        _, end_name = intervals.asymptotic_end(abscissa)
        two_decades = last_decades(abscissa, number=2)
        last_decade = last_decades(abscissa, number=1)
        decade_before = two_decades[: 1 - len(last_decade)]  # includes the first point of the last decade
        at_end = slope_weights(abscissa, last_decade)
        bending = at_end - slope_weights(abscissa, decade_before)
        return np.stack([bending, at_end]), ["bending", f"slope at the {end_name} end"]

    def _exponents(self, samples: Compared) -> Values:
        return np.hstack([np.zeros_like(samples.predicted), samples.predicted])

    def _claimed_exponent(self, samples: Compared, exponents: Values) -> float:
        return float(samples.predicted.mean())

    def _judge(self, slopes: Values, exponents: Values, allowed: Values, error: float, prior: Prior) -> Decision:
        decision = super()._judge(slopes, exponents, allowed, error, prior)
        margin = float(allowed.mean())
        status = decision.status
        bending = Bounds(decision.low[0], decision.high[0])
        slope = Bounds(decision.low[1], decision.high[1])  # minus the exponent
        # A slope above the margin bends back if it falls, and one below if it rises.
        may_bend_back = bending.low < -margin if slope.low > margin else bending.high > margin
        if status is Status.REFUTED and may_bend_back:
            status = Status.INCONCLUSIVE
        discrepancy = judgement.detectable_slope(slopes, (decision.high - decision.low) / 2, margin)
        return decision._replace(status=status, worst=1, margin=margin, smallest_discrepancy=discrepancy)

    def _trend(self, measured: Float[np.ndarray, " C"], decision: Decision) -> Trend:
        return Trend("", float(measured[0]), float(decision.low[0]), float(decision.high[0]))


def equality(value: Any, *, margin: float, scale: Any = None) -> Criterion:
    """Return the test that the mean is `value` within a fraction of `scale`, which is |value| by default."""
    return Equality(value, margin, scale=scale)


def bound(
    *, at_most: Any = None, at_least: Any = None, margin: float = 0.0, scale: Any = None, trivial: Any = None
) -> Criterion:
    """Return the test that the mean is at most or at least a bound."""
    side, value = _side(at_most=at_most, at_least=at_least)
    if side == "at_most":
        return UpperBound(value, margin, scale=scale, trivial=trivial)
    return LowerBound(value, margin, scale=scale, trivial=trivial)


def ordering(*, below: Any, margin: float = 0.0, scale: Any = None) -> Criterion:
    return Ordering(below, margin, scale=scale)


def identity(*, within: float) -> Criterion:
    """Return the test that no replicate's absolute value is above a tolerance."""
    return Identity(margin=within)


def probability(*, at_most: Any = None, at_least: Any = None, margin: float = 0.0, trivial: Any = None) -> Criterion:
    """Return the test that the event has at most or at least this probability."""
    side, value = _side(at_most=at_most, at_least=at_least)
    return Probability(value, margin, side, trivial=trivial)


def rate(
    *, at_most: float | None = None, at_least: float | None = None, equal: float | None = None, margin: float = 0.1
) -> Criterion:
    """Return the test of the slope of log means over the logarithm of the selection's abscissa."""
    side, value = _side(at_most=at_most, at_least=at_least, equal=equal)
    return Rate(value, margin, side)


def counterexample(*, allowed: Any = None, margin: float = 0.0) -> Criterion:
    """Return the test that instances violate the statement more often than allowed."""
    return ConstructedCounterexample(allowed, margin)


def limit_probability(*, to: int, margin: float) -> Criterion:
    """Return the test that the event's probability tends to 0 or 1. A failure probability up to `margin` is small."""
    return LimitProbability(margin=margin, side="at_least" if to else "at_most")


def limit_rate(
    *, at_most: float | None = None, at_least: float | None = None, equal: float | None = None, margin: float = 0.1
) -> Criterion:
    """Return the test of the slope of log means at the grid's end, where it bends by at most `margin`."""
    side, value = _side(at_most=at_most, at_least=at_least, equal=equal)
    return LimitRate(value, margin, side)


def _side(**sides: Any) -> tuple[Side, Any]:
    named_sides = [(side, value) for side, value in sides.items() if value is not None]
    if len(named_sides) != 1:
        raise DeclarationError(f"exactly one of {', '.join(sides)} must be given, not {len(named_sides)}.")
    return named_sides[0]  # pyright: ignore[reportReturnType]


def _declared_bounds(samples: Compared, name: str, values: Values) -> Bounds:
    if samples.is_computed:
        return Bounds(values[0], values[0])
    declared = samples.ranges.get(name)
    if declared is None:
        return Bounds()
    if declared.is_constant:
        if varies(values).any():
            raise DeclarationError(f"the {name} value is declared equal for all replicates, but differs")
        return Bounds(values[0], values[0])
    low = declared.low
    high = declared.high
    slack = intervals.rounding_of(values, low, high)
    outside = (values < low - slack) | (values > high + slack)
    if outside.any():
        raise DeclarationError(
            f"the {name} value is declared to be in [{low:g}, {high:g}], but is outside in "
            f"{np.count_nonzero(outside.any(axis=1)):,} of {len(values):,} replicates, for example "
            f"{values[outside][0]:g}. Declare its true range."
        )
    return Bounds(low, high)


def _curve(labels: list[str], low: np.ndarray, high: np.ndarray, **parts: np.ndarray) -> Curve:
    lists = {name: part.tolist() for name, part in parts.items()}
    return Curve(labels, low=low.tolist(), high=high.tolist(), **lists)
