"""Time of one replicate-round of Algorithm 1: the engine against a textbook `jit(vmap(scan))` and a plain NumPy loop.

`make bench` prints the table; `extra_info` holds nanoseconds a replicate-round, which is what to compare. Ratios inside
one run are what counts: pin the process to a core (`taskset -c 0 make bench`) on a noisy machine.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory import continual, root_key, simulate_batch
from moe_theory.core.random import replicate_keys, step_key

NUM_ROUNDS = 1000  # long enough that what a call costs once, some milliseconds, does not show
DIMS = continual.Dims(max_experts=10, num_tasks=6, num_features=10, num_samples=6)
PARAMS = continual.Params(num_experts=10)


def observe(state, info):
    return info.generalization_error


def engine(batch):
    system = continual.system(DIMS)
    return lambda: simulate_batch(system, root_key(0), batch, PARAMS, NUM_ROUNDS, NUM_ROUNDS, observe=observe)


def textbook(batch):
    """Batch first: one replicate's scan, vmapped from outside."""
    system = continual.system(DIMS)
    keys = replicate_keys(root_key(0), jnp.arange(batch))

    @jax.jit
    def run(keys, params):
        def one(key):
            def body(state, time):
                return system.step(step_key(key, time), state, params)[0], None

            state = system.init(step_key(key, jnp.int32(0)), params)
            return jax.lax.scan(body, state, jnp.arange(1, NUM_ROUNDS + 1))[0].metrics.remaining

        return jax.vmap(one)(keys)

    return lambda: run(keys, PARAMS)


def numpy_round(state, features, truth, perturbation, time):
    """Routing, update and gate step of one replicate, without metrics: a floor for a loop in NumPy."""
    experts, gates, visits = state
    gate_input = features.sum(axis=1)
    outputs = gates @ gate_input
    expert = int(np.argmax(outputs + perturbation))
    change = np.linalg.lstsq(features.T, features.T @ (truth - experts[expert]), rcond=None)[0]
    experts[expert] += change
    visits[expert] += 1
    weights = np.exp(outputs - outputs.max())
    probabilities = weights / weights.sum()
    cost = np.linalg.norm(change) + 0.5 * 10 * visits[expert] / time**2
    slopes = -cost * probabilities[expert] * probabilities
    slopes[expert] += cost * probabilities[expert]
    gates -= 0.5 * slopes[:, None] * gate_input


def numpy_loop(batch):
    generator = np.random.default_rng(0)
    truths = 0.4 * generator.standard_normal((6, 10))

    def run():
        for _ in range(batch):
            state = np.zeros((10, 10)), np.zeros((10, 10)), np.zeros(10)
            for time in range(1, NUM_ROUNDS + 1):
                task = generator.integers(6)
                features = 0.1 * generator.standard_normal((10, 6))
                features[:, generator.integers(6)] = 2.5 * truths[task]
                numpy_round(state, features, truths[task], 0.3 * generator.random(10), time)

    return run


@pytest.mark.parametrize(
    ("contender", "batch"), [(engine, 64), (engine, 256), (textbook, 64), (textbook, 256), (numpy_loop, 1)]
)
def test_replicate_round(benchmark, contender, batch):
    run = contender(batch)
    jax.block_until_ready(run())
    benchmark.pedantic(lambda: jax.block_until_ready(run()), rounds=5)
    nanoseconds = benchmark.stats.stats.min / (batch * NUM_ROUNDS) * 1e9
    benchmark.extra_info["ns_per_replicate_round"] = round(nanoseconds)
    print(f"\n{contender.__name__}, batch {batch}: {nanoseconds:,.0f} ns a replicate-round")
