"""Parts of the hand-written pages that are generated: what stands for `<!-- generated: NAME -->` in their Markdown."""

import re
from collections.abc import Callable

from gallery import FIGURES, ROOT

from builder import commands, papers
from moe_theory.core.papers import all_papers
from moe_theory.report.wording import MEANINGS, SYMBOLS
from moe_theory.verify import recorded
from moe_theory.verify.verdict import Status

OVERVIEW = FIGURES / "overview" / "overview.svg"
_MARK = re.compile(r"<!-- generated: ([a-z-]+) -->")


def with_fragments(markdown: str) -> str:
    """A page's Markdown with its generated parts. Raises: KeyError for a part that nothing generates."""
    return _MARK.sub(lambda found: FRAGMENTS[found.group(1)](), markdown)


def overview() -> str:
    """The picture that says it all, where it has been drawn."""
    if not OVERVIEW.is_file():
        return ""
    path = OVERVIEW.relative_to(ROOT)
    return f"[![Four papers: the printed statement, what holds, and Monte Carlo, with verdicts]({path})]({path})"


def counts() -> str:
    """How many verdicts of each status there are, by paper."""
    records = recorded.read()
    statuses = [status for status in Status if any(status in record.counts() for record in records.values())]
    rows = [["paper", *(f"{SYMBOLS[status]} {status}" for status in statuses), "recorded"]]
    rows.append(["---", *("---:" for _ in statuses), "---"])
    for paper in all_papers():
        record = records.get(paper)
        numbers = (str(record.counts().get(status, "") if record else "") for status in statuses)
        rows.append([_linked(paper), *numbers, record.finished[:10] if record else "not yet"])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _linked(paper: str) -> str:
    return f"[{paper}]({papers.FOLDER}/{paper}.md)"


def statuses() -> str:
    """What each status that occurs means."""
    occurring = {status for record in recorded.read().values() for status in record.counts()}
    return "\n".join(
        f"- **{SYMBOLS[status]} {status}**: {meaning}" for status, meaning in MEANINGS.items() if status in occurring
    )


def benchmarks() -> str:
    """The measured speed, and the whole grid."""
    return (FIGURES / "bench" / "summary.md").read_text(encoding="utf-8")


def benchmark_grid() -> str:
    """What the whole table has beside the summary."""
    whole = (FIGURES / "bench" / "table.md").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^(?=\*\*)", whole)
    return "".join(part for part in parts[1:] if part not in benchmarks())


FRAGMENTS: dict[str, Callable[[], str]] = {
    "overview": overview,
    "counts": counts,
    "statuses": statuses,
    "papers": lambda: ", ".join(map(_linked, all_papers())),
    "benchmarks": benchmarks,
    "benchmark-grid": benchmark_grid,
    "help": commands.help_texts,
    "exit-codes": commands.exit_codes,
    "documents": commands.documents,
}
