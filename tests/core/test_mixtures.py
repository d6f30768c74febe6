"""Random mixtures of operations and control flow: the engine gives what `plain=True` gives."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import moe_theory as mt

from .trees import assert_close


class State(NamedTuple):
    x: Any  # floats in [-1, 1], (3,)
    n: Any  # whole numbers, (3,)
    round: Any


# Of a key, floats and whole numbers: the next floats and whole numbers.
STEPS: list[Callable[[Any, Any, Any], tuple[Any, Any]]] = [
    lambda key, x, n: (jnp.sin(x + n % 2), n + 1),
    lambda key, x, n: (x * jax.random.uniform(key, (3,)), jnp.roll(n, 1)),
    lambda key, x, n: (jnp.flip(x), n ^ jax.random.randint(key, (3,), 0, 9)),
    lambda key, x, n: (x[jnp.argsort(n)], jnp.sort(n)),
    lambda key, x, n: (x.at[n[0] % 3].set(0.5), n.at[n[1] % 3].add(2)),
    lambda key, x, n: (jnp.cumsum(x) / 3, jnp.cumsum(n) % 50),
    lambda key, x, n: (jnp.outer(x, x) @ x / 3, jnp.where(n > 3, n, n * 2) % 50),
    lambda key, x, n: (lax.dynamic_slice(jnp.tile(x, 2), (n[2] % 3,), (3,)), n[::-1]),
    lambda key, x, n: (lax.cond(n[0] > 4, jnp.tanh, jnp.negative, x), n + jnp.max(n) % 3),
    lambda key, x, n: (jnp.full(3, jnp.mean(x)) + x / 2, lax.fori_loop(0, n[0] % 4, lambda i, m: m + i, n)),
    lambda key, x, n: (lax.scan(lambda c, y: (c / 2 + y / 2, c), x[0], x)[1], n % 7),
    lambda key, x, n: (x, lax.while_loop(lambda m: jnp.sum(m) < 20, lambda m: m + 3, n)),
    lambda key, x, n: (jax.random.permutation(jax.random.fold_in(key, n[0]), x), n),
]


def system_of(seed: int) -> mt.System:
    """Return a system whose round is ten operations, some of them in a branch, a loop or a call."""
    rng = np.random.default_rng(seed)
    operations = [STEPS[place] for place in rng.integers(len(STEPS), size=10)]
    forms = rng.integers(5, size=10)

    def step(key: Any, state: State, params: Any) -> tuple[State, Any]:
        x, n = state.x, state.n
        for place, (operation, form) in enumerate(zip(operations, forms, strict=True)):
            change = jax.tree_util.Partial(operation, jax.random.fold_in(key, place))
            if form == 0:
                x, n = lax.cond(n[1] % 2 == 0, change, lambda x, n: (x / 2, n), x, n)
            elif form == 1:
                x, n = lax.fori_loop(0, n[2] % 3, lambda i, pair, change=change: change(*pair), (x, n))
            elif form == 2:
                x, n = jax.jit(change)(x, n)
            else:
                x, n = change(x, n)
        return State(x, n, state.round + 1), (x, n)

    return mt.System(lambda key, params: State(jax.random.uniform(key, (3,)), jnp.arange(3), jnp.int32(0)), step)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 8))])
def test_simulate_batch_of_random_steps(seed):
    runs = [mt.simulate_batch(system_of(seed), mt.root_key(1), 3, (), 4, plain=plain) for plain in (False, True)]
    assert_close(*jax.device_get(runs))
