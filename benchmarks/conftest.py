"""`pytest benchmarks --pinned` measures on one core; without it, on all that the process may use."""

import dataclasses

import pytest

from moe_theory.bench.worker import choose_cores
from moe_theory.runs.machine import available_cores

PASSES = 5


def pytest_addoption(parser):
    parser.addoption("--pinned", action="store_true", help="keep to one core, from before JAX starts")


def pytest_configure(config):
    choose_cores("one" if config.getoption("--pinned") else "all")


def pytest_report_header():
    return f"benchmarks on {available_cores()} core(s)"


@pytest.fixture
def cores(request):
    return "one" if request.config.getoption("--pinned") else "all"


@pytest.fixture
def time_group(benchmark, cores):
    """Time what the only member of a group runs; `extra_info` holds its cost and what compiling took."""
    import jax

    from moe_theory.bench.measure import timed
    from moe_theory.bench.trial import plan, run_of

    def time(group):
        jax.clear_caches()  # else a program that another test has compiled would seem to compile in no time
        threads = available_cores()
        (planned,) = plan(group, cores, threads)
        if planned.skipped:
            pytest.skip(planned.skipped)
        run = run_of(planned, threads)
        first = timed(run)
        benchmark.pedantic(run, rounds=PASSES)
        measured = dataclasses.replace(planned, first_seconds=first, seconds=tuple(benchmark.stats.stats.data))
        benchmark.extra_info["ns_per_replicate_round"] = round(measured.nanoseconds, 1)
        benchmark.extra_info["compile_seconds"] = round(measured.compile_seconds, 2)
        print(f"\n{measured.id}: {measured.nanoseconds:,.0f} ns, compiled in {measured.compile_seconds:.1f} s")

    return time
