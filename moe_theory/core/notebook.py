"""Display in an interpreter or a notebook: tables of lists, one line per object, and pages of reports."""

import types
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES = 12  # items of a list that are shown
LONGEST_LINE = 100  # characters
_loaders: list[types.FunctionType] = []


def register_pages(load: types.FunctionType) -> None:
    """Register `load`, which imports the module with `html`, `plot` and `report` at its first use."""
    _loaders.append(load)


def pages() -> types.ModuleType:
    return _loaders[-1]()


class Shown:
    """An object that a notebook shows as in reports, and an interpreter as one line."""

    def row(self) -> dict[str, Any]:
        raise NotImplementedError

    def __repr__(self) -> str:
        row = {name: " ".join(str(value).split()) for name, value in self.row().items() if value not in ("", None)}
        (_, title), *values = row.items()
        facts = [title, *(f"{name}: {words}" for name, words in values)]
        return f"<{type(self).__name__} {shortest(', '.join(facts))}>"

    def _repr_html_(self) -> str:
        return pages().html(self)


Item = TypeVar("Item", bound=Any)  # has a method `row`


class Listing(list[Item]):
    """A list of objects with a `row`. An interpreter shows a line per object, a notebook shows a table."""

    def __getitem__(self, key: Any) -> Any:
        selection = super().__getitem__(key)
        if isinstance(key, slice):
            return Listing(selection)
        return selection

    def to_frame(self) -> "pd.DataFrame":
        """Return a pandas DataFrame with one row per item."""
        import pandas as pd

        return pd.DataFrame([item.row() for item in self])

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} of {len(self)}", *map(repr, self[:MOST_LINES])]
        if len(self) > MOST_LINES:
            lines.append(f"and {len(self) - MOST_LINES} more")
        return "\n  ".join(lines)

    def _repr_html_(self) -> str:
        return pages().html(self)


def shortest(words: str) -> str:
    if len(words) <= LONGEST_LINE:
        return words
    return f"{words[: LONGEST_LINE - 3]}..."
