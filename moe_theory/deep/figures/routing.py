"""Which expert each task was routed to (rounds across, experts down, classes as colours), and the loads by class."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Bool, Int

from moe_theory.continual.theory import exploration_rounds
from moe_theory.deep.experiments import run_preset
from moe_theory.deep.presets import Preset, expert_cell, preset, server_cell
from moe_theory.runs import Progress, Run, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, provenance, replicates_and_seed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

NAME = "routing"
NO_ROUND = -1  # class in rounds beyond the end of a run
NO_EXPERT = 0  # expert in such a round, or of a dropped task; experts count from 1


class Map(NamedTuple):
    title: str
    preset: str
    cell: str


MAPS = {
    "with": Map("$M$ = 4, with termination", "continual-mnist-small", expert_cell(4)),
    "without": Map("$M$ = 4, without termination", "continual-mnist-small", expert_cell(4, terminate=False)),
    "adaptive": Map("$M$ = 10 servers, adaptive", "edge-mnist-small", server_cell(10, "adaptive")),
    "nearest": Map("$M$ = 10 servers, nearest", "edge-mnist-small", server_cell(10, "nearest")),
}
DIMENSIONS = ("panel", "round")
# Colour-blind safe (P. Tol's bright scheme).
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
HEIGHT = 0.86  # of a bar, in units of its row
EXPLORED: dict[str, Any] = {"color": "0.35", "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
TERMINATED: dict[str, Any] = {"color": "black", "linewidth": 1.1}


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    runs: dict[tuple[str, str], Run] = {}
    for name in dict.fromkeys(panel.preset for panel in MAPS.values()):
        small = preset(name)
        settings = {cell: small.cells()[cell] for _, of, cell in MAPS.values() if of == name}
        found = run_preset(small, settings, reading, replicates, seed, progress, num_rounds, NAME)
        runs |= {(name, cell): run for cell, run in found.items()}
    chosen = [(preset(panel.preset), runs[panel.preset, panel.cell]) for panel in MAPS.values()]
    length = max(len(run.rounds) for _, run in chosen)
    maps = [_map_of(small, run, length) for small, run in chosen]
    sizes = [int(run.params.num_experts) for _, run in chosen]
    shares = [_mean_share(small, run) for small, run in chosen]
    return xr.Dataset(
        {
            "shown_class": (DIMENSIONS, np.stack([classes for classes, _, _ in maps])),
            "expert": (DIMENSIONS, np.stack([experts for _, experts, _ in maps])),
            "terminated": (DIMENSIONS, np.stack([terminated for _, _, terminated in maps])),
            "experts": ("panel", sizes),
            "explored": ("panel", [_explored(small, run) for small, run in chosen]),
            "own_class": ("panel", shares),
        },
        {"panel": list(MAPS), "round": np.arange(1, length + 1), "replicate": 0},
        provenance("deep", NAME, reading, replicates, seed, length, rounds=num_rounds),
    )


def _map_of(
    small: Preset, run: Run, length: int
) -> tuple[Int[np.ndarray, " T"], Int[np.ndarray, " T"], Bool[np.ndarray, " T"]]:
    """Class and expert of each round's task in replicate 0, and whether the gates were terminated."""
    records, missing = run.records, length - len(run.rounds)
    classes, experts = np.asarray(small.classes)[records.task[:, 0]], records.expert[:, 0] + 1
    terminated = records.terminated[:, 0] if hasattr(records, "terminated") else np.zeros(len(classes), bool)
    return (
        np.pad(classes, (0, missing), constant_values=NO_ROUND),
        np.pad(experts, (0, missing), constant_values=NO_EXPERT),
        np.pad(terminated, (0, missing), mode="edge"),
    )


def _explored(small: Preset, run: Run) -> int:
    """T1; 0 for servers, which always explore."""
    is_continual = hasattr(run.records, "terminated")
    return int(exploration_rounds(int(run.params.num_experts), run.params.learning_rate)) if is_continual else 0


def loads(
    classes: Int[np.ndarray, " T"], experts: Int[np.ndarray, " T"], num_experts: int, kinds: Sequence[int]
) -> Int[np.ndarray, "M K"]:
    length = int(np.sum(classes != NO_ROUND))
    half = slice(length // 2, length)
    rows = np.arange(1, num_experts + 1)
    return np.array([[np.sum((experts[half] == row) & (classes[half] == kind)) for kind in kinds] for row in rows])


def share_of_own_class(counts: Int[np.ndarray, "M K"]) -> float:
    """Share of the tasks that are of their expert's most frequent class; NaN without tasks."""
    return float(counts.max(axis=1).sum() / counts.sum()) if counts.sum() else float("nan")


def _mean_share(small: Preset, run: Run) -> float:
    size, kinds = int(run.params.num_experts), range(small.dims.num_classes)
    pairs = zip(run.records.task.T, run.records.expert.T, strict=True)
    return float(np.mean([share_of_own_class(loads(tasks, experts + 1, size, kinds)) for tasks, experts in pairs]))


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    kinds = [int(kind) for kind in np.unique(data.shown_class) if kind != NO_ROUND]
    heights = [float(size) + 2.5 for size in data.experts]
    grid = figure.add_gridspec(data.sizes["panel"], 2, width_ratios=[1, 0.15], height_ratios=heights)
    last = None
    for row, (letter, name) in enumerate(zip("abcdefgh", data.panel.values, strict=False)):
        here = data.sel(panel=name)
        panel = figure.add_subplot(grid[row, 0])
        matrix = figure.add_subplot(grid[row, 1], sharey=panel)
        _draw_map(panel, here, kinds)
        _draw_loads(matrix, here, kinds)
        panel.set_title(f"({letter}) {MAPS[str(name)].title}", loc="left")
        own = share_of_own_class(_loads_of(here, kinds))
        mean = f"over replicates {float(here.own_class):.0%}"
        panel.set_title(f"{own:.0%} of the tasks at an expert of their class ({mean})", loc="right")
        panel.set_ylabel("expert" if here.explored > 0 else "server")
        last = (panel, matrix)
    if last is not None:
        last[0].set_xlabel("round $t$")
        last[1].set_xlabel("class")
    _draw_legend(figure, kinds)


def _draw_map(panel: "Axes", here: xr.Dataset, kinds: Sequence[int]) -> None:
    rounds = here["round"].values[here.shown_class.values != NO_ROUND]
    size = int(here.experts)
    for row in range(1, size + 1):
        panel.axhline(row, color="0.9", linewidth=0.5, zorder=0)
    for kind, colour in zip(kinds, COLOURS, strict=False):
        chosen = here.isel(round=(here.shown_class.values == kind) & (here.expert.values != NO_EXPERT))
        places = chosen["round"].values
        panel.bar(places, HEIGHT, 1.0, chosen.expert.values - HEIGHT / 2, color=colour, linewidth=0)
    lost = here["round"].values[(here.shown_class.values != NO_ROUND) & (here.expert.values == NO_EXPERT)]
    panel.plot(lost, np.full(len(lost), 0.3), color="black", linestyle="none", marker="x", markersize=4)
    if 0 < int(here.explored) < rounds[-1]:
        panel.axvline(int(here.explored) + 0.5, **EXPLORED)
    ended = np.flatnonzero(here.terminated.values)
    if len(ended) > 0:
        panel.axvline(float(here["round"][ended[0]]) + 0.5, **TERMINATED)
    panel.set(xlim=(0.5, rounds[-1] + 0.5), ylim=(size + 0.6, 0.4), yticks=range(1, size + 1))


def _draw_loads(panel: "Axes", here: xr.Dataset, kinds: Sequence[int]) -> None:
    counts = _loads_of(here, kinds)
    for place, colour in enumerate(COLOURS[: len(kinds)]):
        for row, number in enumerate(counts[:, place], start=1):
            share = number / max(counts[row - 1].sum(), 1)
            panel.bar(place, HEIGHT, 0.92, row - HEIGHT / 2, color=colour, alpha=0.08 + 0.62 * share, linewidth=0)
            if number > 0:
                panel.text(place, row, str(number), ha="center", va="center_baseline", fontsize=6)
    panel.set_xticks(range(len(kinds)), [str(kind) for kind in kinds])
    panel.set_xlim(-0.5, len(kinds) - 0.5)
    panel.tick_params(length=0, labelleft=False)
    for side in ("left", "bottom"):
        panel.spines[side].set_visible(False)


def _loads_of(here: xr.Dataset, kinds: Sequence[int]) -> Int[np.ndarray, "M K"]:
    return loads(here.shown_class.values, here.expert.values, int(here.experts), kinds)


def _draw_legend(figure: "FigureBase", kinds: Sequence[int]) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Any] = [
        Patch(color=colour, label=f"recognise {kind}") for kind, colour in zip(kinds, COLOURS, strict=False)
    ]
    handles += [
        Line2D([], [], **EXPLORED, label="end of exploration $T_1$"),
        Line2D([], [], **TERMINATED, label="gates terminated"),
    ]
    figure.legend(handles=handles, loc="outside upper center", ncols=5, handlelength=1.6)


def caption(data: xr.Dataset) -> str:
    lengths = np.unique((data.shown_class != NO_ROUND).sum("round"))
    runs = f"{replicates_and_seed(data)}, {' and '.join(map(str, lengths))} rounds"
    return (
        "The expert of every task in one run (replicate 0; both maps of a system have the same arrivals): a bar is a "
        "round, its colour the class that the round's task is to recognise. (a), (b): the small version of Fig. 5 of "
        "the continual-learning paper; (c), (d): that of Fig. 4 of the edge-computing paper, where a server is busy "
        "while it trains. Both use digits in place of MNIST. On the right: tasks of each class at each expert in the "
        "second half of the rounds; percentages: tasks of that half that are of their expert's most frequent class.\n"
        + closing(data, runs)
    )


FIGURE = FigureSpec(
    name=NAME,
    title="Which task went to which expert",
    summary="The expert of every round's task, by class: with and without termination, adaptive and nearest servers.",
    replicates=8,
    size=(7.2, 6.4),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("deep.figure-3.*", "deep.edge-figure-4.*"),
)
