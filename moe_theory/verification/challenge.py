"""Search of a statement's free parameters: for a counterexample, or for settings where a false statement is true.

The recorded setting comes first, then both ends of each axis alone, then points that fill the region. The best settings
get more replicates, and neighbours. All this only chooses settings. A flip is a verdict, as `verify` gives it, on a
fresh seed, at its share of the error. The setting is then shrunk, axis by axis back to the recorded value, and tested
once more. Its border is found by halving. Where there are flips, the search fits a clause of one or two inequalities
that leaves them out, and searches inside it. A search without a flip proves nothing, so the number of settings and the
closest one are part of the result.
"""

import dataclasses
import math
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

import numpy as np
from scipy.stats import qmc

from moe_theory.core import engine
from moe_theory.core.errors import InvalidValueError, MoeTheoryError
from moe_theory.runs import Progress, automatic, quiet
from moe_theory.runs import shown as shown_progress
from moe_theory.runs.workers import num_device_workers
from moe_theory.verification import registry
from moe_theory.verification.catalog import matching, statements
from moe_theory.verification.challenged import Challenge, Clause, ClauseBound, Flip, Looked
from moe_theory.verification.claim import Claim, Experiment, ReadingLike, registered
from moe_theory.verification.region import FreeAxis, described
from moe_theory.verification.request import FAMILY_ERROR, check_request, resolve
from moe_theory.verification.session import StudyMonitor, take_looks
from moe_theory.verification.settings import Group, at_setting
from moe_theory.verification.statement import declared, free_of
from moe_theory.verification.status import deciding
from moe_theory.verification.verdict import Statement, Status, Verdict

SECONDS = 40.0
MOST_SEARCHED = 200  # statements, which the error is split over in advance: one more changes no other's share
FEW = 32  # replicates of a first look at a setting
MANY = 256  # replicates of one at the best settings
START = 32  # points that fill the region
BATCH = 4  # points that run between two looks at the clock
KEPT = 4  # settings that get neighbours and more replicates
ROUNDS = 4  # how often they do
FINALISTS = 3  # settings that are tested, and one of them once more, each at an even share of the error
MOST_SHAPES = 10  # programs, which take seconds to compile,
SHAPE_SHARE = 0.3  # and their share of the time
HALVINGS = 5  # of a border
PROBES = 8  # settings inside a clause that are searched
TRIES = 8  # clauses that are tried
# Each stage ends at this share of the time after the first look.
ENDS = 0.3
FILLING = 0.45
PROMOTING = 0.6
OVER = 1.5  # times the time, for shrinking, other readings, borders and a clause where there is a flip
SLOW = 0.2  # share of the time that a first look may take before a second one, or one under other readings
SLOWER = 4  # times as slow as the fastest program: most points are not spent on such
BORDER_ERROR = 0.05  # error of a verdict that only places a border
_UNFIT = {Status.INAPPLICABLE, Status.ERROR}

Point = tuple[tuple[FreeAxis, Any], ...]  # the axes that a setting changes, in their order
Bounds = list[tuple[FreeAxis, ClauseBound]]
ClaimGroup = tuple[Experiment, list[Claim]]  # an experiment, and the claims that read it


def challenge(
    statement: str,
    seconds: float = SECONDS,
    *,
    reading: str | None = None,
    seed: int = 0,
    error: float | None = None,
    module: str | None = None,
    progress: Progress = automatic,
) -> Challenge:
    """Search a statement's free parameters for a setting where it breaks, or, if it is false, where it holds.

    Args:
        statement: its name, or a claim's id.
        seconds: time after which no new setting is begun.
        reading: of everything else. None looks at the ends of each axis under all default readings under which the
            hypotheses hold, and goes on under the one that came closest to a flip.
        error: probability that any flip is false. None splits 0.01 over the searches of all statements, each 1 / 200.
        module: the file that declares it, for the commands that repeat a flip.
        progress: where it is reported, by default a line in a notebook, else standard error.
    Raises: UnknownNameError; InvalidValueError for a statement without free parameters, or that no reading applies to;
        InvalidValueError or DeclarationError as the systems that it runs.

    Examples:
        >>> import moe_theory as mt
        >>> found = mt.challenge("generalization.lemma-9", seconds=1)
        >>> found.sought, [each.name for each in found.free]
        ('break', ['num_samples'])
    """
    chosen_statement = named(statement)
    claims = [registered()[id] for id in deciding(chosen_statement)]
    axes = axes_of(chosen_statement)
    if not seconds > 0:
        raise InvalidValueError(f"seconds={seconds} must be above 0. Raise seconds.", argument="seconds")
    error = FAMILY_ERROR / MOST_SEARCHED if error is None else error
    check_request([claim.id for claim in claims], reading, None, seed, error)
    readings = registry.select_readings(claims[0].paper, None if reading is None else [reading])
    experiments = {id(claim.experiment): claim.experiment for claim in claims}.values()
    groups = [(experiment, [claim for claim in claims if claim.experiment is experiment]) for experiment in experiments]
    with shown_progress(progress) as listener:
        search = RegionSearch(groups, axes, seed, error, seconds, module, listener)
        search.begin(readings, chosen_statement.name)
        flips = search.run()
        clause = search.clause() if flips else None
    words = [f"moe-theory challenge {chosen_statement.name}"]
    if reading is not None:
        words.append(f"--reading {reading}")
    words.append(f"--seconds {seconds:g} --seed {seed} --error {error!r}")
    if module:
        words.append(f"--module {shlex.quote(module)}")
    return Challenge(
        statement=chosen_statement.name,
        where=chosen_statement.where,
        sought=search.sought,
        reading=search.reading.name,
        readings=[alike_reading.name for alike_reading in search.alike],
        free=[described(axis, list(search.seen.recorded[axis])) for axis in axes],
        flips=flips,
        clause=clause,
        recorded=search.looked[()],
        nearest=search.nearest(flips),
        settings=search.num_settings,
        inadmissible=len(search.refused),
        shapes=search.num_shapes,
        idle=search.idle(),
        seconds=round(search.spent, 1),
        seed=seed,
        error=error,
        command=" ".join(words),
    )


def named(pattern: str) -> Statement:
    """Return the one statement that a pattern names.

    Raises: UnknownNameError; InvalidValueError where it names several.
    """
    matches = every_named(pattern)
    if len(matches) > 1:
        names = ", ".join(match.name for match in matches[:5]) + (", ..." if len(matches) > 5 else "")
        raise InvalidValueError(
            f"{pattern!r} names {len(matches)} statements, and this is of one. Name one of {names}."
        )
    return matches[0]


def axes_of(of: Statement) -> tuple[FreeAxis, ...]:
    """Return a statement's free parameters. Raises: InvalidValueError where there are none."""
    if axes := free_of(of):
        return axes
    raise InvalidValueError(
        f"{of.name} declares nothing that it leaves free for all claims that decide it. Name it in the statement: "
        "free=(Order(...), Scale(...))."
    )


def every_named(pattern: str) -> Sequence[Statement]:
    """Return the statements that a pattern names, the user's own first. Raises: UnknownNameError."""
    own_statements = [declaration.plain for declaration in declared() if not declaration.is_of_a_paper]
    return matching(pattern, own_statements) or statements(pattern)


@dataclasses.dataclass
class _Seen:
    """What was looked at under a reading."""

    looked: dict[Point, Looked] = dataclasses.field(default_factory=dict)
    refused: dict[Point, str] = dataclasses.field(default_factory=dict)  # reasons
    end_violations: dict[FreeAxis, list[float]] = dataclasses.field(default_factory=dict)  # at the ends of each axis
    recorded_violation: float = math.nan  # at the recorded setting, on as few replicates
    recorded: dict[FreeAxis, set[Any]] = dataclasses.field(default_factory=dict)  # values of the cells


class RegionSearch:
    """A search under way: the settings that it has looked at, and those that were refused."""

    def __init__(
        self,
        groups: Sequence[ClaimGroup],
        axes: Sequence[FreeAxis],
        seed: int,
        error: float,
        seconds: float,
        module: str | None = None,
        progress: Progress = quiet,
    ) -> None:
        self.groups = groups
        self.axes = tuple(axes)
        self.seed = seed
        self.error = error
        self.seconds = seconds
        self.module = module
        self.progress = progress
        self.start_time = time.monotonic()
        self.num_shapes = 0
        self.flipped: list[Point] = []
        self.alike: list[ReadingLike] = []  # readings under which the recorded setting is on the same side
        self._compile_seconds: dict[Point, float] = {}  # by what experiments are built with; 0 for nothing compiled
        self._pace: dict[Point, float] = {}  # seconds a replicate, likewise, of compiled programs
        self._seen: dict[str, _Seen] = {}  # by reading
        self._first_seconds = 0.0  # of the recorded setting
        self._readings: Sequence[ReadingLike] = ()

    @property
    def spent(self) -> float:
        """Seconds since the search began."""
        return time.monotonic() - self.start_time

    @property
    def is_late(self) -> bool:
        """Whether the search has taken so long that only what is tested already is reported."""
        return self.spent > OVER * self.seconds

    @property
    def num_settings(self) -> int:
        """Settings looked at, under all readings."""
        return sum(len(seen.looked) for seen in self._seen.values())

    @property
    def sought(self) -> str:
        """ "break" of a statement that holds at the recorded setting, else "rescue"."""
        return "break" if self.looked[()].violation <= 0 else "rescue"

    def gain(self, looked: Looked) -> float:
        """Return how far a setting is towards a flip, in margins."""
        return looked.violation if self.sought == "break" else -looked.violation

    def ranked(self) -> list[Point]:
        """Return the settings under the present reading, those closest to a flip first."""
        return sorted(self.looked, key=lambda point: -self.gain(self.looked[point]))

    def nearest(self, flips: Sequence[Flip]) -> Looked:
        """Return the setting that came closest to a flip and is none; the recorded one where there is no other."""
        recorded = self.looked[()]
        flipped = [flip.setting for flip in flips]
        for point in self.ranked():
            looked = self.looked[point]
            if looked is not recorded and looked.setting not in flipped:
                return looked
        return recorded

    def idle(self) -> list[str]:
        """Return the axes whose ends change nothing."""
        seen = self.seen
        names = []
        for axis in self.axes:
            changes = [abs(violation - seen.recorded_violation) for violation in seen.end_violations.get(axis, ())]
            if changes and max(changes) < 1e-9:
                names.append(axis.name)
        return names

    def begin(self, readings: Sequence[ReadingLike], name: str) -> None:
        """Look at the recorded setting under the readings that the hypotheses allow.

        Those on the side of the first are searched.

        Raises: InvalidValueError where there is none.
        """
        self._readings = readings
        for reading in readings:
            self._go_on_under(reading)
            self.look([()], FEW)
            if self.spent > SLOW * self.seconds and any(seen.looked for seen in self._seen.values()):
                break
        admissible = [reading for reading in readings if reading.name in self._seen and self._seen[reading.name].looked]
        if not admissible:
            raise InvalidValueError(f"{name} cannot be judged at its recorded point: {self.refused[()]}")
        self._go_on_under(admissible[0])
        sought = self.sought
        self._first_seconds = self.spent
        for reading in admissible:
            self._go_on_under(reading)
            self.seen.recorded_violation = self.looked[()].violation
            cells = list(self._cells_under(reading))
            for axis in self.axes:
                self.seen.recorded[axis] = {axis.recorded_at(params, dims) for dims, params in cells}
            if self.sought == sought:
                self.alike.append(reading)
        self._go_on_under(self.alike[0])
        if self.spent < SLOW * self.seconds:
            self.look([()], MANY)

    def _cells_under(self, reading: ReadingLike) -> Iterable[tuple[Any, Any]]:
        """Yield dims and parameters of the cells that claims read."""
        for experiment, claims in self.groups:
            for cell in experiment.cells_under(reading):
                if any(claim.cells is None or cell.name in claim.cells for claim in claims):
                    yield experiment.dims, cell.params

    def run(self) -> list[Flip]:
        """Go through all stages and return the flips."""
        for reading in self.alike:
            self._go_on_under(reading)
            for axis in sorted(self.axes, key=lambda axis: not self._is_built(axis)):
                ends = [self._point({axis: end}) for end in axis.ends]
                self.look(ends, FEW, ENDS)
                self.seen.end_violations[axis] = [
                    self.looked[end].violation for end in ends if end and end in self.looked
                ]
        self._go_on_under(max(self.alike, key=self._best_gain))
        for places in np.split(qmc.Sobol(len(self.axes), rng=self.seed).random(START), START // BATCH):
            points = []
            for number, row in enumerate(places):
                values = {axis: axis.at(place) for axis, place in zip(self.axes, row, strict=True)}
                points.append(self._affordable(values, number))
            self.look(points, FEW, FILLING)
        random = np.random.default_rng(self.seed)
        for _ in range(ROUNDS):
            best = self.ranked()[:KEPT]
            self.look([self._neighbour(point, random) for point in best], FEW, PROMOTING)
            self.look(best, MANY, PROMOTING)
        self.look(self._finalists(), MANY)
        return self._flips()

    def _go_on_under(self, reading: ReadingLike) -> None:
        """Go on under a reading, with what was seen under it."""
        self.reading = reading
        self.seen = self._seen.setdefault(reading.name, _Seen())
        self.looked = self.seen.looked
        self.refused = self.seen.refused

    def _best_gain(self, reading: ReadingLike) -> float:
        return max(map(self.gain, self._seen[reading.name].looked.values()))

    def look(self, points: Iterable[Point], replicates: int, until: float = 1.0) -> None:
        """Look at settings that have had fewer replicates, until a share of the time is up.

        Several run at once, as many as there are workers, or one of another shape.
        """
        waiting = [point for point in dict.fromkeys(points) if self._num_replicates(point) < replicates]
        while waiting and (not self.looked or self._is_before(until)):
            words = f"{len(self.looked)} settings and {self.num_shapes} shapes of programs under {self.reading.name}"
            self.progress.at(words)
            shape = self._shape(waiting[0])
            is_new = shape not in self._compile_seconds
            batch = [point for point in waiting if self._shape(point) == shape]
            batch = batch[: 1 if is_new else max(num_device_workers(), 1)]
            waiting = [point for point in waiting if point not in batch]
            num_programs = engine.num_programs()
            start = self.spent
            verdicts = self._judged(batch, replicates, self.seed, self.error)
            seconds = self.spent - start
            for point, own_verdicts in verdicts.items():
                self._note(point, own_verdicts, replicates)
            if is_new and verdicts:
                is_compiled = engine.num_programs() > num_programs
                self.num_shapes += is_compiled
                self._compile_seconds[shape] = seconds * is_compiled
            elif not is_new:
                self._pace[shape] = seconds / len(batch) / replicates

    def _is_before(self, share: float) -> bool:
        """Whether a share of the time after the first look is left."""
        return self.spent < self._first_seconds + share * (self.seconds - self._first_seconds)

    def _note(self, point: Point, verdicts: Sequence[Verdict], replicates: int | None = None) -> None:
        if replicates is None:
            replicates = min(verdict.replicates for verdict in verdicts)
        violation = max(verdict.violation for verdict in verdicts)
        self.looked[point] = Looked(_values(point), violation, replicates)

    def _num_replicates(self, point: Point) -> float:
        """Replicates that a setting has had; infinitely many where it was refused."""
        if point in self.refused:
            return math.inf
        return self.looked[point].replicates if point in self.looked else 0

    def _judged(
        self,
        points: Iterable[Point],
        replicates: int | None,
        seed: int,
        error: float,
        reading: ReadingLike | None = None,
    ) -> dict[Point, list[Verdict]]:
        """Return the verdicts at admissible settings.

        Inadmissible ones are noted, unless another reading is given.
        """
        refused = self.refused if reading is None else {}
        monitors: dict[Point, list[StudyMonitor]] = {}
        for point in points:
            try:
                groups = [
                    at_setting(Group(experiment, reading or self.reading, claims), dict(point))
                    for experiment, claims in self.groups
                ]
            except MoeTheoryError as refusal:
                refused[point] = str(refusal)
                continue
            studies = resolve(groups, replicates, seed, error, module=self.module).studies
            monitors[point] = [StudyMonitor(study) for study in studies]
        take_looks([monitor for group in monitors.values() for monitor in group], quiet, lambda *_: None)
        verdicts: dict[Point, list[Verdict]] = {}
        for point, group in monitors.items():
            latest = [test.latest for monitor in group for test in monitor.tests]
            unfit = [verdict for verdict in latest if verdict.status in _UNFIT or math.isnan(verdict.violation)]
            if unfit:
                refused[point] = unfit[0].reason
            else:
                verdicts[point] = latest
        return verdicts

    @property
    def _share(self) -> float:
        """The error of each verdict that may be published."""
        return self.error / (FINALISTS + 1) / len(self._readings)

    def _flips(self) -> list[Flip]:
        flips: list[Flip] = []
        is_shrunk = False
        for point in self._finalists():
            names = {axis.name for axis, _ in point}
            if any(names >= flip.setting.keys() for flip in flips):
                continue
            verdicts = self._at(point, None, self.seed + 1, self._share)
            if not self._is_flip(verdicts):
                continue
            if len(point) > 1 and not is_shrunk:
                is_shrunk = True
                smaller = self._shrunk(point, self._share)
                repeated = self._at(smaller, None, self.seed + 3, self._share) if smaller != point else []
                if self._is_flip(repeated):
                    point = smaller
                    verdicts = repeated
            self._note(point, verdicts)
            self.flipped.append(point)
            borders = {axis.name: self._border(point, axis) for axis, _ in point}
            borders = {name: border for name, border in borders.items() if border}
            flips.append(Flip(_values(point), [*verdicts, *self._under_others(point)], borders))
        return flips

    def _under_others(self, point: Point) -> list[Verdict]:
        """Return the verdicts at a setting under the other readings, as far as there is time.

        Readings known to disagree at the recorded setting are left out.
        """
        verdicts: list[Verdict] = []
        for reading in self._readings:
            is_alike = reading in self.alike or reading.name not in self._seen
            if is_alike and reading is not self.reading and not self.is_late:
                verdicts += self._at(point, None, self.seed + 1, self._share, reading)
        return verdicts

    def clause(self) -> Clause | None:
        """Return at most two inequalities within which no look is beyond its margin; None where there are none.

        They allow most of the settings looked at, and are one where one is enough. Settings inside are looked at, and
        the clause is narrowed where one breaks it. The two closest to a break are tested like finalists.
        """
        is_break = self.sought == "break"
        anchor = () if is_break else self.flipped[0]
        bad = set(self.flipped) if is_break else {()}
        for attempt in range(TRIES):
            bad |= {point for point in self.looked if self._violation(point) > 0}
            bounds = self._fitted(anchor, bad)
            if not bounds:
                return None
            probes = [self._point(values) for values in self._within(bounds, dict(anchor), attempt)]
            self.look(probes, FEW, OVER)
            inside = sorted((point for point in self.looked if self._allows(bounds, point)), key=self._violation)
            closest = inside[-2:]
            is_broken = self._violation(closest[-1]) > 0
            for point in () if is_broken or self.is_late else closest:
                verdicts = self._at(point, None, self.seed + 4, self.error / (FINALISTS + 1))
                if verdicts:
                    self._note(point, verdicts)
            if not is_broken and all(self._violation(point) <= 0 for point in closest):
                readings = self._standing(dict.fromkeys([*probes[: len(bounds)], *closest]))
                return Clause([bound for _, bound in bounds], len(inside), self.looked[closest[-1]], readings)
        return None

    def _standing(self, points: Iterable[Point]) -> list[str]:
        """Return the readings under which none of these settings breaks, the search's own first."""
        names = [self.reading.name]
        for reading in self.alike:
            if reading is self.reading:
                continue
            verdicts = [self._at(point, None, self.seed + 4, self._share, reading) for point in points]
            statuses = {verdict.status for own_verdicts in verdicts for verdict in own_verdicts}
            if statuses and Status.REFUTED not in statuses:
                names.append(reading.name)
        return names

    def _violation(self, point: Point) -> float:
        return self.looked[point].violation

    def _fitted(self, anchor: Point, bad: Set[Point]) -> Bounds:
        """Return inequalities that allow the anchor and no bad setting, at values that were looked at."""
        good = [point for point in self.looked if point not in bad and self._violation(point) <= 0]
        singles = [single for single in self._single_bounds(good) if self._allows([single], anchor)]
        if not singles:
            return []
        allowed_good = self._table(singles, good)
        allowed_bad = self._table(singles, list(bad))
        scores = np.where(allowed_bad.any(1), -1, allowed_good.sum(1))
        if scores.max() >= 0:
            return [singles[scores.argmax()]]
        pair_scores = [
            np.where((one_bad & allowed_bad).any(1), -1, (one_good & allowed_good).sum(1))
            for one_good, one_bad in zip(allowed_good, allowed_bad, strict=True)
        ]
        first, second = np.unravel_index(np.argmax(pair_scores), (len(singles), len(singles)))
        return [singles[first], singles[second]] if pair_scores[first][second] >= 0 else []

    def _single_bounds(self, points: Sequence[Point]) -> Bounds:
        """Return all bounds of one axis at values of these settings."""
        bounds: Bounds = []
        for axis in self.axes:
            if len(self.seen.recorded[axis]) > 1:
                continue
            for value in dict.fromkeys(self._value(point, axis) for point in points):
                relations = ("=",) if isinstance(value, str) else ("≤", "≥")
                bounds += [(axis, ClauseBound(axis.name, relation, value)) for relation in relations]
        return bounds

    def _table(self, bounds: Bounds, points: Sequence[Point]) -> np.ndarray:
        """Return which bound allows which setting, (bounds, settings)."""
        rows = [[self._allows([bound], point) for point in points] for bound in bounds]
        return np.array(rows, bool).reshape(len(bounds), -1)

    def _allows(self, bounds: Iterable[tuple[FreeAxis, ClauseBound]], point: Point) -> bool:
        return all(bound.allows(self._value(point, axis)) for axis, bound in bounds)

    def _value(self, point: Point, axis: FreeAxis) -> Any:
        """A setting's value on an axis that is recorded at one."""
        return dict(point).get(axis, next(iter(self.seen.recorded[axis])))

    def _within(self, bounds: Bounds, anchor: Mapping[FreeAxis, Any], attempt: int) -> list[Mapping[FreeAxis, Any]]:
        """Return settings that the bounds allow: at their edges, with all else at the anchor, and inside."""
        edges = [{**anchor, axis: bound.value} for axis, bound in bounds]
        filling: list[Mapping[FreeAxis, Any]] = []
        for number, row in enumerate(qmc.Sobol(len(self.axes), rng=self.seed + attempt).random(PROBES * 8)):
            values = {axis: axis.at(place) for axis, place in zip(self.axes, row, strict=True)}
            for place, (axis, bound) in enumerate(bounds):
                is_at_edge = (number + place) % 2 == 0
                if is_at_edge or not bound.allows(values[axis]):
                    values[axis] = bound.value
            point = self._affordable(values, number)
            if self._allows(bounds, point):
                filling.append(dict(point))
        return [*edges, *filling[:PROBES]]

    def _at(
        self, point: Point, replicates: int | None, seed: int, error: float, reading: ReadingLike | None = None
    ) -> list[Verdict]:
        """Return the verdicts at a setting; with None on as many replicates as decide, or as there is time for."""
        pace = self._pace.get(self._shape(point))
        if replicates is None and pace:
            room = max((OVER * self.seconds - self.spent) / pace, MANY)
            most = max(experiment.replicates for experiment, _ in self.groups)
            replicates = None if room >= most else 2 ** int(math.log2(room))
        return self._judged([point], replicates, seed, error, reading).get(point, [])

    def _is_flip(self, verdicts: Sequence[Verdict]) -> bool:
        if self.sought == "break":
            return any(verdict.status is Status.REFUTED for verdict in verdicts)
        return bool(verdicts) and all(verdict.status is Status.SUPPORTED for verdict in verdicts)

    def _shrunk(self, point: Point, error: float) -> Point:
        """Return the flip with as many axes back at the recorded value as it stands without."""
        for axis, _ in point:
            smaller = tuple(pair for pair in point if pair[0] is not axis)
            if smaller and not self.is_late and self._is_flip(self._at(smaller, None, self.seed + 2, error)):
                point = smaller
        return point

    def _border(self, point: Point, axis: FreeAxis) -> list[Any]:
        """Return values on either side of the border along an axis, from the recorded one to where it flips."""
        within = next(iter(self.seen.recorded[axis]))
        beyond = dict(point)[axis]
        if len(self.seen.recorded[axis]) > 1 or isinstance(within, str):
            return []
        for _ in range(HALVINGS):
            middle = axis.halfway(within, beyond)
            if middle is None or self.is_late:
                break
            verdicts = self._at(self._point({**dict(point), axis: middle}), MANY, self.seed + 2, BORDER_ERROR)
            if not verdicts:
                break
            worst = Looked({}, max(verdict.violation for verdict in verdicts), MANY)
            if self.gain(worst) > 0:
                beyond = middle
            else:
                within = middle
        return [within, beyond]

    def _finalists(self) -> list[Point]:
        """Return settings to test: those beyond the margin, each moving other axes.

        Of those about as far, those that move the fewest axes come first.
        """
        gains = {point: self.gain(self.looked[point]) for point in self.ranked()}
        beyond = [point for point, gain in gains.items() if point and gain > 0]
        most = max((gains[point] for point in beyond), default=0.0)
        beyond.sort(key=lambda point: (gains[point] < most / 2, len(point)))
        by_axes: dict[tuple[FreeAxis, ...], Point] = {}
        for point in reversed(beyond):
            by_axes[tuple(axis for axis, _ in point)] = point
        return [*reversed(by_axes.values())][:FINALISTS]

    def _neighbour(self, point: Point, random: np.random.Generator) -> Point:
        """Return the setting with one axis drawn again, or halfway to the recorded value."""
        axis = self.axes[random.integers(len(self.axes))]
        values = dict(point)
        recorded = next(iter(self.seen.recorded[axis]))
        middle = axis.halfway(recorded, values[axis]) if axis in values and random.random() < 0.5 else None
        return self._affordable({**values, axis: axis.at(random.random()) if middle is None else middle})

    def _affordable(self, values: Mapping[FreeAxis, Any], place: int = 0) -> Point:
        """Return the setting, in most places with sizes whose programs are compiled and fast."""
        point = self._point(values)
        shape = self._shape(point)
        costs = [seconds for compiled, seconds in self._compile_seconds.items() if compiled]
        is_compiled = shape in self._compile_seconds
        needs_no_programs = bool(costs) and not any(costs)
        share = 1.0 if all(self._is_built(axis) for axis in self.axes) else SHAPE_SHARE
        has_time = self.num_shapes < MOST_SHAPES and sum(costs) < share * self.seconds
        if not is_compiled and (needs_no_programs or has_time):
            return point
        fastest = min(self._pace.values(), default=0.0)
        fast = [compiled for compiled in self._compile_seconds if self._pace.get(compiled, 0.0) <= SLOWER * fastest]
        if is_compiled and (place == 0 or shape in fast):
            return point
        unbuilt = {axis: value for axis, value in values.items() if not self._is_built(axis)}
        return self._point(unbuilt | dict(fast[(len(self.looked) + place) % len(fast)]))

    def _point(self, values: Mapping[FreeAxis, Any]) -> Point:
        return tuple(
            (axis, values[axis]) for axis in self.axes if axis in values and {values[axis]} != self.seen.recorded[axis]
        )

    def _shape(self, point: Point) -> Point:
        return tuple(pair for pair in point if self._is_built(pair[0]))

    def _is_built(self, axis: FreeAxis) -> bool:
        return any(axis.is_built(experiment) for experiment, _ in self.groups)


def _values(point: Point) -> dict[str, Any]:
    return {axis.name: value for axis, value in point}
