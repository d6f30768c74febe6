"""A wide batch on an accelerator: replicate-rounds a second, and how near the memory's bandwidth that is."""

import dataclasses

import jax
import jax.numpy as jnp

from moe_theory.bench import engine
from moe_theory.bench.grid import paper_setting
from moe_theory.bench.history import OnAccelerator
from moe_theory.bench.measure import calls_to_fill, interleave, timed

BATCH = 100_000
NUM_ROUNDS = 512
COPIED = 2**28  # elements of 4 bytes: far beyond any cache


def measure_system(system: str, precision: str, passes: int, seconds: float) -> OnAccelerator:
    """Time `BATCH` replicates of a system at once; a line that says why not, where JAX sees no accelerator."""
    device = jax.devices()[0]
    setting = dataclasses.replace(paper_setting(system, precision, BATCH), num_rounds=NUM_ROUNDS)
    if device.platform == "cpu":
        return OnAccelerator(setting, "cpu", skipped="JAX sees no accelerator here")
    run = engine.prepare(setting)
    run()
    times = interleave([run], [calls_to_fill(seconds, timed(run))], passes)[:, 0]
    return OnAccelerator(
        setting=setting,
        device=device.device_kind,
        seconds=tuple(times.tolist()),
        bytes_a_round=2 * BATCH * engine.bytes_of_state(setting),
        copy_bandwidth=copy_bandwidth(passes),
    )


def copy_bandwidth(passes: int, elements: int = COPIED) -> float:
    """Bytes a second, read and written, of the quickest of so many copies of a large array on JAX's device."""
    array = jnp.zeros(elements, jnp.float32)
    move = jax.jit(lambda array: array + 1)

    def copy() -> None:
        move(array).block_until_ready()

    copy()
    return 2 * array.nbytes / float(interleave([copy], [10], passes).min())
