"""Documents for a terminal: tables and texts as Rich prints them, and documents that were written to files."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from moe_theory.plot.document import Document


def written(path: Path) -> Any:
    """The document in a file that was written just now."""
    return json.loads(path.read_text(encoding="utf-8"))


def of_paths(paths: Iterable[Path], lines: Iterable[str] | None = None) -> Document:
    """Paths that were written, with these lines in place of theirs in a terminal."""
    written = [*map(str, paths)]
    return Document(lambda: written, lambda _: written if lines is None else lines)


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
