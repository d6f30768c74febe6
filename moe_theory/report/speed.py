"""What the benchmarks measured, as tables for a terminal and as Markdown."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rich.table import Table

from moe_theory.bench.grid import EXPECTED_SLOPES, SCALED
from moe_theory.bench.history import KEPT, Change, Measurement, OnAccelerator, Record
from moe_theory.bench.measure import Ratio, ratio

CORES = {"one": "one pinned core", "all": "all cores"}
FITTED = 3  # points of a scaling, the last ones, that its slope is taken from
FASTER, SLOWER = "green", "red"


class Sheet(NamedTuple):
    """A table, however it is shown."""

    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]
    note: str = ""
    styles: tuple[str, ...] = ()  # a colour a row, for a terminal


def sheets(record: Record, *, has_grid: bool = True) -> list[Sheet]:
    """All that was measured, or all but the grid; nothing for parts that were not."""
    parts = (_peers, _precisions, *([_grid] if has_grid else []), _scaling, _compilations, _accelerator)
    return [sheet for part in parts for sheet in part(record) if sheet.rows]


def changes_sheet(changes: Sequence[Change], then: Record) -> Sheet:
    """Costs of this run over those of an earlier one, each counted in yardsticks of its own run."""
    styles = tuple("" if not change.is_clear else FASTER if change.ratio.median < 1 else SLOWER for change in changes)
    return Sheet(
        f"now over {then.time}",
        ("measured", "now / then", "clear"),
        [(change.id, _shown_ratio(change.ratio), "yes" if change.is_clear else "") for change in changes],
        "Both runs counted in yardsticks, a fixed NumPy workload timed in the same passes, so that a slower machine or "
        "hour does not read as a slower engine. Clear: all passes of one run on one side of all passes of the other.",
        styles,
    )


def to_rich(sheet: Sheet) -> Table:
    """The sheet for a terminal."""
    table = Table(title=sheet.title, caption=sheet.note or None, title_justify="left", caption_justify="left")
    for place, column in enumerate(sheet.columns):
        table.add_column(column, justify="left" if place == 0 else "right")
    for row, style in itertools.zip_longest(sheet.rows, sheet.styles, fillvalue=""):
        table.add_row(*row, style=style or None)
    return table


def to_markdown(record: Record, *, has_grid: bool = True) -> str:
    """The sheets as one Markdown page."""
    blocks = [machine_line(record)]
    for sheet in sheets(record, has_grid=has_grid):
        rule = "| --- |" + " ---: |" * (len(sheet.columns) - 1)
        lines = [f"**{sheet.title}**", "", _line(sheet.columns), rule, *map(_line, sheet.rows)]
        blocks.append("\n".join(lines) + (f"\n\n{sheet.note}" if sheet.note else ""))
    return "\n\n".join(blocks) + "\n"


def machine_line(record: Record) -> str:
    """When and on what it was measured, and whether all of it was."""
    facts = record.provenance
    versions = facts.get("versions", {})
    named = " ".join(f"{name} {versions[name]}" for name in ("moe-theory", "jax", "numpy") if name in versions)
    parts = [
        record.time,
        facts.get("processor") or facts.get("instructions", ""),
        f"{facts['cores']} core(s)" if "cores" in facts else "",
        named,
        f"commit {facts['commit']}" if facts.get("commit") else "",
        "" if record.is_complete else "INTERRUPTED: not everything was measured",
    ]
    return "Measured " + ", ".join(filter(None, parts)) + "."


def slope(points: Sequence[tuple[float, float]]) -> float:
    """Log-log slope through the last `FITTED` points (size, cost)."""
    sizes, costs = np.log(np.asarray(points[-FITTED:], np.float64)).T
    return float(np.polyfit(sizes, costs, 1)[0])


def scaling_points(record: Record, system: str, axis: str) -> list[tuple[float, float]]:
    """Size and nanoseconds a replicate-round, of one core where there are both."""
    found = [each for each in record.measurements if each.part == f"scaling {axis}" and each.setting.system == system]
    return sorted((getattr(each.setting, SCALED[axis]), each.nanoseconds) for each in found if not each.skipped)


def systems_of(measurements: Iterable[Measurement]) -> list[str]:
    """The systems that were measured, in their order."""
    return list(dict.fromkeys(each.setting.system for each in measurements))


def peer_groups(record: Record) -> dict[tuple[str, str], list[Measurement]]:
    """What was timed in turn with peers, the engine first, by group and cores."""
    peers = (each for each in record.measurements if each.part == "peers")
    return _grouped(peers, lambda each: (each.group, each.cores))


def peer_name(each: Measurement, group: Sequence[Measurement]) -> str:
    """The contender, with its batch where that is not the group's."""
    is_other = each.setting.batch != group[0].setting.batch
    return f"{each.contender}, batch {each.setting.batch}" if is_other else each.contender


def over_engine(each: Measurement, group: Sequence[Measurement]) -> Ratio | None:
    """Cost over the engine's, the group's first, in the same passes; None for itself and what was not measured."""
    own = group[0]
    return None if own.skipped or own is each or each.skipped else ratio(each.costs, own.costs)


def _peers(record: Record) -> Iterator[Sheet]:
    for (title, cores), group in peer_groups(record).items():
        rows = []
        for each in group:
            over = over_engine(each, group)
            times = over and _shown_ratio(over)
            rows.append(
                (
                    peer_name(each, group),
                    _cost(each),
                    times or "",
                    "" if each.skipped else f"{each.compile_seconds:.1f}",
                )
            )
        yield Sheet(
            f"{title}, {CORES[cores]}: {_sizes(group[0])}",
            ("", "ns a replicate-round", "times moe_theory", "first call, s more"),
            rows,
        )


def _precisions(record: Record) -> Iterator[Sheet]:
    measured = [each for each in record.measurements if each.part == "precision" and not each.skipped]
    rows = []
    for (cores, system), group in _grouped(measured, lambda each: (each.cores, each.setting.system)).items():
        by_name = {each.setting.precision: each for each in group}
        if len(by_name) == 2:
            single, double = by_name["float32"], by_name["float64"]
            over = _shown_ratio(ratio(double.costs, single.costs))
            rows.append((system, CORES[cores], _cost(single), _cost(double), over))
    yield Sheet("precision", ("", "cores", "float32, ns", "float64, ns", "float64 / float32"), rows)


def _grid(record: Record) -> Iterator[Sheet]:
    measured = [each for each in record.measurements if each.part == "grid"]
    for (cores, system), group in _grouped(measured, lambda each: (each.cores, each.setting.system)).items():
        batches = sorted({each.setting.batch for each in group if not each.is_automatic})
        rows = []
        for (experts, features), row in _grouped(
            group, lambda each: (each.setting.num_experts, each.setting.num_features)
        ).items():
            cells = {each.setting.batch: _cost(each) for each in row}
            automatic = next((each for each in row if each.is_automatic), None)
            chosen = "" if automatic is None else f"{_cost(automatic)} ({automatic.setting.batch})"
            compiling = [each.compile_seconds for each in row if not each.skipped]
            slowest = f"{max(compiling):.1f}" if compiling else ""
            rows.append((f"{experts}, {features}", *(cells.get(batch, "") for batch in batches), chosen, slowest))
        yield Sheet(
            f"{system}, ns a replicate-round, {CORES[cores]}",
            ("M, d", *(f"batch {batch}" for batch in batches), "automatic (batch)", "compile, s"),
            rows,
        )


def _scaling(record: Record) -> Iterator[Sheet]:
    rows = []
    for system in systems_of(each for each in record.measurements if each.part.startswith("scaling")):
        for axis, expected in EXPECTED_SLOPES.items():
            points = scaling_points(record, system, axis)
            if len(points) >= FITTED:
                spans = f"{points[-FITTED][0]:g} to {points[-1][0]:g}"
                rows.append((system, axis, spans, f"{slope(points):.2f}", str(expected)))
    yield Sheet(
        "scaling of the cost of a replicate-round",
        ("", "with", "from", "log-log slope", "expected at most"),
        rows,
    )


def _compilations(record: Record) -> Iterator[Sheet]:
    rows = [
        (each.program, CORES[each.cores], "with JAX's persistent cache" if each.cache == KEPT else each.cache,
         f"{each.seconds:.1f}")
        for each in record.compilations
    ]  # fmt: skip
    yield Sheet(
        "compiling in a new process (tracing, lowering, compiling; imports not counted)",
        ("program", "cores", "", "s"),
        rows,
    )


def _accelerator(record: Record) -> Iterator[Sheet]:
    yield Sheet(
        "accelerator",
        ("", "batch", "device", "M replicate-rounds a second", "state read and written, share of a copy's bandwidth"),
        [_accelerator_row(each) for each in record.accelerator],
    )


def _accelerator_row(each: OnAccelerator) -> tuple[str, ...]:
    start = (each.setting.system, f"{each.setting.batch:,}")
    if each.skipped:
        return (*start, f"skipped: {each.skipped}", "", "")
    return (*start, each.device, f"{each.rate / 1e6:,.1f}", f"{each.bandwidth_share:.1%}")


def _grouped(measured: Iterable[Measurement], key: Callable[[Measurement], tuple]) -> dict[tuple, list[Measurement]]:
    groups: dict[tuple, list[Measurement]] = {}
    for each in measured:
        groups.setdefault(key(each), []).append(each)
    return groups


def _sizes(each: Measurement) -> str:
    setting = each.setting
    sizes = f"M = {setting.num_experts}, N = {setting.num_tasks}, d = {setting.num_features}, s = {setting.num_samples}"
    return f"{sizes}, {setting.precision}"


def _cost(each: Measurement) -> str:
    return f"skipped: {each.skipped}" if each.skipped else f"{each.nanoseconds:,.0f}"


def _shown_ratio(value: Ratio) -> str:
    return f"{_short(value.median)} ({_short(value.low)} to {_short(value.high)})"


def _short(value: float) -> str:
    """Two digits after the point below ten, else none."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2f}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"
