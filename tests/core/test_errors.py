"""The errors that users see, and what closed forms suppose of loads, in every paper that has such forms."""

import inspect

import jax
import numpy as np
import pytest

from moe_theory.continual import corrected as continual_corrected
from moe_theory.continual import theory as continual_theory
from moe_theory.core import errors
from moe_theory.core.errors import InvalidValueError
from moe_theory.edge import corrected as edge_corrected
from moe_theory.edge import theory as edge_theory


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


@pytest.mark.parametrize("name", ["zzz", "continual.zzz"])
def test_nothing_is_suggested_where_nothing_is_near(name):
    """Would catch a guess at random, one for the sake of the paper's name alone, and a list without an end."""
    assert str(errors.unknown_name("reading", name, ["b", "a", "b"])) == f"unknown reading '{name}'. Known: a, b."
    many = str(errors.unknown_name("claim", name, [f"continual.lemma-{number}" for number in range(10, 40)]))
    assert many.startswith(f"unknown claim '{name}'. Known: continual.lemma-10, ")
    assert many.endswith(", continual.lemma-21 and 18 more.")


GAPS = continual_theory.Gaps(1.0, 3.0, 0.5, 3.5)
OF_LOADS = {
    f"{module.__name__}.{name}": function
    for module in (continual_theory, continual_corrected, edge_theory, edge_corrected)
    for name, function in vars(module).items()
    if inspect.isfunction(function) and {"loads", "round"} <= inspect.signature(function).parameters.keys()
    if "pool_gaps" in inspect.signature(function).parameters
}


def value(function, loads, round):
    given = {"pool_gaps": GAPS, "ratio": 0.5, "loads": loads, "round": round}
    if "explored_loads" in inspect.signature(function).parameters:
        given["explored_loads"] = loads // 2
    return function(**given)


def test_loads_of_other_routing_are_refused():
    for name, function in OF_LOADS.items():
        for loads in ([3, 3], [1, 1], [[2, 0, 4], [1, 3, 2]]):
            with pytest.raises(InvalidValueError):
                pytest.fail(f"{name}: {value(function, np.array(loads), 3)}")


def test_what_is_traced_is_no_number_instead():
    assert len(OF_LOADS) >= 7
    for name, function in OF_LOADS.items():
        traced = jax.jit(lambda loads, function=function: value(function, loads, 3))
        assert all(np.isnan(leaf) for leaf in jax.tree.leaves(traced(np.array([3, 3])))), name
        expected = jax.tree.leaves(value(function, np.array([2.0, 1.0]), 3))
        np.testing.assert_allclose(jax.tree.leaves(traced(np.array([2, 1]))), expected, rtol=1e-5, err_msg=name)
