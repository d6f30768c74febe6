"""Results of commands, which are numbers, a text, pictures and files."""

import dataclasses
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union

from moe_theory.core.errors import OutputError
from moe_theory.plot.markdown import code, paragraphs
from moe_theory.runs.files import plain, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from moe_theory.verification.verdict import Report

NOTEBOOK_WIDTH = 160  # characters
FORMS: dict[str, Literal["svg", "png"]] = {".svg": "svg", ".png": "png"}  # formats of pictures, by suffix

Content = Union[Callable[[Path], object], "Report"]  # a function that writes a file, or a report


@dataclasses.dataclass(frozen=True)
class Document:
    """The result of a command, in JSON, Markdown and files."""

    body: Callable[[], Any]  # the JSON document. Missing numbers are null
    text: Callable[[int], str]  # Markdown for lines of this many characters
    schema: str = ""  # name and version at the start of the JSON document, empty for none
    verdicts: "Report | None" = None  # printed below the text, as by `verify`
    folder: Path | None = None  # folder of the files
    files: Mapping[str, Content] = dataclasses.field(default_factory=dict)  # by name. Either all are written, or none

    def to_json(self) -> Any:
        body = plain(self.body())
        return {"schema": self.schema, **body} if self.schema else body

    def _repr_markdown_(self) -> str:
        return self.text(NOTEBOOK_WIDTH)


def of_paths(paths: Iterable[Path], text: str | None = None) -> Document:
    """Return a document on written files: their paths, or this text."""
    names = [*map(str, paths)]
    return Document(body=lambda: names, text=lambda _: paragraphs(map(code, names)) if text is None else text)


def read_written(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


class Picture(NamedTuple):
    title: str
    height: float  # inches
    draw: Callable[["FigureBase"], None]
    caption: str = ""

    def rendered(self, form: Literal["svg", "png"] = "svg") -> bytes:
        from moe_theory.plot.style import PAGE_WIDTH, render_as  # takes longer to import than all the rest

        return render_as(form, self.title, (PAGE_WIDTH, self.height), self.draw, self.caption)

    def write(self, path: Path) -> None:
        path.write_bytes(self.rendered())

    def save(self, path: Path) -> Path:
        """Save the picture as SVG or PNG. Raises: OutputError."""
        if path.suffix not in FORMS:
            raise OutputError(f"{path} must end in .svg or .png, because these are the formats. Change the name.")
        write_whole(path, self.rendered(FORMS[path.suffix]))
        return path


def to_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows as CSV with the first row's names. None and non-finite numbers are empty."""
    import pandas as pd  # takes longer to import than all the rest

    return pd.DataFrame(plain(rows), columns=[*rows[0]], dtype=object).to_csv(index=False, lineterminator="\n")
