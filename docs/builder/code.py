"""The modules that declare claims as pages with numbered lines, for claims to link to."""

import functools
from collections.abc import Iterator
from pathlib import Path

from gallery import ROOT
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from builder import Page, slot, sources
from moe_theory.core.papers import all_papers

FOLDER = "source"


def pages() -> Iterator[Page]:
    """A page a module, left out of the search: what it says the claims' pages say."""
    head = ["---", "search: {exclude: true}", "hide: [navigation, toc]", "---", ""]
    for paper in all_papers():
        for module in sources.modules(paper):
            path = Path(str(module.__file__)).resolve().relative_to(ROOT)
            text = "\n".join([*head, f"# `{path}`", "", slot("code"), ""])
            yield Page(f"{_page(path)}.md", text, {"code": _block(_numbered(path))})


def address(path: Path, line: int) -> str:
    """The address of a line of a module, from a page one folder down."""
    return f"../{_page(path)}.html#line-{line}"


def excerpt(path: Path, first: int, last: int) -> Markup:
    """Lines of a module, numbered from 1 and both included, with their words marked for the style sheet."""
    return Markup(_block(list(_lines(path)[first - 1 : last])))


def _numbered(path: Path) -> list[str]:
    links = '<a class="mt-number" id="line-{0}" href="#line-{0}">{0}</a>'
    return [links.format(number) + line for number, line in enumerate(_lines(path), 1)]


def _block(lines: list[str]) -> str:
    return f'<div class="highlight"><pre tabindex="0"><code>{chr(10).join(lines)}</code></pre></div>'


@functools.cache
def _lines(path: Path) -> tuple[str, ...]:
    """A module's lines, each with its words marked and nothing left open at its end."""
    source = (ROOT / path).read_text(encoding="utf-8")
    return tuple(highlight(source, PythonLexer(stripnl=False), HtmlFormatter(nowrap=True)).splitlines())


def _page(path: Path) -> str:
    return f"{FOLDER}/{'-'.join(path.with_suffix('').parts[1:])}"
