"""Time to compile the eight-cell program of Fig. 2, cold and with JAX's persistent cache, each in a new process."""

import os
import subprocess
import sys

import pytest

from moe_theory.runs.compilation import THRESHOLDS, VARIABLE


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("cache", ["cold", "filling", "kept"])
def test_compiling(cache, benchmark, cores, programs):
    kept = {"JAX_ENABLE_COMPILATION_CACHE": "1", VARIABLE: str(programs), **THRESHOLDS}
    environment = os.environ | ({"JAX_ENABLE_COMPILATION_CACHE": "0"} if cache == "cold" else kept)
    command = [sys.executable, "-m", "benchmarks.compile_time"]
    said = benchmark.pedantic(
        lambda: subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout, rounds=1
    )
    benchmark.extra_info |= {"part": "compiling", "cache": cache, "cores": cores, "compile_seconds": float(said)}
    print(f"\n{cache}: {float(said):.1f} s")
