"""Verdicts, claims, statements and sweeps in notebooks: parts of a report's page, each with its own style."""

import functools
import html as markup
import re
from collections.abc import Iterable, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moe_theory.core.notebook import Listing
from moe_theory.plot.symbols import marked
from moe_theory.report import pages, panels
from moe_theory.report.rendering import mathml, picture_of, templates
from moe_theory.report.wording import claimed, measured, sentence
from moe_theory.runs.files import prepare_folder
from moe_theory.verify.verdict import Report, Verdict

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SCOPE = "moe-theory-shown"  # the class around everything here, so that no style reaches the rest of a page
MOST_ROWS = 200
_PARTS = r"(?sm)^\.(?:badge(?:\.s-\w+)?|line|pictures|command|formula|icon)\b[^{]*\{[^}]*\}"


def html(thing: Any) -> str:
    """A verdict, a claim, a statement, a sweep, its results, or a list of them, as HTML that stands alone."""
    if isinstance(thing, Listing):
        return _table(thing)
    if isinstance(thing, Verdict):
        return _within(_verdict(thing))
    return _within(_facts(type(thing).__name__, thing.row(), getattr(thing, "formula", "")))


def plot(verdict: Verdict) -> "Figure":
    """A verdict's picture, as its report has it: observed against predicted over the components."""
    return panels.figure_of(verdict)


def report(found: Report, path: str | Path) -> list[Path]:
    """Write what `moe-theory verify` writes. Raises: OutputError for a folder that cannot be written."""
    folder = prepare_folder(Path(path), (*pages.PAGE_NAMES, pages.NUMBERS))
    return pages.write_report(found, folder, pages.NUMBERS)


@functools.cache
def status_style(light: str, dark: Sequence[str] = ()) -> str:
    """The report page's colours under a selector, and under those of a dark page; its badges, lines and pictures."""
    page = resources.files("moe_theory.report").joinpath("templates", "page.css").read_text(encoding="utf-8")
    colours = re.findall(r":root \{([^}]*--ok-bg[^}]*)\}", page)
    own = [f"{light} {{{colours[0]}}}", *(rule.replace("{}", f"{{{colours[1]}}}") for rule in dark)]
    return "\n".join([*own, *re.findall(_PARTS, page)])


def _parts() -> Any:
    """The pieces that reports are made of, by name."""
    return templates().get_template("parts.html").module


def _within(body: str) -> str:
    """A part of a page with its style; dark where the notebook is, or, in a browser, the reader's choice."""
    dark = (
        f'[data-jp-theme-light="false"] .{SCOPE} {{}}',
        f"@media (prefers-color-scheme: dark) {{ body:not([data-jp-theme-light]) .{SCOPE} {{}} }}",
    )
    rules = status_style(f".{SCOPE}", dark)
    scoped = re.sub(r"(?m)^\.(?!moe-theory)", f".{SCOPE} .", rules)
    icons = _parts().icons()
    look = (
        f".{SCOPE} {{ background: var(--card); color: var(--ink); border: 1px solid var(--rule); border-radius: 8px; "
        f"padding: .6rem .9rem; max-width: 66rem; overflow-x: auto }} .{SCOPE} table {{ border-collapse: collapse }} "
        f".{SCOPE} :is(td, th) {{ text-align: left; padding: .15rem .6rem; border-top: 1px solid var(--rule) }}"
    )
    return f'<div class="{SCOPE}"><style>{scoped}\n{look}</style>{icons}{body}</div>'


def _verdict(verdict: Verdict) -> str:
    parts = _parts()
    name = f"{verdict.claim}-{verdict.reading}".replace(".", "-")
    formula = f"<p>{mathml(verdict.formula)}</p>" if verdict.formula else ""
    return (
        f"<p>{parts.badge(verdict.status)} <code>{_safe(verdict.claim)}</code> under {_safe(verdict.setting)}, "
        f"{_safe(verdict.where)}</p><p>{marked(verdict.statement)}</p>{formula}<p>{marked(sentence(verdict))}</p>"
        f"<div class='pictures'>{parts.line(verdict, name)}{_image(verdict)}</div>"
        f"<p><code>{_safe(verdict.command)}</code></p>"
    )


def _image(verdict: Verdict) -> str:
    shown = picture_of(verdict, panels.Pictures())
    return f'<img src="{shown["source"]}" alt="{_safe(shown["alt"])}" style="background:#fff">' if shown else ""


def _facts(kind: str, row: dict[str, Any], formula: str) -> str:
    rows = "".join(f"<tr><th>{_safe(name)}</th><td>{_safe(value)}</td></tr>" for name, value in row.items() if value)
    typeset = f"<tr><th></th><td>{mathml(formula)}</td></tr>" if formula else ""
    return f"<p><b>{_safe(kind)}</b></p><table>{rows}{typeset}</table>"


def _table(listing: Listing) -> str:
    rows = [_row(item) for item in listing[:MOST_ROWS]]
    names = list(dict.fromkeys(name for row in rows for name in row))
    head = "".join(f"<th>{_safe(name)}</th>" for name in names)
    cells = [[f"<td>{row.get(name, '')}</td>" for name in names] for row in rows]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    more = f"<p>and {len(listing) - MOST_ROWS:,} more</p>" if len(listing) > MOST_ROWS else ""
    return _within(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}")


def _row(item: Any) -> dict[str, str]:
    if not isinstance(item, Verdict):
        return {name: _safe(value) for name, value in item.row().items()}
    badge = _parts().badge(item.status)
    words = {"claim": item.claim, "reading": item.setting, "claimed": claimed(item), "measured": measured(item)}
    return {"verdict": badge, **{name: _safe(value) for name, value in words.items()}, "at": _safe(item.at)}


def _safe(words: Any) -> str:
    listed = isinstance(words, Iterable) and not isinstance(words, str)
    return markup.escape(", ".join(map(str, words)) if listed else str(words))
