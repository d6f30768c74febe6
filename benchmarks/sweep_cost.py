"""Processor time of a sweep and of its rerun, for several versions of the package, interleaved in one run.

    python -m benchmarks.sweep_cost [PACKAGE ...] [--cells 1000] [--passes 3]

PACKAGE is a folder that holds a `moe_theory`, such as a worktree of another commit. This one is measured besides. The
sweep is of the smallest system, 1,024 replicates a cell. Programs are compiled before the clock runs. The least of all
passes counts, as other processes share the machine.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
REPLICATES = 1024
CHUNKS = 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("packages", nargs="*", type=Path)
    parser.add_argument("--cells", type=int, default=1000)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--measure", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        print(json.dumps(_measured(options.cells)))
        return
    packages = [*(package.absolute() for package in options.packages), ROOT]
    rows: dict[Path, list[dict[str, float]]] = {package: [] for package in packages}
    for _ in range(options.passes):
        for package in packages:
            command = [sys.executable, __file__, "--measure", "--cells", str(options.cells)]
            environment = os.environ | {"PYTHONPATH": str(package)}
            run = subprocess.run(command, env=environment, check=True, capture_output=True, text=True)
            rows[package].append(json.loads(run.stdout.splitlines()[-1]))
    for package, passes in rows.items():
        least = {name: min(row[name] for row in passes) for name in passes[0]}
        print(package, ", ".join(f"{name} {seconds:.2f} s" for name, seconds in least.items()))


def _measured(num_cells: int) -> dict[str, float]:
    """Seconds: processor time of a sweep, and of the clock for a rerun with nothing to do."""
    from moe_theory.sweep import quiet

    with tempfile.TemporaryDirectory() as scratch:
        _sweep(2, 256).run(Path(scratch) / "warm")  # compiles
        sweep = _sweep(num_cells, REPLICATES)
        start = time.process_time()
        sweep.run(Path(scratch) / "cells", progress=quiet)
        first_seconds = time.process_time() - start
        chunks = _sweep(1, CHUNKS * 64)
        chunks.run(Path(scratch) / "chunks", progress=quiet)
        start = time.monotonic()
        chunks.run(Path(scratch) / "chunks", progress=quiet)
        rerun_seconds = time.monotonic() - start
    return {"sweep": first_seconds, f"rerun of {CHUNKS:,} chunks": rerun_seconds}


def _sweep(num_cells: int, replicates: int):
    import moe_theory as mt

    return mt.Sweep(
        system="continual",
        rounds=20,
        replicates=replicates,
        record_every=5,
        chunk_width=64,
        dims={"num_tasks": 2, "num_features": 3, "num_samples": 1, "max_experts": 2},
        params={"num_experts": 2},
        axes={"learning_rate": {"linspace": [0.1, 0.9], "num": max(num_cells, 2)}},
    )


if __name__ == "__main__":
    main()
