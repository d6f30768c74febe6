"""Each task's expert (rounds across, experts down, classes as colours), and the loads by class."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int

from moe_theory import plot
from moe_theory.continual.theory import exploration_rounds
from moe_theory.deep.experiments import run_preset
from moe_theory.deep.presets import expert_cell, preset, server_cell
from moe_theory.plot import roles
from moe_theory.runs import Run

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
# Colour-blind safe (P. Tol's bright scheme).
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377")
HEIGHT = 0.86  # of a bar, in units of its row


def compute(setup: plot.Setup) -> xr.Dataset:
    runs: dict[tuple[str, str], Run] = {}
    for name in dict.fromkeys(panel.preset for panel in MAPS.values()):
        small = preset(name)
        settings = {cell: small.cells()[cell] for _, of, cell in MAPS.values() if of == name}
        runs |= {(name, cell): run for cell, run in run_preset(small, settings, setup).items()}
    length = max(len(run.rounds) for run in runs.values())

    def map_of(name: str) -> dict[str, Any]:
        """Return replicate 0's class and expert by round, its termination, and its numbers."""
        small = preset(MAPS[name].preset)
        run = runs[MAPS[name].preset, MAPS[name].cell]
        records = run.records
        missing = (0, length - len(run.rounds))
        classes = np.asarray(small.classes)[records.task[:, 0]]
        experts = records.expert[:, 0] + 1
        is_continual = hasattr(records, "terminated")  # servers always explore
        terminated = records.terminated[:, 0] if is_continual else np.zeros(len(classes), bool)
        number = int(run.params.num_experts)
        kinds = range(small.dims.num_classes)
        pairs = zip(records.task.T, records.expert.T, strict=True)
        shares = [share_of_own_class(loads(tasks, servers + 1, number, kinds)) for tasks, servers in pairs]
        return {
            "shown_class": np.pad(classes, missing, constant_values=NO_ROUND),
            "expert": np.pad(experts, missing, constant_values=NO_EXPERT),
            "terminated": np.pad(terminated, missing, mode="edge"),
            "experts": number,
            "explored": int(exploration_rounds(number, run.params.learning_rate)) if is_continual else 0,
            "own_class": float(np.mean(shares)),
        }

    data = plot.over(map_of, {"round": np.arange(1, length + 1)}, panel=list(MAPS))
    return data.assign_coords(replicate=0).assign_attrs(num_rounds=length)


def loads(
    classes: Int[np.ndarray, " T"], experts: Int[np.ndarray, " T"], num_experts: int, kinds: Sequence[int]
) -> Int[np.ndarray, "M K"]:
    length = int(np.sum(classes != NO_ROUND))
    half = slice(length // 2, length)
    rows = np.arange(1, num_experts + 1)
    return np.array([[np.sum((experts[half] == row) & (classes[half] == kind)) for kind in kinds] for row in rows])


def share_of_own_class(counts: Int[np.ndarray, "M K"]) -> float:
    """Return the share of tasks of their expert's most frequent class, NaN without tasks."""
    if counts.sum():
        return float(counts.max(axis=1).sum() / counts.sum())
    return float("nan")


def caption_words(data: xr.Dataset) -> dict[str, str]:
    return {"lengths": " and ".join(map(str, np.unique((data.shown_class != NO_ROUND).sum("round"))))}


@plot.figure(
    "deep.routing",
    compute,
    title="Which task went to which expert",
    summary="The expert of every round's task, by class: with and without termination, adaptive and nearest servers.",
    words=caption_words,
    runs="{count}, {lengths} rounds",
    replicates=8,
    size=(7.2, 6.4),
    rounds=0,  # as many as each preset has
    claims=("deep.figure-3.*", "deep.edge-figure-4.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """The expert of every task in one run (replicate 0; both maps of a system have the same arrivals): a bar is a
    round, its colour the class that the round's task is to recognise. (a), (b): the small version of Fig. 5 of the
    continual-learning paper; (c), (d): that of Fig. 4 of the edge-computing paper, where a server is busy while it
    trains. Both use digits in place of MNIST. On the right: tasks of each class at each expert in the second half of
    the rounds; percentages: tasks of that half that are of their expert's most frequent class.
    """
    kinds = [int(kind) for kind in np.unique(data.shown_class) if kind != NO_ROUND]
    heights = [float(size) + 2.5 for size in data.experts]
    grid = canvas.add_gridspec(data.sizes["panel"], 2, width_ratios=[1, 0.15], height_ratios=heights)
    for row, (letter, name) in enumerate(zip("abcdefgh", data.panel.values, strict=False)):
        selection = data.sel(panel=name)
        panel = canvas.add_subplot(grid[row, 0])
        matrix = canvas.add_subplot(grid[row, 1], sharey=panel)
        _draw_map(panel, selection, kinds)
        _draw_loads(matrix, selection, kinds)
        panel.set_title(f"({letter}) {MAPS[str(name)].title}", loc="left")
        share = share_of_own_class(_loads_of(selection, kinds))
        mean = f"over replicates {float(selection.own_class):.0%}"
        panel.set_title(f"{share:.0%} of the tasks at an expert of their class ({mean})", loc="right")
        panel.set_ylabel("expert" if selection.explored > 0 else "server")
        if row == data.sizes["panel"] - 1:
            panel.set_xlabel("round $t$")
            matrix.set_xlabel("class")
    plot.legend(canvas, 5, handlelength=1.6)


def _draw_map(panel: plot.Axes, selection: xr.Dataset, kinds: Sequence[int]) -> None:
    rounds = selection["round"].values[selection.shown_class.values != NO_ROUND]
    size = int(selection.experts)
    for row in range(1, size + 1):
        panel.axhline(row, **roles.GROUND)
    for kind, colour in zip(kinds, COLOURS, strict=False):
        arrivals = selection.isel(round=(selection.shown_class.values == kind) & (selection.expert.values != NO_EXPERT))
        places = arrivals["round"].values
        panel.bar(
            places,
            HEIGHT,
            1.0,
            arrivals.expert.values - HEIGHT / 2,
            color=colour,
            linewidth=0,
            label=f"recognise {kind}",
        )
    lost = selection["round"].values[
        (selection.shown_class.values != NO_ROUND) & (selection.expert.values == NO_EXPERT)
    ]
    panel.plot(lost, np.full(len(lost), 0.3), **roles.LOST, label="dropped" if len(lost) else "")
    if 0 < int(selection.explored) < rounds[-1]:
        panel.axvline(int(selection.explored) + 0.5, **roles.REFERENCE(zorder=2), label="end of exploration $T_1$")
    ended = np.flatnonzero(selection.terminated.values)
    if len(ended) > 0:
        panel.axvline(float(selection["round"][ended[0]]) + 0.5, **roles.ENDED, label="gates terminated")
    panel.set(xlim=(0.5, rounds[-1] + 0.5), ylim=(size + 0.6, 0.4), yticks=range(1, size + 1))


def _draw_loads(panel: plot.Axes, selection: xr.Dataset, kinds: Sequence[int]) -> None:
    counts = _loads_of(selection, kinds)
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


def _loads_of(selection: xr.Dataset, kinds: Sequence[int]) -> Int[np.ndarray, "M K"]:
    return loads(selection.shown_class.values, selection.expert.values, int(selection.experts), kinds)
