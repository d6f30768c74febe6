"""Content of the site's generated pages and parts of pages, for the templates in `docs/templates`."""

import contextlib
import functools
import importlib
import inspect
import io
import json
import operator
import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from typing import Any
from unittest import mock

import click
import found
import gallery
import jinja2
from markupsafe import Markup, escape
from public import constant, listed, public_names

from moe_theory import cli
from moe_theory.cli import new
from moe_theory.cli.output import EXITS
from moe_theory.core.papers import all_papers, find_paper
from moe_theory.deep import report as deep
from moe_theory.generalization import report as bounds
from moe_theory.plot import symbols
from moe_theory.report import bibliography, rendering, sweeps, wording
from moe_theory.report import pages as reports
from moe_theory.report.cards import LABELS, label
from moe_theory.verification import challenged, explore, recorded, registry
from moe_theory.verification.catalog import answered, statements
from moe_theory.verification.claim import Claim
from moe_theory.verification.status import Judged, StatementStatus, judged
from moe_theory.verification.verdict import Role, Status, Verdict

SCHEMAS = {  # of the documents that say their own, by command and by options that print another document
    **dict.fromkeys(("verify", "report"), reports.SCHEMA),
    **dict.fromkeys(("sweep", "sweep show"), sweeps.SCHEMA),
    "challenge": challenged.SCHEMA,
    "explore": explore.SCHEMA,
    "report --cite": bibliography.SCHEMA,
    "deep": deep.SCHEMA,
    "deep --data DIR --list": deep.DATA_SCHEMA,
    "bound": bounds.SCHEMA,
}
_MARK = re.compile(r"<!-- generated: ([a-z-]+) -->")
_TITLED = re.compile(r'(?m)^```(\w+) title="(.+)"$')


def pages() -> Iterator[tuple[str, str]]:
    """Paths below `docs/pages` and texts of the pages that are generated whole."""
    yield "papers/index.md", render("papers")
    yield from ((f"papers/{paper}.md", paper_page(paper)) for paper in all_papers())
    yield "api/index.rst", render("api_index", names=[name for name, _ in listed()])
    yield from ((f"api/{name}.rst", render("api", name=name, modules=modules)) for name, modules in listed())


def with_fragments(markdown: str) -> str:
    """A page with the parts that its marks name, and with captions of code as Sphinx writes them."""
    markdown = _MARK.sub(lambda mark: render(mark[1].replace("-", "_")), markdown)
    return _TITLED.sub(r"```{code-block} \1\n:caption: \2\n", markdown)


def has_fragments(markdown: str) -> bool:
    """Whether a page has such marks."""
    return _MARK.search(markdown) is not None


def paper_page(paper: str) -> str:
    """A paper's statements in its order, each with its card and its claims."""
    left = [claim.id for claim in every_claim().values() if claim.paper == paper]
    cards = []
    for known in (judged(each, verdicts()) for each in answered(paper)):
        statement, ids = known.statement, list(known.statement.roles)
        is_own = statement.paper == paper
        new_ids, left = [id for id in ids if id in left], [id for id in left if id not in ids]
        cards.append(
            {
                "known": known,
                "anchor": statement.id if is_own else f"{statement.paper}-{statement.id}",
                "title": statement.where if is_own else f"{statement.paper}, {statement.where}",
                "status": wording.statement_status(known),
                "claims": new_ids,
                "others": [id for id in ids if id not in new_ids],
            }
        )
    record, of = records().get(paper), find_paper(paper)
    about, _, source = inspect.cleandoc(importlib.import_module(of.package).__doc__ or "").partition("Source: ")
    shown = record.verdicts if record else []
    readings = record.readings if record else {name: reading.summary for name, reading in of.readings.items()}
    counts = {name: Counter(each["status"] for each in shown if each["reading"] == name) for name in readings}
    entry = bibliography.entry_of(paper)
    url = entry.fields.get("url", "") if entry else ""
    figures = [entry for entry in gallery.entries() if entry.paper == paper]
    return render("paper", paper=of, about=about, source=source, url=url, record=record, readings=readings,
                  counts=counts, cards=cards, left=left, figures=figures)  # fmt: skip


@functools.cache
def every_claim() -> dict[str, Claim]:
    """The claims by id."""
    return registry.all_claims()


@functools.cache
def predecessors() -> dict[str, list[str]]:
    """The claims that a claim replaces, by its id."""
    known: dict[str, list[str]] = {}
    for claim in every_claim().values():
        if claim.replaced_by:
            known.setdefault(claim.replaced_by, []).append(claim.id)
    return known


@functools.cache
def verdicts() -> list[Any]:
    """All that are recorded."""
    return recorded.recorded_verdicts()


@functools.cache
def records() -> dict[str, recorded.Recorded]:
    """The recorded runs by paper."""
    return recorded.read()


def verdicts_of(claim: str) -> list[Any]:
    """Those on one claim."""
    return [verdict for verdict in verdicts() if verdict.claim == claim]


@functools.cache
def roles() -> dict[str, Role]:
    """Role of each claim for the first statement that it tests."""
    of = [each.roles for paper in all_papers() for each in statements(paper)]
    return dict(pair for each in reversed(of) for pair in each.items())


@functools.cache
def on_data() -> dict[str, dict[str, dict[str, Verdict]]]:
    """Verdicts on each claim that was judged on several data, under the first reading, by statement, claim, data."""
    others, judged = recorded.on_other_data(), {}
    for statement in (each for paper in all_papers() for each in statements(paper)):
        for id in statement.roles:
            own: dict[str, Verdict] = {}
            for each in (*verdicts_of(id), *others):
                if each.claim == id:
                    own.setdefault(each.data, each)
            if len(own) > 1:
                judged.setdefault(statement.where, {})[id] = own
    return judged


def data_titles() -> list[str]:
    """Of the data that claims were judged on."""
    return list(dict.fromkeys(data for own in on_data().values() for each in own.values() for data in each))


def help_text(name: str) -> str:
    """Output of `moe-theory NAME --help`, in any terminal."""
    with mock.patch.dict(os.environ, {"COLUMNS": "80"}), contextlib.redirect_stdout(io.StringIO()) as printed:
        cli.main([*name.split(), "--help"])
    return printed.getvalue().strip("\n")


def documents() -> list[tuple[str, str]]:
    """The commands that take `--json`, and what they print then."""
    options = ((name, option) for name in cli.commands() for option in cli.command(name).params)
    return [
        (name, re.sub(r"(--[a-z-]+)", r"`\1`", (option.help or "").removeprefix("Print JSON: ")))
        for name, option in options
        if isinstance(option, click.Option) and "--json" in option.opts
    ]


def schemas(command: str) -> list[tuple[str, str]]:
    """The schemas of what a command prints, each after the options that ask for it."""
    names = [name for name in SCHEMAS if name == command or name.startswith(f"{command} --")]
    return [(name.removeprefix(command).strip(), SCHEMAS[name]) for name in names]


def new_paper() -> str:
    """The file of a paper of one's own, as `moe-theory new paper queues` writes it."""
    return new.template("queues")["queues/__init__.py"]


def benchmark(name: str) -> str:
    """Measurements, as `make bench` wrote them."""
    return (gallery.FIGURES / "bench" / f"{name}.md").read_text(encoding="utf-8")


def decided_of(paper: str) -> list[tuple[Judged, Verdict | None]]:
    """A paper's statements, each with the verdict that decides it."""
    return [
        (known, wording.decisive(known, verdicts())) for known in (judged(each, verdicts()) for each in answered(paper))
    ]


def breakable(name: str) -> Markup:
    """A dotted name that a line may end in behind its dots and hyphens."""
    return Markup(re.sub(r"([.-])", r"\1<wbr>", str(escape(name))))


def paragraphs(text: str) -> Markup:
    """Paragraphs, and words between backquotes as code."""
    return Markup("".join(f"<p>{symbols.marked(part)}</p>" for part in text.split("\n\n") if part))


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_>\[\]{}#|])", r"\\\1", text).replace("<", "&lt;")


def card(known: Judged) -> Markup:
    """A statement as reports show it."""
    return rendering.parts().statement_card(known, verdicts())


def statement_style() -> str:
    """The style of that card and of statuses, dark where the site is."""
    style = (gallery.ROOT / "moe_theory" / "report" / "templates" / "statement.css").read_text(encoding="utf-8")
    dark = re.compile(r"@media screen and \(prefers-color-scheme: dark\) \{\s*:root (\{.*?\})\s*\}", re.DOTALL)
    return dark.sub(r'[data-theme="dark"] \1', style)


def render(block: str, **values: Any) -> str:
    """Return a block of `docs/templates/pages.md`, with everything here at hand."""
    template = templates().get_template("pages.md")
    return "".join(template.blocks[block](template.new_context(values)))


@functools.cache
def templates() -> jinja2.Environment:
    """Those of `docs/templates`; what they print is escaped in HTML alone."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(gallery.ROOT / "docs" / "templates"),
        autoescape=jinja2.select_autoescape(["html"]),
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(globals())
    environment.tests["isclass"] = inspect.isclass
    environment.filters["runs"] = lambda entries, key: groupby(entries, operator.attrgetter(key))
    return environment
