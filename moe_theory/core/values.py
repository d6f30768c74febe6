"""Values of parameters as people write them: read as the parameter's type, shown as short as they can be."""

from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidParamsError

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


def typed(name: str, value: Any, defaults: Any) -> bool | int | float:
    """A number, or its text, as the parameter's type. Raises: InvalidParamsError for what is no such number."""
    kind = np.asarray(getattr(defaults, name)).dtype.kind
    text = str(value).strip()
    if kind == "b":
        if text.lower() not in _BOOLEANS:
            raise InvalidParamsError(f"{name}={text} must be true or false.")
        return _BOOLEANS[text.lower()]
    try:
        number = float(text)
    except ValueError:
        raise InvalidParamsError(f"{name}={text} must be a number. Change {name}.") from None
    if kind == "f":
        return number
    if not number.is_integer():
        raise InvalidParamsError(f"{name}={text} must be a whole number. Change {name}.")
    return int(number)


def shown(value: Any) -> str:
    """A value as short as it can be and still be read back as the same."""
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value)).lower()
    short = f"{value:.6g}"
    return short if float(short) == value else repr(value)
