"""What must be refused, by the type of the error and the argument that it names."""

import pytest

from moe_theory.core.errors import InvalidValueError


def refuse(argument, call, *arguments, kind=InvalidValueError, **options):
    """The call must raise an error of this kind about this argument, in one line."""
    with pytest.raises(kind) as caught:
        call(*arguments, **options)
    assert caught.value.argument == argument, str(caught.value)
    assert "\n" not in str(caught.value)
    return str(caught.value)
