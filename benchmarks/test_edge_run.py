"""Time of 1,000 replicates of the edge system over Fig. 3's horizon.

M = 50, T = 3000, p = 15, s = 10, adaptive policy, all cores. `extra_info` holds microseconds of wall time a
replicate-round and the process's peak memory.
"""

import resource

from moe_theory import edge
from moe_theory.runs import Cell, run_cells

REPLICATES, NUM_ROUNDS = 1000, 3000
DIMS = edge.Dims(max_experts=50, num_tasks=10, num_features=15, num_samples=10, max_delay=10)
PARAMS = edge.reading("orthogonal-signal").params(num_experts=50)


def observe(state, info):
    return info.generalization_error, edge.generalization_error_flushed(state)


def test_run(benchmark):
    cell = Cell("M = 50", edge.system(DIMS), PARAMS, NUM_ROUNDS, 100, observe)
    run_cells([cell], 1)  # compiles
    benchmark.pedantic(lambda: run_cells([cell], REPLICATES), rounds=1)
    per_round = 1e6 * benchmark.stats.stats.min / (REPLICATES * NUM_ROUNDS)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    benchmark.extra_info["wall_us_per_replicate_round"] = round(per_round, 2)
    benchmark.extra_info["peak_gb"] = round(peak, 2)
    print(f"{REPLICATES} replicates: {benchmark.stats.stats.min:.1f} s, {per_round:.1f} us a round, peak {peak:.2f} GB")
