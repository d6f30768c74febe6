"""Ranges of numbers, and places in them."""

import dataclasses
import math
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

LOG_RATIO = 10  # a range that spans as much is logarithmic
Number = bool | int | float


@dataclasses.dataclass(frozen=True)
class Span:
    """Numbers from `low` to `high`: whole if both are, logarithmic if positive and far apart."""

    low: Number
    high: Number

    @property
    def is_log(self) -> bool:
        return self.low > 0 and self.high >= LOG_RATIO * self.low

    def value_at(self, places: Any) -> "np.ndarray":
        import numpy as np  # which takes .1 s, and cards need no ranges

        ends = np.asarray([self.low, self.high], np.float64)
        low, high = np.log(ends) if self.is_log else ends
        values = low + np.asarray(places, np.float64) * (high - low)
        return np.exp(values) if self.is_log else values

    def between(self, lower: Number, upper: Number) -> Number | None:
        middle = math.sqrt(lower * upper) if self.is_log else (lower + upper) / 2
        middle = round(middle) if isinstance(lower, int) else tidy(middle)
        if lower < middle < upper:
            return middle
        return None


def tidy(value: float) -> float:
    return float(f"{value:.6g}")
