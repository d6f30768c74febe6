"""A page a paper: its statements in the paper's order, each with its card and its claims, and of each claim side by
side what it says, the formula, the code and the verdicts of the recorded run."""

import dataclasses
import functools
import importlib
import inspect
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import gallery
import jinja2
from markupsafe import Markup, escape

from builder import Page, api, plain, slot, sources
from moe_theory.core.papers import all_papers, find_paper
from moe_theory.report import bibliography, wording
from moe_theory.report.rendering import mathml, templates
from moe_theory.verify import recorded
from moe_theory.verify.claim import Claim
from moe_theory.verify.registry import all_claims
from moe_theory.verify.statement import answered as statements_of
from moe_theory.verify.statement import statements
from moe_theory.verify.status import Judged, judged
from moe_theory.verify.verdict import Status, Verdict

FOLDER = "papers"
UNLISTED = "Claims"  # of a paper that has no list of its statements


@dataclasses.dataclass(frozen=True)
class Answer:
    """One claim as its page shows it."""

    claim: Claim
    statement: Markup
    formula: Markup
    declaration: sources.Declaration | None  # None where no class in its module can be told to be its own
    calls: list[tuple[str, str]]  # public functions: name and address
    verdicts: list[Verdict] | None  # None where no run of the paper is recorded
    role: str
    replaces: list[str]

    @property
    def statuses(self) -> list[str]:
        return [str(verdict.status) for verdict in self.verdicts or ()]


def pages() -> Iterator[Page]:
    """The pages, in the papers' order."""
    yield from map(page, all_papers())


def page(paper: str) -> Page:
    """The page of one paper."""
    lines = ["---", "hide: [navigation, toc]", "---", "", f"# {paper}: {find_paper(paper).title}", "", slot("head"), ""]
    blocks: dict[str, str] = {}
    index = []
    left = [claim.id for claim in every_claim().values() if claim.paper == paper]
    for known in answered(paper):
        statement, ids = known.statement, list(known.statement.roles)
        anchor, title = statement.id, statement.where
        if statement.paper != paper:
            anchor, title = f"{statement.paper}-{anchor}", f"{statement.paper}, {title}"
        new = [id for id in ids if id in left]
        left = [id for id in left if id not in new]
        lines += [f"## {plain(title)} {{ #{anchor} }}", "", slot(anchor, statement.says), ""]
        card = templates().get_template("statement.html").render(known=known, shown=wording.decisive(known, verdicts()))
        others = [answer(id) for id in ids if id not in new]
        blocks[anchor] = _render("statement", card=Markup(card), others=others)
        lines += _folded(new, blocks)
        index.append((anchor, title, statement.says, wording.statement_status(known)))
    if left:
        lines += [f"## {UNLISTED} {{ #beside }}", "", *_cards(left, blocks)]
        index.append(("beside", UNLISTED, "", ""))
    blocks["head"] = _head(paper, index)
    return Page(f"{FOLDER}/{paper}.md", "\n".join(lines), blocks)


@functools.cache
def every_claim() -> dict[str, Claim]:
    """The claims by id."""
    return all_claims()


def page_of(claim: str) -> str:
    """The page, below the site's pages and without its suffix, that a claim stands on."""
    return f"{FOLDER}/{every_claim()[claim].paper}"


def address(claim: str) -> str:
    """The address of a claim, from a page one folder down."""
    return f"../{page_of(claim)}.html#{claim}"


def answered(paper: str) -> list[Judged]:
    """The statements that a page has, in the paper's order: its own, or those of others that its claims answer for."""
    return [judged(each, verdicts()) for each in statements_of(paper)]


@functools.cache
def verdicts() -> list[Verdict]:
    """All that are recorded."""
    return recorded.recorded_verdicts()


def _cards(ids: list[str], blocks: dict[str, str]) -> list[str]:
    """The Markdown of claims; what stands in its slots goes into `blocks`."""
    blocks |= {id: _render("claim", answer=answer(id)) for id in ids}
    slots = {id: slot(id, every_claim()[id].statement) for id in ids}
    return [line for id in ids for line in (f"### `{id}` {{ #{id} }}", "", slots[id], "")]


def _folded(ids: list[str], blocks: dict[str, str]) -> list[str]:
    """The claims of a statement, under a line that says what came out; an address of one opens them."""
    if not ids:
        return []
    found = Counter(status for id in ids for status in answer(id).statuses)
    verdicts = ", ".join(f"{found[str(status)]} {status}" for status in Status if found[str(status)])
    noun = "claim" if len(ids) == 1 else "claims"
    summary = f"{len(ids)} {noun}: {verdicts or 'no verdict is recorded'}"
    return [
        f'<details class="mt-claims" markdown="1"><summary>{summary}</summary>',
        "",
        *_cards(ids, blocks),
        "</details>",
        "",
    ]


def _head(paper: str, index: list[tuple[str, str, str, str]]) -> str:
    record = _records().get(paper)
    of = find_paper(paper)
    readings = record.readings if record else {name: reading.summary for name, reading in of.readings.items()}
    verdicts = record.verdicts if record else []
    counts = {name: Counter(each["status"] for each in verdicts if each["reading"] == name) for name in readings}
    package = importlib.import_module(of.package)
    about, _, source = inspect.cleandoc(package.__doc__ or "").partition("Source: ")
    return _render(
        "head",
        paper=paper,
        about=about,
        source=source,
        url=entry.fields.get("url", "") if (entry := bibliography.entry_of(paper)) else "",
        record=record,
        readings=readings,
        counts=counts,
        statuses=[status for status in Status if any(count[status] for count in counts.values())],
        index=index,
        figures=[entry for entry in gallery.entries() if entry.paper == paper],
    )


@functools.cache
def answer(id: str) -> Answer:
    claim = every_claim()[id]
    found = sources.declaration(claim, _is_computing)
    record = _records().get(claim.paper)
    return Answer(
        claim=claim,
        statement=_paragraphs(claim.statement),
        formula=mathml(claim.formula),
        declaration=found,
        calls=[(_name(value), _api_address(value)) for value in (found.calls if found else ())],
        verdicts=None if record is None else [verdict for verdict in verdicts() if verdict.claim == id],
        role=next((str(each.roles[id]) for name in all_papers() for each in statements(name) if id in each.roles), ""),
        replaces=[each.id for each in every_claim().values() if each.replaced_by == id],
    )


@functools.cache
def _records() -> dict[str, recorded.Recorded]:
    return recorded.read()


def _is_computing(value: Any) -> bool:
    """Whether an object is a function of a paper that the API reference describes."""
    is_function = inspect.isroutine(value) and id(value) in api.addresses()
    return is_function and not value.__module__.startswith(
        ("moe_theory.core", "moe_theory.verify", "moe_theory.sweep", "moe_theory.runs")
    )


def _name(value: Any) -> str:
    return api.addresses()[id(value)].partition("#")[2].removeprefix("moe_theory.")


def _api_address(value: Any) -> str:
    page, _, anchor = api.addresses()[id(value)].partition("#")
    return f"../{page}.html#{anchor}"


def _paragraphs(text: str) -> Markup:
    """Paragraphs, and words between backquotes as code."""
    parts = [re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(part))) for part in text.split("\n\n") if part]
    return Markup("".join(f"<p>{part}</p>" for part in parts))


def _breakable(name: str) -> Markup:
    """A dotted name that a line may end in behind its dots and hyphens."""
    return Markup(re.sub(r"([.-])", r"\1<wbr>", str(escape(name))))


def _render(template: str, **values: Any) -> str:
    return _templates().get_template(f"{template}.html").render(**values)


@functools.cache
def _templates() -> jinja2.Environment:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(gallery.ROOT / "docs" / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    names: Mapping[str, Any] = {
        "Status": Status,
        "address": address,
        "breakable": _breakable,
        "paragraphs": _paragraphs,
        "sentence": wording.sentence,
        "SYMBOLS": {str(status): symbol for status, symbol in wording.SYMBOLS.items()},
    }
    environment.globals.update(names)
    return environment
