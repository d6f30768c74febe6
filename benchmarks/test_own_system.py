"""A system that somebody writes in thirty lines, a mixture of linear regressions: the engine against plain `vmap(scan)`.

`mt.explain` names what leaves the fast path: nothing where a choice is a mask, an operation where it is a gather.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import pytest
from jaxtyping import Array, Float, Int

import moe_theory as mt

from .contenders import PASSES, interleaved

REPLICATES, NUM_ROUNDS = 256, 512
EXPERTS, TASKS, FEATURES = 8, 4, 16


class State(NamedTuple):
    experts: Float[Array, "M d"]
    gates: Float[Array, "M d"]
    truths: Float[Array, "N d"]
    errors: Float[Array, ""]  # summed so far
    round: Int[Array, ""]


def init(key, params):
    truths = jax.random.normal(key, (TASKS, FEATURES))
    blank = jnp.zeros((EXPERTS, FEATURES))
    return State(blank, blank, truths, jnp.float32(0), jnp.int32(0))


def with_masks(key, state, rate):
    """A task draws an input; a softmax router picks the expert, whose squared error both descend."""
    task_key, input_key, noise_key, tie_key = jax.random.split(key, 4)
    task = jax.random.randint(task_key, (), 0, TASKS)
    truth = jnp.sum(jnp.where((jnp.arange(TASKS) == task)[:, None], state.truths, 0), axis=0)
    inputs = truth + jax.random.normal(input_key, (FEATURES,))
    target = jnp.sum(truth * inputs) + 0.1 * jax.random.normal(noise_key)
    logits = jnp.sum(state.gates * inputs, axis=1) + 0.01 * jax.random.uniform(tie_key, (EXPERTS,))
    shares = jnp.exp(logits - jnp.max(logits))
    shares /= jnp.sum(shares)
    chosen = (jnp.arange(EXPERTS) == jnp.argmax(logits))[:, None]
    errors = jnp.sum(state.experts * inputs, axis=1) - target
    step = rate / jnp.sum(jnp.square(inputs))
    experts = state.experts - jnp.where(chosen, step * errors[:, None] * inputs, 0)
    loss = jnp.sum(jnp.where(chosen[:, 0], jnp.square(errors), 0))
    gates = state.gates - step * loss * (jnp.where(chosen[:, 0], 1.0, 0.0) - shares)[:, None] * inputs
    return State(experts, gates, state.truths, state.errors + loss, state.round + 1), loss


def with_gathers(key, state, rate):
    """The same, as NumPy would have it."""
    task_key, input_key, noise_key, tie_key = jax.random.split(key, 4)
    truth = state.truths[jax.random.randint(task_key, (), 0, TASKS)]
    inputs = truth + jax.random.normal(input_key, (FEATURES,))
    target = truth @ inputs + 0.1 * jax.random.normal(noise_key)
    logits = state.gates @ inputs + 0.01 * jax.random.uniform(tie_key, (EXPERTS,))
    chosen = jnp.argmax(logits)
    error = state.experts[chosen] @ inputs - target
    step = rate / jnp.sum(jnp.square(inputs))
    slopes = jax.nn.one_hot(chosen, EXPERTS) - jax.nn.softmax(logits)
    experts = state.experts.at[chosen].add(-step * error * inputs)
    gates = state.gates - step * error**2 * slopes[:, None] * inputs
    return State(experts, gates, state.truths, state.errors + error**2, state.round + 1), error**2


@pytest.mark.parametrize("step", [with_masks, with_gathers])
def test_own_system(step, benchmark):
    system, rate = mt.System(init, step), jnp.float32(0.5)

    def run(plain):
        ran = mt.simulate_batch(system, mt.root_key(0), REPLICATES, rate, NUM_ROUNDS, NUM_ROUNDS, plain=plain)
        return jax.block_until_ready(ran)

    taken = interleaved([lambda: run(False), lambda: run(True)], PASSES)
    benchmark.pedantic(run, args=(False,), rounds=1)
    explained = mt.explain(system, rate)
    engine, plain = 1e9 * taken.min(axis=0) / (REPLICATES * NUM_ROUNDS)
    benchmark.extra_info |= {
        "part": "own system",
        "step": step.__name__,
        "nanoseconds": engine,
        "times_engine": (taken[:, 1] / taken[:, 0]).tolist(),
        "held_up": [operation.name for operation in explained.held_up],
    }
    print(f"\n{step.__name__}: {engine:,.0f} ns, plain {plain:,.0f}, {plain / engine:.1f} times\n{explained}")
