"""What every registered system owes its callers: jit, vmap, both precisions, a stable state, one program."""

import asyncio
import functools
import math
import re
from typing import Any

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.progress import quiet

from .cases import CASES, Case

every_system = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
# What x64 shows of dtypes the single precision does not, which has but one.
both_precisions = pytest.mark.parametrize(
    "x64", [pytest.param(False, id="float32", marks=pytest.mark.thorough), pytest.param(True, id="float64")]
)

KEY = mt.root_key(11)


def types(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: (leaf.shape, leaf.dtype), tree)


@every_system
@both_precisions
def test_a_round_keeps_the_state_s_structure_and_types(case: Case, x64: bool) -> None:
    """Would catch a leaf that changes its shape or precision from one round to the next, for any kind of parameter."""
    with jax.enable_x64(x64):
        system = case.build()
        kinds = [case.params, jax.tree.map(jnp.asarray, case.params)]
        if x64:
            kinds.append(jax.tree.map(lambda leaf: np.float32(leaf) if isinstance(leaf, float) else leaf, case.params))
        shapes = []
        for params in kinds:
            state = jax.eval_shape(system.init, KEY, params)
            after, info = jax.eval_shape(system.step, KEY, state, params)
            assert types(after) == types(state)
            shapes.append((types(state), types(info)))
            floats = [leaf.dtype for leaf in jax.tree.leaves((after, info)) if jnp.issubdtype(leaf.dtype, jnp.inexact)]
            assert set(floats) == {jnp.result_type(float)}
        assert all(shape == shapes[0] for shape in shapes)
        assert state.round.shape == ()
        assert state.round.dtype == np.int32


COMPILED = [
    pytest.param(
        case,
        x64,
        id=f"{case.name}-{'float64' if x64 else 'float32'}",
        marks=[pytest.mark.thorough] * (x64 or case.name != "continual"),
    )
    for case in CASES
    for x64 in case.batched
]


@pytest.mark.parametrize(("case", "x64"), COMPILED)
def test_the_engine_agrees_with_replicates_alone(case: Case, x64: bool) -> None:
    """Would catch Python control flow on values, an operation that mixes replicates, and a wrong rewriting.

    Two rounds agree to rounding; more would not, as runs are chaotic.
    """
    with jax.enable_x64(x64):
        system, tolerance = case.build(), 1e-12 if x64 else 1e-5
        batch = jax.device_get(mt.simulate_batch(system, KEY, 3, case.params, 2))
        for place in range(3):
            alone = mt.simulate(system, jax.random.fold_in(KEY, place), case.params, 2, plain=True)
            own = jax.tree.map(lambda leaf, place=place: leaf[..., place], batch)
            chex.assert_trees_all_equal_shapes_and_dtypes(own, alone)
            chex.assert_trees_all_close(own, alone, rtol=tolerance, atol=tolerance)


@every_system
def test_a_round_is_traced_alike_every_time(case: Case) -> None:
    """Would catch a random number, a clock or a counter that is not in the key, the state or the parameters."""
    system = case.build()
    state = jax.eval_shape(system.init, KEY, case.params)
    programs = [str(jax.make_jaxpr(system.step)(KEY, state, case.params)) for _ in range(2)]
    assert programs[0] == programs[1]


@every_system
def test_one_program_serves_a_grid(case: Case) -> None:
    """Would catch a parameter that decides a shape or a branch of Python, and so recompiles a sweep's every cell."""
    chex.clear_trace_counter()  # it goes by the function's name, which every case has
    system = case.build()

    @functools.partial(jax.jit, static_argnums=0)
    @chex.assert_max_traces(n=1)
    def run(num_rounds, key, params):
        state = system.init(key, params)
        for _ in range(num_rounds):
            state, _ = system.step(key, state, params)
        return state

    run.trace(1, KEY, case.params)
    for change in case.changes:
        run.trace(1, KEY, case.params._replace(**change))


@every_system
def test_the_same_arguments_build_the_same_system(case: Case) -> None:
    """Would catch a system that is compiled anew because it is built anew."""
    assert case.build() is case.build()


@every_system
def test_every_parameter_is_one_finite_number(case: Case) -> None:
    """Would catch a run that goes on with NaN, or a field that is a grid where a run has one setting."""
    for name in case.params._fields:
        for value in (math.nan, math.inf, -math.inf, np.full(2, 0.5)):
            with pytest.raises(InvalidValueError) as caught:
                mt.simulate(case.build(), KEY, case.params._replace(**{name: value}), 10**9)
            assert re.match(rf"{name}\b", str(caught.value))


CLAIM = "generalization.theorem-1.fixed-router"


async def verify() -> list[Any]:
    return mt.verify(CLAIM, replicates=64, progress=quiet)


def test_verify_inside_an_event_loop() -> None:
    """Would catch `asyncio.run` in the thread of the caller, which every notebook has."""
    assert len(asyncio.run(verify())) >= 1
