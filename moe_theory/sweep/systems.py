"""Systems that specifications can name, with their sizes, parameters, readings, choices and observables."""

import dataclasses
import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int, PyTree

from moe_theory.core import constraints
from moe_theory.core.errors import DeclarationError, InvalidValueError, unknown_name
from moe_theory.core.linear import Numbers
from moe_theory.core.papers import Reading, all_papers, find_paper, paper_names
from moe_theory.core.system import Info, Observe, State, System
from moe_theory.core.userfile import function_at, is_place
from moe_theory.runs.cells import compute_chunk
from moe_theory.runs.key import code_digest


@dataclasses.dataclass(frozen=True)
class Observable:
    name: str
    about: str  # a description, with unit and source
    read: Callable[[State, Info], Array]
    axes: tuple[str, ...] = ()  # names of its own axes, such as ("expert_index",)


@dataclasses.dataclass(frozen=True)
class UserObservable:
    """A function (state, info) -> scalar in a user's file. The file runs when the function is first needed."""

    place: str  # FILE:NAME
    axes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.place.rpartition(":")[2]

    @property
    def about(self) -> str:
        return f"of {self.place}"

    @property
    def read(self) -> Callable[[State, Info], Array]:
        return _scalar_reader(self.place, function_at(self.place, "observables"))


@dataclasses.dataclass(frozen=True)
class ClosedForm:
    """The value of a paper's formula in each recorded round, in float64 on the host."""

    name: str
    about: str  # a description, with source
    # (dims, params, rounds (R, 1), records of `read` (R, ..., B)) -> (R, B), or (R, 1) if all replicates are equal.
    formula: Callable[[Any, Any, Int[np.ndarray, "R 1"], PyTree], Numbers | float]
    read: Callable[[State, Info], PyTree] | None = None  # the formula's input from one replicate's round
    beside: str = ""  # the observable whose panel shows the formula
    axes: tuple[str, ...] = ()


Quantity = Observable | UserObservable | ClosedForm


@dataclasses.dataclass(frozen=True, kw_only=True)
class Sweepable:
    about: str
    dims: type  # the dataclass of static sizes
    readings: Mapping[str, Reading]  # by name. The first is the default
    build: Callable[..., System]  # (dims, **choices). Systems are cached, so equal sizes share a program
    observables: Mapping[str, Observable]
    default_observables: tuple[str, ...] = ()  # observables of a sweep that names none, by default all
    closed_forms: tuple[ClosedForm, ...] = ()
    # Default sizes. By default `max_experts` is the largest num_experts of the grid.
    default_dims: Mapping[str, int] = dataclasses.field(default_factory=dict)
    # Options for every static part, such as a policy, by the part's name and their own. The first is the default.
    choices: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    # (dims, params). Raises InvalidValueError.
    check: Callable[[Any, Any], Any] = lambda dims, params: constraints.check(params, dims)

    @functools.cached_property
    def code(self) -> str:
        """A digest of all code that decides the system's numbers."""
        reads = {name: observable.read for name, observable in self.observables.items()}
        formulas = {form.name: (form.formula, form.read) for form in self.closed_forms}
        return code_digest(self.build, self.dims, self.params, self.choices, reads, formulas, compute_chunk)

    @property
    def default_reading(self) -> str:
        return next(iter(self.readings))

    @property
    def params(self) -> Any:
        """The class of the system's Params, a NamedTuple."""
        return type(self.readings[self.default_reading].defaults)

    @property
    def parameters(self) -> tuple[str, ...]:
        return self.readings[self.default_reading].defaults._fields

    @property
    def sizes(self) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(self.dims))

    def make_dims(self, sizes: Mapping[str, float | str]) -> Any:
        """Return the system's static sizes, from values by name. Raises: MoeTheoryError for impossible sizes."""
        return self.dims(**sizes)

    def make_params(self, values: Mapping[str, float | str]) -> Any:
        """Return the system's Params, from values by name. Other names are ignored."""
        return self.params._make(values[name] for name in self.parameters)

    def system(self, dims: Any, choices: Mapping[str, str]) -> System:
        """Return the system with these sizes and choices. Raises: UnknownNameError."""
        parts = []
        for part_name, options in self.choices.items():
            name = choices.get(part_name, next(iter(options)))
            if name not in options:
                raise unknown_name(part_name, name, options)
            parts.append((part_name, options[name]))
        return _build_once(self.build, dims, tuple(parts))

    def quantities(self, names: Sequence[str]) -> dict[str, Quantity]:
        """Return observables and closed forms by name. FILE:NAME names a user's (state, info) -> scalar.

        No file is read. Raises: UnknownNameError, or DeclarationError if two have the same name.
        """
        available: dict[str, Quantity] = dict(self.observables)
        available |= {form.name: form for form in self.closed_forms}
        quantities: dict[str, Quantity] = {}
        for name in names:
            if not is_place(name) and name not in available:
                raise unknown_name("observable", name, available)
            quantity = UserObservable(name) if is_place(name) else available[name]
            if quantity.name in quantities or (is_place(name) and quantity.name in available):
                raise DeclarationError(f"{name}: another observable is called {quantity.name}. Rename the function.")
            quantities[quantity.name] = quantity
        return quantities

    def observe(self, names: Sequence[str]) -> Observe:
        """Return a function of (state, info) that records these quantities. Equal names give the same function."""
        quantities = self.quantities(names)
        return _observer(tuple((name, quantity.read) for name, quantity in quantities.items()))


def sweepable(name: str) -> Sweepable:
    """Return a system of an installed paper. Raises: UnknownNameError."""
    if name in paper_names() and name in find_paper(name).systems:  # without importing the other papers
        return find_paper(name).import_system(name)
    for paper in all_papers().values():
        if name in paper.systems:
            return paper.import_system(name)
    raise unknown_name("system", name, system_names())


def system_names() -> list[str]:
    return list(itertools.chain.from_iterable(paper.systems for paper in all_papers().values()))


def observables(*members: Observable | Callable[[State, Info], Array]) -> dict[str, Observable]:
    """Return observables by name. A function (state, info) -> scalar is described by its docstring."""
    by_name = {}
    for member in members:
        if isinstance(member, Observable):
            by_name[member.name] = member
        else:
            words = " ".join((member.__doc__ or "").split()).rstrip(".")
            by_name[member.__name__] = Observable(member.__name__, words, member)
    return by_name


@functools.lru_cache  # so that a program is compiled once
def _scalar_reader(place: str, function: Callable[[State, Info], Array]) -> Callable[[State, Info], Array]:
    def read(state: State, info: Info) -> Array:
        value = jnp.asarray(function(state, info), float)
        if value.shape != ():
            raise InvalidValueError(
                f"{place} returns an array of shape {value.shape}, not one number. Return a sum, a mean or one entry.",
                argument="observables",
            )
        return value

    return read


@functools.lru_cache
def _build_once(build: Callable[..., System], dims: Any, parts: tuple[tuple[str, Any], ...]) -> System:
    return build(dims, **dict(parts))


@functools.lru_cache  # so that a program is compiled once
def _observer(reads: tuple[tuple[str, Callable[[State, Info], PyTree] | None], ...]) -> Observe:
    def observe(state: State, info: Info) -> dict[str, PyTree]:
        return {name: read and read(state, info) for name, read in reads}  # None for formulas without input

    return observe
