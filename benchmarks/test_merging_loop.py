"""How much faster a slot of Tanbr is than the plain loop's, in CPU time on one core (`--pinned`), of equal sizes.

The package's is the mean over a run of 2,000 slots. The loop trains on all slots seen, one by one, and its slots grow
with them: it is timed in the middle of such a run, with the few candidates of a tree that has just begun.
"""

import time

import jax
import pytest

import moe_theory as mt
from moe_theory import merging

from . import merging_loop

NUM_SLOTS, TIMED = 2000, 20


def observe(state, info):
    return info.pick.num_candidates


@pytest.mark.benchmark(timer=time.process_time)
@pytest.mark.parametrize("uncertainty", ["full", "dual", "diagonal"])
def test_ratio(benchmark, uncertainty):
    system = merging.system(merging.Dims(max_rounds=NUM_SLOTS), uncertainty=uncertainty)

    def run():
        return jax.block_until_ready(
            mt.simulate_batch(system, mt.root_key(0), 1, merging.Params(), NUM_SLOTS, NUM_SLOTS, observe=observe)
        )

    run()  # compiles
    _, candidates = benchmark.pedantic(run, rounds=1)
    seconds, counts, _ = merging_loop.run(TIMED, seen_before=NUM_SLOTS // 2)
    each = benchmark.stats.stats.min / NUM_SLOTS
    ratio = seconds.mean() / each
    benchmark.extra_info["ratio"] = round(ratio, 1)
    print(
        f"\n{uncertainty}: {1e3 * each:.2f} ms a slot, up to {candidates[-1, 0]} candidates; "
        f"the loop's {1e3 * seconds.mean():.0f} ms, up to {counts[-1]}: {ratio:.0f} times"
    )
