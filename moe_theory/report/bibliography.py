"""BibTeX entries of papers and of this software, and the entries that a report needs."""

import dataclasses
import functools
import re
from collections.abc import Iterable

import moe_theory
from moe_theory.core.errors import DeclarationError, enclosed
from moe_theory.core.papers import declaration_of, find_paper, ordered_names, paper_names
from moe_theory.plot.document import Document
from moe_theory.verification.catalog import answers_for
from moe_theory.verification.verdict import Report

SCHEMA = "moe-theory/citation/2"  # schema of the document that `report --cite` prints

_SOFTWARE = r"""@misc{moe-theory,
  title = {{moe\_theory}: executable theory of {Mixture-of-Experts}},
  author = {{The moe\_theory developers}},
  note = {Version VERSION},
}"""
# A field, name = {value}. In the value braces are nested up to twice.
_FIELD = re.compile(r"(\w+)\s*=\s*\{((?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*)\}")


@dataclasses.dataclass(frozen=True)
class Entry:
    fields: dict[str, str]
    text: str

    @property
    def title(self) -> str:
        return self.fields["title"].replace("{", "").replace("}", "").replace(r"\_", "_")

    @property
    def authors(self) -> list[str]:
        """Names in the form "family, given", or the name of an organisation."""
        names = self.fields["author"].replace(r"\_", "_").split(" and ")
        return [name.strip("{}") for name in names]


def software(version: str) -> Entry:
    return _parse_entry(_SOFTWARE.replace("VERSION", re.sub(r"[^\w.+-]", "", version)))  # no braces from a report


@functools.cache
def entry_of(paper: str) -> Entry | None:
    """Return a paper's BibTeX entry, or None. Raises: DeclarationError if title or authors are missing."""
    if paper not in paper_names():
        return None
    declaration = declaration_of(paper)
    text = declaration.get("citation", "")
    if not declaration or text is None:  # computed by the paper's module
        text = find_paper(paper).citation
    if text:
        return _parse_entry(text.strip())
    return None


def _parse_entry(text: str) -> Entry:
    fields = {name.lower(): " ".join(value.split()) for name, value in _FIELD.findall(text)}
    if not text.startswith("@") or not {"title", "author"} <= fields.keys():
        raise DeclarationError(
            f"citation {text[:40]!r} must be one BibTeX entry, @article{{key, title = {{...}}, author = {{...}}, ...}}."
        )
    return Entry(fields, text)


def title_of(paper: str) -> str:
    work = entry_of(paper)
    if work is None:
        return f"{paper} is your own paper. Add its BibTeX yourself"
    names = [author.partition(",")[0] for author in work.authors]
    year = enclosed(" (", work.fields.get("year"), ")")
    return f"{', '.join(names)}{year}: {work.title}"


def document(report: Report) -> Document:
    papers = cited_papers({verdict.paper for verdict in report.verdicts})
    version = report.versions.get("moe-theory", moe_theory.__version__)
    works = [software(version), *filter(None, map(entry_of, papers))]  # papers without an entry are left out
    entries = "\n\n".join(work.text for work in works)
    return Document(
        lambda: {"papers": papers, "version": version, "bibtex": entries}, lambda _: f"```\n{entries}\n```", SCHEMA
    )


def cited_papers(papers: Iterable[str]) -> list[str]:
    """Return the papers by rank. If a paper tests statements of other papers, they take its place."""
    names: set[str] = set()
    for paper in papers:
        tested = answers_for(paper) if paper in paper_names() else ()
        names.update(tested or [paper])
    order = {name: place for place, name in enumerate(ordered_names())}
    return sorted(names, key=lambda name: order.get(name, len(order)))
