"""The one style of the terminal's tables."""

from typing import Any

from rich import box
from rich.table import Table


def ruled(**further: Any) -> Table:
    """A table with a rule below its header and no other lines, for Rich to print."""
    look: dict[str, Any] = {"header_style": "bold", "box": box.SIMPLE_HEAD, "pad_edge": False, "collapse_padding": True}
    return Table(**look, title_justify="left", **further)
