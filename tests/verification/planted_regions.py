"""Planted regions, whose truth is known, are searched as any statement's, and false findings are counted."""

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.papers import Reading
from moe_theory.core.system import System
from moe_theory.runs import Cell, Run
from moe_theory.verification.challenge import RegionSearch
from moe_theory.verification.claim import Claim, Experiment, Measured
from moe_theory.verification.criteria import LimitProbability, UpperBound
from moe_theory.verification.intervals import clopper_pearson
from moe_theory.verification.region import Scale, Size

SECONDS = 1e6  # that no search takes: its stages end by their numbers
ERROR, CONFIDENCE = 0.01, 0.999  # of a search; of a row's interval
SEARCHES = 20  # of a region
POWER = 0.9  # share of searches that find what has to be found
BEYOND, WITHIN, NOISE = 0.3, -0.2, 0.1  # violations, and the deviation of a replicate
GRID = (1e-1, 1e-2, 1e-3, 1e-4)  # of the limit


class Params(NamedTuple):
    x: float = 1.0
    y: float = 0.0
    n: int = 3
    scale: float = 1.0


AXES = (Scale("x", 0.0, 2.0), Scale("y", 0.0, 1.0), Size("n", 1, 8))
Truth = Callable[[Params], bool]  # whether the statement is broken


class PlantedRegion(NamedTuple):
    """A planted region."""

    name: str
    is_broken: Truth
    is_found: bool | None = None  # whether a search has to find it, or may not flip anything; None: it may miss it
    kind: str = "upper_bound"


REGIONS = (
    PlantedRegion("true everywhere", lambda p: False, False),
    PlantedRegion("at its margin everywhere", lambda p: False, False),
    PlantedRegion("false in a corner", lambda p: p.x > 1.7 and p.y > 0.8, True),
    PlantedRegion("false where two axes meet", lambda p: p.y > 0.6 and p.n == 1, True),
    PlantedRegion("false at an end of a size", lambda p: p.n == 8, True),
    PlantedRegion("true at one point", lambda p: (p.x, p.y, p.n) != (1.0, 0.0, 3), True),
    PlantedRegion("true in a corner", lambda p: not (p.x < 0.5 and p.y > 0.5), True),
    PlantedRegion("false in 1 %", lambda p: abs(p.x - 1.5) < 0.1 and abs(p.y - 0.5) < 0.1 and p.n > 4),
    PlantedRegion("fading in the limit", lambda p: p.y > 0.5, False, "limit_probability"),
)


@dataclasses.dataclass(frozen=True)
class RegionRow:
    """What searches of a planted region found."""

    region: str
    searches: int
    flipped: int  # of them, with a flip
    false: int  # with a flip where there is none
    low: float  # interval of the share of false ones, exact
    high: float
    settings: float  # looked at, in mean
    is_ok: bool


def search_planted(num_searches: int = SEARCHES, *, seed: int = 0) -> list[RegionRow]:
    """Search every planted region several times, at seeds from `seed` on."""
    return [_row(region, num_searches, seed) for region in REGIONS]


def _row(region: PlantedRegion, num_searches: int, seed: int) -> RegionRow:
    flipped = false = settings = 0
    for number in range(num_searches):
        search = searched(region, seed + 10 * number)
        flips = search.run()
        settings += len(search.looked)
        flipped += bool(flips)
        false += any(_is_false(region, search, dict(point)) for point in search.flipped)
    low, high = (float(end[0]) for end in clopper_pearson(np.asarray([false]), num_searches, 1 - CONFIDENCE))
    is_complete = {None: True, True: flipped >= POWER * num_searches, False: flipped == 0}[region.is_found]
    return RegionRow(
        region.name, num_searches, flipped, false, low, high, settings / num_searches, is_complete and low <= ERROR
    )


def searched(region: PlantedRegion, seed: int) -> RegionSearch:
    """A search of a region, at its beginning."""
    experiment = _experiment(region)
    search = RegionSearch([(experiment, [_claim(region, experiment)])], AXES, seed, ERROR, SECONDS)
    search.begin([Reading("planted", "as it is", Params())], region.name)
    return search


def _is_false(region: PlantedRegion, search: RegionSearch, setting: dict) -> bool:
    params = Params(**{axis.parameter: setting.get(axis, getattr(Params(), axis.parameter)) for axis in AXES})
    is_broken = region.kind == "upper_bound" and region.is_broken(params)
    return is_broken == (search.sought == "rescue")


def _experiment(region: PlantedRegion) -> Experiment:
    cells = {"planted": {}} if region.kind == "upper_bound" else {f"{scale:g}": {"scale": scale} for scale in GRID}
    return Experiment(
        name="planted regions",
        dims=None,
        system=System(lambda key, params: None, lambda key, state, params: (state, None)),
        cells=cells,
        num_rounds=1,
        replicates=512,
        measured=Measured(functools.partial(_measure, region)),
        of=lambda setting: _sized(region, setting),
    )


def _sized(region: PlantedRegion, setting: Any) -> Experiment:
    made = _experiment(region)
    return dataclasses.replace(made, cells={name: {**own, **setting} for name, own in made.cells.items()})


def _measure(region: PlantedRegion, cells: Sequence[Cell], first: int, count: int, seed: int) -> dict[str, Run]:
    runs = {}
    for place, cell in enumerate(cells):
        random, params = np.random.default_rng([seed, first, place]), cell.params
        if region.kind == "upper_bound":
            level = 0.0 if "margin" in region.name else BEYOND if region.is_broken(params) else WITHIN
            values = level + NOISE * random.standard_normal(count)
        else:  # an event that is likelier in the broken part, and rarer towards the limit everywhere
            values = random.random(count) < (0.6 if region.is_broken(params) else 0.2) * params.scale**0.5
        runs[cell.name] = Run(params, np.array([1]), np.arange(first, first + count), None, values[None].astype(float))
    return runs


_LIMIT = LimitProbability(margin=0.15, side="at_most", scale=lambda runs: 1.0, abscissa=GRID)
_BOUND = UpperBound(lambda runs: 0.0, scale=lambda runs: 1.0)


def _claim(region: PlantedRegion, experiment: Experiment) -> Claim:
    is_limit = region.kind == "limit_probability"
    return Claim(
        id="planted.region",
        paper="planted",
        where="planted",
        statement="A statement whose truth is known everywhere.",
        experiment=experiment,
        observe=lambda runs: np.stack([run.records[-1] for run in runs.values()], axis=-1),
        criterion=_LIMIT if is_limit else _BOUND,
        free=AXES,
    )
