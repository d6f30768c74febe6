"""Citations of a report: BibTeX of this software and of the papers whose statements it judges."""

from collections.abc import Iterable, Sequence

import moe_theory
from moe_theory.core.papers import ordered_names, paper_names
from moe_theory.plot.document import Document
from moe_theory.report.bibliography import entry_of, software
from moe_theory.verification.catalog import answers_for, catalog_of, statements
from moe_theory.verification.verdict import Report

SCHEMA = "moe-theory/citation/2"


def document(report: Report) -> Document:
    """The BibTeX entries that a report cites."""
    papers = cited_papers((verdict.paper, verdict.claim) for verdict in report.verdicts)
    version = report.versions.get("moe-theory", moe_theory.__version__)
    entries = bibtex(papers, version)
    return Document(
        lambda: {"papers": papers, "version": version, "bibtex": entries}, lambda _: f"```\n{entries}\n```", SCHEMA
    )


def bibtex(papers: Sequence[str], version: str) -> str:
    """BibTeX entries of this software, at the version that ran, and of papers. Those without an entry are left out."""
    entries = [software(version), *filter(None, map(entry_of, papers))]
    return "\n\n".join(work.text for work in entries)


def cited_papers(judged: Iterable[tuple[str, str]]) -> list[str]:
    """The papers that claims are about, by rank. `judged` has the paper and the id of each claim."""
    papers: set[str] = set()
    for paper, claim in dict.fromkeys(judged):
        papers.update(papers_of(paper, claim))
    order = ordered_names()
    return sorted(papers, key=lambda paper: order.index(paper) if paper in order else len(order))


def papers_of(paper: str, claim: str) -> Sequence[str]:
    """The papers that a claim is about: its own, or those that its own answers for and whose statements name it."""
    if paper not in paper_names() or not answers_for(paper) or claim not in catalog_of(paper).claims:
        return [paper]
    return [name for name in answers_for(paper) if any(claim in statement.roles for statement in statements(name))]
