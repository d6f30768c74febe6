"""Parts of the hand-written pages that are generated: what stands for `<!-- generated: NAME -->` in their Markdown."""

import re
from collections.abc import Callable

import found
from gallery import FIGURES, ROOT

from builder import commands, papers
from moe_theory.core.papers import all_papers
from moe_theory.report.wording import MEANINGS, STATEMENT_MEANINGS, SYMBOLS

OVERVIEW = FIGURES / "overview"
_MARK = re.compile(r"<!-- generated: ([a-z-]+) -->")


def with_fragments(markdown: str) -> str:
    """A page's Markdown with its generated parts. Raises: KeyError for a part that nothing generates."""
    return _MARK.sub(lambda found: FRAGMENTS[found.group(1)](), markdown)


def overview() -> str:
    """The picture that says it all, where it has been drawn, for a light and a dark page."""
    words = "A statement of each paper as printed, as measured, and what holds instead, with its status"
    paths = [(OVERVIEW / f"overview-wide{theme}.svg", mark) for theme, mark in (("", "light"), ("-dark", "dark"))]
    return "\n".join(f"![{words}]({path.relative_to(ROOT)}#only-{mark})" for path, mark in paths if path.is_file())


def _page(paper: str) -> str:
    return f"{papers.FOLDER}/{paper}.md"


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
    "counts": lambda: found.counts(_page),
    "found": found.sentences,
    "statuses": statuses,
    "papers": lambda: ", ".join(f"[{paper}]({_page(paper)})" for paper in all_papers()),
    "benchmarks": benchmarks,
    "benchmark-grid": benchmark_grid,
    "help": commands.help_texts,
    "exit-codes": commands.exit_codes,
    "documents": commands.documents,
}
