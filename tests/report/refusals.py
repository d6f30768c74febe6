"""Errors that calls end with, by their types and by the arguments that they name."""

from collections.abc import Callable
from typing import Any

import pytest


def refusal(kind: type[Exception], call: Callable[..., Any], /, *arguments: Any, **options: Any) -> Any:
    """The error of this kind that a call ends with, which says why in one line."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert len(str(caught.value).splitlines()) == 1
    return caught.value
