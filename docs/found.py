"""Findings for the README and the site's home: a table of statuses, and a few sentences on each paper.

A sentence is printed only while the published results give its statements the statuses that it needs.
"""

from collections.abc import Mapping, Sequence

from moe_theory.core.papers import Paper, all_papers
from moe_theory.report import bibliography
from moe_theory.report.wording import BY_READING, statement_counts, statement_status
from moe_theory.verification.premises import footings
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
AMENDED, FALSE, VACUOUS = map(str, (StatementStatus.AMENDED, StatementStatus.FALSE, StatementStatus.VACUOUS))
_SENTENCES: dict[str, list[tuple[str, dict[str, str]]]] = {  # each with the statuses of statements that it needs
    "continual": [
        (
            "As the paper says, stopping the router early beats training it forever, except when signals are strong.",
            {"figure-2-endless": BY_READING},
        ),
        (
            "The formulas for forgetting are false. For a task's distance to itself, which is 0, they use the mean "
            "distance of two random tasks.",
            {"proposition-4-forgetting": FALSE, "theorem-1-forgetting": FALSE, "theorem-2-forgetting": FALSE},
        ),
        (
            "In the limit that the theorems study, the router does not learn to tell tasks apart.",
            {"equation-35": FALSE, "lemma-15-more-experts": FALSE, "proposition-3-more-experts": FALSE},
        ),
    ],
    "edge": [
        (
            "The bound of Theorem 1 also holds for random routing, and the error does not reach the floor that the "
            "text derives from it.",
            {"theorem-1": VACUOUS, "theorem-1-floor": FALSE},
        ),
        (
            "Whether the router learns within the paper's horizon depends on the size of the signals, which the paper "
            "leaves open.",
            {"theorem-1-gain": BY_READING},
        ),
    ],
    "generalization": [
        (
            "Theorem 1 is false for every constant. Two experts that are always active can fit any labels, but the "
            "bound counts the complexity of one.",
            {"theorem-1": FALSE, "equation-31": FALSE},
        ),
    ],
    "merging": [
        (
            "Theorem 1 is vacuous: its bound exceeds T, and no policy's regret can.",
            {"theorem-1": VACUOUS},
        ),
        (
            "On our small models with conflicting tasks, the algorithm (Tanbr) beats NUCB and fixed merges.",
            {"figure-4": AMENDED},
        ),
    ],
}


def own_papers() -> dict[str, Paper]:
    """Return the papers of this distribution, whatever others are installed."""
    return {name: paper for name, paper in all_papers().items() if paper.package.startswith("moe_theory.")}


def counts(papers: Mapping[str, Paper]) -> str:
    """Return a table of how many statements of each cited paper have each status."""
    lines = [row("paper", *COLUMNS), row("---", *["---:"] * len(COLUMNS))]
    for name, paper in papers.items():
        if paper.citation:
            number = statement_counts(judged_statements(name))
            cells = [sum(number.get(status, 0) for status in statuses) for statuses in COLUMNS.values()]
            lines.append(row(_linked(f"`{name}`", name), *map(str, cells)))
    return "\n".join(lines)


def proved(papers: Sequence[str]) -> str:
    """Return a sentence on how many of the false and vacuous statements have a proof."""
    failing = [
        footing.known.finding.known
        for paper in papers
        for footing in footings(judged_statements(paper))
        if footing.known.fails and footing.known.finding
    ]
    number = failing.count(PROVED) + failing.count(CAVEATED)
    return f"Of the {len(failing)} false or vacuous statements, {number} have a proof."


def sentences(papers: Mapping[str, Paper]) -> str:
    """Return a list with what was found in each cited paper."""
    return "\n".join(
        " ".join([f"- **{_linked(name, name)}**:", *_sentences_of(name)])
        for name in papers
        if bibliography.entry_of(name) is not None
    )


def _sentences_of(paper: str) -> list[str]:
    statuses = {known.statement.id: statement_status(known) for known in judged_statements(paper)}
    return [
        sentence
        for sentence, needs in _SENTENCES.get(paper, [])
        if all(statuses[id] == status for id, status in needs.items())
    ]


def _linked(words: str, paper: str) -> str:
    """Return words that lead to the paper itself."""
    entry = bibliography.entry_of(paper)
    return f"[{words}]({entry.fields['url']})" if entry and "url" in entry.fields else words


def row(*cells: str) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"
