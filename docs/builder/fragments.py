"""Parts of the hand-written pages that are generated: what stands for `<!-- generated: NAME -->` in their Markdown."""

import re
from collections import Counter
from collections.abc import Callable

import found
from gallery import FIGURES, ROOT

from builder import commands, papers, plain
from moe_theory.cli import new
from moe_theory.core.papers import all_papers
from moe_theory.report.wording import MEANINGS, STATEMENT_MEANINGS, SYMBOLS, statement_status
from moe_theory.verify import registry
from moe_theory.verify.status import Judged, StatementStatus
from moe_theory.verify.verdict import Role, Status

OVERVIEW = FIGURES / "overview"
NOT_AS_PRINTED = {StatementStatus.FALSE, StatementStatus.AMENDED, StatementStatus.VACUOUS}
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


def instead() -> str:
    """By paper, every statement that is not true as it stands, with what holds instead and the verdicts on that."""
    parts = []
    for paper in all_papers():
        known = [each for each in papers.answered(paper) if each.statement.paper == paper]
        rows = [_instead(each) for each in known if {f.status for f in each.by_reading.values()} & NOT_AS_PRINTED]
        if rows:
            held = sum(not cells[-1].startswith("none") for cells in rows)
            parts += [f"## {paper}", "", f"{held} of {len(rows)} have something beside them that is tested.", ""]
            parts += [found.row("statement", "status", "what holds instead", "verdicts on it"), found.row(*["---"] * 4)]
            parts += [found.row(*cells) for cells in rows] + [""]
    return "\n".join(parts)


def _instead(known: Judged) -> tuple[str, str, str, str]:
    """A row of the table: verdicts are counted over claims and readings.

    Counted are corrected claims, those that other claims name in their place, and, of a statement that holds amended,
    the charitable ones, which have the amendment.
    """
    statement = known.statement
    is_amended = {each.status for each in known.by_reading.values()} == {StatementStatus.AMENDED}
    wanted = {Role.CORRECTED, Role.CHARITABLE} if is_amended else {Role.CORRECTED}
    beside = {id for id, role in statement.roles.items() if role in wanted}
    beside |= {each.replaced_by for each in registry.claims(statement.name) if each.replaced_by}
    counted = Counter(str(each.status) for each in papers.verdicts() if each.claim in beside for _ in each.settings)
    told = ", ".join(f"{counted[str(status)]} {status}" for status in Status if counted[str(status)])
    words = " ".join(statement.corrected.partition("$$")[0].split()) or "—"
    link = f"[{plain(statement.where)}]({_page(statement.paper)}#{statement.id})"
    return link, statement_status(known), plain(words), told or "none"


def benchmarks() -> str:
    """The measured speed, and the whole grid."""
    return (FIGURES / "bench" / "summary.md").read_text(encoding="utf-8")


def benchmark_grid() -> str:
    """What the whole table has beside the summary."""
    whole = (FIGURES / "bench" / "table.md").read_text(encoding="utf-8")
    parts = re.split(r"(?m)^(?=\*\*)", whole)
    return "".join(part for part in parts[1:] if part not in benchmarks())


def new_paper() -> str:
    """The file of a paper of one's own, as `moe-theory new paper queues` writes it."""
    return f'```python title="queues.py"\n{new.template("queues")["queues.py"]}```'


FRAGMENTS: dict[str, Callable[[], str]] = {
    "overview": overview,
    "counts": lambda: found.counts(_page),
    "found": found.sentences,
    "statuses": statuses,
    "instead": instead,
    "papers": lambda: ", ".join(f"[{paper}]({_page(paper)})" for paper in all_papers()),
    "new-paper": new_paper,
    "benchmarks": benchmarks,
    "benchmark-grid": benchmark_grid,
    "help": commands.help_texts,
    "exit-codes": commands.exit_codes,
    "documents": commands.documents,
}
