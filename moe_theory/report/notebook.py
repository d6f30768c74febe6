"""Verdicts, claims, statements and sweeps in notebooks: parts of a report's page, each with its own style."""

import itertools
import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from moe_theory.core.notebook import Listing
from moe_theory.report import pages, panels
from moe_theory.report.rendering import picture_of, templates
from moe_theory.report.wording import claimed, measured
from moe_theory.runs.files import prepare_folder
from moe_theory.verification import recorded
from moe_theory.verification.verdict import Report, Statement, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCOPE = "moe-theory-shown"  # the class around everything here, so that no style reaches the rest of a page
MOST_ROWS = 200
_PARTS = r"(?sm)^\.(?:badge(?:\.s-\w+)?|line|pictures|formula|icon)\b[^{]*\{[^}]*\}"
_LOOK = """background: var(--card); color: var(--ink); border: 1px solid var(--rule); border-radius: 8px;
padding: .6rem .9rem; max-width: 66rem; overflow-x: auto;
table { border-collapse: collapse }
:is(td, th) { text-align: left; padding: .15rem .6rem; border-top: 1px solid var(--rule) }"""


def html(value: Any) -> str:
    """A verdict, a claim, a statement, a sweep, its results, or a list of them, as HTML that stands alone."""
    if isinstance(value, Listing):
        rows = [_row(element) for element in value[:MOST_ROWS]]
        columns = list(dict.fromkeys(itertools.chain.from_iterable(rows)))
        filled = [dict.fromkeys(columns, "") | row for row in rows]
        return _rendered(columns=columns, rows=filled, more=max(len(value) - MOST_ROWS, 0))
    if isinstance(value, Verdict):
        from matplotlib.figure import Figure

        return _rendered(verdict=value, picture=picture_of(value, Figure()))
    if isinstance(value, Statement):
        verdicts = recorded.recorded_verdicts([value])
        (judgement,) = recorded.judged_with_searches([value], verdicts)
        return _rendered(known=judgement, verdicts=verdicts)
    return _rendered(kind=type(value).__name__, row=_words(value.row()), formula=getattr(value, "formula", ""))


def plot(verdict: Verdict) -> "Figure":
    """A verdict's picture, as its report has it: observed against predicted over the components."""
    return panels.figure_of(verdict)


def report(verdicts: Report, path: str | Path) -> list[Path]:
    """Write what `moe-theory verify` writes. Raises: OutputError for a folder that cannot be written."""
    folder = prepare_folder(Path(path), (*pages.PAGE_NAMES, pages.NUMBERS))
    return pages.write_report(verdicts, folder, pages.NUMBERS)


def status_style(light: str, dark: Sequence[str] = ()) -> str:
    """The report page's colours under a selector, and under those of a dark page; its badges, lines and pictures."""
    page = _style("page.css")
    colours = re.findall(r":root \{([^}]*--ok-bg[^}]*)\}", page)
    rules = [f"{light} {{{colours[0]}}}", *(rule.replace("{}", f"{{{colours[1]}}}") for rule in dark)]
    return "\n".join([*rules, *re.findall(_PARTS, page)])


def _style(name: str) -> str:
    return resources.files("moe_theory.report").joinpath("templates", name).read_text(encoding="utf-8")


def _rendered(**values: Any) -> str:
    """A part of a page with its style; dark where the notebook is, or, in a browser, the reader's choice."""
    dark = (
        f'[data-jp-theme-light="false"] .{SCOPE} {{}}',
        f"@media (prefers-color-scheme: dark) {{ body:not([data-jp-theme-light]) .{SCOPE} {{}} }}",
    )
    colours, *parts = re.split(r"\n(?=\.)", status_style(f".{SCOPE}", dark))
    style = "\n".join([colours, f".{SCOPE} {{", _LOOK, *parts, _style("statement.css"), "}"])
    names = ("verdict", "known", "columns")  # of what there is one
    context = {**dict.fromkeys(names), **values, "scope": SCOPE, "style": Markup(style)}
    return templates().get_template("notebook.html").render(context)


def _row(value: Any) -> dict[str, Any]:
    if not isinstance(value, Verdict):
        return _words(value.row())
    words = {"claim": value.claim, "reading": value.setting, "claimed": claimed(value), "measured": measured(value)}
    return {"verdict": value.status, **words, "at": value.at}


def _words(row: dict[str, Any]) -> dict[str, Any]:
    lists = {name: ", ".join(map(str, value)) for name, value in row.items() if isinstance(value, list | tuple)}
    return row | lists
