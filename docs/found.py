"""Findings for the README and the site's home: a table of statuses, and sentences that the statuses support."""

import itertools
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

from moe_theory.core.papers import Paper
from moe_theory.report import bibliography
from moe_theory.report.wording import BY_READING, statement_status
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.status import CAVEATED, PROVED, StatementStatus

COLUMNS = {
    "true": (StatementStatus.HOLDS,),
    "false as printed, true with a condition": (StatementStatus.AMENDED,),
    "false": (StatementStatus.FALSE,),
    "vacuous": (StatementStatus.VACUOUS,),
    "depends or undecided": (BY_READING, StatementStatus.OPEN, StatementStatus.NOT_JUDGED),
    "not testable": (StatementStatus.NOT_TESTABLE,),
}
FINDINGS = tomllib.loads((Path(__file__).with_name("templates") / "found.toml").read_text(encoding="utf-8"))


def counts(papers: Mapping[str, Paper]) -> str:
    """Return a table of how many statements of each cited paper have each status."""
    rows = [["paper", *COLUMNS], ["---", *["---:"] * len(COLUMNS)]]
    for name, paper in papers.items():
        if paper.citation:
            numbers = Counter(map(statement_status, judged_statements(name)))
            cells = [sum(numbers[status] for status in statuses) for statuses in COLUMNS.values()]
            rows.append([_linked(f"`{name}`", name), *map(str, cells)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)


def proved(papers: Iterable[str]) -> str:
    """Return a sentence on how many of the false and vacuous statements have a proof."""
    judgements = itertools.chain.from_iterable(map(judged_statements, papers))
    evidence = [judgement.finding.known for judgement in judgements if judgement.fails]
    number = evidence.count(PROVED) + evidence.count(CAVEATED)
    return f"For {number} of the {len(evidence)} false or vacuous statements, an exact proof shows it."


def sentences(papers: Mapping[str, Paper]) -> str:
    """Return a list with what was found in each cited paper."""
    cited = [name for name, paper in papers.items() if paper.citation]
    return "\n".join(" ".join([f"- **{_linked(name, name)}**:", *_sentences_of(name)]) for name in cited)


def _sentences_of(paper: str) -> list[str]:
    """Return the findings that the recorded statuses support."""
    statuses = {judgement.statement.id: statement_status(judgement) for judgement in judged_statements(paper)}
    findings = FINDINGS.get(paper, [])
    return [finding["sentence"] for finding in findings if finding["needs"].items() <= statuses.items()]


def _linked(words: str, paper: str) -> str:
    """Return words that lead to the paper itself."""
    entry = bibliography.entry_of(paper)
    return f"[{words}]({entry.fields['url']})" if entry and "url" in entry.fields else words
