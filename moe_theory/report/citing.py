"""A run's citation as a table, a paragraph of LaTeX, BibTeX and JSON."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from rich.markup import escape
from rich.table import Table

from moe_theory.report.bibliography import Entry, entry_of, software
from moe_theory.report.citations import Bearing, Statement
from moe_theory.verify.verdict import Status

SCHEMA = "moe-theory/citation/1"
MOST_LABELS = 8  # that the paragraph names of a paper
FULL_WIDTH = 150  # columns of a terminal that takes ids with the paper's name
_KINDS = ("Theorem", "Proposition", "Corollary", "Lemma", "Assumption", "Fig", "Table", "Eq")  # the weightiest first
_LABEL = re.compile(
    r"(Theorem|Proposition|Corollary|Lemma|Assumption|Fig|Table|Eq)s?\.? [\dIVX().]*[\dIVX)]"
    r"(?: (?:and|to) [\d()]+)?"
)


def tables(bearing: Bearing, width: int) -> list[Table]:
    """The statements of each paper: source, claim and verdicts; ids lose the paper's name in a narrow terminal."""
    return [_table(title_of(paper), found, width) for paper, found in bearing.papers.items()]


def _table(title: str, found: Sequence[Statement], width: int) -> Table:
    is_judged = any(statement.verdicts for statement in found)
    begins = {statement.claim.partition(".")[0] for statement in found}
    prefix = f"{begins.pop()}." if len(begins) == 1 and width < FULL_WIDTH else ""
    table = Table(title=escape(title), title_justify="left", header_style="bold", pad_edge=False)
    claim = f"claim ({prefix}*)" if prefix else "claim"
    for name in ("source", claim, "verdicts" if is_judged else "statement"):
        table.add_column(name, overflow="fold")
    for statement in found:
        says = "\n".join(f"{status} {setting}" for status, setting in statement.verdicts)
        id = statement.claim.removeprefix(prefix)
        table.add_row(*map(escape, (statement.where, id, says if is_judged else statement.statement)))
    return table


def title_of(paper: str) -> str:
    """The paper's authors, title and year, as far as they are known."""
    entry = entry_of(paper)
    if entry is None:
        return f"{paper}: a paper of your own; its BibTeX is yours to add"
    names = [author.partition(",")[0] for author in entry.authors]
    year = f" ({entry.fields['year']})" if "year" in entry.fields else ""
    return f"{', '.join(names)}{year}: {entry.title}"


def latex(bearing: Bearing) -> str:
    """A paragraph to paste: what ran, and which statements it bears on."""
    sentences = [rf"We used moe\_theory~\cite{{{software().key}}}, version~{bearing.version}."]
    for paper, found in bearing.papers.items():
        entry = entry_of(paper)
        cited = rf"\cite{{{entry.key}}}" if entry else rf"\emph{{{_escaped(paper)}}}"
        own = [statement for statement in found if _is_of_the_paper(statement)]
        others = [statement for statement in found if not _is_of_the_paper(statement)]
        begin = "The runs bear on" if any(statement.verdicts for statement in found) else "It concerns"
        told = []
        if own or not others:
            told.append(f"{_labels(own)} of~{cited}{_counted(own, bearing)}")
        if others:
            what = "one statement" if len(others) == 1 else f"{len(others)} statements"
            told.append(f"{what} beside those of~{cited}{_counted(others, bearing)}")
        sentences.append(f"{begin} {' and '.join(told)}.")
    return "% LaTeX\n" + "\n".join(sentences)


def _is_of_the_paper(statement: Statement) -> bool:
    """Whether it is the paper that says so, and not what replaces a statement, or a claim of the user's own."""
    return _LABEL.search(statement.where) is not None and not statement.where.startswith(("replaces", "beside"))


def _counted(found: Sequence[Statement], bearing: Bearing) -> str:
    counts = Counter(status for statement in found for status, _ in statement.verdicts)
    said = ", ".join(f"{counts[status]} {status.lower()}" for status in Status if counts[status])
    return f" ({said})" if said and not bearing.is_map else ""


def _labels(found: Sequence[Statement]) -> str:
    """The numbers of the statements, as far as they have some and there are not too many."""
    labels = [label for statement in found if (label := _LABEL.search(statement.where))]
    labels.sort(key=lambda label: _KINDS.index(label[1]))
    names = list(dict.fromkeys(label[0] for label in labels)) or ["statements"]
    if len(names) > MOST_LABELS:
        names = [*names[:MOST_LABELS], f"{len(names) - MOST_LABELS} other statements"]
    return _escaped(", ".join(names[:-1]) + (" and " if len(names) > 1 else "") + names[-1])


def _escaped(text: str) -> str:
    return "".join(f"\\{letter}" if letter in "#$%&_{}" else letter for letter in text)


def bibtex(bearing: Bearing) -> str:
    """The entries of the software, in the version that ran, and of the papers."""
    return "\n\n".join(entry.text for entry in _cited(bearing))


def _cited(bearing: Bearing) -> list[Entry]:
    papers = (entry_of(paper) for paper in bearing.papers)
    return [software().of_version(bearing.version), *(entry for entry in papers if entry is not None)]


def to_json(bearing: Bearing) -> dict[str, Any]:
    """All of it as a dictionary for JSON."""
    papers = [
        {
            "paper": paper,
            "key": entry.key if (entry := entry_of(paper)) else None,
            "title": title_of(paper),
            "statements": [
                {
                    "claim": statement.claim,
                    "where": statement.where,
                    "statement": statement.statement,
                    "verdicts": [{"status": status, "setting": setting} for status, setting in statement.verdicts],
                }
                for statement in found
            ],
        }
        for paper, found in bearing.papers.items()
    ]
    return {
        "schema": SCHEMA,
        "run": bearing.run,
        "note": bearing.note,
        "version": bearing.version,
        "papers": papers,
        "latex": latex(bearing),
        "bibtex": bibtex(bearing),
    }
