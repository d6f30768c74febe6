"""The grid of a sweep: axes, and every cell's setting.

An axis overrides a fixed value, which overrides the reading's.
"""

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from moe_theory.core.errors import MoeTheoryError, text_of
from moe_theory.sweep.vocabulary import LARGEST_SIZE, READING, Value, Vocabulary

PADDED = "max_experts"  # the size that is the largest number of experts unless given


class GridAxis(NamedTuple):
    name: str
    columns: Mapping[str, tuple[Value, ...]]  # equally long

    @property
    def num_values(self) -> int:
        return len(next(iter(self.columns.values())))


class SweepCell(NamedTuple):
    settings: Mapping[str, Value]  # values on the axes, by column
    reading: str
    dims: Any  # the system's static sizes
    choices: Mapping[str, str]  # every kind of static choice, by name
    params: Any  # the system's Params, of Python numbers


@dataclasses.dataclass(frozen=True)
class Grid:
    axes: tuple[GridAxis, ...]  # the plain axes in the order given, then the zips
    cells: tuple[SweepCell, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.num_values for axis in self.axes)

    def __len__(self) -> int:
        return len(self.cells)


def build_grid(
    axes: Sequence[GridAxis],
    fixed: Mapping[str, Mapping[str, Any]],
    vocabulary: Vocabulary,
) -> Grid:
    """Return the grid of the axes, with every cell checked by its system.

    Args:
        fixed: values by table and name, without the reading if it is an axis.
    Raises: InvalidValueError or DeclarationError with the first cell refused.
    """
    kind = vocabulary.system
    dims = {**kind.default_dims, **fixed["dims"]}
    names = set(fixed["dims"]).union(*(axis.columns for axis in axes))
    if PADDED in kind.sizes and "num_experts" in kind.parameters and PADDED not in names:
        experts = (draft.params["num_experts"] for draft in _drafts(axes, {**fixed, "dims": dims}, vocabulary))
        dims[PADDED] = min(max(1, *experts), LARGEST_SIZE)
    sizes: dict[tuple, Any] = {}
    cells = []
    with jax.enable_x64(vocabulary.precision == "float64"):  # what a system checks are numbers of the run
        for draft in _drafts(axes, {**fixed, "dims": dims}, vocabulary):
            key = tuple(draft.dims.items())
            try:
                if key not in sizes:
                    sizes[key] = kind.dims(**draft.dims)
                params = kind.params(**draft.params)
                kind.check(sizes[key], params)
            except MoeTheoryError as error:
                raise _in_cell(error, draft.settings) from None
            cells.append(draft._replace(dims=sizes[key], params=params))
    return Grid(tuple(axes), tuple(cells))


def _drafts(
    axes: Sequence[GridAxis], fixed: Mapping[str, Mapping[str, Any]], vocabulary: Vocabulary
) -> Iterator[SweepCell]:
    system_kind = vocabulary.system
    choices = {**{kind: next(iter(names)) for kind, names in system_kind.choices.items()}, **fixed["choices"]}
    readings = {
        name: {**reading.params()._asdict(), **fixed["params"]} for name, reading in system_kind.readings.items()
    }
    homes = {name: vocabulary.home(name) for name in itertools.chain.from_iterable(axis.columns for axis in axes)}
    for index in itertools.product(*(range(axis.num_values) for axis in axes)):
        settings: dict[str, Value] = {}
        for axis, place in zip(axes, index, strict=True):
            settings |= {name: column[place] for name, column in axis.columns.items()}
        tables: dict[str, dict[str, Any]] = {"params": {}, "dims": {}, "choices": {}, READING: dict(fixed[READING])}
        for name, value in settings.items():
            tables[homes[name]][name] = value
        reading = tables[READING][READING]
        yield SweepCell(
            settings=settings,
            reading=reading,
            dims={**fixed["dims"], **tables["dims"]},
            choices={**choices, **tables["choices"]} if tables["choices"] else choices,  # shared by a million cells
            params={**readings[reading], **tables["params"]},
        )


def _in_cell(error: MoeTheoryError, settings: Mapping[str, Value]) -> MoeTheoryError:
    cell = ", ".join(f"{name}={text_of(value)}" for name, value in settings.items())
    return type(error)(f"in the cell {cell}: {error}" if cell else str(error), error.argument)
