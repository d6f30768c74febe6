"""A wide batch on an accelerator: replicate-rounds a second, and how near the memory's bandwidth that is."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest

from benchmarks.contenders import (
    PASSES,
    SYSTEMS,
    bytes_of_state,
    interleaved,
    operations,
    paper_setting,
    prepare_engine,
)
from benchmarks.report import Record, accelerator_table

BATCHES = (100_000, 1_000_000)
NUM_ROUNDS = 512
COPIED = 2**28  # elements of 4 bytes: far beyond any cache


@pytest.mark.skipif(jax.default_backend() == "cpu", reason="JAX sees no accelerator here")
@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("system", SYSTEMS)
def test_wide_batch(system, batch, benchmark):
    setting = dataclasses.replace(paper_setting(system, batch), num_rounds=NUM_ROUNDS)
    run = prepare_engine(setting)
    run()
    benchmark.pedantic(run, rounds=PASSES)
    seconds = benchmark.stats.stats.min
    moved = 2 * bytes_of_state(setting)  # a state is read and written once a round
    entry = {
        "part": "accelerator",
        "setting": dataclasses.asdict(setting),
        "device": jax.devices()[0].device_kind,
        "rounds_a_second": batch * NUM_ROUNDS / seconds,
        "bytes_a_round": moved,
        "operations_a_round": operations(setting),
        "bandwidth_share": moved * batch * NUM_ROUNDS / seconds / copy_bandwidth(),
    }
    benchmark.extra_info |= entry
    print(f"\n{accelerator_table(Record('', [entry]))}")


def copy_bandwidth() -> float:
    """Bytes a second, read and written, of the quickest of several copies of a large array."""
    array = jnp.zeros(COPIED, jnp.float32)
    move = jax.jit(lambda array: array + 1)
    return 2 * array.nbytes / float(interleaved([lambda: move(array).block_until_ready()]).min())
