"""`mt.explain`: what leaves the engine's fast path is named with its line, and nothing else is."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest

import moe_theory as mt
from moe_theory import continual, edge
from moe_theory.core import engine


class State(NamedTuple):
    values: jax.Array
    round: jax.Array


def init(key, params):
    return State(jax.random.normal(key, (4,)), jnp.int32(0))


def fast(key, state, params):
    noise = jax.random.uniform(key, (4,))
    chosen = jnp.arange(4) == state.round % 4
    values = jnp.where(chosen, jnp.sqrt(jnp.abs(state.values)) + noise, state.values / jnp.sum(state.values**2))
    first, second = jax.random.split(key)
    values = values.at[jnp.argmax(values)].add(values[state.round % 4] * jax.random.normal(first))
    return State(values, state.round + 1), jnp.max(values) + values @ jax.random.uniform(second, (4,))


def slow(key, state, params):
    picked = state.values[jnp.stack([state.round % 4, 0])]
    return State(jnp.sort(state.values) ** params + jnp.sum(picked), state.round + 1), ()


def test_a_step_that_runs_batch_last_has_nothing_to_mend():
    found = mt.explain(mt.System(init, fast), 1.5)
    assert found.held_up == []
    lines = repr(found).splitlines()
    assert lines[0].endswith(" operations a round, 0 of them off the fast path")
    assert lines[1:] == ["9 numbers a replicate are of `jax.random`: `mt.draws` is faster"]


def test_what_falls_back_is_named_with_its_line(monkeypatch):
    monkeypatch.setattr(engine, "run", lambda *arguments, **options: pytest.fail("ran"))
    found = mt.explain(mt.System(init, slow), 1.5)
    by_name = {each.name: each for each in found.held_up}
    assert {"pow", "sort", "gather"} <= {*by_name}
    assert by_name["sort"].way == "vmap"
    assert by_name["sort"].numbers == 4
    assert "test_explain.py:" in by_name["sort"].where
    assert "jnp.sort(state.values)" in by_name["sort"].where
    assert by_name["pow"].way == "call"
    assert "jnp.exp(p * jnp.log(x))" in repr(found)


def test_the_papers_linear_systems_hold_nothing_up():
    dims = continual.Dims(max_experts=5, num_tasks=3, num_features=6, num_samples=3)
    assert mt.explain(continual.system(dims), continual.Params(num_experts=5)).held_up == []
    servers = edge.Dims(max_experts=5, num_tasks=3, num_features=6, num_samples=3, max_delay=6)
    params = edge.Params(num_experts=5, max_execution_delay=2, max_transfer_delay=3)
    assert mt.explain(edge.system(servers), params).held_up == []
