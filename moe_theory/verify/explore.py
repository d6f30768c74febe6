"""Map of where a claim holds: its verdicts over one or two parameters, more densely where they change.

A coarse grid first; then every box of neighbouring points that do not all have one status is halved, again and again.
Each point is a verdict of its own, as `verify` would give it. The error is split over all points that there could be,
before anything runs, so that where the search goes decides nothing.
"""

import dataclasses
import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from itertools import pairwise
from types import MappingProxyType
from typing import Any

import numpy as np

from moe_theory.core.constraints import shown, typed
from moe_theory.core.errors import InvalidParamsError, InvalidRunError, unknown_name
from moe_theory.runs import Progress, automatic, quiet
from moe_theory.runs import shown as shown_progress
from moe_theory.runs.provenance import is_x64, versions
from moe_theory.verify import registry
from moe_theory.verify.claim import Claim, ReadingLike
from moe_theory.verify.region import Choice, FreeAxis, Number, Span, tidy
from moe_theory.verify.remote import remote_pool
from moe_theory.verify.request import (
    FAMILY_ERROR,
    Request,
    Study,
    check_request,
    require_free,
    require_one,
    resolve,
    set_to,
)
from moe_theory.verify.session import carry_out
from moe_theory.verify.verdict import Status, Verdict

MOST_AXES = 2  # of a map
POINTS, REFINEMENTS = 5, 2  # unless the caller asks for others
MOST_POINTS = 10_000
MOST_FAILURES = 3  # shown
SCHEMA = "moe-theory/exploration/1"

Coordinates = tuple[Number, ...]  # one an axis
Box = tuple[tuple[Number, Number], ...]  # neighbouring values, one pair an axis
OnPoint = Callable[["Point"], None]


@dataclasses.dataclass(frozen=True)
class Axis:
    """One parameter's values, in ascending order."""

    name: str
    values: tuple[Number, ...]  # of the coarse grid
    is_log: bool
    is_listed: bool  # whether only these values are meant
    labels: tuple[str, ...] = ()  # of a choice, whose values are their places

    @property
    def low(self) -> Number:
        return self.values[0]

    @property
    def high(self) -> Number:
        return self.values[-1]

    def said(self, value: Number) -> Any:
        """A value as settings have it."""
        return self.labels[int(value)] if self.labels and value in self.values else value

    def between(self, lower: Number, upper: Number) -> Number | None:
        """The value halfway between two; None where there is none."""
        return None if self.is_listed else self.span.between(lower, upper)

    def most_values(self, levels: int) -> int:
        """Largest number of values after `levels` halvings between neighbours."""
        if self.is_listed:
            return len(self.values)
        count = (len(self.values) - 1) * 2**levels + 1
        return min(count, int(self.high - self.low) + 1) if isinstance(self.low, int) else count

    @property
    def span(self) -> Span:
        return Span(self.low, self.high)


@dataclasses.dataclass(frozen=True)
class Search:
    """A search that can be carried out: one claim under one reading, over axes."""

    claim: Claim
    reading: ReadingLike
    axes: list[Axis]
    refine: int
    replicates: int | None  # at most, at every point
    seed: int
    error: float  # probability that any status on the map is wrong
    module: str | None = None

    @property
    def most_points(self) -> int:
        return math.prod(axis.most_values(self.refine) for axis in self.axes)

    @property
    def point_error(self) -> float:
        """Every point's share of the error, in few digits, so that a command can repeat it."""
        return float(f"{0.995 * self.error / self.most_points:.2e}")

    def studies(self) -> list[Study]:
        """The studies of the coarse grid. Raises: InvalidParamsError for a point that its system refuses."""
        return [self.study(coordinates) for coordinates in _coarse(self)]

    def study(self, coordinates: Coordinates) -> Study:
        """The study at one point. Raises: InvalidParamsError for a point that its system refuses."""
        settings = {axis.name: axis.said(value) for axis, value in zip(self.axes, coordinates, strict=True)}
        groups = set_to((self.claim.experiment, self.reading, [self.claim]), settings)
        (study,) = resolve(groups, self.replicates, self.seed, self.point_error, module=self.module).studies
        return study


@dataclasses.dataclass(frozen=True)
class Point:
    """One setting of the parameters, and the verdict there."""

    coordinates: Coordinates
    level: int  # 0 on the coarse grid, else the refinement that asked for it
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class Exploration:
    """A map of verdicts, points in ascending order of their coordinates."""

    claim: str
    where: str
    statement: str
    formula: str
    kind: str
    reading: str
    reading_summary: str
    own: Coordinates  # where the reading itself lies
    axes: list[Axis]
    points: list[Point]
    most_points: int  # that there could have been
    replicates: int  # at most, at every point
    error: float  # probability that any status is wrong, split evenly over `most_points`
    point_error: float
    seed: int
    command: str
    kept: dict[str, list[str]]  # cells that set an axis's parameter themselves, by the axis's name

    def nearest(self) -> tuple[list[np.ndarray], np.ndarray]:
        """Borders of cells, 0 to 1 along each axis, and in every cell the index of the point nearest to it."""
        places = np.stack(
            [axis.span.place([point.coordinates[i] for point in self.points]) for i, axis in enumerate(self.axes)]
        )
        centres = [np.unique(row) for row in places]
        borders = [np.r_[0.0, (row[1:] + row[:-1]) / 2, 1.0] for row in centres]
        cells = np.stack(np.meshgrid(*centres, indexing="ij"), axis=-1)
        distances = np.sum((cells[..., None, :] - places.T) ** 2, axis=-1)
        return borders, np.argmin(distances.round(12), axis=-1)

    def shares(self) -> dict[Status, float]:
        """Share of the map, as drawn, of each status."""
        borders, nearest = self.nearest()
        sizes = np.diff(borders[0]) if len(borders) == 1 else np.outer(*(np.diff(border) for border in borders))
        shares: dict[Status, float] = {}
        for index, size in zip(nearest.flat, sizes.flat, strict=True):
            status = self.points[index].verdict.status
            shares[status] = shares.get(status, 0.0) + float(size)
        return shares

    def summary(self) -> list[str]:
        counts = Counter(point.verdict.status for point in self.points)
        return [
            f"{status} at {counts[status]} of {len(self.points)} points, {self._region(status)}"
            for status in Status
            if counts[status]
        ]

    def failures(self) -> list[str]:
        """Why the claim's own code failed at some points: a few reasons, each once."""
        reasons = (point.verdict.reason for point in self.points if point.verdict.status is Status.ERROR)
        return [f"{Status.ERROR}: {reason}" for reason in list(dict.fromkeys(reasons))[:MOST_FAILURES]]

    def assurance(self) -> str:
        return (
            f"Probability that any status is wrong: at most {self.error:g}, split evenly in advance over the at most "
            f"{self.most_points} points of the map ({self.point_error:g} each); asymptotic where intervals are."
        )

    def to_json(self) -> dict[str, Any]:
        plain = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

        def at(coordinates: Coordinates) -> dict[str, Any]:
            return {axis.name: axis.said(value) for axis, value in zip(self.axes, coordinates, strict=True)}

        return {
            "schema": SCHEMA,
            **plain,
            "own": at(self.own),
            "axes": [dataclasses.asdict(axis) for axis in self.axes],
            "summary": self.summary(),
            "versions": versions(),
            "is_x64": is_x64(),
            "points": [
                {
                    "at": at(point.coordinates),
                    "level": point.level,
                    "verdict": point.verdict.to_json(),
                }
                for point in self.points
            ],
        }

    def _region(self, status: Status) -> str:
        if len(self.axes) == 1:
            ranges = [_range(self.axes[0], [point.coordinates[0] for point in run]) for run in self._runs(status)]
            return f"for {self.axes[0].name} {' and '.join(ranges)}"
        chosen = [point.coordinates for point in self.points if point.verdict.status is status]
        sides = [
            f"{axis.name} {_range(axis, list(values))}"
            for axis, values in zip(self.axes, zip(*chosen, strict=True), strict=True)
        ]
        share = self.shares()[status]
        shown_share = f"{share:.0%}" if share >= 0.01 else "less than 1%"
        return f"{shown_share} of the map, within {' and '.join(sides)}"

    def _runs(self, status: Status) -> list[list[Point]]:
        grouped = itertools.groupby(self.points, key=lambda point: point.verdict.status)
        return [list(points) for each, points in grouped if each is status]


def explore(
    claim: str,
    over: str | Sequence[str],
    *,
    reading: str | None = None,
    points: int = POINTS,
    refine: int = REFINEMENTS,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    executor: Executor | None = None,
    dask: str | None = None,
    progress: Progress = automatic,
    on_point: OnPoint = lambda point: None,
) -> Exploration:
    """Map where a claim holds over one or two parameters.

    Args:
        claim: its id.
        over: axes, such as "signal_scale=0.5..20" (logarithmic from a ratio of 10 on) or "num_clusters=1,2,3"; of a
            choice that the claim's statement leaves free two or more of its labels.
        reading: everything else; None takes the paper's first default.
        points: of the coarse grid, on each axis that is a range.
        refine: how often neighbouring points with different statuses are halved.
        replicates: at most, at every point; None takes the experiment's own number.
        error: probability that any status of the map is wrong.
        executor: takes the samples, as of `verify`.
        dask: or the address of a Dask cluster.
        progress: where it is reported; by default a line in a notebook, else standard error.
        on_point: called with each point as soon as its verdict stands.
    Raises: UnknownNameError, InvalidParamsError, InvalidRunError or InvalidStatementError before anything runs;
        ExecutorLostError for workers that cannot be reached, or are lost.

    Examples:
        >>> import moe_theory as mt
        >>> claim = "generalization.theorem-1.fixed-router"
        >>> found = mt.explore(claim, over="delta=0.05,0.5", replicates=64, refine=0)
        >>> [(*point.coordinates, str(point.verdict.status)) for point in found.points]
        [(0.05, 'REFUTED'), (0.5, 'REFUTED')]
    """
    search = plan_search(claim, over, reading, points, refine, replicates, seed, error)
    with shown_progress(progress) as listener:
        return carry_out_search(search, executor=executor, dask=dask, progress=listener, on_point=on_point)


def plan_search(
    pattern: str,
    over: str | Sequence[str],
    reading: str | None = None,
    points: int = POINTS,
    refine: int = REFINEMENTS,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    module: str | None = None,
) -> Search:
    """The search, before anything runs. Raises: as `explore`."""
    if not 2 <= points <= MOST_POINTS:  # refused before the axis is made
        raise InvalidRunError(
            f"points={points} must be between 2 and {MOST_POINTS}: an axis has two ends, and all points share one "
            "error. Change points."
        )
    if refine < 0:
        raise InvalidRunError(f"refine={refine} must not be negative. Raise refine.")
    claim = require_one(pattern, registry.select_claims([pattern]))
    if reading in registry.SPECIAL_NAMES:
        known = [choice.name for choice in registry.select_readings(claim.paper, ["all"])]
        raise unknown_name("reading", reading, known)
    request = check_request(pattern, reading, replicates, seed, error)
    choice, experiment = request.studies[0].reading, claim.experiment
    texts = [over] if isinstance(over, str) else list(over)
    free = {axis.name: axis for axis in claim.free}
    for text in texts:
        if axis_name(text) not in free:
            require_free(axis_name(text), choice, experiment)
    axes = parse_axes(texts, choice.params(), points, free)
    search = Search(claim, choice, axes, refine, replicates, seed, error, module)
    if search.most_points > MOST_POINTS:
        raise InvalidRunError(
            f"there could be {search.most_points} points, and at most {MOST_POINTS} may share an error. "
            "Lower points or refine."
        )
    search.studies()
    return search


def carry_out_search(
    search: Search,
    *,
    executor: Executor | None = None,
    dask: str | None = None,
    progress: Progress = quiet,
    on_point: OnPoint = lambda point: None,
    command: str = "",
) -> Exploration:
    """Judge the coarse grid, then halve boxes until the refinements are spent or nothing changes any more.

    Raises: as `explore`.
    """
    points: dict[Coordinates, Point] = {}
    boxes: list[Box] = list(itertools.product(*(pairwise(axis.values) for axis in search.axes)))
    wanted = _coarse(search)
    for level in range(search.refine + 1):
        for point in _judged(search, wanted, level, executor, dask, progress, on_point):
            points[point.coordinates] = point
        boxes = [part for box in boxes for part in _parts(search.axes, box, points)]
        wanted = sorted({corner for box in boxes for corner in itertools.product(*box)} - points.keys())
        if not wanted:
            break
    return _exploration(search, points, command)


def _judged(
    search: Search,
    wanted: Sequence[Coordinates],
    level: int,
    executor: Executor | None,
    dask: str | None,
    progress: Progress,
    on_point: OnPoint,
) -> list[Point]:
    """The points at these coordinates, by one verification."""
    studies = {coordinates: search.study(coordinates) for coordinates in wanted}
    places = {study.reading.name: coordinates for coordinates, study in studies.items()}
    points: list[Point] = []

    def note(verdict: Verdict) -> None:
        points.append(Point(places[verdict.reading], level, verdict))
        on_point(points[-1])

    pool = None
    if executor is not None or dask is not None:
        pool = remote_pool([*studies.values()], executor, dask)
    request = Request(tuple(studies.values()), (search.claim.id,), {}, search.seed, search.error)
    carry_out(request, pool=pool, progress=progress, on_verdict=note)
    return points


def _exploration(search: Search, points: Mapping[Coordinates, Point], command: str) -> Exploration:
    claim, experiment = search.claim, search.claim.experiment
    free = {axis.name: axis for axis in claim.free}
    first, defaults = experiment.cells_under(search.reading)[0].params, search.reading.params()
    own: list[Any] = [
        free[axis.name].recorded_at(first, experiment.dims) if axis.name in free else getattr(defaults, axis.name)
        for axis in search.axes
    ]
    for place, axis in enumerate(search.axes):
        if axis.labels:  # one that is not on the map lies before it
            own[place] = axis.labels.index(own[place]) if own[place] in axis.labels else -1
    return Exploration(
        **{name: getattr(claim, name) for name in ("where", "statement", "formula", "kind")},
        **{name: getattr(search, name) for name in ("axes", "most_points", "error", "point_error", "seed")},
        claim=claim.id,
        reading=search.reading.name,
        reading_summary=search.reading.summary,
        own=tuple(own),
        points=[points[coordinates] for coordinates in sorted(points)],
        replicates=search.replicates or experiment.replicates,
        command=command,
        kept={
            axis.name: kept
            for axis in search.axes
            if axis.name not in free
            if (kept := [cell for cell, overrides in experiment.cells.items() if axis.name in overrides])
        },
    )


def _coarse(search: Search) -> list[Coordinates]:
    return list(itertools.product(*(axis.values for axis in search.axes)))


def _parts(axes: Sequence[Axis], box: Box, points: Mapping[Coordinates, Point]) -> list[Box]:
    """The box, halved where the points in it differ: those that its neighbours have put on its border included."""
    inside = {
        point.verdict.status
        for coordinates, point in points.items()
        if all(low <= value <= high for value, (low, high) in zip(coordinates, box, strict=True))
    }
    return _halves(axes, box) if len(inside) > 1 else [box]


def _halves(axes: Sequence[Axis], box: Box) -> list[Box]:
    """The box cut through its middle along every axis that has values between; itself where none has."""
    pieces = []
    for axis, (low, high) in zip(axes, box, strict=True):
        middle = axis.between(low, high)
        pieces.append([(low, high)] if middle is None else [(low, middle), (middle, high)])
    return list(itertools.product(*pieces))


def _range(axis: Axis, values: list[Number]) -> str:
    low, high = min(values), max(values)
    if axis.labels:
        return f"at {' and '.join(axis.said(value) for value in sorted(set(values)))}"
    return f"at {shown(low)}" if low == high else f"from {shown(low)} to {shown(high)}"


def parse_axes(
    texts: Sequence[str], defaults: Any, num_points: int, free: Mapping[str, FreeAxis] = MappingProxyType({})
) -> list[Axis]:
    """The axes that texts such as "signal_scale=0.5..20" or "num_clusters=1,2,3" describe.

    Args:
        defaults: the parameters of a reading, which say what type a value has.
        num_points: of the coarse grid, on an axis that is a range.
        free: what the claim's statement leaves free, by name.
    Raises: InvalidParamsError or InvalidRunError for a text that describes none, or too many.
    """
    if not 1 <= len(texts) <= MOST_AXES:
        raise InvalidRunError(f"{len(texts)} axes cannot be drawn as a map: give --over once or twice.")
    axes = [_parse(text, defaults, num_points, free) for text in texts]
    if len({axis.name for axis in axes}) < len(axes):
        raise InvalidRunError(f"--over {texts[-1]}: {axes[0].name} is an axis already. Name another parameter.")
    return axes


def axis_name(text: str) -> str:
    """The parameter that the text of an axis names. Raises: InvalidParamsError where it names none."""
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not (name and equals and rest):
        raise InvalidParamsError(
            f"--over {text} is no axis: write it as --over signal_scale=0.5..20 or --over num_clusters=1,2,3."
        )
    return name


def _parse(text: str, defaults: Any, num_points: int, free: Mapping[str, FreeAxis]) -> Axis:
    name, described = axis_name(text), text.partition("=")[2]
    is_listed = ".." not in described
    parts = described.split("," if is_listed else "..", maxsplit=-1 if is_listed else 1)
    if isinstance(choice := free.get(name), Choice):
        labels = tuple(dict.fromkeys(choice.parsed(part.strip()) for part in described.split(",")))
        if len(labels) < 2:
            raise InvalidParamsError(
                f"--over {text}: an axis needs at least two different values of {', '.join(choice.ends)}. Add one."
            )
        return Axis(name, tuple(range(len(labels))), False, True, labels)
    values: list[Any] = [free[name].parsed(part) if name in free else typed(name, part, defaults) for part in parts]
    if not all(math.isfinite(value) for value in values):
        raise InvalidParamsError(f"--over {text}: values of {name} must be finite numbers.")
    if not is_listed and isinstance(values[0], bool):
        raise InvalidParamsError(f"--over {text}: {name} is true or false. Write it as --over {name}=false,true.")
    if not is_listed and values[0] >= values[1]:
        raise InvalidParamsError(f"--over {text}: {parts[0].strip()} must be below {parts[1].strip()}. Swap them.")
    values = sorted(set(values))
    if len(values) < 2:
        raise InvalidParamsError(f"--over {text}: an axis needs at least two different values.")
    is_log = Span(values[0], values[-1]).is_log
    return Axis(
        name, tuple(values if is_listed else _spread(values[0], values[-1], num_points, is_log)), is_log, is_listed
    )


def _spread(low: Number, high: Number, count: int, is_log: bool) -> list[Number]:
    spread = np.geomspace(low, high, count) if is_log else np.linspace(low, high, count)
    inner = (round(value) if isinstance(low, int) else tidy(value) for value in spread[1:-1].tolist())
    return sorted({low, *(value for value in inner if low < value < high), high})
