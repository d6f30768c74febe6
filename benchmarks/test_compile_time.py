"""Time to compile the eight-cell program of Fig. 2, cold and with JAX's persistent cache, each in a new process."""

import pytest

from moe_theory.bench.history import COLD, FILLING, KEPT
from moe_theory.bench.session import compilations, events


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("cache", [COLD, FILLING, KEPT])
def test_compiling(cache, benchmark, cores, programs):
    (order,) = [each for each in compilations(cores, programs) if each.document["cache"] == cache]
    told = benchmark.pedantic(lambda: list(events(order)), rounds=1)
    (seconds,) = [event["compilation"]["seconds"] for event in told if "compilation" in event]
    benchmark.extra_info["compile_seconds"] = round(seconds, 2)
    print(f"\n{cache}: {seconds:.1f} s")
