"""The benchmarks' figures: cost against each size, and against other ways to run the same rounds."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from moe_theory.bench import engine
from moe_theory.bench.grid import EXPECTED_SLOPES
from moe_theory.bench.history import Measurement, Record, write
from moe_theory.report import speed
from moe_theory.report.output import prepare_folder, write_text
from moe_theory.report.plots import PAGE_WIDTH, render

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

TABLE, SUMMARY, SCALING, PEERS, NUMBERS = "table.md", "summary.md", "scaling.svg", "peers.svg", "bench.json"
SCALING_HEIGHT = 2.1  # inches
BAR_HEIGHT, TITLE_HEIGHT = 0.19, 0.6  # inches: of a contender, of a panel beyond its bars
AXES = {
    "M": "experts $M$",
    "N": "tasks $N$",
    "d": "features $d$",
    "s": "samples $s$",
    "T": "rounds $T$",
}
MARKERS = "osD^"
COST = "ns a replicate-round"


def write_report(record: Record, out: Path) -> list[Path]:
    """Write all tables, those without the grid, figures of what was measured, and the record. Raises: OutputError."""
    folder = prepare_folder(out, (TABLE, SUMMARY, SCALING, PEERS, NUMBERS))
    texts = {TABLE: speed.to_markdown(record), SUMMARY: speed.to_markdown(record, has_grid=False)}
    if any(speed.scaling_points(record, system, axis) for system in _systems(record) for axis in AXES):
        texts[SCALING] = scaling_figure(record)
    if speed.peer_groups(record):
        texts[PEERS] = peers_figure(record)
    for name, text in texts.items():
        write_text(folder / name, text)
    return [*(folder / name for name in texts), write(record, folder / NUMBERS)]


def scaling_figure(record: Record) -> str:
    """A panel for each size, a line for each system, over the slopes that operation counts lead to."""
    caption = (
        "Cost of a replicate-round against each size alone. Dashed: the steepest slope that the number of operations "
        "allows, through the last point. " + speed.machine_line(record)
    )

    def draw(figure: "FigureBase") -> None:
        panels = figure.subplots(1, len(AXES), sharey=True)
        for panel, axis in zip(panels, AXES, strict=True):
            _draw_scaling(panel, record, axis)
        panels[0].set_ylabel(COST)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(MARKERS))

    return render("Cost of a replicate-round against each size", (PAGE_WIDTH, SCALING_HEIGHT), draw, caption)


def peers_figure(record: Record) -> str:
    """A panel for each setting: a bar for each contender, with how many times the engine's cost it has."""
    groups = speed.peer_groups(record)
    measured = {key: [each for each in group if not each.skipped] for key, group in groups.items()}
    measured = {key: group for key, group in measured.items() if group}
    heights = [BAR_HEIGHT * len(group) + TITLE_HEIGHT for group in measured.values()]
    costs = [each.nanoseconds for group in measured.values() for each in group]
    caption = "Bars: the quickest pass. At each: times the engine's cost, median over interleaved passes. "

    def draw(figure: "FigureBase") -> None:
        panels = figure.subplots(len(measured), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for panel, ((title, cores), group) in zip(panels, measured.items(), strict=True):
            _draw_bars(panel, group)
            panel.set_xscale("log")
            panel.set_xlim(min(costs) / 2, max(costs) * 5)  # room for the words at the longest bar
            panel.set_title(f"{title}, {speed.CORES[cores]}", loc="left")
        panels[-1].set_xlabel(COST)

    size = (PAGE_WIDTH, sum(heights))
    return render("The engine and its peers", size, draw, caption + speed.machine_line(record))


def _draw_scaling(panel: "Axes", record: Record, axis: str) -> None:
    ticks: set[float] = set()
    for place, system in enumerate(_systems(record)):
        points = speed.scaling_points(record, system, axis)
        if not points:
            continue
        sizes, costs = zip(*points, strict=True)
        ticks |= set(sizes)
        panel.plot(
            sizes,
            costs,
            color=f"C{place}",
            marker=MARKERS[place % len(MARKERS)],
            markersize=3.5,
            linewidth=1,
            label=system,
        )
        expected = [costs[-1] * (size / sizes[-1]) ** EXPECTED_SLOPES[axis] for size in sizes]
        panel.plot(sizes, expected, color=f"C{place}", linewidth=0.8, linestyle=(0, (3, 2)), alpha=0.7)
    panel.set_xscale("log")
    panel.set_yscale("log")
    kept = sorted(ticks)[::2]
    panel.set_xticks(kept, [f"{tick:g}" for tick in kept])
    panel.minorticks_off()
    panel.set_xlabel(AXES[axis])


def _draw_bars(panel: "Axes", group: Sequence[Measurement]) -> None:
    costs = [each.nanoseconds for each in group]
    colours = ["C1" if each.contender == engine.NAME else "C0" for each in group]
    panel.barh(range(len(group)), costs, color=colours, height=0.65)
    panel.set_yticks(range(len(group)), [speed.peer_name(each, group) for each in group])
    panel.invert_yaxis()
    for place, each in enumerate(group):
        over = speed.over_engine(each, group)
        words = f"{each.nanoseconds:,.0f}" + (f"  ({over.median:,.1f}×)" if over else "")
        panel.annotate(words, (each.nanoseconds, place), (3, 0), textcoords="offset points", va="center", fontsize=7)


def _systems(record: Record) -> list[str]:
    return speed.systems_of(record.measurements)
