"""Claims and verdicts as tables in a terminal."""

import math
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from moe_theory.report.contents import summary as summary
from moe_theory.verify.claim import Claim
from moe_theory.verify.verdict import Status, Verdict

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


def _cells(verdict: Verdict) -> list[str]:
    observed = _number(verdict.observed)
    if math.isfinite(verdict.standard_error):
        observed += f" ± {verdict.standard_error:.2g}"
    margin = _number(verdict.margin, ".2g")
    return [verdict.claim, verdict.setting, _number(verdict.predicted), observed, margin, str(verdict.status)]


def _number(value: float, form: str = ".4g") -> str:
    return format(value, form) if math.isfinite(value) else "-"
