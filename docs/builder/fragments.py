"""Parts of the hand-written pages that are generated: what stands for `<!-- generated: NAME -->` in their Markdown."""

import re
from collections.abc import Callable

from gallery import FIGURES, ROOT

from builder import commands, papers
from moe_theory.core.papers import all_papers
from moe_theory.report.wording import BY_READING, MEANINGS, STATEMENT_MEANINGS, SYMBOLS, statement_counts
from moe_theory.verify import recorded
from moe_theory.verify.recorded import judged_statements
from moe_theory.verify.status import StatementStatus

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
    """How many statements of each paper have each status."""
    records = recorded.read()
    found = {paper: statement_counts(judged_statements(paper)) for paper in all_papers()}
    statuses = [status for status in (*StatementStatus, BY_READING) if any(status in each for each in found.values())]
    rows = [["paper", *statuses, "recorded"], ["---", *("---:" for _ in statuses), "---"]]
    for paper, own in found.items():
        date = records[paper].finished[:10] if paper in records else "not yet"
        rows.append([_linked(paper), *(str(own.get(status, "")) for status in statuses), date])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _linked(paper: str) -> str:
    return f"[{paper}]({papers.FOLDER}/{paper}.md)"


def statuses() -> str:
    """What each status of a statement means, then that of a verdict."""
    of_statements = [f"- **{status}**: {meaning}" for status, meaning in STATEMENT_MEANINGS.items()]
    of_verdicts = [f"- **{SYMBOLS[status]} {status}**: {meaning}" for status, meaning in MEANINGS.items()]
    return "\n".join([*of_statements, "", "Of a verdict on one claim:", "", *of_verdicts])


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
