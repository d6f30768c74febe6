"""What a user waits for: calls, commands, and seconds to trace, lower and compile, cold and with a cache.

What Fig. 2 of `continual` runs, each in a new process: what the first chunk of each cell takes beyond what it takes
again. Imports and the start of JAX are not counted.
"""

import os
import subprocess
import sys

import jax
import pytest

from benchmarks.calls import calls, commands
from benchmarks.contenders import timed
from moe_theory.continual import READINGS
from moe_theory.continual.experiments import FIGURE_2
from moe_theory.runs import Cell, run_cells
from moe_theory.runs.compilation import THRESHOLDS, VARIABLE


def test_calls(benchmark, cores):
    rows = benchmark.pedantic(lambda: [*calls(), *commands()], rounds=1)
    benchmark.extra_info |= {"part": "calls", "cores": cores, "rows": [row._asdict() for row in rows]}
    print("\n" + "\n".join(f"{row.name}: {row.first:.2f} s, again {row.again:.4f} s" for row in rows))


@pytest.fixture(scope="module")
def programs(tmp_path_factory):
    return tmp_path_factory.mktemp("programs")


@pytest.mark.parametrize("cache", ["cold", "filling", "kept"])
def test_compiling(cache, benchmark, cores, programs):
    environment = os.environ | {"JAX_ENABLE_COMPILATION_CACHE": "0"}
    if cache != "cold":
        environment |= {"JAX_ENABLE_COMPILATION_CACHE": "1", VARIABLE: str(programs), **THRESHOLDS}
    command = [sys.executable, "-m", "benchmarks.test_calls"]
    options = {"env": environment, "capture_output": True, "text": True, "check": True}
    process = benchmark.pedantic(subprocess.run, args=(command,), kwargs=options, rounds=1)
    seconds = float(process.stdout)
    benchmark.extra_info |= {"part": "compiling", "cache": cache, "cores": cores, "compile_seconds": seconds}
    print(f"\n{cache}: {seconds:.1f} s")


def main() -> None:
    """Print the seconds that this process takes."""
    jax.block_until_ready(jax.numpy.zeros(1))  # starts the backend
    reading = next(iter(READINGS.values()))
    cells = [
        Cell(name, FIGURE_2.system, reading.params(**own), FIGURE_2.num_rounds, FIGURE_2.record_every, FIGURE_2.observe)
        for name, own in FIGURE_2.cells.items()
    ]
    first, *again = (timed(lambda: run_cells(cells, 1, num_threads=1)) for _ in range(3))
    print(max(first - min(again), 0.0))


if __name__ == "__main__":
    main()
