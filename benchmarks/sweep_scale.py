"""What a sweep costs beside its numbers, by how many cells it has.

    python -m benchmarks.sweep_scale [CELLS ...]        # 100, 1,000, 10,000 and 100,000 unless given

Each cell has 64 replicates of 20 rounds, so that nearly all of the time is of planning, handing out, keeping and
reading. Prints a row of a table for each: seconds of a clock, and of processor time in parentheses.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import moe_theory as mt


def timed(row: list[str], run: Callable[[], Any]) -> Any:
    began, used = time.perf_counter(), time.process_time()
    found = run()
    row.append(f"{time.perf_counter() - began:.2g} ({time.process_time() - used:.2g})")
    return found


def specification(cells: int) -> mt.Sweep:
    side = round(cells**0.5)
    axes = {
        "learning_rate": np.linspace(0.1, 0.9, side).tolist(),
        "truth_scale": np.linspace(0.3, 0.9, cells // side).tolist(),
    }
    small = {"dims": {"num_tasks": 4, "num_features": 6, "num_samples": 2}, "params": {"num_experts": 3}}
    return mt.Sweep(system="continual", rounds=20, axes=axes, replicates=64, record_every=2, **small)


def measure(cells: int, folder: Path) -> None:
    first = specification(1).run(folder / "first", progress=mt.sweep.quiet)  # what is compiled and imported once
    first.to_netcdf(folder / "first.nc")
    row: list[str] = []
    sweep = timed(row, lambda: specification(cells))
    out = folder / "sweep"
    results = timed(row, lambda: sweep.run(out, progress=mt.sweep.quiet))
    timed(row, lambda: specification(cells).run(out, progress=mt.sweep.quiet))
    timed(row, lambda: results.to_netcdf(out / "results.nc"))
    results = timed(row, lambda: mt.Results.open(out))
    timed(row, lambda: results.to_xarray().isel(learning_rate=0).load())
    timed(row, lambda: results.to_xarray().load())
    paths = [Path(where, name) for where, _, names in os.walk(out) for name in names]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
    row += [f"{sum(path.stat().st_size for path in paths) / 1e6:.0f}", f"{len(paths)}", f"{memory:.0f}"]
    print(f"| {cells:,} | {' | '.join(row)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cells", nargs="*", type=int, default=[100, 1000, 10_000, 100_000])
    cells = parser.parse_args().cells
    if len(cells) == 1:
        with tempfile.TemporaryDirectory() as folder:
            measure(cells[0], Path(folder))
        return
    columns = "cells, specification, run, run again, results.nc, open, a slice, everything, MB, files, MB of memory"
    print(f"| {columns.replace(', ', ' | ')} |")
    for number in cells:  # each in a process of its own, for its memory
        subprocess.run([sys.executable, "-m", "benchmarks.sweep_scale", str(number)], check=True)


if __name__ == "__main__":
    main()
