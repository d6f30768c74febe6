"""Figures of papers, and what they share: runs recorded for a logarithmic axis, statistics, provenance, captions."""

import dataclasses
import inspect
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import jax
import numpy as np
import xarray as xr
from jaxtyping import Float, Shaped

from moe_theory.core.errors import InvalidDimsError, InvalidParamsError, InvalidRunError, unknown_name
from moe_theory.core.system import Observe, System, recorded_rounds
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verify.claim import Experiment, ReadingLike
from moe_theory.verify.request import options_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

Sizes = TypeVar("Sizes")  # a paper's Dims

BAND = (0.1, 0.9)  # quantiles over replicates that a band spans
STRIDE, DENSE_ROUNDS = 2, 60  # every other round early on, where most happens
SPARSE_RECORDS = 32  # then so many, evenly spread on a logarithmic axis
OPTIONS = {"num_rounds": "rounds", "experts": "experts", "dims": "dims"}  # keywords of `compute`: what users call them
RAMP = 0.55  # of viridis: from there on it is too light for a line
LEAST_PANEL = 1.7  # inches that a panel of a row needs; in a narrower figure a row becomes rows


class Compute(Protocol):
    """Runs what a figure shows.

    Which keywords it has says what users may choose: `num_rounds`, other than None, for runs of another length;
    `experts: Sequence[int] | None`, the numbers of experts drawn; `dims: Mapping | None`, static sizes by name.
    """

    def __call__(
        self,
        reading: ReadingLike,
        replicates: int,
        seed: int,
        progress: Progress = ...,
        *,
        num_rounds: int | None = ...,
    ) -> xr.Dataset: ...


@dataclasses.dataclass(frozen=True)
class FigureSpec:
    """One figure: its data under any reading, its drawing and its caption."""

    name: str
    title: str
    summary: str  # what it shows, in a sentence
    compute: Compute  # such as `over_rounds(...)`, where the figure shows an experiment's records
    draw: Callable[[xr.Dataset, "FigureBase"], None]
    replicates: int = 64  # unless the caller asks for another number
    size: tuple[float, float] = (3.5, 2.5)  # of the drawing without its caption, in inches
    caption: Callable[[xr.Dataset], str] = lambda data: closing(data)
    claims: tuple[str, ...] = ()  # globs over the ids of those that it bears on

    def takes(self, option: str) -> bool:
        """Whether its `compute` has this keyword of `OPTIONS`."""
        return option in inspect.signature(self.compute).parameters


class Curves(NamedTuple):
    """What a panel of the overview draws: R points of each."""

    x: Float[np.ndarray, " R"]
    mean: Float[np.ndarray, " R"]  # measured
    low: Float[np.ndarray, " R"]  # 10 % of replicates; NaN where there is no band
    high: Float[np.ndarray, " R"]  # 90 %
    printed: Float[np.ndarray, " R"]
    right: Float[np.ndarray, " R"]


@dataclasses.dataclass(frozen=True)
class Panel:
    """A paper's panel of the overview: two claims, and what is drawn of them."""

    title: str
    note: str  # a sentence of the caption
    printed: str  # id of the claim that is printed
    printed_words: str
    right: str  # id of the one that stands beside it
    right_words: str
    x_label: str
    y_label: str
    log_axes: str  # of "x" and "y" those that are logarithmic
    curves: Callable[[ReadingLike, int, int, Progress, Mapping[str, Any]], Curves]  # also given the verdicts by id


def log_axis_cells(
    settings: Mapping[str, Any], system: System, observe: Observe, num_rounds: int, also: Iterable[int] = ()
) -> list[Cell]:
    """Cells by the names of `settings` (name -> params), recorded densely at first and then ever more sparsely.

    Args:
        also: rounds of which the last recorded one not beyond them is kept too, where there is one.
    """
    rounds = recorded_rounds(num_rounds, STRIDE)
    places = np.arange(len(rounds))
    sparse = np.searchsorted(rounds, np.rint(np.geomspace(DENSE_ROUNDS, num_rounds, SPARSE_RECORDS)))
    extra = np.searchsorted(rounds, np.array(list(also), int), side="right") - 1
    chosen = np.concatenate([places[rounds <= DENSE_ROUNDS], np.minimum(sparse, len(rounds) - 1), extra[extra >= 0]])
    keep = tuple(np.unique(chosen).tolist())
    return [Cell(name, system, params, num_rounds, STRIDE, observe, keep=keep) for name, params in settings.items()]


def run_for_log_axis(
    settings: Mapping[str, Any],
    system: System,
    observe: Observe,
    num_rounds: int,
    replicates: int,
    seed: int,
    progress: Progress = quiet,
    what: str | None = None,
) -> dict[str, Run]:
    """Runs of the `log_axis_cells` of one program, by the names of `settings`."""
    cells = log_axis_cells(settings, system, observe, num_rounds)
    return dict(run_cells(cells, replicates, seed=seed, progress=progress, what=what))


def across_replicates(samples: Shaped[np.ndarray, "R B"]) -> dict[str, Float[np.ndarray, " R"]]:
    """Mean, band and the mean's standard error over replicates (NaN for one), at every recorded round."""
    samples = np.asarray(samples, np.float64)
    low, high = np.quantile(samples, BAND, axis=1)
    spread = samples.std(axis=1, ddof=1) if samples.shape[1] > 1 else np.full(len(samples), np.nan)
    return {"mean": samples.mean(axis=1), "low": low, "high": high, "error": spread / np.sqrt(samples.shape[1])}


def over_rounds(paper: str, name: str, experiment: Experiment) -> Compute:
    """Data of the figure `name` of a paper: what an experiment records, over its rounds, a `cell` of it at a time.

    What `observe` keeps has the name of its field or key, or of `observe` itself where that keeps one scalar: its mean
    over replicates, and beside it the band and standard error of `across_replicates`, as NAME_low, NAME_high and
    NAME_error.
    """

    def compute(
        reading: ReadingLike,
        replicates: int,
        seed: int,
        progress: Progress = quiet,
        *,
        num_rounds: int | None = None,
    ) -> xr.Dataset:
        shown = experiment
        if num_rounds is not None:
            shown = dataclasses.replace(experiment, num_rounds=num_rounds, lengths={})
        runs = run_cells(shown.cells_under(reading), replicates, seed=seed, progress=progress)
        cells = [_statistics(run, experiment.observe.__name__) for run in runs.values()]
        data = xr.concat(cells, xr.Variable("cell", list(runs)), join="outer")
        about = provenance(paper, name, reading, replicates, seed, shown.num_rounds, rounds=num_rounds)
        return data.assign_attrs(about)

    return compute


def _statistics(run: Run, name: str) -> xr.Dataset:
    """The scalars that a run records, over its rounds; `name` is that of a record which is a scalar itself."""
    shown = {}
    for path, leaf in jax.tree_util.tree_leaves_with_path(run.records):
        field = jax.tree_util.keystr(path, simple=True, separator="_") or name
        if np.ndim(leaf) != 2:
            raise InvalidRunError(
                f"what is recorded as {field} has the shape {np.shape(leaf)[1:-1]} a replicate, and a curve needs a "
                "scalar. Observe one, or give the figure a `compute` of its own."
            )
        for kind, values in across_replicates(leaf).items():
            shown[field if kind == "mean" else f"{field}_{kind}"] = ("round", values)
    return xr.Dataset(shown, {"round": run.rounds})


def chosen_experts(experts: Sequence[int] | None, default: Sequence[int]) -> tuple[int, ...]:
    """The numbers of experts that a figure draws, the default ones for None.

    Raises: InvalidParamsError for what are not different whole numbers of at least 1.
    """
    chosen = tuple(default if experts is None else experts)
    for number in chosen:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise InvalidParamsError(f"experts={number!r} must be a whole number of at least 1, such as 2 in 2,4,8.")
    if not chosen or len(set(chosen)) < len(chosen):
        raise InvalidParamsError(f"experts={','.join(map(str, chosen))} must be different numbers, such as 2,4,8.")
    return tuple(map(int, chosen))


def resized(dims: Sizes, sizes: Mapping[str, Any] | None, max_experts: int) -> Sizes:
    """A figure's static sizes with others, numbers or their texts, and room for `max_experts`.

    Raises: InvalidDimsError for a size that does not exist, that follows from the experts, or that cannot be.
    """
    names = [field.name for field in dataclasses.fields(dims) if field.name != "max_experts"]  # pyright: ignore[reportArgumentType]
    for name, value in (sizes or {}).items():
        if name == "max_experts":
            raise InvalidDimsError("max_experts follows from the numbers of experts that are drawn. Set experts.")
        if name not in names:
            raise InvalidDimsError(str(unknown_name("size", name, names, type(dims))))
        if not str(value).isdecimal():
            raise InvalidDimsError(f"{name}={value} must be a whole number of at least 1. Change {name}.")
    numbers = {name: int(value) for name, value in (sizes or {}).items()}
    return dataclasses.replace(dims, max_experts=max_experts, **numbers)  # pyright: ignore[reportArgumentType, reportCallIssue]


def ramp(count: int) -> list[str]:
    """Colours of lines for growing numbers, such as M: from dark to light, in grey too."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    return [to_hex(colormaps["viridis"](RAMP * place / max(count - 1, 1))) for place in range(count)]


def panel_row(figure: "FigureBase", count: int, *, sharex: bool = False, sharey: bool = False) -> Sequence["Axes"]:
    """Panels side by side, or below one another where the figure is too narrow for that: it grows by as much."""
    root: Any = figure.figure
    columns = max(1, min(count, int(root.get_figwidth() / LEAST_PANEL)))
    if columns == count:
        return list(figure.subplots(1, count, squeeze=False, sharex=sharex, sharey=sharey)[0])
    rows = -(-count // columns)
    root.set_figheight(root.get_figheight() * rows)
    panels = figure.subplots(rows, columns, squeeze=False, sharey=sharey).ravel()
    for spare in panels[count:]:
        spare.remove()
    for panel in panels[:count]:
        panel.tick_params(labelleft=True)  # that a shared axis hides inside a row
    return list(panels[:count])


def provenance(
    paper: str, name: str, reading: ReadingLike, replicates: int, seed: int, num_rounds: int, **asked: Any
) -> dict[str, Any]:
    """Attributes that say where a dataset comes from, with the command that computes it.

    Args:
        num_rounds: of the runs.
        asked: what was asked for beside readings, by its option: rounds, experts or dims; None for what was not.
    """
    command = f"moe-theory figures {paper} {name} {options_of(reading)} --replicates {replicates} --seed {seed}"
    return {
        "figure": name,
        "reading": reading.name,
        "reading_summary": reading.summary,
        "replicates": replicates,
        "seed": seed,
        "num_rounds": num_rounds,
        "command": " ".join([command, *(text for option in asked.items() for text in _as_options(*option))]),
    }


def _as_options(name: str, value: Any) -> list[str]:
    if isinstance(value, Mapping):
        return [f"--{name} {shlex.quote(f'{key}={number}')}" for key, number in value.items()]
    if value is None:
        return []
    return [f"--{name} {value if isinstance(value, int) else ','.join(map(str, value))}"]


def closing(data: xr.Dataset, runs: str | None = None) -> str:
    """The last lines of every caption: reading, what was run (replicates, seed and rounds unless given), command."""
    about = data.attrs
    choices = about["reading_summary"].replace("sigma_0", "σ₀")
    runs = f"{replicates_and_seed(data)}, {about['num_rounds']} rounds" if runs is None else runs
    return f"Reading {about['reading']} ({choices}); {runs}.\n{about['command']}"


def replicates_and_seed(data: xr.Dataset) -> str:
    noun = "replicate" if data.attrs["replicates"] == 1 else "replicates"
    return f"{data.attrs['replicates']} {noun}, seed {data.attrs['seed']}"
