"""`mt.vary`: every setting is what `simulate_batch` gives alone, under labels that say what it is."""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

import moe_theory as mt
from moe_theory import continual
from moe_theory.core.errors import InvalidValueError, UnknownNameError

DIMS = continual.Dims(max_experts=4, num_tasks=3, num_features=6, num_samples=2)
SYSTEM, PARAMS = continual.system(DIMS), continual.Params(num_experts=2)


def test_a_setting_has_the_numbers_that_it_has_alone():
    data = mt.vary(SYSTEM, PARAMS, 7, 96, 3, seed=5, num_experts=[4, 1], learning_rate=(0.1, 0.5))
    assert data.generalization_error.dims == ("num_experts", "learning_rate", "round", "replicate")
    assert data["round"].values.tolist() == [3, 6, 7]
    for size in (1, 4):
        for rate in (0.1, 0.5):
            params = PARAMS._replace(num_experts=size, learning_rate=rate)
            _, info = mt.simulate_batch(SYSTEM, mt.root_key(5), 96, params, 7, 3)
            here = data.sel(num_experts=size, learning_rate=rate)
            for name, expected in info._asdict().items():
                np.testing.assert_array_equal(here[name], expected)


class Kept(NamedTuple):
    loads: Float[Array, " M"]  # how often each expert was chosen
    pair: Float[Array, " M"]
    other: Float[Array, " M"]
    round: Float[Array, ""]  # a name that a coordinate has


def kept(state, info):
    return Kept(state.visits * 1.0, jnp.zeros(2), jnp.zeros(4), state.round * 1.0)


def test_labels_are_those_of_the_record_where_they_fit():
    data = mt.vary(SYSTEM, PARAMS, 2, 8, observe=kept)
    assert data.loads.dims == ("round", "M", "replicate")
    assert data.loads.long_name == "how often each expert was chosen"
    assert data.pair.dims == ("round", "pair_0", "replicate")  # M has another size there
    assert data.other.dims == ("round", "M", "replicate")
    assert data.round_.values[:, 0].tolist() == [1, 2]
    single = mt.vary(SYSTEM, PARAMS, 2, 8, observe=lambda state, info: info.error, num_experts=range(1, 4))
    assert single.value.dims == ("num_experts", "round", "replicate")
    by_name = mt.vary(SYSTEM, PARAMS, 2, 8, observe=lambda state, info: {"loads": state.visits}, num_experts=[2])
    assert by_name.loads.dims == ("num_experts", "round", "loads_0", "replicate")


def test_what_cannot_be_run_is_refused_at_once():
    with pytest.raises(UnknownNameError, match="unknown parameter 'num_expert'"):
        mt.vary(SYSTEM, PARAMS, 10**9, 8, num_expert=[1])
    for values in ([], [[1, 2]], [2, 2], 3):
        with pytest.raises(InvalidValueError, match="must be a list of values that are different"):
            mt.vary(SYSTEM, PARAMS, 10**9, 8, num_experts=values)
    with pytest.raises(InvalidValueError, match="num_experts=9 must be at most max_experts=4"):
        mt.vary(SYSTEM, PARAMS, 10**9, 8, num_experts=[1, 9])
    with pytest.raises(InvalidValueError, match="observe keeps nothing"):
        mt.vary(SYSTEM, PARAMS, 2, 8, observe=lambda state, info: ())
