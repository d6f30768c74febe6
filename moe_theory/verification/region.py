"""A statement's free parameters, which its hypotheses leave open, as the axes of a region.

    statement("lemma-11", ..., free=(Order("balance_weight", least=0.5, most=1.5), Scale("min_strength", 0, 1)))

An axis is a parameter that changes in every cell, or a size or distribution for which the experiment's `of` builds the
runs. A setting has a value for each changed axis.
"""

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

from moe_theory.core.constraints import Whole, Within, shown
from moe_theory.core.errors import DeclarationError, InvalidValueError, text_of, unknown_name
from moe_theory.verification.verdict import FreeQuantity

WHY = "its statement leaves only this range free"
LOG_RATIO = 10  # a range with this ratio of its ends is logarithmic
Number = bool | int | float


def is_log(low: Number, high: Number) -> bool:
    """Return whether a range is logarithmic, because its ends are positive and far apart."""
    return low > 0 and high >= LOG_RATIO * low


def tidy(value: float) -> float:
    """Return a number of six digits, which commands repeat exactly."""
    return float(f"{value:.6g}")


@dataclasses.dataclass(frozen=True)
class _Ranged:
    parameter: str

    @property
    def name(self) -> str:
        return self.parameter

    @property
    def ends(self) -> tuple[Number, Number]:
        raise NotImplementedError

    def check(self) -> None:
        low, high = self.ends
        if not (math.isfinite(low) and math.isfinite(high) and low < high):
            raise DeclarationError(
                f"free {self.name}: its lower end {shown(low)} must be below its upper end {shown(high)}. Move an end."
            )

    def at(self, place: float) -> Number:
        """Return the value at a place from 0, the lower end, to 1."""
        return tidy(self._value_at(place))

    def _value_at(self, place: float) -> float:
        low, high = self.ends
        if is_log(low, high):
            return math.exp(math.log(low) + place * (math.log(high) - math.log(low)))
        return low + place * (high - low)

    def halfway(self, one: Any, other: Any) -> Any:
        """Return the value in the middle of two, or None if no value is between them."""
        middle = math.sqrt(one * other) if is_log(*self.ends) else (one + other) / 2
        middle = round(middle) if isinstance(one, int) else tidy(middle)
        if min(one, other) < middle < max(one, other):
            return middle
        return None

    def parsed(self, text: Any) -> Number:
        try:
            value = float(text)
        except ValueError:
            raise InvalidValueError(f"{self.name}={text} must be a number. Change {self.name}.") from None
        low, high = self.ends
        constraint: Any = Whole if isinstance(low, int) else Within
        problem = constraint(low, high, why=WHY).complaint(self.name, value)
        if problem:
            raise InvalidValueError(f"{self.name}={shown(value)} {problem}")
        return type(low)(value)

    def is_built(self, experiment: Any) -> bool:
        """Return whether another value needs another experiment, and not only other parameters."""
        return False

    def region(self) -> str:
        return " to ".join(map(shown, self.ends))

    def _number_in(self, params: Any, name: str) -> float:
        if name not in params._fields:
            raise DeclarationError(f"free {self.name}: {unknown_name('parameter', name, params._fields)}")
        return float(getattr(params, name))


@dataclasses.dataclass(frozen=True)
class Order(_Ranged):
    """An order. The parameter is a constant times a power of `of`.

    The cell's value at the `recorded` power gives the constant. O() allows larger powers, and Omega() smaller ones.
    """

    of: str = "truth_scale"
    recorded: float = 0.5
    least: float = 0.5
    most: float = 2.0

    @property
    def name(self) -> str:
        return f"{self.parameter}_order"

    @property
    def ends(self) -> tuple[Number, Number]:
        return float(self.least), float(self.most)

    def into(self, params: Any, value: float) -> Any:
        factor = self._number_in(params, self.of) ** (value - self.recorded)
        return params._replace(**{self.parameter: self._number_in(params, self.parameter) * factor})

    def recorded_at(self, params: Any, dims: Any) -> float:
        """Return the recorded power, which all cells have."""
        for name in (self.of, self.parameter):
            self._number_in(params, name)
        return self.recorded


@dataclasses.dataclass(frozen=True)
class Scale(_Ranged):
    """A real parameter from `low` to `high`, or its ratio to the parameter `of`."""

    low: float
    high: float
    of: str | None = None

    @property
    def name(self) -> str:
        if self.of is None:
            return self.parameter
        return f"{self.parameter}/{self.of}"

    @property
    def ends(self) -> tuple[Number, Number]:
        return float(self.low), float(self.high)

    def into(self, params: Any, value: float) -> Any:
        return params._replace(**{self.parameter: value * self._unit(params)})

    def recorded_at(self, params: Any, dims: Any) -> float:
        return tidy(self._number_in(params, self.parameter) / self._unit(params))

    def _unit(self, params: Any) -> float:
        if self.of is None:
            return 1.0
        return self._number_in(params, self.of)


@dataclasses.dataclass(frozen=True)
class Size(_Ranged):
    """A whole number from `low` to `high`, which is a parameter or a size of the experiment.

    By default its recorded value is the one in the parameters or dims.
    """

    low: int
    high: int
    recorded: int | None = None

    @property
    def ends(self) -> tuple[Number, Number]:
        return int(self.low), int(self.high)

    def at(self, place: float) -> int:
        low = int(self.low)
        high = int(self.high)
        # On a linear range each whole number has an equal share. Place 1 would be beyond `high`.
        value = self._value_at(place) if is_log(low, high) else low + math.floor(place * (high - low + 1))
        return min(max(round(value), low), high)

    def is_built(self, experiment: Any) -> bool:
        return experiment.of is not None or hasattr(experiment.dims, self.name)

    def into(self, params: Any, value: int) -> Any:
        return params._replace(**{self.parameter: value})

    def recorded_at(self, params: Any, dims: Any) -> int:
        if self.recorded is not None:
            return self.recorded
        owner = params if self.parameter in params._fields else dims
        return int(getattr(owner, self.parameter))


@dataclasses.dataclass(frozen=True)
class Choice:
    """A distribution, a system or another choice, by label. The first is the recorded one.

    Values that are mappings set parameters in every cell. Other values go to the experiment's `of`.
    """

    name: str
    choices: Mapping[str, Any]

    def __hash__(self) -> int:
        return hash((self.name, *self.choices))

    @property
    def ends(self) -> tuple[str, ...]:
        return tuple(self.choices)

    def check(self) -> None:
        if len(self.choices) < 2:
            raise DeclarationError(f"free {self.name}: a choice needs at least two labels. Add a label.")
        for label in self.choices:
            if "," in label or "=" in label:
                raise DeclarationError(f"free {self.name}: --set cannot name {label!r}. Leave out commas and =.")

    def at(self, place: float) -> str:
        labels = self.ends
        return labels[min(int(place * len(labels)), len(labels) - 1)]  # place 1 has the last label

    def halfway(self, one: Any, other: Any) -> None:
        """Return None, because labels have no middle."""

    def parsed(self, text: Any) -> str:
        if text not in self.choices:
            raise InvalidValueError(str(unknown_name(self.name, str(text), self.choices)))
        return text

    def is_built(self, experiment: Any) -> bool:
        return not all(isinstance(value, Mapping) for value in self.choices.values())

    def into(self, params: Any, value: str) -> Any:
        return params._replace(**self.choices[value])

    def recorded_at(self, params: Any, dims: Any) -> str:
        return self.ends[0]

    def region(self) -> str:
        return " or ".join(self.ends)


FreeAxis = Order | Scale | Size | Choice
Setting = Mapping[FreeAxis, Any]  # values of the changed axes


def described(axis: FreeAxis, recorded: Sequence[Any]) -> FreeQuantity:
    recorded_ends = (min(recorded), max(recorded)) if recorded else ()
    words = " to ".join(dict.fromkeys(map(text_of, recorded_ends)))  # one word if both ends are equal
    if isinstance(axis, Choice):
        return FreeQuantity(axis.name, axis.region(), words, labels=list(axis.ends))
    values = list(map(float, dict.fromkeys(recorded_ends)))
    return FreeQuantity(axis.name, axis.region(), words, ends=list(map(float, axis.ends)), recorded_values=values)


def varies(axis: FreeAxis, experiment: Any, cells: Sequence[str] | None = None) -> bool:
    """Return whether an axis of a whole paper applies to these cells, which must agree on its parameter."""
    if axis.is_built(experiment) or not isinstance(axis, Order | Scale):
        return False
    if isinstance(axis, Order):  # changes the parameter by a factor that suits each cell
        return True
    values = set()
    for name, cell in experiment.cells.items():
        if cells is None or name in cells:
            value = cell.get(axis.parameter)
            unit = cell.get(axis.of)
            # The reading sets a parameter that the cell does not set, so the pair stands for the ratio.
            values.add((value, unit) if None in (value, unit) else tidy(float(value / unit)))
    return len(values) <= 1


def require_varies(axis: FreeAxis, experiment: Any) -> None:
    if axis.is_built(experiment) and experiment.of is None:
        value = getattr(experiment.dims, axis.name, axis.ends[0])
        raise DeclarationError(
            f"free {axis.name}, {axis.region()}: the experiment {experiment.name} is built with {axis.name}={value} "
            f"only. Give it of=..., a function that builds it for a setting, or leave out {axis.name}."
        )
