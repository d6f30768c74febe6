"""`split_draws`: the two parts together are the step, and the random part is really taken out.

The parts run operation by operation, as the step does, so toy steps must agree to the last bit.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from moe_theory import continual
from moe_theory.core.ahead import split_draws

STATE = {"x": jnp.array([0.3, -1.2, 2.5]), "round": jnp.int32(4)}
PARAMS = (jnp.float32(0.7), {"count": jnp.int32(3)})
TABLE = np.array([3.0, 1.0, 2.0], np.float32)  # closed over: a constant of the traced program


class Case(NamedTuple):
    """A step, and how many arrays of draws it should come down to; None where only the result matters."""

    step: Callable[[Any, Any, Any], Any]
    num_draws: int | None
    hashes_late: bool = False  # whether acting still has to hash, because a key depends on the state


def plain(key, state, params):
    return state["x"] + params[0] * jax.random.normal(key, (3,))


def unused_keys(key, state, params):
    _, second, _ = jax.random.split(key, 3)
    jax.random.normal(jax.random.fold_in(key, 5), (2,))
    return state["x"] * jax.random.uniform(second)


def nested_splitting(key, state, params):
    first, second = jax.random.split(key)
    inner = jax.random.split(jax.random.fold_in(second, 11), 4)
    deep = jax.vmap(lambda key: jax.random.normal(jax.random.split(key)[1], (3,)))(inner)
    return state["x"] + jnp.sum(deep, axis=0) * jax.random.bernoulli(first)


def draws_of_params(key, state, params):
    scale, counts = params
    low = jnp.exp(scale)
    return state["x"] + jax.random.uniform(key, (3,), minval=low, maxval=2 * low) ** counts["count"] + low


def state_dependent_draws(key, state, params):
    return state["x"] + jax.random.normal(jax.random.fold_in(key, state["round"]), (3,))


def both_kinds(key, state, params):
    first, second = jax.random.split(key)
    early = jax.random.normal(first, (3,))
    late = jax.random.uniform(jax.random.fold_in(second, state["round"]), (3,), maxval=early**2 + 1)
    return {"x": state["x"] + early * late, "round": state["round"] + 1}, (early, late)


def no_draws(key, state, params):
    return state["x"] * params[0], jnp.sin(params[0]), 3


def key_in_the_result(key, state, params):
    return key, jax.random.split(key), state["x"]


def nothing_of_the_state(key, state, params):
    return jax.random.normal(key), params[0] + 1, jnp.arange(3)


def passed_through(key, state, params):
    return state, params, jax.random.bits(key), jax.random.bits(key)


def constants(key, state, params):
    return TABLE * jax.random.normal(key, (3,)) + state["x"] @ jnp.diag(jnp.asarray(TABLE)), jnp.asarray(TABLE)


def loops(key, state, params):
    draws = lax.scan(lambda key, _: tuple(jax.random.split(key)), key, length=3)[1]
    walk = lax.fori_loop(0, 3, lambda i, x: x + jax.random.normal(draws[i]), state["x"])
    return lax.cond(state["round"] > 2, lambda k, x: x + jax.random.normal(k), lambda k, x: x, key, walk)


def one_jit(key, state, params):
    return jax.jit(both_kinds)(key, state, params)


def drawn_once_used_twice(key, state, params):
    noise = jax.random.normal(key, (3,))
    return noise * 2, noise + state["x"], noise


CASES = {
    "plain": Case(plain, 1),
    "unused-keys": Case(unused_keys, 1),
    "nested-splitting": Case(nested_splitting, 1),
    "draws-of-params": Case(draws_of_params, 1),
    "state-dependent-draws": Case(state_dependent_draws, 1, hashes_late=True),
    "both-kinds": Case(both_kinds, None, hashes_late=True),
    "no-draws": Case(no_draws, 0),
    "key-in-the-result": Case(key_in_the_result, 2),
    "nothing-of-the-state": Case(nothing_of_the_state, 1),
    "passed-through": Case(passed_through, 2),
    "constants": Case(constants, 1),
    "loops": Case(loops, None, hashes_late=True),
    "one-jit": Case(one_jit, 1, hashes_late=True),
    "drawn-once-used-twice": Case(drawn_once_used_twice, None),
}


@pytest.mark.parametrize("name", CASES)
def test_drawing_then_acting_is_the_step(name: str) -> None:
    """Would catch a draw taken before the state it depends on, a lost output, or one part computed for another key."""
    step, num_draws, _ = CASES[name]
    draw, act = split_draws(step, jax.random.key(0), STATE, PARAMS)  # traced for another key than it is used with
    for seed in (1, 2):
        key, state = jax.random.key(seed), {"x": seed * STATE["x"], "round": STATE["round"] + seed}
        params = (PARAMS[0] / seed, PARAMS[1])
        draws = draw(key, params)
        assert num_draws is None or len(draws) == num_draws
        assert_equal(act(draws, state, params), step(key, state, params))


@pytest.mark.parametrize("name", CASES)
def test_only_keys_that_depend_on_the_state_are_hashed_late(name: str) -> None:
    """Would catch a split that is right because it leaves everything, or nothing, to the second part."""
    step, _, hashes_late = CASES[name]
    draw, act = split_draws(step, jax.random.key(0), STATE, PARAMS)
    draws = jax.eval_shape(draw, jax.random.key(0), PARAMS)
    assert ("random_bits" in str(jax.make_jaxpr(act)(draws, STATE, PARAMS))) == hashes_late


def test_each_draw_is_hashed_once() -> None:
    """Would catch a draw that both parts compute, which would undo the saving."""
    draw, act = split_draws(both_kinds, jax.random.key(0), STATE, PARAMS)
    draws = jax.eval_shape(draw, jax.random.key(0), PARAMS)
    programs = str(jax.make_jaxpr(draw)(jax.random.key(0), PARAMS)), str(jax.make_jaxpr(act)(draws, STATE, PARAMS))
    assert [program.count(" random_bits[") for program in programs] == [1, 1]
    assert str(jax.make_jaxpr(both_kinds)(jax.random.key(0), STATE, PARAMS)).count(" random_bits[") == 2


@pytest.mark.parametrize("state", [{}, None, ()], ids=repr)
def test_a_state_without_arrays(state: Any) -> None:
    """Would catch arguments matched to leaves by position where a part has none."""
    draw, act = split_draws(lambda key, state, params: jax.random.normal(key) * params, jax.random.key(0), state, 2.0)
    key = jax.random.key(5)
    assert_equal(act(draw(key, 3.0), state, 3.0), jax.random.normal(key) * 3.0)


def test_the_continual_step_is_its_two_parts() -> None:
    """Would catch a draw of Algorithm 1 that hangs on the state beyond its pool, which would be drawn too early.

    Without optimisation every operation rounds alike, so the parts agree with the step to the last bit.
    """
    dims = continual.Dims(max_experts=4, num_tasks=3, num_features=4, num_samples=2, max_active=2)
    init, step = continual.system(dims)
    params = jax.tree.map(jnp.asarray, continual.Params(num_experts=3, num_active=2))
    state = init(jax.random.key(9), params)
    draw, act = split_draws(step, jax.random.key(0), state, params)
    draws = jax.eval_shape(draw, jax.random.key(0), params)
    assert sum(draw.size for draw in draws) >= 3 + 4 * 2 + 4

    def compiled(function):
        options = {"xla_backend_optimization_level": 0}
        return jax.jit(function).lower(jax.random.key(0), state, params).compile(compiler_options=options)

    whole = compiled(step)
    parts = compiled(lambda key, state, params: act(draw(key, params), state, params))
    for time in range(30):
        expected = whole(jax.random.key(time), state, params)
        assert_equal(parts(jax.random.key(time), state, params), expected)
        state = expected[0]


def assert_equal(actual: Any, expected: Any) -> None:
    assert jax.tree.structure(actual) == jax.tree.structure(expected)
    for one, other in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert jnp.shape(one) == jnp.shape(other)
        assert jnp.result_type(one) == jnp.result_type(other)
        if jnp.issubdtype(jnp.result_type(one), jax.dtypes.prng_key):
            one, other = jax.random.key_data(one), jax.random.key_data(other)
        np.testing.assert_array_equal(one, other)
