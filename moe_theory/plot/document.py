"""Results of commands, which papers return: numbers, tables, lines, pictures and files, all made on demand."""

import csv
import dataclasses
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from moe_theory.core.errors import OutputError
from moe_theory.runs.files import plain, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

    from moe_theory.verification.verdict import Report

FORMS: dict[str, Literal["svg", "png"]] = {".svg": "svg", ".png": "png"}  # of a picture, by the suffix of its file


class VerdictTable(NamedTuple):
    """Verdicts as `verify` prints them. As the content of a file they are JSON, as `verify` writes it."""

    report: "Report"


Content = Callable[[Path], object] | VerdictTable  # writes a file at a path


@dataclasses.dataclass(frozen=True)
class Document:
    """The result of a command: as JSON, in parts for a terminal, and as files in a folder."""

    body: Callable[[], Any]  # the JSON document, in which numbers that do not exist are null
    # For a terminal of so many columns. A str is a plain line.
    parts: Callable[[int], Iterable[VerdictTable | RenderableType]]
    schema: str = ""  # name and version of the JSON document, which it begins with
    beside: Sequence[str] = ()  # last lines, on standard error where standard output has JSON
    folder: Path | None = None  # of the files
    files: Mapping[str, Content] = dataclasses.field(default_factory=dict)  # contents by name, written all or none
    is_interrupted: bool = False  # whether an interrupt ended the run early

    def to_json(self) -> Any:
        body = plain(self.body())
        return {"schema": self.schema, **body} if self.schema else body


class Picture(NamedTuple):
    """A drawing as wide as a page, under a title and with a caption."""

    title: str
    height: float  # inches
    draw: Callable[["FigureBase"], None]
    caption: str = ""

    def rendered(self, form: Literal["svg", "png"] = "svg") -> bytes:
        from moe_theory.plot.style import PAGE_WIDTH, render_as  # takes longer to import than all the rest

        return render_as(form, self.title, (PAGE_WIDTH, self.height), self.draw, self.caption)

    def write(self, path: Path) -> None:
        """Write the picture as SVG, whatever the path is called."""
        path.write_bytes(self.rendered())

    def save(self, path: Path) -> Path:
        """Raises: OutputError for a suffix other than .svg and .png, or a path that cannot be written."""
        if path.suffix not in FORMS:
            raise OutputError(f"{path} must end in .svg or .png, the formats of pictures. Change the name.")
        write_whole(path, self.rendered(FORMS[path.suffix]))
        return path


def to_csv(rows: Sequence[Mapping[str, Any]], form: str = "{!r}") -> str:
    """Rows under the names that the first one has, with numbers in this form; nothing stands for None and for a number
    that does not exist.
    """
    document = io.StringIO()
    writer = csv.DictWriter(document, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in plain(rows):
        writer.writerow({name: form.format(each) if isinstance(each, float) else each for name, each in row.items()})
    return document.getvalue()


def ruled(
    columns: Iterable[str],
    rows: Iterable[Sequence[RenderableType]],
    numbers: Iterable[str] = (),
    whole: Iterable[str] = (),
    folded: Iterable[str] = (),
    styles: Iterable[str | None] | None = None,
    **further: Any,
) -> Table:
    """A table with a rule below its header and no other lines, for Rich to print.

    Args:
        numbers: the columns that are justified on the right.
        whole: the columns that are never broken.
        folded: the columns whose words are broken where there is no room, not cut.
        styles: of the rows.
        further: of `rich.table.Table`, such as its title.
    """
    look: dict[str, Any] = {"header_style": "bold", "box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True}
    table, numbers, whole, folded = Table(**look, title_justify="left", **further), *map(set, (numbers, whole, folded))
    for name in columns:
        cut = "fold" if name in folded else "ellipsis"
        table.add_column(name, justify="right" if name in numbers else "left", no_wrap=name in whole, overflow=cut)
    for row, style in zip(rows, styles or iter(lambda: None, ""), strict=False):
        table.add_row(*row, style=style)
    return table


def headed(rows: Iterable[tuple[str, str]], padding: tuple[int, ...] = (0, 1)) -> Table:
    """Texts with a heading before each, without lines."""
    table = Table.grid(padding=padding)  # pyright: ignore[reportArgumentType]
    table.add_column(no_wrap=True, style="bold")
    table.add_column(overflow="fold")
    for heading, text in rows:
        table.add_row(Text(heading), Text(text))
    return table
