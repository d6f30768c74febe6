"""Display in an interpreter or a notebook: lists as tables, objects in a line, and pages made by reports."""

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from moe_theory.core.pages import pages

if TYPE_CHECKING:
    import pandas as pd

MOST_LINES = 12  # of a list that are shown in a line each
LONGEST_LINE = 100  # characters


class Shown:
    """Something that a notebook shows as the reports do, and an interpreter by one line of its `row`."""

    def row(self) -> dict[str, Any]:
        """Its facts by name, as a table of many has them."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return line_of(type(self).__name__, self.row())

    def _repr_html_(self) -> str:
        return pages().html(self)


class HasRow(Protocol):
    def row(self) -> dict[str, Any]: ...


Item = TypeVar("Item", bound=HasRow)


class Listing(list[Item]):
    """A list that an interpreter shows a line an item, and a notebook as a table."""

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        return Listing(found) if isinstance(key, slice) else found

    def to_frame(self) -> "pd.DataFrame":
        """A pandas DataFrame with a row an item.

        Examples:
            >>> import moe_theory as mt
            >>> mt.claims("continual.lemma-4").to_frame()[["claim", "where"]].values.tolist()
            [['continual.lemma-4', 'Lemma 4']]
        """
        import pandas as pd

        return pd.DataFrame([item.row() for item in self])

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} of {len(self)}", *map(repr, self[:MOST_LINES])]
        return "\n  ".join([*lines, f"and {len(self) - MOST_LINES} more"] if len(self) > MOST_LINES else lines)

    def _repr_html_(self) -> str:
        return pages().html(self)


def line_of(kind: str, row: dict[str, Any]) -> str:
    """<Claim continual.lemma-4, where: Lemma 4, ...>: what there is of a row, in a line."""
    first, *rest = ((name, " ".join(str(value).split())) for name, value in row.items() if value not in ("", None))
    return f"<{kind} {shortest(', '.join([first[1], *(f'{name}: {words}' for name, words in rest)]))}>"


def shortest(words: str) -> str:
    """Words in a line that is not too long."""
    return words if len(words) <= LONGEST_LINE else f"{words[: LONGEST_LINE - 3]}..."
