"""Axes of a map: which values of a parameter are looked at first, and which between them."""

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidParamsError, InvalidRunError
from moe_theory.core.values import typed

Number = bool | int | float
LOG_RATIO = 10  # a range that spans more than this is looked at on a logarithmic scale
MOST_AXES = 2  # what a picture shows


@dataclasses.dataclass(frozen=True)
class Axis:
    """One parameter's values, in ascending order."""

    name: str
    values: tuple[Number, ...]  # of the coarse grid
    is_log: bool  # whether values are spread by their ratios
    is_listed: bool  # whether only these values are meant, and none between them

    @property
    def low(self) -> Number:
        """The smallest value."""
        return self.values[0]

    @property
    def high(self) -> Number:
        """The largest value."""
        return self.values[-1]

    def between(self, lower: Number, upper: Number) -> Number | None:
        """The value halfway between two; None where there is none."""
        if self.is_listed:
            return None
        middle = math.sqrt(lower * upper) if self.is_log else (lower + upper) / 2
        middle = round(middle) if isinstance(lower, int) else _tidy(middle)
        return middle if lower < middle < upper else None

    def most_values(self, levels: int) -> int:
        """How many values there can be at most when neighbours are halved so many times."""
        if self.is_listed:
            return len(self.values)
        count = (len(self.values) - 1) * 2**levels + 1
        return min(count, int(self.high - self.low) + 1) if isinstance(self.low, int) else count

    def place(self, values: Any) -> np.ndarray:
        """Where values lie on the axis: 0 at the smallest, 1 at the largest."""
        low, high = self._scaled([self.low, self.high])
        return (self._scaled(values) - low) / (high - low)

    def value_at(self, places: Any) -> np.ndarray:
        """The inverse of `place`, as real numbers."""
        low, high = self._scaled([self.low, self.high])
        values = low + np.asarray(places, np.float64) * (high - low)
        return np.exp(values) if self.is_log else values

    def _scaled(self, values: Any) -> np.ndarray:
        values = np.asarray(values, np.float64)
        return np.log(values) if self.is_log else values


def parse_axes(texts: Sequence[str], defaults: Any, num_points: int) -> list[Axis]:
    """The axes that texts such as "signal_scale=0.5..20" or "num_clusters=1,2,3" describe.

    Args:
        defaults: the parameters of a reading, which say what type a value has.
        num_points: of the coarse grid, on an axis that is a range.
    Raises: InvalidParamsError or InvalidRunError for a text that describes none, or too many.
    """
    if not 1 <= len(texts) <= MOST_AXES:
        raise InvalidRunError(f"{len(texts)} axes cannot be drawn as a map: give --over once or twice.")
    axes = [_parse(text, defaults, num_points) for text in texts]
    if len({axis.name for axis in axes}) < len(axes):
        raise InvalidRunError(f"--over {texts[-1]}: {axes[0].name} is an axis already. Name another parameter.")
    return axes


def name_in(text: str) -> str:
    """The parameter that the text of an axis names. Raises: InvalidParamsError where it names none."""
    name, equals, rest = (part.strip() for part in text.partition("="))
    if not (name and equals and rest):
        raise InvalidParamsError(
            f"--over {text} is no axis: write it as --over signal_scale=0.5..20 or --over num_clusters=1,2,3."
        )
    return name


def _parse(text: str, defaults: Any, num_points: int) -> Axis:
    name, described = name_in(text), text.partition("=")[2]
    is_listed = ".." not in described
    parts = described.split("," if is_listed else "..", maxsplit=-1 if is_listed else 1)
    values = [typed(name, part, defaults) for part in parts]
    if not all(math.isfinite(value) for value in values):
        raise InvalidParamsError(f"--over {text}: values of {name} must be finite numbers.")
    if not is_listed and isinstance(values[0], bool):
        raise InvalidParamsError(f"--over {text}: {name} is true or false. Write it as --over {name}=false,true.")
    if not is_listed and values[0] >= values[1]:
        raise InvalidParamsError(f"--over {text}: {parts[0].strip()} must be below {parts[1].strip()}. Swap them.")
    values = sorted(set(values))
    if len(values) < 2:
        raise InvalidParamsError(f"--over {text}: an axis needs at least two different values.")
    is_log = values[0] > 0 and values[-1] >= LOG_RATIO * values[0]
    return Axis(
        name, tuple(values if is_listed else _spread(values[0], values[-1], num_points, is_log)), is_log, is_listed
    )


def _spread(low: Number, high: Number, count: int, is_log: bool) -> list[Number]:
    spread = np.geomspace(low, high, count) if is_log else np.linspace(low, high, count)
    inner = (round(value) if isinstance(low, int) else _tidy(value) for value in spread[1:-1].tolist())
    return sorted({low, *(value for value in inner if low < value < high), high})


def _tidy(value: float) -> float:
    """Short enough to be read and typed."""
    return float(f"{value:.6g}")
