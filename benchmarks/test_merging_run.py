"""Time of 10 seeds of Tanbr over 2,000 slots, with Z exact.

K = V = 8, w = 64, all cores; one hidden layer (p = 1,024: Z^-1 in full) and two (p = 5,120: Z by its kernel).
`extra_info` holds milliseconds of wall time a replicate-slot and the process's peak memory.
"""

import resource

import pytest

from moe_theory import merging
from moe_theory.runs import Cell, run_cells

SEEDS, NUM_SLOTS = 10, 2000


def observe(state, info):
    return info.cumulative_regret


@pytest.mark.parametrize("num_hidden", [1, 2])
def test_run(benchmark, num_hidden):
    system = merging.system(merging.Dims(num_hidden=num_hidden))
    cell = Cell("Tanbr", system, merging.Params(), NUM_SLOTS, 100, observe)
    run_cells([cell], 1)  # compiles
    benchmark.pedantic(lambda: run_cells([cell], SEEDS), rounds=1)
    per_slot = 1e3 * benchmark.stats.stats.min / (SEEDS * NUM_SLOTS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    benchmark.extra_info["wall_ms_per_replicate_slot"] = round(per_slot, 2)
    benchmark.extra_info["peak_gb"] = round(peak, 2)
    print(f"\n{SEEDS} seeds: {benchmark.stats.stats.min:.1f} s, {per_slot:.2f} ms a slot, peak {peak:.2f} GB")
