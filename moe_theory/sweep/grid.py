"""The grid of a sweep: its axes, and the complete setting of every cell.

An axis overrides a fixed value, and a fixed value overrides the reading's.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from moe_theory.core.constraints import shown
from moe_theory.core.errors import DeclarationError, MoeTheoryError, shortened
from moe_theory.sweep.vocabulary import LARGEST_SIZE, READING, Value, Vocabulary

MOST_CELLS = 1_000_000
PADDED = "max_experts"  # the size that is the largest number of experts unless given


class GridAxis(NamedTuple):
    """One axis: a plain axis has one column of its own name, a zip one for each of its names."""

    name: str
    columns: Mapping[str, tuple[Value, ...]]  # equally long

    @property
    def num_values(self) -> int:
        return len(next(iter(self.columns.values())))


class SweepCell(NamedTuple):
    # Position on every axis; () for a sweep without axes.
    index: tuple[int, ...]  # pyright: ignore[reportIncompatibleMethodOverride]
    settings: Mapping[str, Value]  # values on the axes, by column
    reading: str
    dims: Any  # the system's static sizes
    choices: Mapping[str, str]  # every kind of static choice, by name
    params: Any  # the system's Params, of Python numbers


@dataclasses.dataclass(frozen=True)
class Grid:
    """All cells of a sweep, in C order: the last axis varies fastest."""

    axes: tuple[GridAxis, ...]  # the plain axes in the order given, then the zips
    cells: tuple[SweepCell, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.num_values for axis in self.axes)

    def __len__(self) -> int:
        return len(self.cells)


@dataclasses.dataclass(frozen=True)
class Fixed:
    vocabulary: Vocabulary
    reading: str | None  # None where an axis says it
    dims: Mapping[str, int | str]
    choices: Mapping[str, str]
    params: Mapping[str, Value]
    keys: Mapping[str, tuple[str, ...]]  # where each name is set, on axes too


def require_few_cells(counts: Sequence[int]) -> None:
    """Raise DeclarationError where axes of these lengths span too many cells."""
    cells = math.prod(counts)
    if cells > MOST_CELLS:
        raise DeclarationError(
            f"the axes span {shortened(cells)} cells, above {MOST_CELLS}. Shorten or zip axes, or split the sweep."
        )


def build_grid(axes: Sequence[GridAxis], fixed: Fixed) -> Grid:
    """Return the grid that the axes span, every cell checked by the system itself.

    Raises: InvalidValueError or DeclarationError that names the first cell refused.
    """
    known = fixed.vocabulary.known
    names = {*fixed.dims, *(name for axis in axes for name in axis.columns)}
    dims = {**known.default_dims, **fixed.dims}
    if PADDED in known.sizes and "num_experts" in known.parameters and PADDED not in names:
        experts = [draft.params["num_experts"] for draft in _drafts(axes, fixed, dims)]
        dims[PADDED] = min(max(1, *experts), LARGEST_SIZE)
    dims_of: dict[tuple, Any] = {}
    cells = []
    with jax.enable_x64(fixed.vocabulary.precision == "float64"):  # what a system checks are numbers of the run
        for draft in _drafts(axes, fixed, dims):
            sizes = tuple(draft.dims.items())
            try:
                if sizes not in dims_of:
                    dims_of[sizes] = known.dims(**draft.dims)
                params = known.params(**draft.params)
                known.check(dims_of[sizes], params)
            except MoeTheoryError as error:
                raise _in_cell(error, draft.settings, fixed.keys) from None
            cells.append(draft._replace(dims=dims_of[sizes], params=params))
    return Grid(tuple(axes), tuple(cells))


def _drafts(axes: Sequence[GridAxis], fixed: Fixed, dims: Mapping[str, Any]) -> Iterator[SweepCell]:
    """Yield the cells with dictionaries for sizes and parameters: some sizes follow from the whole grid."""
    known = fixed.vocabulary.known
    choices = {**{kind: next(iter(names)) for kind, names in known.choices.items()}, **fixed.choices}
    readings = {name: {**reading.params()._asdict(), **fixed.params} for name, reading in known.readings.items()}
    homes = {name: fixed.vocabulary.home(name) for axis in axes for name in axis.columns}
    for index in itertools.product(*(range(axis.num_values) for axis in axes)):
        settings: dict[str, Value] = {}
        for axis, place in zip(axes, index, strict=True):
            settings |= {name: column[place] for name, column in axis.columns.items()}
        tables: dict[str, dict[str, Any]] = {"params": {}, "dims": {}, "choices": {}, READING: {}}
        for name, value in settings.items():
            tables[homes[name]][name] = value
        reading = tables[READING].get(READING, fixed.reading)
        yield SweepCell(
            index=index,
            settings=settings,
            reading=reading,
            dims={**dims, **tables["dims"]},
            choices={**choices, **tables["choices"]} if tables["choices"] else choices,  # shared by a million cells
            params={**readings[reading], **tables["params"]},
        )


def _in_cell(
    error: MoeTheoryError, settings: Mapping[str, Value], keys: Mapping[str, tuple[str, ...]]
) -> MoeTheoryError:
    """The same error with its cell, and the `key` of the first name in its message that the specification sets."""
    cell = ", ".join(f"{name}={value if isinstance(value, str) else shown(value)}" for name, value in settings.items())
    located = type(error)(f"in the cell {cell}: {error}" if cell else str(error))
    blamed = (name for name in (*re.findall(r"\w+", str(error)), *settings) if name in keys)
    located.key = error.key or keys.get(next(blamed, ""), ("system",))
    return located
