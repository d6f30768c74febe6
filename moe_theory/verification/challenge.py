"""Search of free parameters for a counterexample, or for settings where a false statement is true.

The search tries the recorded setting first, then the ends of each axis, and then points that fill the region. The best
settings receive more replicates, and the search also tries their neighbours. A flip is a setting with the opposite
verdict of `verify` on a fresh seed. Each such test has a share of the error. The setting of a flip is moved towards the
recorded one, axis by axis, and tested once more. Repeated halving locates its border. The search then fits a clause of
one or two inequalities that exclude the flips, and searches inside it. A search without flips proves nothing.
"""

import dataclasses
import hashlib
import itertools
import json
import logging
import math
import os
import shlex
import time
from collections.abc import Iterable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import qmc

from moe_theory.core import engine
from moe_theory.core.errors import DamagedError, InvalidValueError, MoeTheoryError, plural
from moe_theory.runs import Progress, automatic, quiet
from moe_theory.runs import shown as shown_progress
from moe_theory.runs.store import Store
from moe_theory.runs.workers import num_device_workers
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys
from moe_theory.verification.catalog import matching, statements
from moe_theory.verification.challenged import SCHEMA, Challenge, Clause, ClauseBound, Flip, Looked, Values
from moe_theory.verification.claim import Claim, Experiment, ReadingLike, registered
from moe_theory.verification.region import FreeAxis, described
from moe_theory.verification.request import FAMILY_ERROR, check_request, resolve
from moe_theory.verification.session import StudyMonitor, take_looks
from moe_theory.verification.settings import Group, at_setting
from moe_theory.verification.statement import declared, free_of
from moe_theory.verification.status import deciding
from moe_theory.verification.verdict import Statement, Status, Verdict

FOLDER = "challenges"  # folder of saved searches
SECONDS = 40.0  # time limit of a search by default
MOST_SEARCHED = 200  # the family's error is split over this many statements, however many are searched
FEW = 32  # replicates in the first test of a setting
MANY = 256  # replicates in a test of the best settings
NUM_FILLING = 32  # points that fill the region evenly
NUM_BEST = 4  # settings that receive a neighbour and more replicates in each round
ROUNDS = 4  # rounds in which neighbours are tried
FINALISTS = 3  # settings that are tested. One of them is tested twice, and all tests share the error evenly
HALVINGS = 5  # halvings of a distance that locate the border of a flip
PROBES = 8  # settings that are tried inside a clause
TRIES = 8  # attempts to find a clause
TIME_AFTER_FLIP = 1.5  # factor of the time limit, for shrinking, other readings, borders and a clause
BORDER_ERROR = 0.05  # error of a verdict that only locates a border
_LOG = logging.getLogger(__name__)
_UNFIT = {Status.INAPPLICABLE, Status.ERROR}  # statuses for which a setting is refused

Point = tuple[tuple[FreeAxis, Any], ...]  # the axes that a setting changes, with values, in order
RECORDED: Point = ()  # the recorded setting changes no axis
AxisBounds = list[tuple[FreeAxis, ClauseBound]]  # the inequalities of a clause, each with its axis
Answer = list[Verdict] | str  # verdicts on a setting, or why it is refused


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
    """Search a statement's free parameters for a setting where it fails, or, if it is false, where it holds.

    Args:
        statement: the statement's name, or a claim's id.
        seconds: time after which no new setting is tried.
        reading: the reading of all other parameters. None selects the first default reading that the hypotheses allow,
            and tests the results under the others.
        error: probability that any flip is false. The default is 0.01 / 200 for each statement.
        module: the file that declares the statement. Commands that repeat a flip name it.
        progress: a listener. By default progress is a line in a notebook, and otherwise on standard error.
    Raises: UnknownNameError. InvalidValueError if the statement has no free parameters or no applicable reading.
        InvalidValueError or DeclarationError from the systems.

    Examples:
        >>> import moe_theory as mt
        >>> search = mt.challenge("generalization.lemma-9", seconds=1)
        >>> search.sought, [quantity.name for quantity in search.free]
        ('break', ['num_samples'])
    """
    matches = _matching_statements(statement)
    if len(matches) > 1:
        names = ", ".join(match.name for match in matches[:5])
        raise InvalidValueError(f"{statement!r} names {len(matches)} statements, such as {names}. Name only one.")
    (chosen_statement,) = matches
    axes = _free_axes(chosen_statement)  # imports the claims
    claims = [registered()[id] for id in deciding(chosen_statement)]
    if not seconds > 0:
        raise InvalidValueError(f"seconds={seconds} must be above 0. Raise seconds.", argument="seconds")
    if error is None:
        error = FAMILY_ERROR / MOST_SEARCHED
    check_request([claim.id for claim in claims], readings=reading, seed=seed, error=error)  # only to raise
    readings = registry.select_readings(claims[0].paper, None if reading is None else [reading])
    experiments = {id(claim.experiment): claim.experiment for claim in claims}.values()
    groups = [(experiment, [claim for claim in claims if claim.experiment is experiment]) for experiment in experiments]
    command = f"moe-theory challenge {chosen_statement.name}"
    if reading is not None:
        command += f" --reading {reading}"
    command += f" --seconds {seconds:g} --seed {seed} --error {error!r}"
    if module:
        command += f" --module {shlex.quote(module)}"
    with shown_progress(progress) as listener:
        search = RegionSearch(groups, axes, seed, error=error, seconds=seconds, module=module, progress=listener)
        listener.running(f"the search on {chosen_statement.name}")
        search.begin(readings, chosen_statement.name)
        return search.run(chosen_statement, command)


def search_each(
    patterns: Sequence[str],
    seconds: float = SECONDS,
    *,
    error: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    **how: Any,
) -> list[Challenge]:
    """Search the free parameters of several statements as `challenge` does, and skip statements without any.

    Args:
        error: probability that any flip is false, split evenly. By default each statement has the error of `challenge`.
        folder: folder of saved searches. A search with the same code, time, seed and error is not repeated.
    """
    matches = itertools.chain.from_iterable(map(_matching_statements, patterns))
    selected = list({statement.name: statement for statement in matches}.values())  # each once
    if len(selected) == 1:
        _free_axes(selected[0])  # raises if there are none
    searchable = [statement for statement in selected if free_of(statement)]
    share = None if error is None else error / max(len(searchable), 1)
    store = None if folder is None else Store(Path(folder) / FOLDER)
    digests = Keys()
    searches = []
    for statement in searchable:
        claims = [registered()[id] for id in deciding(statement)]
        readings = registry.select_readings(claims[0].paper, None)
        # Digests of the code have seed 0, because the search's own seed is among `options`.
        codes = [digests.of(claim, reading, seed=0) for claim, reading in itertools.product(claims, readings)]
        options = (seconds, how.get("reading"), how.get("seed"), share)
        inputs = repr((SCHEMA, statement.name, codes, statement.free, options))
        key = hashlib.sha256(inputs.encode()).hexdigest()
        saved = None if store is None else store.get(key)
        if saved is not None:
            searches.append(_parsed_search(saved))
            continue
        search = challenge(statement.name, seconds, error=share, **how)
        searches.append(search)
        if store is not None:
            text = json.dumps(search.to_json(), ensure_ascii=False)
            store.put({key: text.encode()}, label=statement.name)
    if store is not None:
        for reason in store.damaged.values():
            _LOG.warning("%s. The search was repeated.", reason)
    return searches


def saved_searches(folder: Path) -> list[Challenge]:
    """Return the searches in a folder. Raises: DamagedError if a search is damaged or its paper is not installed."""
    registry.all_claims()
    store = Store(folder / FOLDER)
    records = list(map(store.get, store.keys()))  # notes damaged ones in `store.damaged`
    if store.damaged:
        first_reason = next(iter(store.damaged.values()))
        raise DamagedError(f"{first_reason}. Search again with the same --out.")
    searches = [_parsed_search(record) for record in records if record is not None]
    return sorted(searches, key=lambda search: search.statement)


def _parsed_search(record: bytes) -> Challenge:
    try:
        return Challenge.of_json(json.loads(record), registry.declared_claims())
    except (KeyError, TypeError, ValueError) as failure:
        raise DamagedError(f"a saved search was made by other code ({failure}). Search again.") from None


def _free_axes(statement: Statement) -> tuple[FreeAxis, ...]:
    """Return a statement's free parameters. Raises: InvalidValueError if there are none."""
    axes = free_of(statement)
    if axes:
        return axes
    raise InvalidValueError(
        f"{statement.name} declares no parameter that is free for all of its deciding claims. Name some in the "
        "statement: free=(Order(...), Scale(...))."
    )


def _matching_statements(pattern: str) -> Sequence[Statement]:
    """Return the statements that match a pattern, first the user's own. Raises: UnknownNameError."""
    own_statements = [declaration.plain for declaration in declared() if not declaration.is_of_a_paper]
    return matching(pattern, own_statements) or statements(pattern)


@dataclasses.dataclass(eq=False)
class RegionSearch:
    groups: Sequence[tuple[Experiment, list[Claim]]]  # experiments, each with the claims that read it
    axes: Sequence[FreeAxis]
    seed: int  # of the search. Final verdicts have later seeds
    error: float  # probability that any flip is false
    seconds: float  # time limit until the first flip
    module: str | None = None
    progress: Progress = quiet
    start_time: float = dataclasses.field(default_factory=time.monotonic)
    num_programs: int = dataclasses.field(default_factory=engine.num_programs)  # compiled before the search
    looked: dict[Point, Looked] = dataclasses.field(default_factory=dict)  # tried settings
    refused: dict[Point, str] = dataclasses.field(default_factory=dict)  # reasons by setting
    flipped: list[Point] = dataclasses.field(default_factory=list)  # settings of the flips
    idle: set[FreeAxis] = dataclasses.field(default_factory=set)  # axes whose ends do not change the violation
    recorded: dict[FreeAxis, set[Any]] = dataclasses.field(default_factory=dict)  # values in the recorded cells
    # Set by `begin`.
    num_readings: int = dataclasses.field(init=False)
    reading: ReadingLike = dataclasses.field(init=False)
    agreeing_readings: list[ReadingLike] = dataclasses.field(init=False)  # others in which it also holds, or also fails
    first_violation: float = dataclasses.field(init=False)  # at the recorded setting

    @property
    def elapsed(self) -> float:
        return time.monotonic() - self.start_time

    @property
    def is_compiled(self) -> bool:
        """Whether the search has compiled programs, which are made anew for each array shape."""
        return engine.num_programs() > self.num_programs

    @property
    def sought(self) -> str:
        """The aim, "break" if the statement holds at the recorded setting, and otherwise "rescue"."""
        if self.looked[RECORDED].violation <= 0:
            return "break"
        return "rescue"

    def gain(self, violation: float) -> float:
        """Return by how many margins a setting is beyond the border of a flip."""
        if self.sought == "break":
            return violation
        return -violation

    def ranked(self) -> list[Point]:
        """Return the tried settings, first those farthest beyond the border of a flip."""
        return sorted(self.looked, key=lambda point: -self.gain(self._violation(point)))

    def nearest(self) -> Looked:
        """Return the setting closest to a flip, except flips, or the recorded one if no other was tried."""
        excluded = {RECORDED, *self.flipped}
        candidates = [self.looked[point] for point in self.ranked() if point not in excluded]
        return next(iter(candidates), self.looked[RECORDED])

    def begin(self, readings: Sequence[ReadingLike], name: str) -> None:
        """Try the recorded setting under all readings, and select one with verdicts. Raises: InvalidValueError."""
        self.num_readings = len(readings)
        violations: list[tuple[ReadingLike, float]] = []
        refusals: list[str] = []
        for reading in readings:
            answer = self._judge_point(RECORDED, FEW, self.seed, self.error, reading=reading)
            if isinstance(answer, str):
                refusals.append(answer)
            else:
                violations.append((reading, _largest_violation(answer)))
        if not violations:
            raise InvalidValueError(
                f"{name} cannot be tested in its recorded runs: {refusals[0]}", argument="statement"
            )
        self.reading, self.first_violation = violations[0]
        self.looked[RECORDED] = Looked({}, self.first_violation, FEW)
        is_broken = self.first_violation > 0
        self.agreeing_readings = [reading for reading, violation in violations[1:] if (violation > 0) == is_broken]
        cells: list[tuple[Any, Any]] = []
        for experiment, claims in self.groups:
            cells += [
                (experiment.dims, cell.params)
                for cell in experiment.cells_under(self.reading)
                if any(claim.cells is None or cell.name in claim.cells for claim in claims)
            ]
        for axis in self.axes:
            self.recorded[axis] = {axis.recorded_at(params, dims) for dims, params in cells}
        self.look([RECORDED], MANY)

    def run(self, statement: Statement, command: str) -> Challenge:
        """Search the region, and return the flips and their clause."""
        flips = self.find_flips()
        return Challenge(
            statement=statement.name,
            where=statement.where,
            sought=self.sought,
            reading=self.reading.name,
            readings=[reading.name for reading in (self.reading, *self.agreeing_readings)],
            free=[described(axis, list(self.recorded[axis])) for axis in self.axes],
            flips=flips,
            clause=self.find_clause(),
            recorded=self.looked[RECORDED],
            nearest=self.nearest(),
            settings=len(self.looked),
            inadmissible=len(self.refused),
            shapes=len(self._shapes()) if self.is_compiled else 0,
            idle=[axis.name for axis in self.axes if axis in self.idle],
            seconds=round(self.elapsed, 1),
            seed=self.seed,
            error=self.error,
            command=command,
        )

    def find_flips(self) -> list[Flip]:
        # Axes that change array shapes come first, because later settings use only compiled shapes.
        for axis in sorted(self.axes, key=lambda axis: not self._is_built(axis)):
            points = [self._point({axis: end}) for end in axis.ends]
            ends = [point for point in points if point != RECORDED]
            self.look(ends, FEW)
            violations = [self.looked[end].violation for end in ends if end in self.looked]
            changes = [abs(violation - self.first_violation) for violation in violations]
            if changes and max(changes) < 1e-9:  # smaller changes are due to rounding
                self.idle.add(axis)
        self.look(self._filling(NUM_FILLING, self.seed), FEW)
        random = np.random.default_rng(self.seed)
        for _ in range(ROUNDS):
            best = self.ranked()[:NUM_BEST]
            self.look([self._neighbour(point, random) for point in best], FEW)
            self.look(best, MANY)
        self.look(self._finalists(), MANY)
        return self._confirmed_flips()

    def look(self, points: Iterable[Point], replicates: int) -> None:
        """Try settings that have had fewer replicates or none, several at once, until the time is up."""
        waiting = []
        for point in dict.fromkeys(points):
            looked = self.looked.get(point)
            if point not in self.refused and (looked is None or looked.replicates < replicates):
                waiting.append(point)
        limit = self.seconds
        if self.flipped:
            limit *= TIME_AFTER_FLIP
        width = num_device_workers()
        for start in range(0, len(waiting), width):
            if self.elapsed > limit:
                return
            tried = f"{len(self.looked)} {plural(len(self.looked), 'setting')} tried"
            self.progress.at(f"{tried}, {self.elapsed:.0f} of {self.seconds:g} s")
            answers = self._judge(waiting[start : start + width], replicates, self.seed, self.error)
            for point, answer in answers.items():
                if isinstance(answer, str):
                    self.refused[point] = answer
                else:
                    self.looked[point] = Looked(_values(point), _largest_violation(answer), replicates)

    def _judge(
        self,
        points: Iterable[Point],
        replicates: int | None,
        seed: int,
        error: float,
        reading: ReadingLike | None = None,
    ) -> dict[Point, Answer]:
        """Return the verdicts on each setting, or why it is refused. The default reading is the search's."""
        answers: dict[Point, Answer] = {}
        monitors: dict[Point, list[StudyMonitor]] = {}
        for point in points:
            try:
                groups = [
                    at_setting(Group(experiment, reading or self.reading, claims), dict(point))
                    for experiment, claims in self.groups
                ]
            except MoeTheoryError as refusal:
                answers[point] = str(refusal)
                continue
            studies = resolve(groups, replicates, seed, error, module=self.module).studies
            monitors[point] = [StudyMonitor(study) for study in studies]
        # The recorded setting must have verdicts. It is judged first, before anything is `looked` at, and has no limit.
        end_time = self.start_time + TIME_AFTER_FLIP * self.seconds if self.looked else math.inf
        every_monitor = list(itertools.chain.from_iterable(monitors.values()))
        take_looks(every_monitor, progress=quiet, on_verdict=lambda _: None, deadline=end_time)
        for point, point_monitors in monitors.items():
            tests = itertools.chain.from_iterable(monitor.tests for monitor in point_monitors)
            latest = [test.latest for test in tests]
            unfit = [verdict for verdict in latest if verdict.status in _UNFIT or math.isnan(verdict.violation)]
            answers[point] = unfit[0].reason if unfit else latest
        return answers

    def _judge_point(
        self, point: Point, replicates: int | None, seed: int, error: float, *, reading: ReadingLike | None = None
    ) -> Answer:
        return self._judge([point], replicates, seed, error, reading)[point]

    def _test(self, point: Point, seed_offset: int, reading: ReadingLike | None = None) -> list[Verdict]:
        """Return final verdicts on a setting, on another seed than the search's, or none if it is refused."""
        # Offsets are 1 for flips, 2 for shrinking, 3 for shrunk flips and 4 for clauses.
        error = self.error / (FINALISTS + 1) / self.num_readings
        answer = self._judge_point(point, None, self.seed + seed_offset, error, reading=reading)
        if isinstance(answer, str):
            return []
        return answer

    def _save(self, point: Point, verdicts: Sequence[Verdict]) -> None:
        replicates = min(verdict.replicates for verdict in verdicts)
        self.looked[point] = Looked(_values(point), _largest_violation(verdicts), replicates)

    def _confirmed_flips(self) -> list[Flip]:
        flips: list[Flip] = []
        is_shrunk = False
        for point in self._finalists():
            names = {axis.name for axis, _ in point}
            if any(names >= flip.setting.keys() for flip in flips):  # fewer of these axes suffice
                continue
            verdicts = self._test(point, seed_offset=1)
            if not self._is_flip(verdicts):
                continue
            if len(point) > 1 and not is_shrunk:
                is_shrunk = True  # only once, because the shrunk setting takes a share of the error
                smaller = self._shrunk(point)
                repeated = self._test(smaller, seed_offset=3) if smaller != point else []
                if self._is_flip(repeated):
                    point = smaller
                    verdicts = repeated
            self._save(point, verdicts)
            self.flipped.append(point)
            pairs = [(axis.name, self._border(point, axis)) for axis, _ in point]
            borders = {name: border for name, border in pairs if border}
            for reading in self.agreeing_readings:
                verdicts = [*verdicts, *self._test(point, seed_offset=1, reading=reading)]
            flips.append(Flip(_values(point), verdicts, borders))
        return flips

    def find_clause(self) -> Clause | None:
        """Return one or two inequalities that allow as many settings as possible but no violation, or None."""
        if not self.flipped:
            return None
        anchor = RECORDED  # a setting that the clause must allow
        bad = set(self.flipped)  # settings that it must exclude
        if self.sought == "rescue":
            anchor = self.flipped[0]
            bad = {RECORDED}
        for attempt in range(TRIES):
            bad |= {point for point in self.looked if self._violation(point) > 0}
            bounds = self._fit_bounds(anchor, bad)
            if not bounds:
                return None
            edges = [self._point({**dict(anchor), axis: bound.value}) for axis, bound in bounds]
            probes = [*edges, *self._points_within(bounds, self.seed + attempt)]
            self.look(probes, FEW)
            inside = [point for point in self.looked if self._allows(bounds, point)]  # at least the anchor
            inside.sort(key=self._violation)
            closest = inside[-2:]  # the two settings closest to a violation
            if self._violation(closest[-1]) > 0:  # the next attempt excludes it
                continue
            for point in closest:
                verdicts = self._test(point, seed_offset=4)
                if verdicts:
                    self._save(point, verdicts)
            if all(self._violation(point) <= 0 for point in closest):
                readings = self._readings_without_violation(dict.fromkeys([*edges, *closest]))
                return Clause([bound for _, bound in bounds], len(inside), self.looked[closest[-1]], readings)
        return None

    def _readings_without_violation(self, points: Iterable[Point]) -> list[str]:
        names = [self.reading.name]
        for reading in self.agreeing_readings:
            tests = (self._test(point, seed_offset=4, reading=reading) for point in points)
            statuses = {verdict.status for verdict in itertools.chain.from_iterable(tests)}
            if statuses and Status.REFUTED not in statuses:
                names.append(reading.name)
        return names

    def _violation(self, point: Point) -> float:
        return self.looked[point].violation

    def _fit_bounds(self, anchor: Point, bad: Set[Point]) -> AxisBounds:
        """Return one or two bounds that allow the anchor, as many good settings as possible and no bad one, or none."""
        good = [point for point in self.looked if point not in bad and self._violation(point) <= 0]
        singles = [single for single in self._single_bounds(good) if self._allows([single], anchor)]
        if not singles:
            return []
        allowed_good = self._table(singles, good)
        allowed_bad = self._table(singles, list(bad))
        # Good settings that a pair of bounds allows, or -1 if it allows a bad one. Single bounds are on the diagonal.
        scores = np.where(allowed_bad @ allowed_bad.T, -1, allowed_good.astype(int) @ allowed_good.T)
        alone = scores.diagonal()
        if alone.max() >= 0:
            return [singles[int(alone.argmax())]]
        first, second = divmod(int(scores.argmax()), len(singles))  # row and column of the best pair
        if scores[first, second] >= 0:
            return [singles[first], singles[second]]
        return []

    def _single_bounds(self, points: Sequence[Point]) -> AxisBounds:
        bounds: AxisBounds = []
        for axis in self.axes:
            if len(self.recorded[axis]) > 1:  # a bound cannot be checked at a setting where cells differ
                continue
            for value in dict.fromkeys(self._value(point, axis) for point in points):
                relations = ("=",) if isinstance(value, str) else ("≤", "≥")
                bounds += [(axis, ClauseBound(axis.name, relation, value)) for relation in relations]
        return bounds

    def _table(self, bounds: AxisBounds, points: Sequence[Point]) -> np.ndarray:
        rows = [[self._allows([bound], point) for point in points] for bound in bounds]  # one row for each bound
        return np.array(rows, bool).reshape(len(bounds), -1)

    def _allows(self, bounds: AxisBounds, point: Point) -> bool:
        return all(bound.allows(self._value(point, axis)) for axis, bound in bounds)

    def _value(self, point: Point, axis: FreeAxis) -> Any:
        return dict(point).get(axis, self._recorded_value(axis))

    def _recorded_value(self, axis: FreeAxis) -> Any:
        return next(iter(self.recorded[axis]))

    def _points_within(self, bounds: AxisBounds, seed: int) -> list[Point]:
        inside: list[Point] = []
        for number, candidate in enumerate(self._filling(PROBES * 8, seed)):  # more, because some are outside
            values = dict(candidate)
            for place, (axis, bound) in enumerate(bounds):
                is_at_edge = (number + place) % 2 == 0  # every other candidate, in turn for two bounds
                if is_at_edge or not bound.allows(self._value(candidate, axis)):
                    values[axis] = bound.value
            point = self._compiled_point(values, number)
            if self._allows(bounds, point):
                inside.append(point)
        return inside[:PROBES]

    def _is_flip(self, verdicts: Sequence[Verdict]) -> bool:
        if self.sought == "break":
            return any(verdict.status is Status.REFUTED for verdict in verdicts)
        return bool(verdicts) and all(verdict.status is Status.SUPPORTED for verdict in verdicts)

    def _shrunk(self, point: Point) -> Point:
        for axis, _ in point:
            smaller = tuple((other, value) for other, value in point if other is not axis)
            if smaller and self._is_flip(self._test(smaller, seed_offset=2)):
                point = smaller
        return point

    def _border(self, point: Point, axis: FreeAxis) -> list[Any]:
        """Return the last value of an axis without the flip and the first with it, or [] for labels."""
        within = self._recorded_value(axis)
        beyond = dict(point)[axis]
        if len(self.recorded[axis]) > 1 or isinstance(within, str):
            return []
        for _ in range(HALVINGS):
            middle = axis.halfway(within, beyond)
            if middle is None:
                break
            halfway = self._point({**dict(point), axis: middle})
            answer = self._judge_point(halfway, MANY, self.seed + 2, BORDER_ERROR)
            if isinstance(answer, str):
                break
            if self.gain(_largest_violation(answer)) > 0:
                beyond = middle
            else:
                within = middle
        return [within, beyond]

    def _finalists(self) -> list[Point]:
        gains = {point: self.gain(self._violation(point)) for point in self.ranked()}
        beyond = [point for point, gain in gains.items() if point != RECORDED and gain > 0]
        most = max((gains[point] for point in beyond), default=0.0)
        # Settings with at least half of the largest gain come first, and among them those that change the fewest axes.
        beyond.sort(key=lambda point: (gains[point] < most / 2, len(point)))
        by_axes: dict[tuple[FreeAxis, ...], Point] = {}  # the first setting that changes exactly these axes
        for point in beyond:
            by_axes.setdefault(tuple(axis for axis, _ in point), point)
        return list(by_axes.values())[:FINALISTS]

    def _filling(self, number: int, seed: int) -> list[Point]:
        points = []
        for index, places in enumerate(qmc.Sobol(len(self.axes), rng=seed).random(number)):
            values = {axis: axis.at(place) for axis, place in zip(self.axes, places, strict=True)}
            points.append(self._compiled_point(values, index))
        return points

    def _neighbour(self, point: Point, random: np.random.Generator) -> Point:
        axis = self.axes[int(random.integers(len(self.axes)))]
        values = dict(point)
        value = None
        if axis in values and random.random() < 0.5:  # back towards the recorded setting, in half of the cases
            value = axis.halfway(self._recorded_value(axis), values[axis])
        if value is None:
            value = axis.at(random.random())
        return self._compiled_point({**values, axis: value})

    def _compiled_point(self, values: Mapping[FreeAxis, Any], number: int = 0) -> Point:
        """Return the setting, with compiled shape `number` in place of a new one unless all axes change shapes."""
        point = self._point(values)
        shapes = sorted(self._shapes(), key=str)
        if not self.is_compiled or self._shape(point) in shapes or all(map(self._is_built, self.axes)):
            return point
        unbuilt = {axis: value for axis, value in values.items() if not self._is_built(axis)}
        return self._point(unbuilt | dict(shapes[number % len(shapes)]))

    def _point(self, values: Mapping[FreeAxis, Any]) -> Point:
        # An axis with the recorded value in all cells is not changed.
        changed = [axis for axis in self.axes if axis in values and {values[axis]} != self.recorded[axis]]
        return tuple((axis, values[axis]) for axis in changed)

    def _shape(self, point: Point) -> Point:
        return tuple((axis, value) for axis, value in point if self._is_built(axis))

    def _shapes(self) -> set[Point]:
        return set(map(self._shape, self.looked))

    def _is_built(self, axis: FreeAxis) -> bool:
        return any(axis.is_built(experiment) for experiment, _ in self.groups)


def _values(point: Point) -> Values:
    return {axis.name: value for axis, value in point}


def _largest_violation(verdicts: Iterable[Verdict]) -> float:
    return max(verdict.violation for verdict in verdicts)
