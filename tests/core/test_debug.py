"""`debug=True`: a fault of a run by round and field, and the same numbers where there is none."""

import functools
from typing import Annotated, Any, NamedTuple

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float, Int

import moe_theory as mt
from moe_theory.core.constraints import SHARE, Undefined
from moe_theory.core.errors import DeclarationError, InvalidValueError

from ..contract.cases import CASES, Case

ROOT = mt.root_key(7)
pytestmark = pytest.mark.filterwarnings("ignore:jaxlib .* gives wrong numbers:RuntimeWarning")


class State(NamedTuple):
    round: Any
    place: Any  # where a walk is, (2,)
    loads: Any = np.zeros(3, np.int32)


class Info(NamedTuple):
    expert: Int[Array, ""]
    share: Annotated[Float[Array, ""], SHARE]
    regret: Annotated[Float[Array, ""], Undefined("never known")]


class Params(NamedTuple):
    is_bad: Any = True
    expert: Any = 0
    share: Any = 0.5
    place: Any = 0.0


def walking(check: Any = lambda state: None) -> mt.System:
    """A walk, whose records and whose place are from round 6 on what its parameters say."""

    def init(key: Any, params: Any) -> State:
        return State(jnp.int32(0), jax.random.normal(key, (2,)))

    def step(key: Any, state: State, params: Any) -> tuple[State, Info]:
        is_late = (state.round > 4) & params.is_bad
        moved = state.place + jax.random.normal(key, (2,)) + jnp.where(is_late, jnp.stack([0.0, params.place]), 0.0)
        check(state)
        info = Info(jnp.where(is_late, params.expert, 0), jnp.where(is_late, params.share, 1.0), jnp.float32(jnp.nan))
        return State(state.round + 1, moved, state.loads), info

    return mt.System(init, step)


WALK = walking()  # one, whose program is compiled once
FAULTS = {
    "not-finite": (WALK, Params(place=jnp.inf), r"round 6: state\.place has (inf|nan), where"),
    "range": (WALK, Params(share=1.01), r"round 6: info\.share has 1\.0\d+, outside \[0, 1\]"),
    "its-own": (
        walking(check=lambda state: chex.assert_trees_all_equal(state.round < 4, jnp.array(True))),
        Params(),
        ".*assert_trees_all_equal",
    ),
    "gather": (
        WALK._replace(
            step=lambda key, state, params: (state._replace(round=state.round + 1), state.place[state.round - 2])
        ),
        Params(),
        "out-of-bounds indexing for array of shape .2,.",
    ),
}


WAYS = ({"debug": True}, {"plain": True})


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_named_by_round_and_field(name: str) -> None:
    """Would catch a fault that is passed over, or called by another round."""
    system, params, message = FAULTS[name]
    with pytest.raises(InvalidValueError, match=message):
        mt.simulate_batch(system, ROOT, [3, 8, 5], params, 20, 10, debug=True)


@pytest.mark.parametrize(
    "run",
    [
        functools.partial(mt.simulate_batch, replicates=3, reduce=jnp.mean),
        pytest.param(functools.partial(mt.simulate_batch, replicates=3), marks=pytest.mark.thorough),
        pytest.param(mt.simulate, marks=pytest.mark.thorough),
    ],
    ids=["reduced", "batch", "one"],
)
def test_a_run_without_faults_is_the_plain_one(run) -> None:
    """Would catch a run that assertions change, or another form of records, reduced or not."""
    runs = [run(WALK, ROOT, params=Params(False), num_rounds=7, record_every=3, **how) for how in WAYS]
    chex.assert_trees_all_equal_shapes_and_dtypes(*runs)
    chex.assert_trees_all_close(*runs, rtol=1e-6)


def test_what_is_no_fault_of_a_number_keeps_its_error() -> None:
    """Would catch a broken system, or a run inside another program, that is called a fault of its numbers."""
    broken = mt.System(WALK.init, lambda key, state, params: state)
    with pytest.raises(DeclarationError):
        mt.simulate(broken, ROOT, Params(), 2, debug=True)
    with pytest.raises(InvalidValueError, match="Call it outside"):
        jax.jit(lambda key: mt.simulate(WALK, key, Params(), 2, debug=True))(ROOT)
    with pytest.raises(InvalidValueError, match="out-of-bounds"):
        mt.simulate(WALK, ROOT, Params(False), 3, observe=lambda state, info: state.place[state.round], debug=True)


@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_nothing_is_wrong_with_the_systems_that_there_are(case: Case) -> None:
    """Would catch an index that JAX clips, a NaN that nobody says may be, and a range that is not kept."""
    system, params = case.build(), case.params
    num_rounds = 2 if case.name.startswith("deep") else 4
    runs = [mt.simulate_batch(system, ROOT, 3, params, num_rounds, 2, **how) for how in WAYS]
    chex.assert_trees_all_close(*runs, rtol=1e-4, atol=1e-5)
