"""Planted claims: statements whose truth is known, since seeded samples of a known law stand in for a simulation.

All else is real: the `Claim`, its `SequentialTest` and what that rests on. How false a claim is is measured in
margins: its `distance` from what is stated, towards the side that the statement forbids, is 0 where it holds exactly,
below 1 within its margin, 1 at the margin's edge, which is the least favourable case of a true claim and of a false
one, and 1 + k where it is false by k margins. What a margin is a multiple of, by kind:

- equality, bounds, ordering: one replicate's standard deviation of observed - predicted;
- rate: the standard deviation of one replicate's share in the slope, by the delta method;
- probability: a difference of probabilities;
- limits: as above, of the slope or the log ratio at the end of the grid and of a failure probability; the distance is
  that of the limit itself, and the `profile` says how far from what is stated the grid is on its way there;
- counterexample: a frequency of violations, of which one margin is allowed;
- identity: a frequency of replicates that violate the tolerance. At a distance up to 1 none does, and at 1 all errors
  are as large as the tolerance.

Laws that t is not made for, and laws of values with a declared range, are planted at the edge, where each decision is
false; nothing is predicted of how many of them stay undecided.

How often they should be refuted and supported, `expected_shares`, follows from the law of their samples alone, without
the engine, and is recorded in `planted_shares.json`. Means, and contrasts of log means, are a Gaussian random walk,
looked at against Student's t, or against the quantiles of the largest of several |t|, which are those of the walk
itself. Counts of one event are a binomial walk, whose law is carried from look to look exactly. Several events, and one
along the grid of a limit, were simulated by 40,000 walks.
"""

import dataclasses
import functools
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.core.system import System
from moe_theory.runs import Run
from moe_theory.verification.claim import Claim, Experiment
from moe_theory.verification.criteria import KINDS, Side
from moe_theory.verification.interim import SequentialTest, look_sizes
from moe_theory.verification.ranges import Range
from moe_theory.verification.request import blank_verdict
from moe_theory.verification.verdict import LIMITS, Stop, Verdict

REPLICATES = 512  # of a claim at most: four looks, of which t is trusted at two
CORRELATION = 0.7  # between the components of a mean
GRID = (0.01, 1.0)  # of a rate: of two points, whose slope over the grid is that at its end
LIMIT_GRID = (1.0, 0.1, 0.01, 0.001)  # of a limit: every decade is one step
EXPONENT = 0.5  # claimed of a rate
LEAST_REPLICATES = 256  # that t is trusted with: written out, as look errors are
GRID_NOISE = 0.3  # relative, of a quantity at a grid point
CLAIMED = {"at_most": 0.02, "at_least": 0.5}  # of a probability: a rare event's binomial is far from normal
INSIDE = -3.0  # where the other components lie, in margins, if only one is at the distance
Law = str  # a name of `LAWS` or of `BOUNDED`
Generator = np.random.Generator
Draw = Callable[[Generator, tuple[int, ...]], np.ndarray]
NORMAL: Law = "normal"


def _rare(probability: float, size: Draw, noise: float = 0.0) -> Draw:
    """Mean 0: a size of mean 1 times 1/probability, in rare replicates, less its mean, on noise around it."""

    def draw(generator: Generator, shape: tuple[int, ...]) -> np.ndarray:
        happened = generator.random(shape) < probability
        return happened * size(generator, shape) / probability - 1 + noise * generator.standard_normal(shape)

    return draw


def _shared(length: int, own: float) -> Draw:
    """Normal, with parts that `length` neighbours share; their own have this share of the variance."""

    def draw(generator: Generator, shape: tuple[int, ...]) -> np.ndarray:
        common = generator.standard_normal((*shape[:-1], -(-shape[-1] // length)))
        shared = np.repeat(common, length, axis=-1)[..., : shape[-1]]
        return np.sqrt(1 - own) * shared + np.sqrt(own) * generator.standard_normal(shape)

    return draw


def _ones(generator: Generator, shape: tuple[int, ...]) -> np.ndarray:
    return np.ones(shape)


LAWS: dict[Law, Draw] = {  # mean 0; of the first ones, that powers are predicted or sizes measured of, variance 1
    NORMAL: Generator.standard_normal,
    "exponential": lambda generator, shape: generator.standard_exponential(shape) - 1,
    "Student t, 3 df": lambda generator, shape: generator.standard_t(3, shape) / np.sqrt(3),
    "log-normal (0, 1)": lambda generator, shape: (
        (generator.lognormal(0, 1, shape) - np.exp(0.5)) / np.sqrt(np.expm1(1) * np.exp(1))
    ),
    "log-normal (0, 2)": lambda generator, shape: generator.lognormal(0, 2, shape) - np.exp(2),
    "Pareto 2.1": lambda generator, shape: generator.pareto(2.1, shape) - 1 / 1.1,
    "Pareto 1.5": lambda generator, shape: generator.pareto(1.5, shape) - 2,
    "1 in 100": _rare(0.01, _ones),
    "1 in 1,000": _rare(0.001, _ones),
    "zero but 1 in 20": _rare(0.05, Generator.standard_exponential),
    "zero but 1 in 5": _rare(0.2, Generator.standard_exponential),
    "counts": lambda generator, shape: generator.poisson(0.1, shape) - 0.1,
    "rounded": lambda generator, shape: np.rint(generator.standard_normal(shape)),
    "pairs of a seed": _shared(2, 0.0),
    "64 share a part": _shared(64, 0.5),
}
# By how rare the event is that carries the mean, and that a claim without a range may miss.
UNSEEN: dict[Law, float] = {"noise, but 1 in 100": 0.01, "noise, but 1 in 1,000": 0.001}
LAWS |= {law: _rare(probability, _ones, 0.1) for law, probability in UNSEEN.items()}
# Of values in [0, 1], as their claims declare, and their means.
BOUNDED: dict[Law, tuple[Draw, float]] = {
    "in [0, 1]: coin": (lambda generator, shape: generator.random(shape) < 0.5, 0.5),
    "in [0, 1]: 1 in 100": (lambda generator, shape: generator.random(shape) < 0.01, 0.01),
    "in [0, 1]: 1 in 1,000": (lambda generator, shape: generator.random(shape) < 0.001, 0.001),
    "in [0, 1]: 1 in 100, on noise": (
        lambda generator, shape: np.where(generator.random(shape) < 0.01, 1, 0.01 * generator.random(shape)),
        0.01 + 0.99 * 0.005,
    ),
    "in [0, 1]: zero but 1 in 20": (
        lambda generator, shape: (generator.random(shape) < 0.05) * generator.random(shape),
        0.025,
    ),
    "in [0, 1]: uniform": (Generator.random, 0.5),
    "in [0, 1]: skewed": (lambda generator, shape: generator.random(shape) ** 8, 1 / 9),
    "in [0, 1]: tied": (lambda generator, shape: generator.integers(0, 3, shape) / 2, 0.5),
}


@dataclasses.dataclass(frozen=True)
class Planted:
    """Claims of one condition, which differ in their samples only."""

    kind: str
    side: Side | None
    margin: float
    distance: float
    error: float  # of a verdict
    condition: str  # the distance in words
    num_components: int = 1
    law: Law = NORMAL
    is_single_look: bool = False
    is_one_distant: bool = False  # whether only the first component is at the distance
    profile: tuple[float, ...] = ()  # of a limit, along its grid, or of the slopes between its points, in margins
    replicates: int = REPLICATES  # at most

    @property
    def name(self) -> str:
        side = f" {self.side}" if self.side else ""
        parts = f"{self.law}, components: {self.num_components}, {self.condition}, error {self.error:g}"
        if self.replicates != REPLICATES:
            parts += f", {self.replicates} replicates"
        return f"{self.kind}{side} ({parts})".replace("_", " ")

    @property
    def has_range(self) -> bool:
        return self.law in BOUNDED

    @property
    def sign(self) -> int:
        """The direction in which a claim becomes false."""
        return -1 if self.kind == "lower_bound" or self.side == "at_least" else 1

    @property
    def claimed(self) -> float:
        if self.kind == "limit_probability":
            return float(self.side == "at_least")
        return CLAIMED[self.side] if self.kind == "probability" and self.side else 0.0

    @property
    def looks(self) -> tuple[int, ...]:
        return (self.replicates,) if self.is_single_look else look_sizes(self.replicates, self.replicates)

    @property
    def look_errors(self) -> tuple[float, ...]:
        """Error that each look may spend: written out, so that an engine that spends more is noticed."""
        if self.is_single_look:
            return (self.error,)
        return tuple(self.error / (number * (number + 1)) for number in range(1, len(self.looks) + 1))

    @property
    def unit(self) -> float:
        """Unit of a margin, in the claim's own unit."""
        units = {"rate": slope_deviation(), "limit_rate": slope_deviation(LIMIT_GRID[2:])}
        return units.get(self.kind, 1.0)

    def distances(self) -> Float[np.ndarray, " V"]:
        if self.kind in LIMITS:
            steps = len(LIMIT_GRID) - (self.kind == "limit_rate")
            return np.array(self.profile or [self.distance] * steps)
        others = 0.0 if self.kind == "equality" else INSIDE
        rest = others if self.is_one_distant else self.distance
        return np.array([self.distance] + [rest] * (self.num_components - 1))

    def frequencies(self) -> Float[np.ndarray, " V"]:
        """Frequency of a probability's event, or of violations of a counterexample or of an identity."""
        if self.kind == "identity":
            return self.margin * np.maximum(self.distances() - 1, 0)
        return np.clip(self.claimed + self.sign * self.margin * self.distances(), 0, 1)

    def draw(self, generator: Generator) -> dict[str, Float[np.ndarray, "V B"]]:
        shape = (self.num_components, self.replicates)
        if self.kind == "limit_probability":
            shape = (len(LIMIT_GRID), self.replicates)
        if self.kind in {"probability", "counterexample", "identity", "limit_probability"}:
            happened = generator.random(shape) < self.frequencies()[:, None]
            if self.kind != "identity":
                return {"observed": happened}
            within = np.copysign(1.0, generator.uniform(-1, 1, shape)) * min(self.distance, 1)
            return {"observed": np.where(happened, 2 * within, within)}
        if self.kind == "rate":
            slope = EXPONENT + self.sign * self.distance * self.margin * slope_deviation()
            noise = LAWS[self.law](generator, (len(GRID), self.replicates))
            return {"observed": 3 * np.power(GRID, slope)[:, None] * (1 + GRID_NOISE * noise)}
        if self.kind == "limit_rate":
            noise = 1 + GRID_NOISE * LAWS[self.law](generator, (2, len(LIMIT_GRID), self.replicates))
            beyond = self.sign * self.margin * self.unit * self.distances()
            logs = np.cumsum(np.r_[0, (EXPONENT + beyond) * np.diff(np.log(LIMIT_GRID))])
            return {"observed": np.exp(logs)[:, None] * noise[0]}
        if self.has_range:
            draw, mean = BOUNDED[self.law]
            claimed = np.full(shape, mean - self.sign * self.margin * self.distance)
            if self.kind == "ordering":  # of two like means, neither of which is below the other
                claimed = draw(generator, shape)
            return {"observed": draw(generator, shape), "predicted": claimed}
        noise = LAWS[self.law](generator, shape)
        if self.num_components > 1:
            common = LAWS[self.law](generator, (1, REPLICATES))
            noise = np.sqrt(CORRELATION) * common + np.sqrt(1 - CORRELATION) * noise
        predicted = generator.standard_normal(shape)  # pools of their own, or common random numbers
        difference = self.sign * self.margin * self.distances()[:, None] + noise
        return {"observed": predicted + difference, "predicted": predicted}

    def claim(self) -> Claim:
        predict: Callable[[Any], Any] | None = lambda runs: runs["planted"].records["predicted"].T  # noqa: E731
        margin = 1.0 if self.kind == "identity" else self.margin * self.unit
        ranges = {"scale": Range(is_constant=True)}
        if self.has_range:
            ranges |= {"observed": Range(0, 1), "predicted": Range(is_constant=True)}
        if self.has_range and self.kind == "ordering":
            margin, ranges["predicted"] = 0.0, Range(0, 1)
        if self.kind in {"rate", "limit_rate"}:
            predict = lambda runs: EXPONENT  # noqa: E731
        if self.kind == "probability":
            predict = lambda runs: self.claimed  # noqa: E731
        return Claim(
            id=f"planted.{self.kind.replace('_', '-')}",
            paper="planted",
            where="planted",
            statement="A statement whose truth is known.",
            experiment=EXPERIMENT,
            observe=lambda runs: runs["planted"].records["observed"].T,
            criterion=KINDS[self.kind](
                value=predict if KINDS[self.kind].needs_value else None,
                margin=margin,
                side=self.side,
                scale=lambda runs: 1.0,
                abscissa=LIMIT_GRID if self.kind in LIMITS else GRID if self.kind == "rate" else None,
            ),
            ranges=ranges,
        )

    def judge(self, seed: int, index: int) -> Verdict:
        generator = np.random.default_rng([seed, zlib.crc32(self.name.encode()), index])
        samples, known = self.draw(generator), 0
        test = SequentialTest(
            self.claim(),
            blank_verdict(self.claim(), "planted", seed, self.error),
            self.replicates,
            is_single_look=self.is_single_look,
        )
        for count in self.looks:
            records = {name: values[:, known:count] for name, values in samples.items()}
            test.extend({"planted": Run((), np.array([1]), np.arange(known, count), None, records)}, overflows={})
            if not test.has_ended:
                test.look(count)
            if test.has_ended:
                return test.latest
            known = count
        test.stop(Stop.REPLICATES)
        return test.latest


@functools.cache
def slope_deviation(grid: tuple[float, ...] = GRID) -> float:
    """Standard deviation of one replicate's share in the slope over a grid, by the delta method."""
    places = np.log(grid) - np.mean(np.log(grid))
    return GRID_NOISE / float(np.sqrt(np.sum(places**2)))


def _never(*_: Any) -> Any:
    raise AssertionError("planted samples stand in for the system")


EXPERIMENT = Experiment(
    name="planted",
    dims=None,
    system=System(_never, _never),
    cells={"planted": {}},
    num_rounds=1,
    record_every=1,
    observe=_never,
    replicates=REPLICATES,
)


class Shares(NamedTuple):
    refuted: float
    supported: float


@functools.cache
def recorded_shares() -> dict[str, tuple[float, float]]:
    return json.loads(Path(__file__).with_name("planted_shares.json").read_text(encoding="utf-8"))


def expected_shares(planted: Planted) -> Shares:
    """The probabilities of a REFUTED and of a SUPPORTED, for a normal law."""
    return Shares(*recorded_shares()[planted.name])
