"""Somebody's own system in thirty lines, a mixture of linear regressions: the engine against plain `vmap(scan)`."""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

import moe_theory as mt

from .contenders import PASSES, interleaved

REPLICATES, NUM_ROUNDS = 256, 2048
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


def by_jax(key):
    """A task, the noise of its input and target, and a perturbation of each expert, as JAX's documentation has it."""
    task_key, input_key, noise_key, tie_key = jax.random.split(key, 4)
    noise = jax.random.normal(input_key, (FEATURES,)), jax.random.normal(noise_key)
    return jax.random.randint(task_key, (), 0, TASKS), *noise, jax.random.uniform(tie_key, (EXPERTS,))


def by_draws(key):
    """The same by this package's generator."""
    uniforms, normals = mt.draws(key, 1 + EXPERTS, 1 + FEATURES)
    return jnp.floor(uniforms[0] * TASKS).astype(jnp.int32), normals[1:], normals[0], uniforms[1:]


def step(draw, key, state, rate):
    """A router picks an expert for a task's input; both descend its squared error."""
    task, input_noise, target_noise, perturbation = draw(key)
    truth = state.truths[task]
    inputs = truth + input_noise
    target = truth @ inputs + 0.1 * target_noise
    logits = state.gates @ inputs + 0.01 * perturbation
    chosen = jnp.argmax(logits)
    error = state.experts[chosen] @ inputs - target
    size = rate / jnp.sum(jnp.square(inputs))
    slopes = jax.nn.one_hot(chosen, EXPERTS) - jax.nn.softmax(logits)
    experts = state.experts.at[chosen].add(-size * error * inputs)
    gates = state.gates - size * error**2 * slopes[:, None] * inputs
    return State(experts, gates, state.truths, state.errors + error**2, state.round + 1), error**2


def test_own_system(benchmark):
    rate = jnp.float32(0.5)
    by_name = {draw.__name__: mt.System(init, functools.partial(step, draw)) for draw in (by_jax, by_draws)}

    def run(name, plain=False):
        ran = mt.simulate_batch(by_name[name], mt.root_key(0), REPLICATES, rate, NUM_ROUNDS, NUM_ROUNDS, plain=plain)
        return jax.block_until_ready(ran)

    ways = [("by_jax", True), ("by_jax", False), ("by_draws", False)]
    taken = interleaved([functools.partial(run, *way) for way in ways], PASSES)
    benchmark.pedantic(run, args=("by_draws",), rounds=1)
    nanoseconds = 1e9 * taken.min(axis=0) / (REPLICATES * NUM_ROUNDS)
    benchmark.extra_info |= {"part": "own system", "nanoseconds": dict(zip(map(str, ways), nanoseconds, strict=True))}
    ratios_of_ways = (taken[:, :1] / taken).T  # over the first way, in the same pass
    for (name, is_plain), each, ratios in zip(ways, nanoseconds, ratios_of_ways, strict=True):
        way = "plain vmap(scan)" if is_plain else "the engine"
        print(
            f"\n{name}, {way}: {each:,.0f} ns, {np.median(ratios):.2f} times ({min(ratios):.2f} to {max(ratios):.2f})"
        )
