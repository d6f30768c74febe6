"""What closed forms suppose of loads, in every paper that has such forms.

Catches one that gives a number for loads of another routing than it is about: top-2, dropped tasks, experts first.
"""

import inspect

import jax
import numpy as np
import pytest

from moe_theory.continual import corrected as continual_corrected
from moe_theory.continual import theory as continual_theory
from moe_theory.core.errors import InvalidValueError
from moe_theory.edge import corrected as edge_corrected
from moe_theory.edge import theory as edge_theory

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


@pytest.mark.parametrize("name", OF_LOADS)
@pytest.mark.parametrize(("loads", "round"), [([3, 3], 3), ([1, 1], 3), ([[2, 0, 4], [1, 3, 2]], 3)])
def test_loads_of_other_routing_are_refused(name, loads, round):
    with pytest.raises(InvalidValueError, match="top-1 routing"):
        value(OF_LOADS[name], np.array(loads), round)


@pytest.mark.parametrize("name", OF_LOADS)
def test_what_is_traced_is_no_number_instead(name):
    function = jax.jit(lambda loads: value(OF_LOADS[name], loads, 3))
    assert all(np.isnan(each) for each in jax.tree.leaves(function(np.array([3, 3]))))
    expected = value(OF_LOADS[name], np.array([2.0, 1.0]), 3)
    for found, each in zip(jax.tree.leaves(function(np.array([2, 1]))), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(found, each, rtol=1e-5)


def test_there_are_such_forms():
    assert len(OF_LOADS) >= 7
