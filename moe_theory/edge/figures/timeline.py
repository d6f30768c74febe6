"""The servers of one network at work: each one's tasks, before and after they specialise."""

import numpy as np
import xarray as xr
from jaxtyping import Int

from moe_theory import plot
from moe_theory.core.system import fields
from moe_theory.edge.algorithm import DROPPED, system
from moe_theory.edge.experiments import MAX_DELAY, figure_3_dims
from moe_theory.edge.policies import POLICIES
from moe_theory.plot import roles
from moe_theory.runs import Cell, Run

DIMS = figure_3_dims(20)
SHOWN = ("adaptive", "nearest")
WINDOW = 50  # rounds drawn at the beginning, and at the end
# Ten hues that the colour-blind can tell apart (P. Tol's muted scheme, and grey). Numbers also name the task types.
COLOURS = tuple("#332288 #88ccee #44aa99 #117733 #999933 #ddcc77 #cc6677 #882255 #aa4499 #bbbbbb".split())
DARK = (0, 3, 7, 8)  # places of the colours on which numbers are white
HEIGHT = 0.84  # height of a bar, as a share of its row
LEAST_NUMBERED = 2  # rounds of a bar that is long enough to hold its number
observe = fields("info.task", "info.expert", "info.delay")


def compute(setup: plot.Setup) -> xr.Dataset:
    """Return replicate 0's first and last arrivals. Types and servers are numbered from 1, and 0 means none."""
    length = setup.rounds
    params = setup.params(num_experts=DIMS.max_experts)
    runs = setup.run(Cell(name, system(DIMS, POLICIES[name]), params, length, observe=observe) for name in SHOWN)
    rounds = np.arange(1, length + 1)
    # Tasks pending in the last window began at most one delay before it.
    is_shown = (rounds <= WINDOW) | (rounds > length - WINDOW - MAX_DELAY)

    def arrivals(policy: str) -> plot.Values:
        tasks, experts, delays = (part[is_shown, 0] for part in runs[policy].records)
        commonest_kinds = _commonest_kinds(runs[policy], replicate=0)
        rows = np.argsort(np.argsort(commonest_kinds, kind="stable")) + 1  # ranks of servers, ordered by kind

        def of_arrivals(server_values: Int[np.ndarray, " M"]) -> Int[np.ndarray, " T"]:
            return np.where(experts == DROPPED, 0, server_values[np.maximum(experts, 0)])

        return {
            "kind": tasks + 1,
            "server": np.where(experts == DROPPED, 0, experts + 1),
            "delay": delays,
            "server_kind": of_arrivals(commonest_kinds + 1),
            "row": of_arrivals(rows),
            "own_kind": share_of_own_kind(runs[policy]),
        }

    return plot.over(arrivals, {"round": rounds[is_shown]}, policy=SHOWN).assign_coords(replicate=0)


def _commonest_kinds(run: Run, replicate: int) -> Int[np.ndarray, " M"]:
    half = len(run.records.task) // 2
    tasks = run.records.task[half:, replicate]
    experts = run.records.expert[half:, replicate]
    counts = np.zeros((DIMS.max_experts, DIMS.num_tasks))
    np.add.at(counts, (experts[experts >= 0], tasks[experts >= 0]), 1)
    return np.argmax(counts, axis=1)


def share_of_own_kind(run: Run) -> float:
    half = len(run.records.task) // 2
    shares = []
    for replicate in run.replicates:
        tasks = run.records.task[half:, replicate]
        experts = run.records.expert[half:, replicate]
        is_own_kind = _commonest_kinds(run, replicate)[experts] == tasks
        shares.append(np.mean(is_own_kind[experts >= 0]))
    return float(np.mean(shares))


@plot.figure(
    "edge.timeline",
    compute,
    title="Busy servers before and after they specialise",
    summary="The tasks at each server of one network, early and late, under the adaptive policy and the nearest one.",
    words=lambda data: {"over": ", over all replicates" if data.attrs["replicates"] > 1 else ""},
    replicates=1,
    size=(7.2, 5.6),
    rounds=3000,
    claims=("edge.proposition-2.*", "edge.proposition-3.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """The first {WINDOW} and the last {WINDOW} of {num_rounds} rounds in one network (replicate 0) of M =
    {DIMS.max_experts} servers under two policies, which meet the same arrivals of N = 10 kinds. A bar: a task at its
    server, from its routing to its completion. Rows are servers, ordered by the kind that each got most often in the
    second half of the run, at the right; shares: tasks of that half that are of their server's commonest kind{over}.
    """
    axes = canvas.subplots(data.sizes["policy"], 2, sharey=True, squeeze=False)
    last = data.attrs["num_rounds"]
    windows = ((1, min(WINDOW, last)), (max(last - WINDOW + 1, 1), last))
    for kind, colour in enumerate(COLOURS, start=1):  # for the legend
        axes[0, 0].bar([0], [0], 0, color=colour, label=f"{kind}")
    for letter, policy, row in zip("ab", data.policy.values, axes, strict=True):
        selection = data.sel(policy=policy)
        for panel, (first, end) in zip(row, windows, strict=True):
            _draw_tasks(panel, selection, first, end)
        kinds_by_server = zip(selection.row.values.tolist(), selection.server_kind.values.tolist(), strict=True)
        for server_row, kind in {*kinds_by_server}:
            if server_row > 0:
                at_edge = roles.ArtistStyle(xycoords=("axes fraction", "data"), va="center_baseline")
                plot.note(row[1], str(kind), (1, server_row), (4, 0), size=5.5, **at_edge)
        row[0].set_title(f"({letter}) {policy}: the first rounds", loc="left")
        row[1].set_title("the last rounds", loc="left")
        row[1].set_title(f"{float(selection.own_kind):.0%} of tasks at a server of their kind", loc="right")
        row[0].set_ylabel("servers, ordered by kind")
    for panel in axes[-1]:
        panel.set_xlabel("round $t$")
    plot.legend(canvas, 11, title="kind of the task", handlelength=1.2, columnspacing=1)


def _draw_tasks(panel: plot.Axes, selection: xr.Dataset, first: int, end: int) -> None:
    for row in range(1, DIMS.max_experts + 1):
        roles.GROUND.hline(panel, row)
    rounds = selection["round"].values
    tasks = selection.isel(round=(rounds + selection.delay.values > first) & (rounds <= end))
    for kind, colour in enumerate(COLOURS, start=1):
        of_kind = tasks.isel(round=(tasks.kind.values == kind) & (tasks.row.values > 0))
        for start, delay, row in zip(of_kind["round"].values, of_kind.delay.values, of_kind.row.values, strict=True):
            panel.broken_barh(
                [(start, delay)], (row - HEIGHT / 2, HEIGHT), facecolor=colour, edgecolor="white", linewidth=0.5
            )
            left_end = max(start, first)
            right_end = min(start + delay, end + 1)
            if right_end - left_end >= LEAST_NUMBERED:
                tone = "white" if kind - 1 in DARK else "black"
                middle = (left_end + right_end) / 2
                panel.text(middle, row, str(kind), size=5.5, color=tone, ha="center", va="center_baseline")
    lost = tasks["round"].values[tasks.row.values == 0]
    if len(lost) > 0:
        panel.plot(lost + 0.5, np.full(len(lost), 0.25), **roles.LOST, clip_on=False, label="dropped")
    panel.set(xlim=(first, end + 1), ylim=(DIMS.max_experts + 0.6, 0.0), yticks=[])
    panel.spines["left"].set_visible(False)
