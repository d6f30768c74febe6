"""What Tanbr's own decisions cost: slots until its tree has 20 feasible leaves, and seconds of choosing among them.

Source: Fig. 6 and Sec. V-D of `merging`, which name neither the rewards nor the constants; here rewards are the peaked
family's, and everything else is as in `Params` unless given.
"""

import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.core.random import replicate_keys, root_key
from moe_theory.core.system import System
from moe_theory.merging import policies, rewards, uncertainty
from moe_theory.merging.costs import NUM_REPEATS, Clock, Program, interleaved
from moe_theory.merging.params import Dims, Params
from moe_theory.merging.system import State, system

NUM_LEAVES = 20
MAX_SLOTS = 2000  # in which a tree is given up on
_SLOTS_A_CALL = 50


class Grown(NamedTuple):
    """Trees of `NUM_LEAVES` feasible leaves, which have no room for more."""

    slots: Int[np.ndarray, " B"]  # until each had them; `MAX_SLOTS` + 1 where it never did
    state: State  # of the first replicate, after `num_slots`
    num_slots: int  # until all had them


def routing_time(
    num_experts: int,
    repeats: int = NUM_REPEATS,
    seed: int = 0,
    form: str = uncertainty.EXACT,
    clock: Clock = time.perf_counter,
) -> Float[np.ndarray, " repeats"]:
    """Seconds in which Tanbr chooses weights from 20 feasible leaves, in repetitions of one compiled call.

    Args:
        form: how its norm by Z^-1 is computed, one of `uncertainty.UNCERTAINTIES`.
    """
    return interleaved([routing_program(num_experts, seed, form)], repeats, seed, clock)[:, 0]


def routing_program(
    num_experts: int, seed: int = 0, form: str = uncertainty.EXACT, params: Params | None = None
) -> Program:
    """The compiled call that `routing_time` times, in the state in which the tree has come to have its 20 leaves."""
    return program_of(grown(num_experts, 1, seed, form, params), form)


def program_of(trees: Grown, form: str = uncertainty.DIAGONAL) -> Program:
    """`Policy.choose` compiled, with the state of the first of these trees, whose Z is in this form."""
    num_experts = trees.state.memory.tree.point.shape[1]
    dims = dims_of(num_experts)
    params = params_of(num_experts)
    policy = policies.named(policies.TANBR, dims, form)
    key = root_key(0)
    mix = jnp.full(dims.num_tasks, 1 / dims.num_tasks)
    now = jnp.asarray(trees.num_slots, jnp.int32)

    def choose(memory: Any, mix: Array, now: Array) -> Array:
        return policy.choose(key, memory, mix, now, params).weights

    arguments = (trees.state.memory, mix, now)
    return Program(jax.jit(choose).lower(*arguments).compile(), arguments)


def dims_of(num_experts: int) -> Dims:
    """Sizes of a tree that stops growing at `NUM_LEAVES`, with w = 64 and V = 8."""
    return Dims(num_experts, max_rounds=MAX_SLOTS, max_leaves=NUM_LEAVES)


def params_of(num_experts: int, params: Params | None = None) -> Params:
    """Parameters for so many experts, of which at most 8 are active, as in the paper."""
    chosen = Params() if params is None else params
    active = min(num_experts, int(chosen.max_active))
    return chosen._replace(num_experts=num_experts, max_active=active)  # pyright: ignore[reportArgumentType]


def grown(
    num_experts: int,
    replicates: int | Sequence[int],
    seed: int = 0,
    form: str = uncertainty.DIAGONAL,
    params: Params | None = None,
) -> Grown:
    """Trees of Tanbr's own making, from the root on, until each has `NUM_LEAVES` feasible leaves."""
    params = params_of(num_experts, params)
    run = system(dims_of(num_experts), rewards.PEAKED, policies.TANBR, uncertainty=form)
    names = np.arange(replicates) if isinstance(replicates, int) else np.asarray(replicates)
    keys = replicate_keys(root_key(seed), jnp.asarray(names))
    starts = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, 0)
    states = jax.vmap(lambda key: run.init(key, params))(starts)
    advance = _advance(run)
    counts: list[np.ndarray] = []
    for first in range(1, MAX_SLOTS, _SLOTS_A_CALL):
        states, numbers = advance(states, keys, jnp.arange(first, first + _SLOTS_A_CALL, dtype=jnp.int32), params)
        counts += list(np.asarray(numbers))
        if np.all(counts[-1] == NUM_LEAVES):
            break
    has_all = np.stack(counts) == NUM_LEAVES
    slots = np.where(has_all.any(axis=0), has_all.argmax(axis=0) + 1, MAX_SLOTS + 1)
    return Grown(slots, jax.tree.map(lambda leaf: leaf[0], states), len(counts))


def _advance(run: System) -> Any:
    """Some slots of a batch of replicates, with the number of candidates in each."""

    def slots(states: State, keys: Array, times: Int[Array, " n"], params: Params) -> tuple[State, Int[Array, "n B"]]:
        def slot(states: State, now: Array) -> tuple[State, Array]:
            own = jax.vmap(jax.random.fold_in, in_axes=(0, None))(keys, now)
            states, infos = jax.vmap(run.step, in_axes=(0, 0, None))(own, states, params)
            return states, infos.pick.num_candidates

        return jax.lax.scan(slot, states, times)

    return jax.jit(slots)
