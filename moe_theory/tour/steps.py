"""The tour's script, taken apart into steps and run: what each prints, draws and leaves in numbers, also as a page."""

import ast
import base64
import contextlib
import io
import re
import shlex
import time
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import MoeTheoryError
from moe_theory.report.rendering import templates
from moe_theory.runs.progress import duration
from moe_theory.runs.provenance import now, versions
from moe_theory.verify import Verdict

VERDICT_FIELDS = ("claim", "status", "replicates", "at", "predicted", "observed", "interval", "margin", "error")


class CodeCell(NamedTuple):
    """Code that runs at once, and the line of the script that it begins at, from 1."""

    code: str
    line: int

    def parts(self) -> tuple[str, str]:
        """Its code up to where a figure begins, and the code of the figure; either may be empty."""
        begins = re.search(r"^(?:figure, |def plot_)", self.code, flags=re.MULTILINE)
        at = begins.start() if begins else len(self.code)
        return self.code[:at].strip("\n"), self.code[at:].strip("\n")


class TourStep(NamedTuple):
    """One step: a title, words in Markdown and the code they describe. Number 0 is what all steps need."""

    number: int
    title: str
    words: str
    cells: tuple[CodeCell, ...]


class Result(NamedTuple):
    step: TourStep
    output: str
    pictures: tuple[Path, ...]
    numbers: dict[str, Any]  # and verdicts, by the names that the step's own assignments gave them
    seconds: float

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step.number,
            "title": self.step.title,
            "seconds": round(self.seconds, 2),
            "pictures": [str(path) for path in self.pictures],
            "numbers": self.numbers,
            "output": self.output,
        }


def script() -> str:
    return resources.files("moe_theory.tour").joinpath("script.py").read_text(encoding="utf-8")


def with_value(text: str, name: str, value: str) -> str:
    """The script with another value, written as Python, for a name that its first code cell assigns."""
    return re.sub(rf"^{name} = .*?(?=  #|$)", lambda _: f"{name} = {value}", text, count=1, flags=re.MULTILINE)


def parse(text: str) -> list[TourStep]:
    """The steps of a script: each begins with a Markdown cell under a heading; code cells follow."""
    steps: list[TourStep] = []
    line = 1
    for part in re.split(r"^(?=# %%)", text, flags=re.MULTILINE):
        mark, _, body = part.partition("\n")
        if mark == "# %% [markdown]":
            heading, _, words = re.sub(r"^# ?", "", body.strip("\n"), flags=re.MULTILINE).partition("\n")
            title = re.sub(r"^#+ (Step \d+: )?", "", heading)
            steps.append(TourStep(len(steps), title, words.strip(), ()))
        elif mark == "# %%":
            first = line + 1 + len(body) - len(body.lstrip("\n"))
            steps[-1] = steps[-1]._replace(cells=(*steps[-1].cells, CodeCell(body.strip("\n"), first)))
        line += part.count("\n")
    return steps


def run(step: TourStep, namespace: dict[str, Any], path: Path, folder: Path) -> Result:
    """Run the cells of a step in `namespace`, which earlier steps have filled."""
    import matplotlib.pyplot as plt

    before, open_figures = _pictures(folder), set(plt.get_fignums())
    began, printed, numbers = time.perf_counter(), io.StringIO(), {}
    try:
        with contextlib.redirect_stdout(printed):
            for cell in step.cells:
                tree = ast.parse("\n" * (cell.line - 1) + cell.code, str(path))
                exec(compile(tree, str(path), "exec"), namespace)
                numbers |= _numbers(tree, namespace)
    except MoeTheoryError as failure:
        raise type(failure)(f"step {step.number} of the tour, {step.title!r}: {failure}") from None
    except Exception as failure:
        failure.add_note(f"in step {step.number} of the tour, {step.title!r}, of {path}")
        raise
    finally:
        for number in set(plt.get_fignums()) - open_figures:
            plt.close(number)
    after = _pictures(folder)
    pictures = tuple(picture for picture in sorted(after) if after[picture] != before.get(picture))
    return Result(step, printed.getvalue(), pictures, numbers, time.perf_counter() - began)


def to_html(taken: Sequence[Result], command: str, script: Path) -> str:
    """What steps said and made, as one self-contained page."""
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


def _pictures(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.glob("*.svg")}


def _numbers(tree: ast.Module, namespace: Mapping[str, Any]) -> dict[str, Any]:
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    names = [node.id for target in assigned for node in ast.walk(target) if isinstance(node, ast.Name)]
    values = {name: _plain(namespace[name]) for name in names if name in namespace}
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, Verdict):
        verdict = value.to_json()
        return {field: verdict[field] for field in VERDICT_FIELDS}
    if isinstance(value, list) and value and all(isinstance(part, Verdict) for part in value):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return value if value and all(isinstance(part, float) for part in value.values()) else None
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float)) and np.isfinite(value) else None


def _words(text: str) -> str:
    """Markdown as HTML; what looks like a tag stays text."""
    from markdown_it import MarkdownIt

    return MarkdownIt("js-default").render(text)
