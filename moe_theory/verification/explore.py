"""Map of the settings in which a claim holds: verdicts over a grid of one or two parameters.

Each point is a separate verdict at its share of the error.
"""

import dataclasses
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from moe_theory.core.constraints import shown, typed
from moe_theory.core.errors import InvalidValueError, text_of, unknown_name
from moe_theory.runs import Progress, automatic, quiet
from moe_theory.runs import shown as shown_progress
from moe_theory.runs.provenance import is_x64, versions
from moe_theory.verification import registry
from moe_theory.verification.claim import Claim, ReadingLike
from moe_theory.verification.region import Choice, FreeAxis, Span, tidy
from moe_theory.verification.request import FAMILY_ERROR, Request, Study, check_request, require_one, resolve
from moe_theory.verification.session import carry_out
from moe_theory.verification.settings import Group, require_free, set_to
from moe_theory.verification.verdict import Status, Verdict

POINTS = 5  # unless the caller asks for others
MAX_POINTS = 10_000
MAX_FAILURES = 3  # shown
MAX_NAMED = 10  # values in a line
SCHEMA = "moe-theory/exploration/2"

Coordinates = tuple[Any, ...]  # a value on each axis
OnPoint = Callable[["Point"], None]


@dataclasses.dataclass(frozen=True)
class Axis:
    """Ascending values of one parameter, or labels of a choice."""

    name: str
    values: tuple[Any, ...]

    @property
    def is_log(self) -> bool:
        return not isinstance(self.values[0], str) and Span(self.values[0], self.values[-1]).is_log

    def place(self, value: Any) -> float:
        return self.values.index(value) if isinstance(value, str) else value


@dataclasses.dataclass(frozen=True)
class Search:
    claim: Claim
    reading: ReadingLike
    axes: list[Axis]
    replicates: int | None  # at most, at every point
    seed: int
    error: float  # probability that any status on the map is wrong
    module: str | None = None

    @property
    def grid(self) -> list[Coordinates]:
        return list(itertools.product(*(axis.values for axis in self.axes)))

    @property
    def num_points(self) -> int:
        return math.prod(len(axis.values) for axis in self.axes)

    @property
    def point_error(self) -> float:
        """Error of a point, in few digits so that a command can repeat it."""
        return float(f"{0.995 * self.error / self.num_points:.2e}")

    def study(self, coordinates: Coordinates) -> Study:
        """Return the study at a point. Raises: InvalidValueError if its system refuses the point."""
        groups = set_to(Group(self.claim.experiment, self.reading, [self.claim]), self.settings(coordinates))
        (study,) = resolve(groups, self.replicates, self.seed, self.point_error, module=self.module).studies
        return study

    def settings(self, coordinates: Coordinates) -> dict[str, Any]:
        return {axis.name: value for axis, value in zip(self.axes, coordinates, strict=True)}

    def places(self, coordinates: Coordinates) -> tuple[float, ...]:
        return tuple(axis.place(value) for axis, value in zip(self.axes, coordinates, strict=True))

    @property
    def kept(self) -> dict[str, list[str]]:
        """Cells that set an axis's parameter, by the axis's name."""
        cells = self.claim.experiment.cells
        names = {axis.name for axis in self.axes}.difference(free.name for free in self.claim.free)
        fixed = {name: [cell for cell, params in cells.items() if name in params] for name in names}
        return {name: labels for name, labels in fixed.items() if labels}


@dataclasses.dataclass(frozen=True)
class Point:
    coordinates: Coordinates
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class Exploration:
    """A map of verdicts, points in ascending order of their coordinates."""

    search: Search
    points: list[Point]
    command: str

    def summary(self) -> list[str]:
        """Return a line for each status, with the number of points and, on one axis, places."""
        lines = []
        for status in Status:
            values = [point.coordinates[0] for point in self.points if point.verdict.status is status]
            if values:
                line = f"{status} at {len(values)} of {len(self.points)} points"
                if len(self.search.axes) == 1 and len(values) <= MAX_NAMED:
                    line += f": {self.search.axes[0].name} = {', '.join(map(text_of, values))}"
                lines.append(line)
        return lines

    def failures(self) -> list[str]:
        reasons = (point.verdict.reason for point in self.points if point.verdict.status is Status.ERROR)
        return [f"{Status.ERROR}: {reason}" for reason in list(dict.fromkeys(reasons))[:MAX_FAILURES]]

    def assurance(self) -> str:
        search = self.search
        return (
            f"Probability that any status is wrong: at most {search.error:g}, split evenly over the "
            f"{search.num_points} points of the map ({search.point_error:g} each); asymptotic where intervals are."
        )

    def to_json(self) -> dict[str, Any]:
        search = self.search
        claim = search.claim
        return {
            "schema": SCHEMA,
            "claim": claim.id,
            **{name: getattr(claim, name) for name in ("where", "statement", "formula", "kind")},
            "reading": search.reading.name,
            "axes": [{**dataclasses.asdict(axis), "is_log": axis.is_log} for axis in search.axes],
            "points": [
                {"at": search.settings(point.coordinates), "verdict": point.verdict.to_json()} for point in self.points
            ],
            **{name: getattr(search, name) for name in ("error", "point_error", "seed", "kept")},
            "replicates": search.replicates or claim.experiment.replicates,
            "command": self.command,
            "summary": self.summary(),
            "versions": versions(),
            "is_x64": is_x64(),
        }


def explore(
    claim: str,
    over: str | Sequence[str],
    *,
    reading: str | None = None,
    points: int = POINTS,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    progress: Progress = automatic,
    on_point: OnPoint = lambda point: None,
) -> Exploration:
    """Map where a claim holds over one or two parameters.

    Args:
        claim: its id.
        over: axes, such as "signal_scale=0.5..20" (logarithmic from a ratio of 10 on), "num_clusters=1,2,3", or labels
            of a free choice.
        reading: all other parameters, by default the paper's first.
        points: on each axis with a range.
        replicates: most at every point, by default the experiment's own.
        error: probability that any status of the map is wrong.
        progress: by default a line in a notebook, else standard error.
        on_point: called with each decided point.
    Raises: UnknownNameError, InvalidValueError or DeclarationError before anything runs.

    Examples:
        >>> import moe_theory as mt
        >>> claim = "generalization.theorem-1.fixed-router"
        >>> found = mt.explore(claim, over="delta=0.05,0.5", replicates=64)
        >>> [(*point.coordinates, str(point.verdict.status)) for point in found.points]
        [(0.05, 'REFUTED'), (0.5, 'REFUTED')]
    """
    search = plan_search(claim, over, reading, points=points, replicates=replicates, seed=seed, error=error)
    with shown_progress(progress) as listener:
        return carry_out_search(search, progress=listener, on_point=on_point)


def plan_search(
    pattern: str,
    over: str | Sequence[str],
    reading: str | None = None,
    points: int = POINTS,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    module: str | None = None,
) -> Search:
    """Return the map to make, before anything runs. Raises: as `explore`."""
    if not 2 <= points <= MAX_POINTS:  # refused before the axis is made
        raise InvalidValueError(
            f"points={points} must be between 2 and {MAX_POINTS}: an axis has two ends, and all points share one "
            "error. Change points.",
            argument="points",
        )
    claim = require_one(pattern, registry.select_claims([pattern]))
    if reading in registry.SPECIAL_NAMES:
        readings = [choice.name for choice in registry.select_readings(claim.paper, ["all"])]
        raise unknown_name("reading", reading, readings)
    choice = check_request(pattern, reading, replicates, seed, error).studies[0].reading
    texts = [over] if isinstance(over, str) else list(over)
    if len(texts) not in (1, 2):
        raise InvalidValueError(f"{len(texts)} axes cannot be drawn as a map: give --over once or twice.")
    free = {axis.name: axis for axis in claim.free}
    axes: list[Axis] = []
    for text in texts:
        name = text.partition("=")[0].strip()
        if name in {axis.name for axis in axes}:
            raise InvalidValueError(f"--over {text}: {name} is an axis already. Name another parameter.")
        if name not in free and "=" in text:
            require_free(name, choice, claim.experiment)
        axes.append(parse_axis(text, choice.params(), points, free))
    search = Search(claim, choice, axes, replicates=replicates, seed=seed, error=error, module=module)
    if search.num_points > MAX_POINTS:
        raise InvalidValueError(
            f"there are {search.num_points} points, and at most {MAX_POINTS} may share an error. Lower points."
        )
    for coordinates in search.grid:
        search.study(coordinates)
    return search


def parse_axis(text: str, defaults: Any, num_points: int, free: Mapping[str, FreeAxis]) -> Axis:
    """Return the axis of a text such as "signal_scale=0.5..20" or "num_clusters=1,2,3".

    Values have the types of `defaults`. Raises: InvalidValueError.
    """
    name, equals, description = (part.strip() for part in text.partition("="))
    if not (name and equals and description):
        raise InvalidValueError(
            f"--over {text} is no axis: write it as --over signal_scale=0.5..20 or --over num_clusters=1,2,3."
        )
    parse = free[name].parsed if name in free else lambda text: typed(name, text, defaults)
    is_choice = isinstance(free.get(name), Choice)
    is_listed = is_choice or ".." not in description
    parts = description.split(",") if is_listed else description.split("..", 1)
    values: list[Any] = list(dict.fromkeys(parse(part.strip()) for part in parts))
    if len(values) < 2:
        raise InvalidValueError(f"--over {text}: an axis needs at least two different values. Add one.")
    if is_choice:
        return Axis(name, tuple(values))
    if not all(map(math.isfinite, values)):
        raise InvalidValueError(f"--over {text}: values of {name} must be finite numbers.")
    if is_listed:
        return Axis(name, tuple(sorted(values)))
    low, high = values
    if isinstance(low, bool):
        raise InvalidValueError(f"--over {text}: {name} is true or false. Write it as --over {name}=false,true.")
    if low >= high:
        raise InvalidValueError(f"--over {text}: {shown(low)} must be below {shown(high)}. Swap them.")
    inner = Span(low, high).value_at(np.linspace(0, 1, num_points)).tolist()[1:-1]
    rounded = [round(value) if isinstance(low, int) else tidy(value) for value in inner]
    return Axis(name, tuple(sorted({low, *(value for value in rounded if low < value < high), high})))


def carry_out_search(
    search: Search, *, progress: Progress = quiet, on_point: OnPoint = lambda point: None, command: str = ""
) -> Exploration:
    """Test the claim at all points. Raises: as `explore`."""
    studies = {coordinates: search.study(coordinates) for coordinates in search.grid}
    coordinates_of = {study.reading.name: coordinates for coordinates, study in studies.items()}
    points: dict[Coordinates, Point] = {}

    def note(verdict: Verdict) -> None:
        point = Point(coordinates_of[verdict.reading], verdict)
        points[point.coordinates] = point
        on_point(point)

    request = Request(tuple(studies.values()), (search.claim.id,), {}, search.seed, search.error)
    carry_out(request, progress=progress, on_verdict=note)
    return Exploration(search, [points[coordinates] for coordinates in search.grid], command)
