"""Time of 1,000 replicates of the edge system over Fig. 3's horizon, in chunks of two widths.

M = 50, T = 3000, p = 15, s = 10, adaptive policy, all cores. `extra_info` holds microseconds of wall time a
replicate-round and the process's peak memory; chunks as wide as those of small systems run for comparison.
"""

import resource

import pytest

from moe_theory import edge
from moe_theory.sweep import Cell, run_cells
from moe_theory.sweep.chunks import CHUNK_WIDTH

REPLICATES, NUM_ROUNDS = 1000, 3000
DIMS = edge.Dims(max_experts=50, num_tasks=10, num_features=15, num_samples=10, max_delay=10)
PARAMS = edge.reading("orthogonal-signal").params(num_experts=50)


def observe(state, info):
    return info.generalization_error, edge.generalization_error_flushed(state)


@pytest.mark.parametrize(("width", "share"), [(None, 1), (CHUNK_WIDTH, 5)], ids=["fitting", "wide"])
def test_run(benchmark, width, share):
    cell = Cell("M = 50", edge.system(DIMS), PARAMS, NUM_ROUNDS, 100, observe)
    replicates = REPLICATES // share

    def run():
        return run_cells([cell], replicates, width=width)

    run_cells([cell], 1, width=width)  # compiles
    benchmark.pedantic(run, rounds=1)
    per_round = 1e6 * benchmark.stats.stats.min / (replicates * NUM_ROUNDS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    benchmark.extra_info["wall_us_per_replicate_round"] = round(per_round, 2)
    benchmark.extra_info["peak_gb"] = round(peak, 2)
    print(f"{replicates} replicates: {benchmark.stats.stats.min:.1f} s, {per_round:.1f} us a round, peak {peak:.2f} GB")
