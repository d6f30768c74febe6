"""Content of the site's generated pages and parts of pages, for the templates in `docs/templates`."""

import importlib
import inspect
import itertools
import re
from collections import ChainMap
from collections.abc import Iterator
from typing import Any

import found
import gallery
import jinja2
from click.testing import CliRunner
from public import constant, listed, public_names

from moe_theory import cli
from moe_theory.cli import new
from moe_theory.cli.output import EXITS
from moe_theory.core.papers import all_papers, find_paper, paper_folder
from moe_theory.deep import report as deep
from moe_theory.generalization import report as bounds
from moe_theory.plot import symbols
from moe_theory.report import bibliography, rendering, sweeps, wording
from moe_theory.report import pages as reports
from moe_theory.report.cards import LABELS, label
from moe_theory.verification import challenged, explore, recorded, registry
from moe_theory.verification.catalog import own_or_tested_statements, statements
from moe_theory.verification.status import StatementStatus, judged
from moe_theory.verification.verdict import Status, Verdict

SCHEMAS = {  # of the documents that say their own, by command and by options that print another document
    "verify": reports.SCHEMA,
    "report": reports.SCHEMA,
    "report --cite": bibliography.SCHEMA,
    "sweep": sweeps.SCHEMA,
    "sweep show": sweeps.SCHEMA,
    "challenge": challenged.SCHEMA,
    "explore": explore.SCHEMA,
    "deep": deep.SCHEMA,
    "bound": bounds.SCHEMA,
}
CLAIMS = registry.all_claims()
RECORDS = recorded.read()
VERDICTS = recorded.recorded_verdicts()
STATEMENTS = statements()
ROLES = ChainMap(*(statement.roles for statement in STATEMENTS))  # of each claim for the first that it tests
_MARK = re.compile(r"<!-- generated: ([a-z-]+) -->")
_TITLED = re.compile(r'(?m)^```(\w+) title="(.+)"$')


def pages() -> Iterator[tuple[str, str]]:
    """Paths below `docs/pages` and texts of the pages that are generated whole."""
    yield "papers/index.md", render("papers")
    for paper in all_papers():
        yield f"papers/{paper}.md", paper_page(paper)
    yield "api/index.rst", render("api_index")
    for name, modules in listed().items():
        yield f"api/{name}.rst", render("api", name=name, modules=modules)


def with_fragments(markdown: str) -> str:
    """A page with the parts that its marks name, and with captions of code as Sphinx writes them."""
    markdown = _MARK.sub(lambda mark: render(mark[1].replace("-", "_")), markdown)
    return _TITLED.sub(r"```{code-block} \1\n:caption: \2\n", markdown)


def paper_page(name: str) -> str:
    """A paper's statements in its order, each with its card and its claims."""
    left = [claim.id for claim in CLAIMS.values() if claim.paper == name]
    cards = []
    for statement in own_or_tested_statements(name):
        judgement = judged(statement, VERDICTS)
        prefix = [statement.paper] if statement.paper != name else []
        claims = [id for id in statement.roles if id in left]
        left = [id for id in left if id not in claims]
        cards.append(
            {
                "known": judgement,
                "anchor": "-".join([*prefix, statement.id]),
                "title": ", ".join([*prefix, statement.where]),
                "status": wording.statement_status(judgement),
                "claims": claims,
                "others": [id for id in statement.roles if id not in claims],
            }
        )
    paper = find_paper(name)
    about, _, source = (inspect.getdoc(importlib.import_module(paper.package)) or "").partition("Source: ")
    return render("paper", paper=paper, about=about, source=source, cards=cards, left=left)


def on_data() -> dict[str, dict[str, Verdict]]:
    """Verdicts on each claim that was judged on several data, under the first reading, by claim and data."""
    verdicts: dict[str, dict[str, Verdict]] = {}
    paths = itertools.chain.from_iterable(paper_folder(name).glob("recorded-*.json") for name in all_papers())
    others = itertools.chain.from_iterable(recorded.record_at(path).whole() for path in sorted(paths))
    for verdict in (*VERDICTS, *others):
        verdicts.setdefault(verdict.claim, {}).setdefault(verdict.data, verdict)
    return {id: by_data for id, by_data in verdicts.items() if len(by_data) > 1}


def help_text(name: str) -> str:
    """Output of `moe-theory NAME --help`."""
    return CliRunner().invoke(cli.app, [*name.split(), "--help"], prog_name="moe-theory", terminal_width=78).output


def plain(text: str) -> str:
    """Text that Markdown leaves as it is."""
    return re.sub(r"([\\`*_>\[\]{}#|])", r"\\\1", text).replace("<", "&lt;")


def render(block: str, **values: Any) -> str:
    """Return a block of `docs/templates/pages.md`, with everything here at hand."""
    template = _TEMPLATES.get_template("pages.md")
    return "".join(template.blocks[block](template.new_context(values)))


_TEMPLATES = jinja2.Environment(
    loader=jinja2.FileSystemLoader(gallery.ROOT / "docs" / "templates"),
    autoescape=jinja2.select_autoescape(["html"]),
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=jinja2.StrictUndefined,
)
_TEMPLATES.globals.update(globals())
_TEMPLATES.tests.update(isclass=inspect.isclass, isroutine=inspect.isroutine)
