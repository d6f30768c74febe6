"""The grid of a sweep, with its axes and every cell's setting.

An axis overrides a fixed value, which overrides the reading's.
"""

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import jax

from moe_theory.core.errors import MoeTheoryError, enclosed, text_of
from moe_theory.sweep.systems import Sweepable
from moe_theory.sweep.vocabulary import LARGEST_SIZE, READING, Value

PADDED = "max_experts"  # name of the size that is by default the grid's largest number of experts
Columns = Mapping[str, tuple[Value, ...]]  # values by name


class GridAxis(NamedTuple):
    name: str
    columns: Columns  # one, or several of equal length that vary together

    @property
    def num_values(self) -> int:
        return len(next(iter(self.columns.values())))

    @property
    def rows(self) -> list[tuple[tuple[str, Value], ...]]:
        """The settings along the axis, such as [(("a", 1), ("b", 3)), (("a", 2), ("b", 4))]."""
        rows = zip(*self.columns.values(), strict=True)
        return [tuple(zip(self.columns, values, strict=True)) for values in rows]


class SweepCell(NamedTuple):
    settings: Mapping[str, Value]  # values on the axes, by column
    reading: str
    dims: Any  # the system's static sizes
    choices: Mapping[str, str]  # the name of the choice for every static part, such as {"router": "linear"}
    params: Any  # the system's Params, in Python numbers


@dataclasses.dataclass(frozen=True)
class Grid:
    axes: tuple[GridAxis, ...]  # the plain axes in the given order, then the zips
    cells: tuple[SweepCell, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.num_values for axis in self.axes)

    def __len__(self) -> int:
        return len(self.cells)


def build_grid(axes: Sequence[GridAxis], fixed: Mapping[str, Value], system: Sweepable, precision: str) -> Grid:
    """Return the grid of the axes, after the system has checked every cell.

    `fixed` has values by name, and also the reading, unless the reading is an axis.
    """
    columns = dict(itertools.chain.from_iterable(axis.columns.items() for axis in axes))
    params_by_reading = {name: reading.params()._asdict() for name, reading in system.readings.items()}
    default_sizes: dict[str, Value] = dict(system.default_dims)
    is_padded = PADDED in system.sizes and "num_experts" in system.parameters
    if is_padded and PADDED not in {*columns, *fixed}:
        if "num_experts" in columns:
            experts = columns["num_experts"]
        elif "num_experts" in fixed:
            experts = [fixed["num_experts"]]
        else:
            names = columns.get(READING) or [fixed[READING]]
            experts = [params_by_reading[str(name)]["num_experts"] for name in names]
        # Sizes must be in this range. `system.check` later refuses other numbers of experts with a better message.
        default_sizes[PADDED] = min(max(1, *experts), LARGEST_SIZE)
    first_choices = {kind: next(iter(names)) for kind, names in system.choices.items()}
    fixed_choices = {**first_choices, **_selected(fixed, system.choices)}
    dims_by_sizes: dict[tuple, Any] = {}  # shared by cells of the same sizes
    cells = []
    with jax.enable_x64(precision == "float64"):  # a system checks numbers in the precision of the run
        for rows in itertools.product(*(axis.rows for axis in axes)):
            settings: dict[str, Value] = dict(itertools.chain.from_iterable(rows))
            values = {**fixed, **settings}
            varied_choices = _selected(settings, system.choices)
            reading = str(values[READING])
            sizes = {**default_sizes, **_selected(values, system.sizes)}
            key = tuple(sizes.items())
            try:
                if key not in dims_by_sizes:
                    dims_by_sizes[key] = system.make_dims(sizes)
                params = system.make_params({**params_by_reading[reading], **values})
                system.check(dims_by_sizes[key], params)
            except MoeTheoryError as error:
                setting = ", ".join(f"{name}={text_of(value)}" for name, value in settings.items())
                place = enclosed("in the cell ", setting, ": ")
                raise type(error)(f"{place}{error}", error.argument) from None
            # If no axis varies a choice, all cells share one mapping, because there may be a million cells.
            choices = {**fixed_choices, **varied_choices} if varied_choices else fixed_choices
            cells.append(SweepCell(settings, reading, dims_by_sizes[key], choices=choices, params=params))
    return Grid(tuple(axes), tuple(cells))


def _selected(values: Mapping[str, Value], names: Collection[str]) -> Mapping[str, Value]:
    return {name: values[name] for name in names if name in values}
