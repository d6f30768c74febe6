"""Systems of one round, which draws an instance: what claims and sweeps can run by the thousand like any other."""

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jaxtyping import Array, Int, Key

from moe_theory.core.system import System
from moe_theory.generalization.params import Dims, Params, check_params


class State(NamedTuple):
    """Every round draws anew, so that there is nothing to carry."""

    round: Int[Array, ""]  # rounds done


def one_round(
    dims: Dims,
    instance: Callable[[Key[Array, ""], Params], NamedTuple],
    check: Callable[[Params], None] = lambda params: None,
) -> System:
    """The system whose rounds each draw an instance anew, with nothing to carry."""

    def init(key: Key[Array, ""], params: Params) -> State:
        del key
        check_params(dims, params)
        check(params)
        return State(round=jnp.zeros((), jnp.int32))

    def step(key: Key[Array, ""], state: State, params: Params) -> tuple[State, NamedTuple]:
        return State(round=state.round + 1), instance(key, params)

    return System(init, step)
