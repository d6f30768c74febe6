"""Time of a replicate-round: the engine and its peers, over a grid of sizes, and against each size alone.

`make bench` runs this on one pinned core and on all, and `benchmarks.report` makes tables and figures of it.
pytest-benchmark keeps a history (`--benchmark-autosave`) and compares with it (`--benchmark-compare`).
"""

import dataclasses

import jax
import pytest

from benchmarks.contenders import ENGINE, PASSES, cases, interleaved, timed


def name(case):
    setting = case.setting
    sizes = f"M={setting.num_experts},N={setting.num_tasks},d={setting.num_features},s={setting.num_samples}"
    batch = f"batch={'automatic' if case.is_automatic else setting.batch},{setting.precision}"
    rounds = f",T={setting.num_rounds}" if case.part == "scaling T" else ""
    return f"{case.part}/{setting.system}/{sizes},{batch}{rounds}/{case.contender}"


@pytest.mark.parametrize("case", list(cases()), ids=name)
def test_replicate_round(case, benchmark, cores, num_threads):
    if reason := case.skipped(num_threads):
        pytest.skip(reason)
    jax.clear_caches()  # else a program that another test has compiled would seem to compile in no time
    run = case.run(num_threads)
    first = timed(run)
    benchmark.pedantic(run, rounds=PASSES)
    seconds = list(benchmark.stats.stats.data)
    replicate_rounds = case.replicates(num_threads) * case.setting.num_rounds
    benchmark.extra_info |= {
        "part": case.part,
        "contender": case.contender,
        "setting": dataclasses.asdict(case.setting),
        "is_automatic": case.is_automatic,
        "beside": case.beside or case.setting.batch,
        "cores": cores,
        "compile_seconds": max(first - min(seconds), 0.0),
        "nanoseconds": [1e9 * call / replicate_rounds for call in seconds],
    }
    if case.part == "peers" and case.contender != ENGINE:
        of_engine = dataclasses.replace(case, contender=ENGINE)
        peer_seconds, engine_seconds = interleaved([run, of_engine.run(num_threads)]).T
        share = of_engine.replicates(num_threads) / case.replicates(num_threads)  # a peer may run fewer at once
        benchmark.extra_info["times_engine"] = (share * peer_seconds / engine_seconds).tolist()
    print(f"\n{name(case)}: {min(benchmark.extra_info['nanoseconds']):,.0f} ns")
