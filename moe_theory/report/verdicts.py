"""Verdicts as a table in the terminal, as Markdown and as JSON: the same numbers from the same objects."""

import json
import math
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.table import Table
from rich.text import Text

from moe_theory.report.output import write_text
from moe_theory.verify.claim import Claim
from moe_theory.verify.verdict import Status, Verdict

SCHEMA = "moe-theory/verdicts/1"
_STYLES = {
    Status.SUPPORTED: "green",
    Status.REFUTED: "bold red",
    Status.INCONCLUSIVE: "yellow",
    Status.VACUOUS: "cyan",
    Status.INAPPLICABLE: "dim",
    Status.ERROR: "bold white on red",
}
_FRAME_LINES = 4  # of a table: its edges and its header
_FULL_WIDTH = 150  # columns of a terminal that takes the whole table
_COLUMNS = ("claim", "reading", "predicted", "observed ± s.e.", "margin", "verdict", "at")


def live_table(verdicts: Sequence[Verdict], width: int, max_lines: int | None = None) -> Table:
    """The verdicts so far, as a table that grows; only the newest where there are too many for `max_lines` lines.

    In a terminal too narrow for all of it, ids lose the paper's name and the last column goes.
    """
    if max_lines is not None:
        verdicts = verdicts[-max(max_lines - _FRAME_LINES, 1) :]
    is_wide = width >= _FULL_WIDTH
    papers = {verdict.paper for verdict in verdicts}
    prefix = "" if is_wide or len(papers) != 1 else f"{papers.pop()}."
    table = Table(header_style="bold", pad_edge=False)
    for name in _COLUMNS if is_wide else _COLUMNS[:-1]:
        is_number = name in {"predicted", "observed ± s.e.", "margin"}
        label = f"{name} ({prefix}*)" if name == "claim" and prefix else name
        table.add_column(label, justify="right" if is_number else "left", overflow="fold")
    for verdict in verdicts:
        claim, *numbers = _cells(verdict)[:5]
        row = [claim.removeprefix(prefix), *numbers, Text(verdict.status, _STYLES[verdict.status]), verdict.at]
        table.add_row(*row[: len(table.columns)])
    return table


def claims_table(claims: Iterable[Claim]) -> Table:
    """What can be verified."""
    table = Table(header_style="bold", pad_edge=False)
    for name in ("claim", "source", "kind", "statement"):
        table.add_column(name, overflow="fold")
    for claim in claims:
        table.add_row(claim.id, claim.where, claim.kind, claim.statement)
    return table


def summary(verdicts: Sequence[Verdict]) -> str:
    """How many verdicts of each status, in one line."""
    counts = Counter(verdict.status for verdict in verdicts)
    return ", ".join(f"{counts[status]} {status}" for status in Status if counts[status])


def to_json(verdicts: Sequence[Verdict], command: str) -> str:
    """The verdicts with all their numbers, as a JSON document."""
    document = {
        "schema": SCHEMA,
        "command": command,
        "summary": Counter(verdict.status for verdict in verdicts),
        "verdicts": [verdict.to_json() for verdict in verdicts],
    }
    return json.dumps(document, indent=2, allow_nan=False) + "\n"


def to_markdown(verdicts: Sequence[Verdict], command: str, panels: str | None = None) -> str:
    """The verdicts as a Markdown page: summary, table, then each statement with what decided it."""
    lines = [
        "# Verdicts",
        "",
        f"{summary(verdicts)}. Made by `{command}`.",
        "",
        "Every replicate draws a pool of tasks: a verdict is of the mean over pools, and single pools may differ. An "
        "interval, and a standard error, is of observed - predicted, simultaneous over a claim's components. The "
        "probability that any verdict on this page is false is split evenly over them; it is asymptotic where the "
        "interval is. The smallest discrepancy is what would have been refuted with probability 0.9.",
        "",
    ]
    if panels is not None:
        lines += [f"![Each claim's prediction and observation]({panels})", ""]
    lines += [*_matrix(verdicts), ""]
    lines += ["| " + " | ".join(_COLUMNS) + " |", "|" + " --- |" * len(_COLUMNS)]
    lines += ["| " + " | ".join([*_cells(verdict), verdict.at]) + " |" for verdict in verdicts]
    for claim in dict.fromkeys(verdict.claim for verdict in verdicts):
        lines += ["", *_section([verdict for verdict in verdicts if verdict.claim == claim])]
    return "\n".join(lines) + "\n"


def write_verdicts(verdicts: Sequence[Verdict], folder: Path, command: str, panels: str | None = None) -> list[Path]:
    """Write `verdicts.json` and `verdicts.md` into `folder`; returns their paths."""
    paths = [folder / "verdicts.json", folder / "verdicts.md"]
    write_text(paths[0], to_json(verdicts, command))
    write_text(paths[1], to_markdown(verdicts, command, panels))
    return paths


def _matrix(verdicts: Sequence[Verdict]) -> list[str]:
    """Claims against readings."""
    readings = list(dict.fromkeys(verdict.reading for verdict in verdicts))
    statuses = {(verdict.claim, verdict.reading): verdict.status for verdict in verdicts}
    sources = {verdict.claim: verdict.where for verdict in verdicts}
    lines = ["| claim | source | " + " | ".join(readings) + " |", "|" + " --- |" * (2 + len(readings))]
    return lines + [
        f"| `{claim}` | {source} | " + " | ".join(statuses.get((claim, reading), "") for reading in readings) + " |"
        for claim, source in sources.items()
    ]


def _cells(verdict: Verdict) -> list[str]:
    observed = _number(verdict.observed)
    if math.isfinite(verdict.standard_error):
        observed += f" ± {verdict.standard_error:.2g}"
    margin = _number(verdict.margin, ".2g")
    return [verdict.claim, verdict.reading, _number(verdict.predicted), observed, margin, str(verdict.status)]


def _number(value: float, form: str = ".4g") -> str:
    return format(value, form) if math.isfinite(value) else "-"


def _section(verdicts: Sequence[Verdict]) -> list[str]:
    first = verdicts[0]
    lines = [f"## {first.claim}", "", f"{first.statement} ({first.where}; {first.kind.replace('_', ' ')})", ""]
    if first.replaced_by:
        lines += [f"The right statement: `{first.replaced_by}`.", ""]
    for verdict in verdicts:
        lines.append(
            f"- **{verdict.status}** under `{verdict.reading}`, {verdict.replicates} replicates: {verdict.reason}."
        )
        if math.isfinite(verdict.smallest_discrepancy) and verdict.kind != "identity":
            lines.append(
                f"  Smallest discrepancy: {verdict.smallest_discrepancy:.3g}. Interval: {verdict.interval_kind}, "
                f"error {verdict.error:.2g}."
            )
        lines.append(f"  Repeat: `{verdict.command}`")
    return lines
