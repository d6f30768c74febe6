"""A map of settings in which a claim holds, from verdicts over a grid of one or two parameters."""

import dataclasses
import functools
import itertools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from moe_theory.core.constraints import typed
from moe_theory.core.errors import InvalidValueError, text_of, unknown_name
from moe_theory.runs import Progress, automatic, quiet
from moe_theory.runs import shown as shown_progress
from moe_theory.runs.provenance import is_x64, versions
from moe_theory.verification import registry
from moe_theory.verification.claim import Claim, ReadingLike
from moe_theory.verification.region import is_log
from moe_theory.verification.request import FAMILY_ERROR, Request, Study, check_request, require_one, resolve
from moe_theory.verification.session import carry_out
from moe_theory.verification.settings import Group, parse_settings, require_free, set_to
from moe_theory.verification.verdict import Status, Verdict

MAX_POINTS = 10_000  # with more, the error of each point would be too small
MAX_FAILURES = 3  # failures to show
MAX_NAMED = 10  # values to name in a line
SCHEMA = "moe-theory/exploration/2"

Coordinates = tuple[Any, ...]  # a value on each axis


class Axis(NamedTuple):
    """Ascending values of one parameter, or labels of a choice."""

    name: str
    values: tuple[Any, ...]

    @property
    def is_log(self) -> bool:
        return not isinstance(self.values[0], str) and is_log(self.values[0], self.values[-1])


class Point(NamedTuple):
    coordinates: Coordinates
    verdict: Verdict


@dataclasses.dataclass(frozen=True)
class Exploration:
    """A map of verdicts. Its points are in ascending order of their coordinates."""

    claim: Claim
    reading: ReadingLike
    axes: list[Axis]
    studies: dict[Coordinates, Study]
    replicates: int  # limit at every point
    seed: int
    error: float  # probability that any status on the map is wrong
    point_error: float  # error of each point, in few digits so that a command can repeat it
    points: list[Point] = dataclasses.field(default_factory=list)  # empty before the tests
    command: str = ""

    @property
    def kept(self) -> dict[str, list[str]]:
        """Cells that set an axis's parameter themselves, by the axis's name."""
        cells = self.claim.experiment.cells
        names = {axis.name for axis in self.axes}.difference(free.name for free in self.claim.free)
        setting_cells = {name: [cell for cell, params in cells.items() if name in params] for name in names}
        return {name: labels for name, labels in setting_cells.items() if labels}

    def summary(self) -> list[str]:
        """Return a line for each status, with the number of points and, if there is one axis, their places."""
        lines = []
        for status in Status:
            values = [point.coordinates[0] for point in self.points if point.verdict.status is status]
            if values:
                line = f"{status} at {len(values)} of {len(self.points)} points"
                if len(self.axes) == 1 and len(values) <= MAX_NAMED:
                    line += f": {self.axes[0].name} = {', '.join(map(text_of, values))}"
                lines.append(line)
        return lines

    def failures(self) -> list[str]:
        reasons = (point.verdict.reason for point in self.points if point.verdict.status is Status.ERROR)
        return [f"{Status.ERROR}: {reason}" for reason in list(dict.fromkeys(reasons))[:MAX_FAILURES]]

    def assurance(self) -> str:
        return (
            f"The probability that any status is wrong is at most {self.error:g}, split evenly over {len(self.points)} "
            f"points of the map ({self.point_error:g} each). It is asymptotic if intervals are."
        )

    def to_json(self) -> dict[str, Any]:
        names = [axis.name for axis in self.axes]
        return {
            "schema": SCHEMA,
            "claim": self.claim.id,
            "where": self.claim.where,
            "statement": self.claim.statement,
            "formula": self.claim.formula,
            "kind": self.claim.kind,
            "reading": self.reading.name,
            "axes": [{**axis._asdict(), "is_log": axis.is_log} for axis in self.axes],
            "points": [
                {"at": dict(zip(names, point.coordinates, strict=True)), "verdict": point.verdict.to_json()}
                for point in self.points
            ],
            "error": self.error,
            "point_error": self.point_error,
            "seed": self.seed,
            "kept": self.kept,
            "replicates": self.replicates,
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
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    progress: Progress = automatic,
) -> Exploration:
    """Map where a claim holds over one or two parameters.

    Args:
        claim: the claim's id.
        over: axes such as "signal_scale=0.5,2,8". A free choice has labels as values.
        reading: the reading of all other parameters, by default the paper's first.
        replicates: limit at every point, by default the experiment's own.
        error: probability that any status on the map is wrong.
        progress: a listener. By default progress is a line in a notebook, and otherwise on standard error.
    Raises: UnknownNameError, InvalidValueError or DeclarationError before anything runs.

    Examples:
        >>> import moe_theory as mt
        >>> claim = "generalization.theorem-1.fixed-router"
        >>> exploration = mt.explore(claim, over="delta=0.05,0.5", replicates=64)
        >>> [(*point.coordinates, str(point.verdict.status)) for point in exploration.points]
        [(0.05, 'REFUTED'), (0.5, 'REFUTED')]
    """
    search = plan_search(claim, over, reading, replicates, seed=seed, error=error)
    with shown_progress(progress) as listener:
        return carry_out_search(search, progress=listener)


def plan_search(
    pattern: str,
    over: str | Sequence[str],
    reading: str | None = None,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    module: str | None = None,
) -> Exploration:
    """Return the map without points, before anything runs. Raises: the errors of `explore`."""
    claim = require_one(pattern, registry.select_claims([pattern]))
    if reading in registry.SPECIAL_NAMES:  # a map has a single reading
        names = [choice.name for choice in registry.select_readings(claim.paper, ["all"])]
        raise unknown_name("reading", reading, names)
    request = check_request(pattern, readings=reading, replicates=replicates, seed=seed, error=error)
    chosen_reading = request.studies[0].reading
    texts = [over] if isinstance(over, str) else list(over)
    if len(texts) not in (1, 2):
        raise InvalidValueError(f"{len(texts)} axes cannot be drawn as a map. Give --over once or twice.")
    axes = [_axis(name, text, claim, chosen_reading) for name, text in parse_settings(texts, "--over").items()]
    num_points = math.prod(len(axis.values) for axis in axes)
    if num_points > MAX_POINTS:
        raise InvalidValueError(f"{num_points} points are too many to share an error. Give at most {MAX_POINTS}.")
    point_error = float(f"{0.995 * error / num_points:.2e}")  # rounding to three digits adds at most 0.5 %
    studies = {}
    for coordinates in itertools.product(*(axis.values for axis in axes)):
        settings = {axis.name: value for axis, value in zip(axes, coordinates, strict=True)}
        groups = set_to(Group(claim.experiment, chosen_reading, [claim]), settings)
        studies[coordinates] = resolve(groups, replicates, seed, error=point_error, module=module).studies[0]
    limit = replicates or claim.experiment.replicates
    return Exploration(claim, chosen_reading, axes, studies, limit, seed=seed, error=error, point_error=point_error)


def carry_out_search(search: Exploration, *, progress: Progress = quiet, command: str = "") -> Exploration:
    """Test the claim at all points. Raises: the errors of `explore`."""
    studies = tuple(search.studies.values())
    request = Request(studies, claims=(search.claim.id,), readings={}, seed=search.seed, error=search.error)
    report = carry_out(request, progress=progress)
    verdicts = {verdict.reading: verdict for verdict in report.verdicts}  # each point has its own reading
    points = [Point(coordinates, verdicts[study.reading.name]) for coordinates, study in search.studies.items()]
    return dataclasses.replace(search, points=points, command=command)


def _axis(name: str, text: str, claim: Claim, reading: ReadingLike) -> Axis:
    free = {axis.name: axis for axis in claim.free}
    if name not in free:
        require_free(name, reading, claim.experiment)
    parse = free[name].parsed if name in free else functools.partial(typed, name, defaults=reading.params())
    values: list[Any] = list(dict.fromkeys(parse(part.strip()) for part in text.split(",")))
    if len(values) < 2:
        raise InvalidValueError(f"--over {name}={text}: an axis needs at least two different values. Add a value.")
    if isinstance(values[0], str):
        return Axis(name, tuple(values))
    if not all(map(math.isfinite, values)):
        raise InvalidValueError(f"--over {name}={text}: values of {name} must be finite numbers.")
    return Axis(name, tuple(sorted(values)))
