"""Claims and verdicts in a terminal: tables, and what a verification says at its end."""

import math
from collections.abc import Iterable, Sequence

from rich.table import Table
from rich.text import Text

from moe_theory.report.wording import cut_short, error_words, summary
from moe_theory.verify.claim import Claim
from moe_theory.verify.verdict import Report, Status, Verdict

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
    """The verdicts so far, as a table that grows; only the newest where there are too many for `max_lines` lines. In a
    terminal too narrow for all of it, ids lose the paper's name and the last column goes.
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
        observed, claim = _number(verdict.observed), verdict.claim
        if math.isfinite(verdict.standard_error):
            observed += f" ± {verdict.standard_error:.2g}"
        numbers = verdict.setting, _number(verdict.predicted), observed, _number(verdict.margin, ".2g")
        row = [claim.removeprefix(prefix), *numbers, Text(verdict.status, _STYLES[verdict.status]), verdict.at]
        table.add_row(*row[: len(table.columns)])
    return table


def claims_table(claims: Iterable[Claim]) -> Table:
    table = Table(header_style="bold", pad_edge=False)
    for name in ("claim", "source", "kind", "statement"):
        table.add_column(name, overflow="fold")
    for claim in claims:
        table.add_row(claim.id, claim.where, claim.kind, claim.statement)
    return table


def _number(value: float, form: str = ".4g") -> str:
    return format(value, form) if math.isfinite(value) else "-"


MOST_NAMED = 3  # experiments named for the time they took


def closing_lines(report: Report) -> list[str]:
    verdicts = report.verdicts
    refuted = [verdict for verdict in verdicts if verdict.status is Status.REFUTED]
    failed = [verdict for verdict in verdicts if verdict.status is Status.ERROR]
    asymptotic = sum(bool(verdict.interval_kind) and not verdict.is_exact for verdict in verdicts)
    return [
        summary(verdicts),
        *(["see them fail:"] if refuted else []),
        *(f"  {verdict.replicates} replicates: {verdict.command}" for verdict in refuted),
        *(f"ERROR in {verdict.claim} under {verdict.setting}: {verdict.reason}" for verdict in failed),
        error_words(report) + (f" {asymptotic} of them have asymptotic intervals." if len(verdicts) != 1 else ""),
        *_time_budget(report),
    ]


def _time_budget(report: Report) -> list[str]:
    if report.budget is None:
        return []
    stopped = cut_short(report)
    slowest = sorted(report.seconds.items(), key=lambda item: -item[1])[:MOST_NAMED]
    most = ", ".join(f"{name} ({seconds:.0f} s)" for name, seconds in slowest)
    lines = [f"budget: {report.budget:.0f} s, of which {sum(report.seconds.values()):.0f} s were used; most by {most}"]
    if stopped:
        lines.append(f"it ran out with {len(stopped)} undecided; the same command resumes them:")
    lines += [f"  {verdict.claim} under {verdict.setting}, {verdict.replicates} replicates" for verdict in stopped]
    return lines
