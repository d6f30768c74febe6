"""The errors that users see."""

import inspect

import pytest

from moe_theory.core import errors


@pytest.mark.parametrize("kind", [value for _, value in inspect.getmembers(errors, inspect.isclass)])
def test_every_error_may_be_caught_as_expected(kind):
    """Would catch an error that the command line would show as a traceback, or that hides from `except ValueError`."""
    if issubclass(kind, Exception):
        assert issubclass(kind, errors.MoeTheoryError)
        assert issubclass(kind, ValueError)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [("leaning_rate", "learning_rate"), ("lerning", "learning_rate"), ("nois", "noise_scale"), ("trth", "truth_scale")],
)
def test_the_nearest_name_is_suggested(name, nearest):
    """Would catch a message without a way out."""
    known = ["truth_scale", "noise_scale", "learning_rate"]
    error = errors.unknown_name("parameter", name, known)
    assert isinstance(error, errors.UnknownNameError)
    assert str(error).startswith(f"unknown parameter {name!r}. Did you mean {nearest!r}?")
    assert all(other in str(error) for other in known)


def test_any_iterable_of_names_will_do():
    """Would catch names exhausted by the search, and a name that resembles none or has none to resemble."""
    error = errors.unknown_name("reading", "zzz", (name for name in ("b", "a")))
    assert str(error).startswith("unknown reading 'zzz'. Did you mean ")
    assert "a" in str(error).split("?")[1]
    assert "b" in str(error).split("?")[1]
    nothing = str(errors.unknown_name("claim", "x", {}))
    assert nothing.startswith("unknown claim 'x'")
    assert "none" in nothing
    assert "Did you mean" not in nothing
