"""Claims, which are executable statements, and the experiments behind them."""

import dataclasses
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from moe_theory.core.constraints import shown
from moe_theory.core.errors import DeclarationError, shortened, unknown_name
from moe_theory.core.notebook import Shown
from moe_theory.core.system import Observe, System, observe_info
from moe_theory.runs import Run
from moe_theory.runs.cells import Cell, Start
from moe_theory.verification.criteria import Criterion, Side
from moe_theory.verification.ranges import Range
from moe_theory.verification.region import Choice, FreeAxis, Setting
from moe_theory.verification.verdict import ID_WORDS, is_id

Runs = Mapping[str, Run]  # by cell name
Observer = Callable[[Runs], np.ndarray]  # returns a number per replicate (B,), or a row of components (B, V)
Overrides = dict[str, Any]  # a cell's parameters by name, which replace the reading's
SettingValues = Mapping[str, Any]  # sizes and choices by name, which `Experiment.of` receives
F = TypeVar("F", bound=Callable[..., Any])
Measure = Callable[[Sequence[Cell], int, int, int], Runs]  # (cells, first replicate, number of replicates, seed)


class Measured(NamedTuple):
    make: Measure
    runs_systems: bool = False  # whether `make` also simulates the systems


class ReadingLike(Protocol):
    """A named set of choices, such as `core.papers.Reading`."""

    @property
    def name(self) -> str: ...

    @property
    def summary(self) -> str: ...

    def params(self, **overrides: Any) -> Any: ...


@dataclasses.dataclass(frozen=True, repr=False)
class Experiment(Shown):
    """Runs that claims share: a system's cells by name, with overrides of a reading's parameters."""

    name: str
    dims: Any
    system: System
    cells: Mapping[str, Overrides]
    num_rounds: int
    record_every: int = 1
    observe: Observe = observe_info
    replicates: int = 1024  # limit, unless the caller gives another one or a time budget
    start: Start | None = None  # replaces the system's initial states
    measured: Measured | None = None  # makes its runs in place of a simulation
    tier: str = "simulated"  # cost of its runs. `verify PAPER:TIER` tests the claims of a tier
    systems: Mapping[str, System] = dataclasses.field(default_factory=dict)  # for cells with their own system
    lengths: Mapping[str, int] = dataclasses.field(default_factory=dict)  # rounds of cells that have their own number
    is_double: bool = False  # whether its runs are in float64 whatever JAX's precision
    keeps_state: bool = True  # whether runs have final states, if claims need them
    data: str = ""  # the data set of its runs, unless the package draws the data
    width: int | None = None  # replicates that run together. The default suits the size of a state
    of: "Callable[[SettingValues], Experiment] | None" = None  # builds it for other sizes and choices
    length_of: Callable[[Any], float] | None = None  # rounds needed at other parameters, if they are more

    def __hash__(self) -> int:  # fields such as `cells` cannot be hashed
        return id(self)

    def __fingerprint__(self) -> Any:
        """Return the values that the keys of samples depend on, including the code that selects cells."""
        selecting = (Experiment.cells_under, Experiment.over, Experiment.at, Experiment.together)
        return {**vars(self), "of": None, "length_of": None}, *selecting

    def row(self) -> dict[str, Any]:
        """Return a row of a table."""
        cells = ", ".join(self.cells)
        return {"experiment": self.name, "rounds": self.num_rounds, "replicates": self.replicates, "cells": cells}

    def system_of(self, cell: str) -> System:
        """Return the system that a cell runs."""
        return self.systems.get(cell, self.system)

    def cells_under(self, reading: ReadingLike) -> list[Cell]:
        """Return the cells with their parameters."""
        params = {name: reading.params(**overrides) for name, overrides in self.cells.items()}
        fields = ("record_every", "observe", "start", "keeps_state", "is_double", "dims")
        shared = {field: getattr(self, field) for field in fields}
        return [
            Cell(name, self.system_of(name), values, self._length_at(name, values), **shared)
            for name, values in params.items()
        ]

    def _length_at(self, cell: str, params: Any) -> int:
        default_length = self.lengths.get(cell, self.num_rounds)
        needed = 0 if self.length_of is None else math.ceil(self.length_of(params))
        if needed <= default_length:
            return default_length
        if self.record_every > needed:  # only the last round is recorded
            return needed
        return math.ceil(needed / self.record_every) * self.record_every

    def at_setting(self, setting: Setting) -> "Experiment":
        """Return the experiment that `of` builds for a setting's sizes and choices, or this one if there are none.

        Raises: the errors of `of`. DeclarationError if the result has another name.
        """
        if not setting:
            return self
        values = []
        for axis, value in setting.items():
            choice = axis.choices[value] if isinstance(axis, Choice) else value
            values.append((axis.name, choice))
        built = _build(self.of, tuple(values))
        if built.name != self.name:
            raise DeclarationError(f"experiment {self.name}: `of` builds the experiment {built.name}. Change `of`.")
        return built

    def over(self, axis: str | Mapping[str, float] | Sequence[str], *values: Any) -> "Selection":
        """Return a selection of cells. A claim reads their runs one at a time, and each gives a component.

        Args:
            axis: the name of a parameter, which selects cells that set it and are equal otherwise. Or the names of
                cells, alone or with the abscissa of each.
            values: values of the parameter, by default all.
        Raises: DeclarationError if cells are missing or differ in other parameters.
        """
        if isinstance(axis, Mapping):
            names = tuple(axis)
            abscissa = tuple(map(float, axis.values()))
            return Selection(self, names, labels=names, abscissa=abscissa)
        if not isinstance(axis, str):
            names = tuple(axis)
            return Selection(self, names, labels=names)
        values_by_cell = {name: overrides[axis] for name, overrides in self.cells.items() if axis in overrides}
        if not values_by_cell:
            parameters = set().union(*self.cells.values())
            raise DeclarationError(
                f"experiment {self.name}: {unknown_name('parameter of its cells', axis, parameters, type(self.dims))}"
            )
        wanted_values = values or tuple(values_by_cell.values())
        cells = ()
        for value in wanted_values:
            cells += tuple(name for name, cell_value in values_by_cell.items() if cell_value == value)
        other_overrides = [{**self.cells[name], axis: None} for name in cells]  # all but the axis
        is_alike = all(overrides == other_overrides[0] for overrides in other_overrides)
        if len(cells) != len(wanted_values) or len(set(cells)) < len(cells) or not is_alike:
            first_two = list(values_by_cell.items())[:2]
            example = ", ".join(f"{name!r}: {shown(value)}" for name, value in first_two)
            also = "" if is_alike else ", and they also differ in other parameters"
            raise DeclarationError(
                f"experiment {self.name}: {len(cells)} cells set {axis} to {', '.join(map(str, wanted_values))}{also}. "
                f"Each value must select a single cell. Name the cells and their x values: over({{{example}}})."
            )
        abscissa = tuple(map(float, wanted_values))
        return Selection(self, cells, labels=cells, abscissa=abscissa)

    def at(self, cell: str) -> "Selection":
        """Return one cell, for a claim that labels its components. Raises: DeclarationError if it does not exist."""
        return Selection(self, (cell,))

    def together(self, *cells: str) -> "Selection":
        """Return cells whose runs are arguments of a single call. Raises: DeclarationError if one does not exist."""
        return Selection(self, cells, is_joint=True)


@functools.lru_cache(maxsize=256)  # so that equal settings have one system, which is compiled once
def _build(build: Any, settings: tuple[tuple[str, Any], ...]) -> Experiment:
    return build(dict(settings))


@dataclasses.dataclass(frozen=True)
class Selection:
    """Cells that a claim reads one at a time, jointly, or as a mapping by name."""

    experiment: Experiment
    cells: tuple[str, ...] | None  # None selects all, as a mapping
    labels: tuple[str, ...] | None = None  # labels of the components
    abscissa: tuple[float, ...] | None = None
    is_joint: bool = False
    is_computed: bool = False  # whether the claim has no randomness because it reads no run

    def __fingerprint__(self) -> Any:
        return Selection, self.cells, self.labels, self.is_joint

    def __post_init__(self) -> None:
        if self.cells == ():
            raise DeclarationError(f"experiment {self.experiment.name}: name at least one of its cells.")
        for cell in self.cells or ():
            if cell not in self.experiment.cells:
                raise DeclarationError(
                    f"experiment {self.experiment.name}: {unknown_name('cell', cell, self.experiment.cells)}"
                )

    def jointly(self) -> "Selection":
        return self.experiment.together(*(self.cells or ()))

    def call(self, function: Callable[..., Any], runs: Runs) -> list[Any]:
        """Return the function's results, one for each cell unless a call reads several."""
        if self.cells is None:
            return [function(runs)]
        selected = [runs[cell] for cell in self.cells]
        if self.is_joint:
            return [function(*selected)]
        return [function(run) for run in selected]

    def observer(self, function: Callable[..., Any]) -> Observer:
        """Return `Claim.observe`, whose values are (B, V), from a function whose values are (B,) or (V, B)."""

        def observe(runs: Runs) -> np.ndarray:
            parts = self.call(function, runs)
            if self.cells is None:
                return np.transpose(parts[0])
            names = [", ".join(self.cells)] if self.is_joint else self.cells
            for part, cell in zip(parts, names, strict=True):
                require_replicates_last(function, np.shape(part), len(runs[self.cells[0]].replicates), cell)
            return np.concatenate([np.atleast_2d(part) for part in parts]).T

        return observe

    def evaluator(self, value: Any) -> "Callable[[Runs], Any]":
        """Return a function of runs for a number, numbers (V,), or a function that returns (), (B,) or (V, B)."""
        if not callable(value):
            return lambda runs: value

        def evaluate(runs: Runs) -> np.ndarray:
            parts = [np.asarray(part) for part in self.call(value, runs)]
            if len(parts) == 1:
                return parts[0].T
            first_run = next(iter(runs.values()))
            ones = np.ones(len(first_run.replicates))  # repeats a single number for each replicate
            return np.concatenate([np.atleast_2d(part * ones) for part in parts]).T

        return evaluate

    def bind(self, criterion: Criterion) -> Criterion:
        """Return the criterion with its value, scale and trivial bound as functions of all runs."""
        values = {name: getattr(criterion, name) for name in ("value", "scale", "trivial")}
        functions = {name: self.evaluator(value) for name, value in values.items() if value is not None}
        abscissa = self.abscissa if criterion.is_over_grid else None
        return dataclasses.replace(criterion, **functions, abscissa=abscissa)


@dataclasses.dataclass(frozen=True, repr=False)
class Claim(Shown):
    """A testable consequence of a statement, with a criterion.

    `observe` returns a number or components for each replicate. The criterion compares their means with the claimed
    mean. For an ordering, the claimed mean is the larger side. For a probability, `observe` returns whether the event
    happened. For a counterexample, it returns whether the instance violates the statement. For a rate, the components
    are positive quantities at the grid points, and the value is the exponent of their slope. The slope is at least e
    for O(x^e) at small x, at most -e for O(n^-e) at large n, and `equal` to e for Theta(x^e).

    `ranges` gives the declared ranges (see `ranged`) of the values "observed", "predicted" and "scale".

    Raises: DeclarationError for an incomplete declaration.
    """

    id: str  # lower-case letters and digits, joined by hyphens and dots, such as "mine.lemma-4"
    paper: str
    where: str  # such as "Proposition 4, Eq. (18)"
    statement: str  # one sentence, in our words
    experiment: Experiment
    observe: Observer
    criterion: Criterion  # its value, scale and trivial are functions of runs that broadcast to `observe`
    labels: Callable[[Runs], Sequence[str]] | None = None  # names of the V components
    hypotheses: Callable[[Any, Runs], Sequence[tuple[str, bool]]] | None = None  # (dims, runs) -> conditions
    formula: str = ""  # the statement in LaTeX
    replaced_by: str | None = None  # the correct claim, if this one is wrong
    module: str = ""  # the module that declares it
    function: Callable[..., Any] | None = None  # the function in its file, which `observe` calls
    is_computed: bool = False  # whether the claim has no randomness
    ranges: Mapping[str, Range] = dataclasses.field(default_factory=dict)  # for "observed", "predicted" and "scale"
    free: tuple[FreeAxis, ...] = ()  # its statement's free parameters
    cells: tuple[str, ...] | None = None  # cells that it reads, if known without a run

    @property
    def kind(self) -> str:
        """The kind of its test, such as "upper_bound"."""
        return self.criterion.kind

    @property
    def side(self) -> Side | None:
        """The side of a probability or a rate, also in a limit."""
        return self.criterion.side

    @property
    def margin(self) -> float:
        """The margin of its test."""
        return self.criterion.margin

    def row(self) -> dict[str, Any]:
        """Return a row of a table."""
        return {"claim": self.id, "where": self.where, "kind": self.kind, "statement": self.statement}

    def __post_init__(self) -> None:
        for name, id in {"id": self.id, "replaced_by": self.replaced_by}.items():
            if id is not None and not is_id(id):
                raise DeclarationError(f"claim {shortened(self.id)}: {name}={shortened(id)} must be {ID_WORDS}.")
        for complaint in self.criterion.complaints():  # the first is enough
            raise DeclarationError(f"claim {self.id}: {complaint}")
        if not self.statement:
            raise DeclarationError(f"claim {self.id}: describe the claim in one sentence, as the docstring.")


def require_replicates_last(
    function: Callable[..., Any], shape: tuple[int, ...], count: int, cell: str | None = None
) -> None:
    """Raise DeclarationError unless a function's result has a correct shape for `count` replicates."""
    if len(shape) not in (1, 2) or shape[-1] != count:
        name = getattr(function, "__name__", "the function")
        origin = "" if cell is None else f" of {shortened(cell)}"
        raise DeclarationError(
            f"{name} returned shape {shape} for {count} replicates{origin}. The last axis is for replicates. Return "
            f"shape ({count},) for one number per replicate, or (V, {count}) for V components."
        )


_REGISTERED: dict[str, Claim] = {}


def register(claim: Claim) -> None:
    """Add a claim to the registry. Raises: DeclarationError if the id is taken."""
    if claim.id in _REGISTERED:
        raise DeclarationError(f"claim {claim.id} is already registered. Choose another id.")
    _REGISTERED[claim.id] = claim


def registered() -> dict[str, Claim]:
    return dict(_REGISTERED)


def excess(observed: np.ndarray, bound: Any) -> np.ndarray:
    return np.maximum(observed - bound, 0)
