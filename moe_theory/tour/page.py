"""The tour as one self-contained page."""

import base64
import shlex
from collections.abc import Sequence
from pathlib import Path

from moe_theory.report.rendering import templates
from moe_theory.runs.progress import duration
from moe_theory.runs.provenance import now, versions
from moe_theory.tour.steps import Result


def to_html(taken: Sequence[Result], command: str, script: Path) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter  # a class for each kind of token, which `tour.css` colours
    from pygments.lexers import PythonLexer

    page = templates().get_template("tour.html")
    return page.render(
        taken=taken,
        command=command,
        script=shlex.quote(str(script)),
        finished=now(),
        seconds=duration(sum(result.seconds for result in taken)),
        versions=versions(),
        words=_words,
        coloured=lambda code: highlight(code, PythonLexer(), HtmlFormatter(nowrap=True)),
        source=lambda path: "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode(),
    )


def _words(text: str) -> str:
    """Markdown as HTML; what looks like a tag stays text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("js-default").render(text)
