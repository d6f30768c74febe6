"""Values and names that `vary` takes."""

import jax
import pytest

import moe_theory as mt
from moe_theory import continual
from moe_theory.core.errors import InvalidValueError


def test_vary_names_that_meet():
    """Would catch a quantity that another one of the same joined name replaces."""
    dims = continual.Dims(max_experts=2, num_tasks=2, num_features=4, num_samples=2)
    cases = [("a", {"a_b": 2.0, "a": {"b": 1.0}}), ("round", {"round": 1.0, "round_": 2.0})]
    for _, kept in cases:
        data = mt.vary(
            continual.system(dims),
            continual.Params(num_experts=2),
            3,
            2,
            observe=lambda state, info, kept=kept: jax.tree.map(lambda number: number + 0 * info.error, kept),
        )
        assert sorted(float(values[0, 0]) for values in data.data_vars.values()) == [1.0, 2.0]


def test_vary_values_of_several_types():
    """Would catch a comparison of values that have no order."""
    dims = continual.Dims(max_experts=2, num_tasks=2, num_features=4, num_samples=2)
    with pytest.raises(InvalidValueError) as error:
        mt.vary(continual.system(dims), continual.Params(num_experts=2), 3, 2, terminate=[None, True])
    assert error.value.argument == "terminate"
