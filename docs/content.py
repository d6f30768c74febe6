"""Content of the site's generated pages and parts of pages, for the templates in `docs/templates`."""

import contextlib
import functools
import importlib
import inspect
import io
import json
import math
import operator
import os
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import click
import found
import gallery
import jinja2
import pandas as pd
from markupsafe import Markup, escape
from public import constant, listed, public_names, tree
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from moe_theory import cli
from moe_theory.cli import new
from moe_theory.cli.output import EXITS
from moe_theory.core.papers import all_papers, find_paper
from moe_theory.deep import report as deep
from moe_theory.generalization import report as bounds
from moe_theory.plot import symbols
from moe_theory.report import bibliography, rendering, sweeps, wording
from moe_theory.report import pages as reports
from moe_theory.verification import challenged, explore, recorded, registry
from moe_theory.verification.catalog import answered, statements
from moe_theory.verification.claim import Claim
from moe_theory.verification.premises import Footing, footings
from moe_theory.verification.status import Judged, StatementStatus, judged
from moe_theory.verification.verdict import Role, Status, Verdict

NOT_AS_PRINTED = {StatementStatus.FALSE, StatementStatus.AMENDED, StatementStatus.VACUOUS}
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


def replaced(paper: str) -> list[tuple[Judged, str, str, Counter[str], Verdict | None]]:
    """The statements of a paper that are not true as they stand: what holds instead, hypotheses beside those of most
    statements, the verdicts on that, and of those that support it the one nearest to failing.

    Counted, over claims and readings, are corrected claims, those that other claims name in their place, and, of a
    statement that holds amended, the charitable ones, which have the amendment.
    """
    rows, own = [], [each for each in answered(paper) if each.paper == paper]
    shared = Counter(text for each in own for text in each.hypotheses)
    for known in (judged(each, verdicts()) for each in own):
        of = {each.status for each in known.by_reading.values()}
        if of & NOT_AS_PRINTED:
            wanted = {Role.CORRECTED, Role.CHARITABLE} if of == {StatementStatus.AMENDED} else {Role.CORRECTED}
            beside = {id for id, role in known.statement.roles.items() if role in wanted}
            beside |= {each.replaced_by for each in registry.claims(known.statement.name) if each.replaced_by}
            found = [each for each in verdicts() if each.claim in beside]
            counted = Counter(str(each.status) for each in found for _ in each.settings)
            nearest = max((each for each in found if each.status is Status.SUPPORTED), key=closeness, default=None)
            words = " ".join(known.statement.corrected.partition("$$")[0].split())
            supposed = "; ".join(each for each in known.statement.hypotheses if 2 * shared[each] < len(own))
            rows.append((known, words, supposed, counted, nearest))
    return rows


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


def closeness(verdict: Verdict) -> float:
    """How far its interval reaches beyond what is claimed, less the margin, relative to both: below 0 for SUPPORTED."""
    low, high = verdict.interval
    may_be_below, may_be_above = wording.allowed_sides(verdict)
    ends = [*([] if may_be_below else [-low]), *([] if may_be_above else [high])]
    scale = max(abs(verdict.predicted), verdict.margin) if math.isfinite(verdict.predicted) else verdict.margin
    return (max(ends) - verdict.margin) / max(scale, 1e-12)


def source_of(claim: Claim) -> tuple[str, int, str] | None:
    """The file, the first line and the text of what declares a claim: what names its id, or else has its function, in
    the module that declares its statement, or else in that of its function.
    """
    modules = dict.fromkeys((claim.module, getattr(claim.function, "__module__", claim.module)))
    imported = (importlib.import_module(module) for module in modules)
    places = (_place_of(claim, module) for module in imported if hasattr(module, "__file__"))  # and no built-in one
    return next((place for place in places if place is not None), None)


def _place_of(claim: Claim, module: ModuleType) -> tuple[str, int, str] | None:
    code = getattr(claim.function, "__code__", None)
    lines, file = inspect.getsource(module).splitlines(), inspect.getsourcefile(module) or ""
    inside = code.co_firstlineno if code and code.co_filename == file else 0
    spelled, around, ids = [], [], (claim.id, claim.id.removeprefix(f"{claim.paper}."))
    for node in tree(module).body:
        first = min(each.lineno for each in (node, *getattr(node, "decorator_list", ())))
        text = "\n".join(lines[first - 1 : node.end_lineno])
        if any(f'"{id}"' in text for id in ids):
            spelled.append((first, text))
        elif first <= inside <= (node.end_lineno or 0) or _puts_together(text, ids):
            around.append((first, text))
    depth = len(module.__name__.split(".")) + file.endswith("/__init__.py")
    path = "/".join(Path(file).parts[-depth:])
    return (path, *[*spelled, *around][0]) if spelled or around else None


def _puts_together(text: str, ids: tuple[str, ...]) -> bool:
    """Whether a formatted string of the text may be one of these ids: what is written of it is."""
    patterns = [re.sub(r"\\{.*?\\}", ".+", re.escape(each)) for each in re.findall(r'\bf"([^"]*\w[^"]*)"', text)]
    return any(pattern != ".+" and re.fullmatch(pattern, id) for pattern in patterns for id in ids)


def called(function: Any, seen: set[int] | None = None) -> Iterator[str]:
    """The public functions of papers that a function, and the statements' and experiments' own that it uses, call."""
    seen = set() if seen is None else seen
    codes = [function.__code__] if hasattr(function, "__code__") else []
    names = [
        name
        for code in codes
        for name in (*code.co_names, *(n for c in code.co_consts for n in getattr(c, "co_names", ())))
    ]
    values = [function.__globals__[name] for name in names if name in function.__globals__]
    values += [
        getattr(each, name) for each in values if isinstance(each, ModuleType) for name in names if name in vars(each)
    ]
    for value in (value for value in values if inspect.isroutine(value) and id(value) not in seen):
        seen.add(id(value))
        home = set((value.__module__ or "").split("."))
        if id(value) in addresses() and not home & {"core", "verify", "sweep", "runs"}:
            yield addresses()[id(value)]
        elif home & {"statements", "experiments"}:
            yield from called(value, seen)


@functools.cache
def addresses() -> dict[int, str]:
    """Of public functions, classes and modules: the API's page and anchor, by the id of the object."""
    return {
        id(public_names()[path]): f"api/{page}.html#{path}"
        for page, modules in listed()
        for _, paths, _ in modules
        for path in paths
    }


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


def regimes() -> dict[str, dict[str, list[Any]]]:
    """The numbers behind the figure of that name by end of the gates: over experts, kappa / lambda and kappa."""
    table = pd.read_csv(gallery.FIGURES / "continual" / "regimes.csv")
    drives = table.drive.nunique()
    critical = table.critical.round(4).astype(object).where(table.critical.notna(), None)

    def nested(rows: pd.Series) -> list[Any]:
        """(experts, ratio, kappa) of rows in the order of experts, kappa and ratio."""
        return rows.to_numpy().reshape(table.experts.nunique(), drives, -1).swapaxes(1, 2).tolist()

    return {
        gates: {name: nested(rows[name]) for name in ("own", "own_error", "error", "error_error")}
        | {"critical": [[each[0] for each in row] for row in nested(rows.critical)]}
        for gates, rows in table.assign(critical=critical).groupby("gates", sort=False)
    }


def decided_of(paper: str) -> list[tuple[Judged, Verdict | None]]:
    """A paper's statements, each with the verdict that decides it."""
    return [
        (known, wording.decisive(known, verdicts())) for known in (judged(each, verdicts()) for each in answered(paper))
    ]


def orders(of_eta: bool = False) -> tuple[list[str], list[tuple[str, str, list[str]]]]:
    """Statuses over the orders of alpha and Gamma, or of eta and alpha, as `docs/orders.py` wrote them: the orders, and
    of each statement its id, where it stands and its statuses there."""
    table = pd.read_csv(gallery.ROOT / "docs" / "orders.csv").sort_values(["eta", "alpha", "gamma"], kind="stable")
    if of_eta:
        moved = table.groupby("statement").eta.transform("max") > table.eta.min()
        always = table.groupby(["statement", "alpha"]).eta.transform("nunique") == table.eta.nunique()
        table = table[moved & always & (table.gamma == table.gamma.min())]
        table["place"] = [f"η {row.eta:g}, α {row.alpha:g}" for row in table.itertuples()]
    else:
        table = table[table.eta == table.eta.min()]
        table["place"] = [f"α {row.alpha:g}, Γ {row.gamma:g}" for row in table.itertuples()]
    places = list(dict.fromkeys(table.place))
    cells = table.pivot(index="statement", columns="place", values="status")[places]
    where = {each.name: each.where for each in answered("continual")}
    alike = Counter(where[name] for name in cells.index)
    named = {name: where[name] + (f", {name.rpartition('-')[2]}s" if alike[where[name]] > 1 else "") for name in where}
    return places, [(name, named[name], list(cells.loc[name])) for name in dict.fromkeys(table.statement)]


def beside() -> list[tuple[str, list[dict[str, Any]]]]:
    """Statements of each paper as printed and for Algorithm 1 against a baseline, as `docs/beside.py` wrote them."""
    table = pd.read_csv(gallery.ROOT / "docs" / "beside.csv", keep_default_na=False, dtype={"differs": bool})
    table["id"] = table.statement.str.partition(".")[2]
    return [
        (str(paper), rows.to_dict("records")) for paper, rows in table.groupby(table.statement.str.partition(".")[0])
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


def excerpt(text: str) -> Markup:
    """Python with its words marked for the style sheet."""
    return Markup(highlight(text, PythonLexer(), HtmlFormatter()))


def fallen() -> Iterator[str]:
    """Yield a list of the statements that fail, each below the first that its proof uses and that fails."""
    for paper in all_papers():
        failing = [each for each in footings(recorded.judged_statements(paper)) if each.known.fails]
        if failing:
            yield from (f"**{paper}**", "", *_fallen_with("", failing, ""), "")


def _fallen_with(above: str, failing: list[Footing], indent: str) -> Iterator[str]:
    for each in failing:
        if above == (each.failing[0] if each.follows else ""):
            statement = each.known.statement
            yield f"{indent}- `{statement.id}`: {each.known.words}"
            yield from _fallen_with(statement.name, failing, f"{indent}  ")


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
