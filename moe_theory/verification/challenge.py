"""Search of what a statement leaves free, for a break of one that holds or a rescue of one that is false.

The recorded point first, then the ends of each axis alone, then points that fill the region; the best get more
replicates, and neighbours. All that only chooses: a flip is a verdict, as `verify` gives it, on a seed that the search
has not seen, at its share of the error. It is then shrunk, axis by axis back to what is recorded, judged once more, and
its border found by halving. Where there are flips, a clause of one or two inequalities is sought that leaves them out,
and looked into for a break in its turn. That nothing is found proves nothing: how many settings were looked at, and
what came nearest, is part of the result.
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
from moe_theory.verification.claim import ReadingLike, registered
from moe_theory.verification.region import FreeAxis, described
from moe_theory.verification.request import FAMILY_ERROR, at_setting, check_request, resolve
from moe_theory.verification.session import StudyMonitor, take_looks
from moe_theory.verification.statement import declared, free_of
from moe_theory.verification.status import deciding
from moe_theory.verification.verdict import Statement, Status, Verdict

SECONDS = 40.0
MOST_SEARCHED = 200  # statements, which the error is split over in advance: one more moves no other's share
FEW, MANY = 32, 256  # replicates of a first look at a setting, and of one at the best
START, BATCH = 32, 4  # points that fill the region, and how many are looked at between looks at the clock
KEPT, ROUNDS = 4, 4  # settings that get neighbours and more replicates, and how often
FINALISTS = 3  # settings that are judged, and one of them once more: each under a reading at an even share of the error
MOST_SHAPES, SHAPE_SHARE = 10, 0.3  # of programs, which take seconds to compile; and their share of the time
HALVINGS = 5  # of a border
PROBES, TRIES = 8, 8  # settings within a clause that are looked at, and clauses that are tried
ENDS, FILLING, PROMOTING = 0.3, 0.45, 0.6  # shares of the time, after the first look, at which a stage ends
OVER = 1.5  # of the time, that shrinking, other readings, borders and a clause may take where there is a flip
SLOW = 0.2  # that a first look may take where there is to be a second one, or one under other readings
SLOWER = 4  # times as slow as the fastest: of programs that most points are not spent on
BORDER_ERROR = 0.05  # of what only places a border

Point = tuple[tuple[FreeAxis, Any], ...]  # the axes that a setting changes, in their order


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
    """Search what a statement leaves free for a setting at which it breaks, or, where it fails, is rescued.

    Args:
        statement: its name, or a claim's id.
        seconds: after which nothing new is looked at; what is under way is finished.
        reading: everything else; None looks at the ends of each axis under all default ones under which its hypotheses
            hold, and goes on under the one that came nearest to a flip.
        error: probability that any flip is false; None for 0.01 over the searches of all statements there may be, of
            which each has 1 / 200.
        module: the file that declares it, for the commands that repeat what is found.
        progress: where it is reported; by default a line in a notebook, else standard error.
    Raises: UnknownNameError; InvalidValueError for one that leaves nothing free, or that no reading applies to;
        InvalidValueError or DeclarationError as the systems that it runs.

    Examples:
        >>> import moe_theory as mt
        >>> found = mt.challenge("generalization.lemma-9", seconds=1)
        >>> found.sought, [each.name for each in found.free]
        ('break', ['num_samples'])
    """
    of = named(statement)
    claims = [registered()[id] for id in deciding(of)]
    axes = axes_of(of)
    if not seconds > 0:
        raise InvalidValueError(f"seconds={seconds} must be above 0. Raise seconds.", argument="seconds")
    error = FAMILY_ERROR / MOST_SEARCHED if error is None else error
    check_request([claim.id for claim in claims], reading, None, seed, error)
    asked = registry.select_readings(claims[0].paper, None if reading is None else [reading])
    experiments = {id(claim.experiment): claim.experiment for claim in claims}.values()
    groups = [(each, [claim for claim in claims if claim.experiment is each]) for each in experiments]
    with shown_progress(progress) as listener:
        search = RegionSearch(groups, axes, seed, error, seconds, module, listener)
        search.begin(asked, of.name)
        flips = search.run()
        clause = search.clause() if flips else None
    words = [f"moe-theory challenge {of.name}", *([] if reading is None else [f"--reading {reading}"])]
    words += [f"--seconds {seconds:g} --seed {seed} --error {error!r}"]
    words += [f"--module {shlex.quote(module)}"] if module else []
    recorded = search.found[()]
    flipped = [each.setting for each in flips]
    ranked = map(search.found.__getitem__, search.ranked())
    others = [each for each in ranked if each.setting not in flipped and each is not recorded]
    return Challenge(
        statement=of.name,
        where=of.where,
        sought=search.sought,
        reading=search.reading.name,
        readings=[each.name for each in search.alike],
        free=[described(axis, list(search.seen.recorded[axis])) for axis in axes],
        flips=flips,
        clause=clause,
        recorded=recorded,
        nearest=others[0] if others else recorded,
        settings=search.num_settings,
        inadmissible=len(search.refused),
        shapes=search.shapes,
        idle=search.idle(),
        seconds=round(search.spent, 1),
        seed=seed,
        error=error,
        command=" ".join(words),
    )


def named(pattern: str) -> Statement:
    """The one statement that a pattern names. Raises: UnknownNameError; InvalidValueError where it names several."""
    found = every_named(pattern)
    if len(found) > 1:
        names = ", ".join(each.name for each in found[:5]) + (", ..." if len(found) > 5 else "")
        raise InvalidValueError(f"{pattern!r} names {len(found)} statements, and this is of one. Name one of {names}.")
    return found[0]


def axes_of(of: Statement) -> tuple[FreeAxis, ...]:
    """What a statement leaves free. Raises: InvalidValueError where that is nothing."""
    if axes := free_of(of):
        return axes
    raise InvalidValueError(
        f"{of.name} declares nothing that it leaves free for all claims that decide it. Name it in the statement: "
        "free=(Order(...), Scale(...))."
    )


def every_named(pattern: str) -> Sequence[Statement]:
    """The statements that a pattern names, those of a module of one's own first. Raises: UnknownNameError."""
    own = [each.plain for each in declared() if not each.is_of_a_paper]
    return matching(pattern, own) or statements(pattern)


@dataclasses.dataclass
class _Seen:
    """What was looked at under a reading."""

    found: dict[Point, Looked] = dataclasses.field(default_factory=dict)
    refused: dict[Point, str] = dataclasses.field(default_factory=dict)  # why
    alone: dict[FreeAxis, list[float]] = dataclasses.field(default_factory=dict)  # violations at the ends of each axis
    few: float = math.nan  # violation at the recorded point, on as few replicates
    recorded: dict[FreeAxis, set[Any]] = dataclasses.field(default_factory=dict)  # what the cells have


class RegionSearch:
    """A search under way: what it has looked at, and the settings that it has had to pass over."""

    def __init__(
        self,
        groups: Sequence[tuple[Any, list[Any]]],
        axes: Sequence[FreeAxis],
        seed: int,
        error: float,
        seconds: float,
        module: str | None = None,
        progress: Progress = quiet,
    ) -> None:
        self.groups, self.axes, self.seed, self.error, self.seconds = groups, tuple(axes), seed, error, seconds
        self.module, self.progress, self.began = module, progress, time.monotonic()
        self.shapes = 0
        self._built: dict[Point, float] = {}  # seconds to compile, by what experiments are built with; 0 for nothing
        self._pace: dict[Point, float] = {}  # seconds a replicate, likewise, where nothing is to be compiled
        self._seen: dict[str, _Seen] = {}  # by reading
        self.flipped: list[Point] = []
        self._first = 0.0  # seconds that the recorded point took
        self._asked: Sequence[ReadingLike] = ()
        self.alike: list[ReadingLike] = []  # readings under which the recorded point is on the same side

    @property
    def spent(self) -> float:
        return time.monotonic() - self.began

    @property
    def is_late(self) -> bool:
        """Whether it has taken so long that only what is judged already is kept."""
        return self.spent > OVER * self.seconds

    @property
    def num_settings(self) -> int:
        """Settings looked at, under all readings."""
        return sum(len(each.found) for each in self._seen.values())

    @property
    def sought(self) -> str:
        return "break" if self.found[()].violation <= 0 else "rescue"

    def gain(self, looked: Looked) -> float:
        """How far a setting is towards a flip, in margins."""
        return looked.violation if self.sought == "break" else -looked.violation

    def ranked(self) -> list[Point]:
        """The settings under the present reading, those nearest to a flip first."""
        return sorted(self.found, key=lambda point: -self.gain(self.found[point]))

    def idle(self) -> list[str]:
        return [
            axis.name
            for axis in self.axes
            if (ends := self.seen.alone.get(axis)) and max(abs(each - self.seen.few) for each in ends) < 1e-9
        ]

    def begin(self, readings: Sequence[ReadingLike], name: str) -> None:
        """Look at the recorded point under the readings that its hypotheses allow, and keep those on the side of the
        first.
        """
        self._asked = readings
        for reading in readings:
            self._under(reading)
            self.look([()], FEW)
            if self.spent > SLOW * self.seconds and any(each.found for each in self._seen.values()):
                break
        looked = [reading for reading in readings if reading.name in self._seen and self._seen[reading.name].found]
        if not looked:
            raise InvalidValueError(f"{name} cannot be judged at its recorded point: {self.refused[()]}")
        self._under(looked[0])
        sought, self._first = self.sought, self.spent
        for reading in looked:
            self._under(reading)
            self.seen.few = self.found[()].violation
            cells = [
                (experiment.dims, cell.params)
                for experiment, claims in self.groups
                for cell in experiment.cells_under(reading)
                if any(claim.cells is None or cell.name in claim.cells for claim in claims)
            ]
            for axis in self.axes:
                self.seen.recorded[axis] = {axis.recorded_at(params, dims) for dims, params in cells}
            self.alike += [reading] if self.sought == sought else []
        self._under(self.alike[0])
        if self.spent < SLOW * self.seconds:
            self.look([()], MANY)

    def run(self) -> list[Flip]:
        """All stages; the flips."""
        for reading in self.alike:
            self._under(reading)
            for axis in sorted(self.axes, key=lambda axis: not self._is_built(axis)):
                ends = [self._point({axis: end}) for end in axis.ends]
                self.look(ends, FEW, ENDS)
                self.seen.alone[axis] = [self.found[each].violation for each in ends if each in self.found and each]
        self._under(max(self.alike, key=self._best))
        for places in np.split(qmc.Sobol(len(self.axes), rng=self.seed).random(START), START // BATCH):
            values = [{axis: axis.at(u) for axis, u in zip(self.axes, each, strict=True)} for each in places]
            self.look([self._affordable(each, place) for place, each in enumerate(values)], FEW, FILLING)
        random = np.random.default_rng(self.seed)
        for _ in range(ROUNDS):
            best = self.ranked()[:KEPT]
            self.look([self._neighbour(point, random) for point in best], FEW, PROMOTING)
            self.look(best, MANY, PROMOTING)
        self.look(self._finalists(), MANY)
        return self._flips()

    def _under(self, reading: ReadingLike) -> None:
        """Go on under a reading, with what was seen under it."""
        self.reading, self.seen = reading, self._seen.setdefault(reading.name, _Seen())
        self.found, self.refused = self.seen.found, self.seen.refused

    def _best(self, reading: ReadingLike) -> float:
        return max(map(self.gain, self._seen[reading.name].found.values()))

    def look(self, points: Iterable[Point], replicates: int, until: float = 1.0) -> None:
        """Look at settings that have had fewer replicates, until a share of the time is up: several at once, as many as
        there are workers, or one of another shape.
        """
        wanted = [point for point in dict.fromkeys(points) if self._had(point) < replicates]
        while wanted and (not self.found or self.spent < self._first + until * (self.seconds - self._first)):
            self.progress.at(
                f"{len(self.found)} settings and {self.shapes} shapes of programs under {self.reading.name}"
            )
            is_new = self._shape(wanted[0]) not in self._built
            alike = [each for each in wanted if self._shape(each) == self._shape(wanted[0])]
            batch = alike[: 1 if is_new else max(num_device_workers(), 1)]
            wanted = [each for each in wanted if each not in batch]
            programs, began = engine.num_programs(), self.spent
            verdicts = self._judged(batch, replicates, self.seed, self.error)
            spent = self.spent - began
            for point, found in verdicts.items():
                self._note(point, found, replicates)
            if is_new and verdicts:
                is_compiled = engine.num_programs() > programs
                self.shapes += is_compiled
                self._built[self._shape(batch[0])] = spent * is_compiled
            elif not is_new:
                self._pace[self._shape(batch[0])] = spent / len(batch) / replicates

    def _note(self, point: Point, verdicts: Sequence[Verdict], replicates: int | None = None) -> None:
        asked = min(each.replicates for each in verdicts) if replicates is None else replicates
        self.found[point] = Looked(_values(point), max(each.violation for each in verdicts), asked)

    def _had(self, point: Point) -> float:
        if point in self.refused:
            return math.inf
        return self.found[point].replicates if point in self.found else 0

    def _judged(
        self,
        points: Iterable[Point],
        replicates: int | None,
        seed: int,
        error: float,
        reading: ReadingLike | None = None,
    ) -> dict[Point, list[Verdict]]:
        """The verdicts at settings; those that are inadmissible are left out, and noted unless another reading is."""
        refused = self.refused if reading is None else {}
        monitors: dict[Point, list[StudyMonitor]] = {}
        for point in points:
            try:
                groups = [
                    at_setting((experiment, reading or self.reading, claims), dict(point))
                    for experiment, claims in self.groups
                ]
            except MoeTheoryError as refusal:
                refused[point] = str(refusal)
                continue
            studies = resolve(groups, replicates, seed, error, module=self.module).studies
            monitors[point] = [StudyMonitor(study) for study in studies]
        take_looks([each for own in monitors.values() for each in own], quiet, lambda *_: None)
        found = {}
        for point, own in monitors.items():
            verdicts = [test.latest for monitor in own for test in monitor.tests]
            unfit = [each for each in verdicts if each.status in _UNFIT or math.isnan(each.violation)]
            if unfit:
                refused[point] = unfit[0].reason
            else:
                found[point] = verdicts
        return found

    def _flips(self) -> list[Flip]:
        share, flips, is_shrunk = self.error / (FINALISTS + 1) / len(self._asked), [], False
        for point in self._finalists():
            if any({axis.name for axis, _ in point} >= flip.setting.keys() for flip in flips):
                continue
            verdicts = self._at(point, None, self.seed + 1, share)
            if not self._is_flip(verdicts):
                continue
            if len(point) > 1 and not is_shrunk:
                is_shrunk, small = True, self._shrunk(point, share)
                again = self._at(small, None, self.seed + 3, share) if small != point else []
                if self._is_flip(again):
                    point, verdicts = small, again
            self._note(point, verdicts)
            self.flipped.append(point)
            borders = {axis.name: border for axis, _ in point if (border := self._border(point, axis))}
            flips.append(Flip(_values(point), [*verdicts, *self._under_others(point, share)], borders))
        return flips

    def _under_others(self, point: Point, error: float) -> list[Verdict]:
        """The verdicts at a setting under the other readings, but those known to disagree at the recorded point, as far
        as there is time.
        """
        found: list[Verdict] = []
        for reading in self._asked:
            is_alike = reading in self.alike or reading.name not in self._seen
            if is_alike and reading is not self.reading and not self.is_late:
                found += self._at(point, None, self.seed + 1, error, reading)
        return found

    def clause(self) -> Clause | None:
        """At most two inequalities within which no look is beyond its margin: those that keep most of the settings
        looked at, and one where one is enough. Settings inside are looked at, and the clause narrowed where one is; the
        two nearest to a break are judged like finalists. None where there is no such clause.
        """
        anchor = self.flipped[0] if self.sought == "rescue" else ()
        bad = set(self.flipped) if self.sought == "break" else {()}
        for attempt in range(TRIES):
            bad |= {point for point in self.found if self._violation(point) > 0}
            bounds = self._fitted(anchor, bad)
            if not bounds:
                return None
            probes = [self._point(each) for each in self._within(bounds, dict(anchor), attempt)]
            self.look(probes, FEW, OVER)
            inside = sorted((each for each in self.found if self._allows(bounds, each)), key=self._violation)
            is_broken = self._violation(inside[-1]) > 0
            for point in () if is_broken or self.is_late else inside[-2:]:
                verdicts = self._at(point, None, self.seed + 4, self.error / (FINALISTS + 1))
                if verdicts:
                    self._note(point, verdicts)
            if not is_broken and all(self._violation(point) <= 0 for point in inside[-2:]):
                standing = self._standing(dict.fromkeys([*probes[: len(bounds)], *inside[-2:]]))
                return Clause([bound for _, bound in bounds], len(inside), self.found[inside[-1]], standing)
        return None

    def _standing(self, points: Iterable[Point]) -> list[str]:
        """The readings under which none of these settings breaks: the search's own, and others alike where recorded."""
        share, others = self.error / (FINALISTS + 1) / len(self._asked), [*self.alike]
        others.remove(self.reading)
        found = {each.name: [self._at(at, None, self.seed + 4, share, each) for at in points] for each in others}
        broken = {name for name, own in found.items() if any(v.status is Status.REFUTED for at in own for v in at)}
        return [self.reading.name, *(name for name, own in found.items() if any(own) and name not in broken)]

    def _violation(self, point: Point) -> float:
        return self.found[point].violation

    def _fitted(self, anchor: Point, bad: Set[Point]) -> list[tuple[FreeAxis, ClauseBound]]:
        """Inequalities that allow the anchor and no bad setting, at values that were looked at."""
        good = [each for each in self.found if each not in bad and self._violation(each) <= 0]
        singles = [
            (axis, ClauseBound(axis.name, relation, value))
            for axis in self.axes
            if len(self.seen.recorded[axis]) == 1
            for value in dict.fromkeys(self._value(each, axis) for each in good)
            for relation in (("=",) if isinstance(value, str) else ("≤", "≥"))
        ]
        singles = [each for each in singles if self._allows([each], anchor)]
        if not singles:
            return []
        keeps, admits = (
            np.array([[self._allows([each], point) for point in points] for each in singles]).reshape(len(singles), -1)
            for points in (good, list(bad))
        )
        alone = np.where(admits.any(1), -1, keeps.sum(1))
        if alone.max() >= 0:
            return [singles[alone.argmax()]]
        both = [
            np.where((own & admits).any(1), -1, (its & keeps).sum(1)) for own, its in zip(admits, keeps, strict=True)
        ]
        first, second = np.unravel_index(np.argmax(both), (len(singles), len(singles)))
        return [singles[first], singles[second]] if both[first][second] >= 0 else []

    def _allows(self, bounds: Iterable[tuple[FreeAxis, ClauseBound]], point: Point) -> bool:
        return all(bound.allows(self._value(point, axis)) for axis, bound in bounds)

    def _value(self, point: Point, axis: FreeAxis) -> Any:
        """A setting's value on an axis that is recorded at one."""
        return dict(point).get(axis, next(iter(self.seen.recorded[axis])))

    def _within(
        self, bounds: Sequence[tuple[FreeAxis, ClauseBound]], anchor: Mapping[FreeAxis, Any], attempt: int
    ) -> list[Mapping[FreeAxis, Any]]:
        """Settings that the bounds allow: at their edges with all else at the anchor, and others that fill them."""
        edges = [{**anchor, axis: bound.value} for axis, bound in bounds]
        places = qmc.Sobol(len(self.axes), rng=self.seed + attempt).random(PROBES * 8)
        filled = []
        for number, row in enumerate(places):
            values = {axis: axis.at(u) for axis, u in zip(self.axes, row, strict=True)}
            for place, (axis, bound) in enumerate(bounds):  # every second one at an edge
                if (number + place) % 2 == 0 or not bound.allows(values[axis]):
                    values[axis] = bound.value
            point = self._affordable(values, number)
            if self._allows(bounds, point):
                filled.append(dict(point))
        return [*edges, *filled[:PROBES]]

    def _at(
        self, point: Point, replicates: int | None, seed: int, error: float, reading: ReadingLike | None = None
    ) -> list[Verdict]:
        """The verdicts at a setting; with None on as many replicates as decide, or as there is time for."""
        if replicates is None and (pace := self._pace.get(self._shape(point))):
            room = max((OVER * self.seconds - self.spent) / pace, MANY)
            most = max(experiment.replicates for experiment, _ in self.groups)
            replicates = None if room >= most else 2 ** int(math.log2(room))
        return self._judged([point], replicates, seed, error, reading).get(point, [])

    def _is_flip(self, verdicts: Sequence[Verdict]) -> bool:
        if self.sought == "break":
            return any(each.status is Status.REFUTED for each in verdicts)
        return bool(verdicts) and all(each.status is Status.SUPPORTED for each in verdicts)

    def _shrunk(self, point: Point, error: float) -> Point:
        """The flip with as many axes back at what is recorded as it stands without."""
        for axis, _ in point:
            smaller = tuple(each for each in point if each[0] is not axis)
            if smaller and not self.is_late and self._is_flip(self._at(smaller, None, self.seed + 2, error)):
                point = smaller
        return point

    def _border(self, point: Point, axis: FreeAxis) -> list[Any]:
        """Values on either side of the border along an axis, from what is recorded to where it flips."""
        within, beyond = next(iter(self.seen.recorded[axis])), dict(point)[axis]
        if len(self.seen.recorded[axis]) > 1 or isinstance(within, str):
            return []
        for _ in range(HALVINGS):
            middle = axis.halfway(within, beyond)
            if middle is None or self.is_late:
                break
            verdicts = self._at(self._point({**dict(point), axis: middle}), MANY, self.seed + 2, BORDER_ERROR)
            if not verdicts:
                break
            worst = Looked({}, max(each.violation for each in verdicts), MANY)
            within, beyond = (within, middle) if self.gain(worst) > 0 else (middle, beyond)
        return [within, beyond]

    def _finalists(self) -> list[Point]:
        """Settings to judge: beyond the margin by what is known, each moving other axes, those that move fewest first
        where they are about as far.
        """
        beyond = [point for point in self.ranked() if point and self.gain(self.found[point]) > 0]
        most = max((self.gain(self.found[point]) for point in beyond), default=0.0)
        beyond.sort(key=lambda point: (self.gain(self.found[point]) < most / 2, len(point)))
        return list({tuple(axis for axis, _ in point): point for point in reversed(beyond)}.values())[::-1][:FINALISTS]

    def _neighbour(self, point: Point, random: np.random.Generator) -> Point:
        """The setting with one axis drawn anew, or halfway to what is recorded."""
        axis, values = self.axes[random.integers(len(self.axes))], dict(point)
        own = next(iter(self.seen.recorded[axis]))
        middle = axis.halfway(own, values[axis]) if axis in values and random.random() < 0.5 else None
        return self._affordable({**values, axis: axis.at(random.random()) if middle is None else middle})

    def _affordable(self, values: Mapping[FreeAxis, Any], place: int = 0) -> Point:
        """The setting, in most places with sizes that there are programs for, and fast ones, where others take long."""
        point, costs = self._point(values), [seconds for shape, seconds in self._built.items() if shape]
        shape, fastest = self._shape(point), min(self._pace.values(), default=0.0)
        is_known, is_exact = shape in self._built, bool(costs) and not any(costs)  # where nothing is compiled
        share = SHAPE_SHARE if any(not self._is_built(axis) for axis in self.axes) else 1.0
        if not is_known and (is_exact or (self.shapes < MOST_SHAPES and sum(costs) < share * self.seconds)):
            return point
        fast = [each for each in self._built if self._pace.get(each, 0.0) <= SLOWER * fastest]
        if is_known and (place == 0 or shape in fast):
            return point
        fixed = {axis: value for axis, value in values.items() if not self._is_built(axis)}
        return self._point(fixed | dict(fast[(len(self.found) + place) % len(fast)]))

    def _point(self, values: Mapping[FreeAxis, Any]) -> Point:
        return tuple(
            (axis, values[axis]) for axis in self.axes if axis in values and {values[axis]} != self.seen.recorded[axis]
        )

    def _shape(self, point: Point) -> Point:
        return tuple(each for each in point if self._is_built(each[0]))

    def _is_built(self, axis: FreeAxis) -> bool:
        return any(axis.is_built(experiment) for experiment, _ in self.groups)


_UNFIT = {Status.INAPPLICABLE, Status.ERROR}


def _values(point: Point) -> dict[str, Any]:
    return {axis.name: value for axis, value in point}
