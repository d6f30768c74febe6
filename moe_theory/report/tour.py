"""The tour in a terminal, and as one page that needs nothing but itself."""

import base64
import datetime
import shlex
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.markdown import Markdown
from rich.padding import Padding
from rich.rule import Rule
from rich.syntax import Syntax
from rich.text import Text

from moe_theory.report.html import templates
from moe_theory.runs.provenance import now, versions
from moe_theory.tour.steps import Step
from moe_theory.tour.walk import Shown

INDENT = (0, 0, 0, 2)


def announce(console: Console, step: Step, count: int) -> None:
    """A step before it runs: its title, words and code."""
    console.print()
    console.print(Rule(heading(step, count), align="left", style="dim"))
    console.print(Markdown(step.words))
    console.print()
    for cell in step.cells:
        code = Syntax(cell.code, "python", theme="ansi_dark", background_color="default", word_wrap=True)
        console.print(Padding(code, INDENT))
        console.print()


def heading(step: Step, count: int) -> str:
    """A step's place in the tour and its title."""
    return f"{step.number} of {count}: {step.title}" if step.number else step.title


def show(console: Console, shown: Shown) -> None:
    """What a step showed: its output, and where its pictures are."""
    for line in shown.output.splitlines():
        console.print(Text(line, "bold"), soft_wrap=True)
    for path in shown.pictures:
        console.print(f"picture: {path}", highlight=False, soft_wrap=True, markup=False)


def to_html(taken: Sequence[Shown], command: str, script: Path) -> str:
    """The steps taken so far as a page: words, code, output and pictures."""
    return (
        templates()
        .get_template("tour.html")
        .render(
            taken=taken,
            command=command,
            script=shlex.quote(str(script)),
            finished=now(),
            seconds=datetime.timedelta(seconds=round(sum(shown.seconds for shown in taken))),
            versions=versions(),
            words=_words,
            coloured=_coloured,
            source=_source,
        )
    )


def _words(text: str) -> str:
    """Markdown as HTML; what looks like a tag stays text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("js-default").render(text)


def _coloured(code: str) -> str:
    """Python as HTML with a class for each kind of token, which `tour.css` colours."""
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    return highlight(code, PythonLexer(), HtmlFormatter(nowrap=True))


def _source(path: Path) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(path.read_bytes()).decode()
