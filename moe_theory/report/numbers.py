"""Numbers in words that are as short as possible."""

import math
import numbers
from typing import Any

from moe_theory.core.errors import shown

ROUNDING = 1e-12  # a smaller relative standard error counts as 0


def number(value: float | int) -> str:
    """Return a whole number in full, another one to four digits, or a dash if it is not finite."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value):
        return format(value + 0.0, ".4g")  # -0.0 becomes 0
    return "–"


def with_error(value: float, error: float) -> str:
    """Return a number with two digits of its error, such as 2.74 ± 0.07."""
    if not (math.isfinite(value) and math.isfinite(error) and error > ROUNDING * abs(value)):
        return number(value)
    place = math.floor(math.log10(error)) - 1  # power of ten of the error's second digit
    if max(abs(value), error) >= 1e6 or place < -9:  # too many digits without an exponent
        return f"{value:.3g} ± {error:.2g}"
    num_decimals = max(-place, 0)
    return f"{value:,.{num_decimals}f} ± {error:.{num_decimals}f}"


def percentage(share: float) -> str:
    if math.isfinite(share):
        return f"{100 * share:.3g} %"
    return "–"


def setting(value: Any) -> str:
    """Return a parameter's value: a text, a whole number in full, or at most four digits."""
    if isinstance(value, str):
        return value
    is_fraction = isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral)
    if is_fraction and not (float(value).is_integer() and abs(float(value)) < 1e6):
        return f"{value:.4g}"
    return shown(value)
