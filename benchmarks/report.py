"""Tables and figures of what the benchmarks measured.

    python -m benchmarks.report runs/bench/one.json runs/bench/all.json --out figures/bench    # as `make bench` does

Reads pytest-benchmark's JSON files, or a bench.json written before. Writes table.md, summary.md (without the grid),
peers.svg, scaling.svg and bench.json into the folder.
"""

import argparse
import dataclasses
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.contenders import ENGINE, SCALED
from moe_theory.plot.style import PAGE_WIDTH, render_as

CORES = {"one": "one pinned core", "all": "all cores"}
AXES = {"M": "experts $M$", "N": "tasks $N$", "d": "features $d$", "s": "samples $s$", "T": "rounds $T$"}
EXPECTED_SLOPES = {"M": 1, "N": 1, "d": 1, "s": 2, "T": 0}  # log cost over log size, far out: `contenders.operations`
FITTED = 3  # a slope is fitted to so many points, those of the largest sizes
MARKERS = "osD^"
COLORS = ("C0", "C2", "C3")
COST = "ns a replicate-round"


@dataclasses.dataclass(frozen=True)
class Record:
    """Measurements, with their machine."""

    machine: str  # a sentence
    entries: list[dict[str, Any]]  # each is a benchmark's `extra_info`

    def part(self, name: str) -> list[dict[str, Any]]:
        return [entry for entry in self.entries if entry["part"] == name]

    def groups(self, part: str, key: Callable[[dict], tuple]) -> dict[tuple, list[dict]]:
        """The entries of a part by a key, in their order."""
        groups: dict[tuple, list[dict]] = {}
        for entry in self.part(part):
            groups.setdefault(key(entry), []).append(entry)
        return groups

    def peers(self) -> dict[tuple, list[dict]]:
        """Programs that ran the engine's rounds, by title and cores; the engine comes first."""
        return self.groups("peers", lambda entry: (_peer_title(entry), entry["cores"]))

    def scaling(self, system: str, axis: str) -> list[tuple[float, float]]:
        """Size and cost against one size alone, on one core."""
        entries = [entry for entry in self.part(f"scaling {axis}") if _system_and_cores(entry) == (system, "one")]
        return sorted((entry["setting"][SCALED[axis]], cost(entry)) for entry in entries)


def read(paths: Iterable[Path]) -> Record:
    """The record in pytest-benchmark's files, or in one that `write` wrote."""
    machines = []
    entries = []
    for path in paths:
        document = json.loads(path.read_text(encoding="utf-8"))
        if "entries" in document:  # `write` wrote it. It replaces what was read before
            machines = [document["machine"]]
            entries = document["entries"]
            continue
        cpu = document["machine_info"]["cpu"]["brand_raw"]
        commit = document["commit_info"]
        changed = "+" if commit.get("dirty") else ""
        machines.append(f"{document['datetime'][:10]}, {cpu}, commit {commit['id'][:7]}{changed}")
        infos = [benchmark["extra_info"] for benchmark in document["benchmarks"]]
        entries += [info for info in infos if "part" in info]
    return Record("; ".join(dict.fromkeys(machines)), entries)


def write(record: Record, folder: Path) -> None:
    """Write all tables and figures, and the record."""
    folder.mkdir(parents=True, exist_ok=True)
    peers = [peer_tables(record), precision_table(record)]
    others = [scaling_table(record)]
    others += filter(None, [compiling_table(record), calls_table(record), accelerator_table(record)])
    head = f"Measured {record.machine}.\n"
    table = "\n".join([head, *peers, grid_tables(record), *others])
    (folder / "table.md").write_text(table, encoding="utf-8")
    (folder / "summary.md").write_text("\n".join([head, *peers, *others]), encoding="utf-8")
    (folder / "peers.svg").write_text(peers_figure(record), encoding="utf-8")
    (folder / "scaling.svg").write_text(scaling_figure(record), encoding="utf-8")
    document = json.dumps(dataclasses.asdict(record), indent=1)
    (folder / "bench.json").write_text(document + "\n", encoding="utf-8")


def cost(entry: dict[str, Any]) -> float:
    """Nanoseconds a replicate-round in the quickest pass."""
    return min(entry["nanoseconds"])


def peer_name(entry: dict[str, Any]) -> str:
    """The contender, with its batch where it is the automatic one."""
    return f"{entry['contender']}, batch {entry['setting']['batch']}" if entry["is_automatic"] else entry["contender"]


def times_engine(entry: dict[str, Any]) -> tuple[float, float, float] | None:
    """Return median, least and largest cost over the engine's in the same passes, None if not timed beside it."""
    ratios = entry.get("times_engine")
    return None if ratios is None else (float(np.median(ratios)), min(ratios), max(ratios))


def peer_tables(record: Record) -> str:
    """A table for each setting."""
    tables = []
    for (title, cores), group in record.peers().items():
        rows = []
        for entry in group:
            compiling = f"{entry['compile_seconds']:.1f}"
            rows.append((peer_name(entry), f"{cost(entry):,.0f}", _ratio(times_engine(entry)), compiling))
        columns = ("", COST, f"times {ENGINE}", "first call, s more")
        tables.append(_table(f"{title}, {CORES[cores]}: {_sizes(group[0]['setting'])}", columns, rows))
    return "\n".join(tables)


def precision_table(record: Record) -> str:
    rows = []
    for (system, cores), group in record.groups("precision", _system_and_cores).items():
        by_name = {entry["setting"]["precision"]: cost(entry) for entry in group}
        single = by_name["float32"]
        double = by_name["float64"]
        rows.append((system, CORES[cores], f"{single:,.0f}", f"{double:,.0f}", f"{double / single:.2f}"))
    return _table("precision", ("", "cores", "float32, ns", "float64, ns", "float64 / float32"), rows)


def grid_tables(record: Record) -> str:
    """A table for each system: sizes by batch."""
    tables = []
    for (system, cores), group in record.groups("grid", _system_and_cores).items():
        batches = sorted({entry["setting"]["batch"] for entry in group if not entry["is_automatic"]})
        cells: dict[str, dict[Any, str]] = {}
        for entry in group:
            setting = entry["setting"]
            row = cells.setdefault(f"{setting['num_experts']}, {setting['num_features']}", {})
            if entry["is_automatic"]:
                row["automatic"] = f"{cost(entry):,.0f} ({setting['batch']})"
            else:
                row[setting["batch"]] = f"{cost(entry):,.0f}"
        rows = [(name, *(row.get(key, "") for key in (*batches, "automatic"))) for name, row in cells.items()]
        columns = ("M, d", *(f"batch {batch}" for batch in batches), "automatic (batch)")
        tables.append(_table(f"{system}, {COST}, {CORES[cores]}", columns, rows))
    return "\n".join(tables)


def scaling_table(record: Record) -> str:
    """The slope of log cost over the log of each size."""
    rows = []
    for system in systems_of(record):
        for axis, expected in EXPECTED_SLOPES.items():
            points = record.scaling(system, axis)
            if len(points) >= FITTED:
                sizes, costs = np.log(np.asarray(points[-FITTED:])).T
                slope = float(np.polyfit(sizes, costs, 1)[0])
                spans = f"{points[-FITTED][0]:g} to {points[-1][0]:g}"
                rows.append((system, axis, spans, f"{slope:.2f}", str(expected)))
    columns = ("", "with", "from", "log-log slope", "expected at most")
    return _table("scaling of the cost of a replicate-round", columns, rows)


def compiling_table(record: Record) -> str:
    """Seconds to compile Fig. 2's program."""
    words = {"cold": "cold", "kept": "with JAX's persistent cache"}
    rows = [
        ("figure-2", CORES[entry["cores"]], words[entry["cache"]], f"{entry['compile_seconds']:.1f}")
        for entry in record.part("compiling")
        if entry["cache"] in words
    ]
    title = "compiling in a new process (tracing, lowering, compiling; imports not counted)"
    return _table(title, ("program", "cores", "", "s"), rows)


def calls_table(record: Record) -> str:
    """What a user waits for."""
    rows = [
        (row["name"], CORES[entry["cores"]], *(f"{1e3 * row[time]:,.1f}" for time in ("first", "again")))
        for entry in record.part("calls")
        for row in entry["rows"]
    ]
    columns = ("", "cores", "as it comes, ms", "again, ms")
    return _table("calls and commands, each after those above it; commands with empty caches and again", columns, rows)


def accelerator_table(record: Record) -> str:
    """Of wide batches on an accelerator, where there was one."""
    rows = [
        (
            f"{entry['setting']['system']}, {entry['setting']['batch']:,} replicates, {entry['device']}",
            f"{entry['rounds_a_second'] / 1e6:,.1f}",
            f"{entry['bytes_a_round']:,.0f}",
            f"{entry['operations_a_round']:,.0f}",
            f"{entry['bandwidth_share']:.1%}",
        )
        for entry in record.part("accelerator")
    ]
    columns = ("", "million replicate-rounds a second", "bytes a round", "operations a round", "share of the bandwidth")
    return _table("a wide batch on an accelerator", columns, rows)


def systems_of(record: Record) -> list[str]:
    """The systems whose scaling was measured."""
    parts = {f"scaling {axis}" for axis in AXES}
    entries = [entry for entry in record.entries if entry["part"] in parts]
    return list(dict.fromkeys(entry["setting"]["system"] for entry in entries))


def peers_figure(record: Record) -> str:
    """A panel for each setting: a point for each contender, with how many times the engine's cost it has."""
    groups = record.peers()
    heights = [0.19 * len(group) + 0.6 for group in groups.values()]
    costs = [cost(entry) for group in groups.values() for entry in group]

    def draw(figure: Any) -> None:
        panels = figure.subplots(len(groups), 1, sharex=True, squeeze=False, height_ratios=heights)[:, 0]
        for panel, ((title, cores), group) in zip(panels, groups.items(), strict=True):
            for place, entry in enumerate(group):
                color, marker = ("C0", "o") if entry["contender"] == ENGINE else ("C2", "s")
                panel.plot(cost(entry), place, color=color, marker=marker, markersize=5)
            panel.hlines(
                range(len(group)), min(costs) / 2, list(map(cost, group)), color="0.85", linewidth=0.6, zorder=0
            )
            panel.set_ylim(-0.6, len(group) - 0.4)
            panel.set_yticks(range(len(group)), list(map(peer_name, group)))
            panel.invert_yaxis()
            for place, entry in enumerate(group):
                ratios = times_engine(entry)
                words = f"{cost(entry):,.0f}"
                if ratios is not None:
                    num_digits = 1 if ratios[0] >= 1 else 2
                    words += f"  ({ratios[0]:,.{num_digits}f}×)"
                offset = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 7}
                panel.annotate(words, (cost(entry), place), **offset)
            panel.set_xscale("log")
            panel.set_xlim(min(costs) / 2, max(costs) * 5)  # room for the words at the longest bar
            panel.set_title(f"{title}, {CORES[cores]}", loc="left")
        panels[-1].set_xlabel(COST)

    caption = "Points: the quickest pass. At each: times the engine's cost, median over interleaved passes. "
    size = (PAGE_WIDTH, sum(heights))
    return render_as("svg", "The engine and its peers", size, draw, f"{caption}{record.machine}.").decode()


def scaling_figure(record: Record) -> str:
    """A panel for each size, a line for each system, over the slopes that operation counts lead to."""
    caption = (
        "Cost of a replicate-round against each size alone. Dashed: the steepest slope that the number of operations "
        f"allows, through the last point. {record.machine}."
    )

    def draw(figure: Any) -> None:
        panels = figure.subplots(1, len(AXES), sharey=True)
        for panel, axis in zip(panels, AXES, strict=True):
            ticks: set[float] = set()
            for place, system in enumerate(systems_of(record)):
                sizes, costs = zip(*record.scaling(system, axis), strict=True)
                ticks |= set(sizes)
                style = {"color": COLORS[place], "marker": MARKERS[place], "markersize": 3.5, "linewidth": 1}
                panel.plot(sizes, costs, label=system, **style)
                expected = [costs[-1] * (size / sizes[-1]) ** EXPECTED_SLOPES[axis] for size in sizes]
                panel.plot(sizes, expected, color=COLORS[place], linewidth=0.8, linestyle=(0, (3, 2)), alpha=0.7)
            panel.set_xscale("log")
            panel.set_yscale("log")
            panel.set_xticks(sorted(ticks)[::2], [f"{tick:g}" for tick in sorted(ticks)[::2]])
            panel.minorticks_off()
            panel.set_xlabel(AXES[axis])
        panels[0].set_ylabel(COST)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=len(MARKERS))

    title = "Cost of a replicate-round against each size"
    return render_as("svg", title, (PAGE_WIDTH, 2.1), draw, caption).decode()


def _peer_title(entry: dict[str, Any]) -> str:
    return f"{entry['setting']['system']}, batch {entry['beside']}"


def _system_and_cores(entry: dict[str, Any]) -> tuple[str, str]:
    return entry["setting"]["system"], entry["cores"]


def _sizes(setting: dict[str, Any]) -> str:
    names = {"M": "num_experts", "N": "num_tasks", "d": "num_features", "s": "num_samples"}
    return ", ".join(f"{symbol} = {setting[name]}" for symbol, name in names.items()) + f", {setting['precision']}"


def _ratio(value: tuple[float, float, float] | None) -> str:
    if value is None:
        return ""
    median, low, high = (f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2f}" for ratio in value)
    return f"{median} ({low} to {high})"


def _table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    if not rows:
        return ""
    rule = "| --- |" + " ---: |" * (len(columns) - 1)
    lines = ["| " + " | ".join(cells) + " |" for cells in (columns, *rows)]
    return "\n".join([f"**{title}**", "", lines[0], rule, *lines[1:], ""])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=Path("figures/bench"))
    options = parser.parse_args()
    write(read(options.files), options.out)
