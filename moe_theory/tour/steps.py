"""The tour's script as text: taken apart into steps, each words and code."""

import re
from importlib import resources
from typing import NamedTuple

from moe_theory.core.errors import InvalidRunError

_MARKER = re.compile(r"^# %%(?P<kind> \[markdown\])?$", re.MULTILINE)
_HEADING = re.compile(r"^#+ (?:Step \d+: )?(?P<title>.+)$", re.MULTILINE)
_RANGE = re.compile(r"(\d+)(?:-(\d+))?")


class Cell(NamedTuple):
    """Code that runs at once, and the line of the script that it begins at, from 1."""

    code: str
    line: int


class Step(NamedTuple):
    """One step: a title, words in Markdown and the code they speak of. Number 0 is what all steps need."""

    number: int
    title: str
    words: str
    cells: tuple[Cell, ...]


def script() -> str:
    """The tour as it is shipped, in the percent format, which notebooks read."""
    return resources.files("moe_theory.tour").joinpath("script.py").read_text(encoding="utf-8")


def parse(text: str) -> list[Step]:
    """The steps of a script: each begins with a Markdown cell under a heading; code cells follow."""
    steps: list[Step] = []
    marks = list(_MARKER.finditer(text))
    for mark, following in zip(marks, [*marks[1:], None], strict=True):
        body = text[mark.end() : None if following is None else following.start()]
        if mark["kind"] is None:
            line = text.count("\n", 0, mark.end()) + 2 + len(body[1:]) - len(body[1:].lstrip("\n"))
            steps[-1] = steps[-1]._replace(cells=(*steps[-1].cells, Cell(body.strip("\n"), line)))
            continue
        words = re.sub(r"^# ?", "", body.strip("\n"), flags=re.MULTILINE)
        heading = _HEADING.match(words)
        title = heading["title"] if heading else ""
        steps.append(Step(len(steps), title, words[heading.end() if heading else 0 :].strip(), ()))
    return steps


def with_values(text: str, **values: str) -> str:
    """The script with other values for the names that its first code cell assigns, each written as Python.

    Raises: InvalidRunError for a name that it does not assign.
    """
    for name, value in values.items():
        assignment = re.compile(rf"^{name} = .*?(?=  #|$)", re.MULTILINE)
        if assignment.search(text) is None:
            raise InvalidRunError(f"{name} is no name that the tour assigns. Change it.")
        text = assignment.sub(lambda _: f"{name} = {value}", text, count=1)  # noqa: B023
    return text


def chosen(text: str | None, count: int) -> range:
    """The steps that a user names, such as 4 or 1-4; all of `count` for None.

    Raises: InvalidRunError for what names none.
    """
    if text is None:
        return range(1, count + 1)
    found = _RANGE.fullmatch(text.strip())
    first, last = (int(found[1]), int(found[2] or found[1])) if found else (0, 0)
    if not 1 <= first <= last <= count:
        raise InvalidRunError(f"steps={text!r} must be a step or a range of steps from 1 to {count}, such as 4 or 1-4.")
    return range(first, last + 1)
