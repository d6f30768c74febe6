"""A sweep of 64 cells on one device and on two, and what keeping its chunks costs.

python benchmarks/sweep_devices.py                      (about ten minutes on two cores)
python benchmarks/sweep_devices.py --replicates 128     (two)

8 scales x 8 numbers of experts of the continual system, T = 2000. Every scale is run on one device, on two, and on two
without keeping anything, in one order and then in the other, so that a slow spell of the machine meets all three.
Compiling is done before. "One device" has two threads of XLA at its service, which at this size hinder it;
with NPROC=1 in the environment it has one, and is faster.
"""

import argparse
import functools
import os
import tempfile
import time
from concurrent.futures import wait
from pathlib import Path

import jax
import numpy as np

from moe_theory.runs.workers import DevicePool
from moe_theory.sweep import plan as planning
from moe_theory.sweep import runner
from moe_theory.sweep.results import Sweep

SCALES = np.geomspace(0.1, 0.8, 8).tolist()
EXPERTS = [1, 2, 4, 6, 8, 10, 15, 20]


def chunk(scale: float, replicates: int) -> Sweep:
    """One of the eight scales, under all numbers of experts."""
    return Sweep(
        system="continual",
        rounds=2000,
        record_every=40,
        replicates=replicates,
        params={"signal_scale": "1 / truth_scale", "cluster_spread": "truth_scale ** 1.5"},
        axes={"truth_scale": [scale], "num_experts": EXPERTS},
    )


def kept(sweep: Sweep, devices: int) -> float:
    """Seconds of a run into a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        runner.run(sweep, Path(folder) / "run", pool=DevicePool(devices))
        return time.perf_counter() - began


def not_kept(sweep: Sweep, devices: int) -> float:
    """Seconds of the same work with nothing kept."""
    pool = DevicePool(devices)
    began = time.perf_counter()
    plan = planning.SweepPlan(sweep, runner.fingerprint_of(pool, sweep.system))
    wait([pool.open().submit(planning.computed, chunk.task) for chunk in plan.chunks])
    pool.close()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    replicates = parser.parse_args().replicates
    jax.config.update("jax_num_cpu_devices", 2)
    sweeps = [chunk(scale, replicates) for scale in SCALES]
    plans = [planning.SweepPlan(sweep, planning.fingerprint("continual")) for sweep in sweeps]
    programs = {planning.program_of(chunk.task) for plan in plans for chunk in plan.chunks}
    print(f"64 cells x {replicates} replicates, T = 2000: {len(programs)} program(s), {os.cpu_count()} cores")
    not_kept(chunk(SCALES[0], 64), 2)  # compiles
    ways = {
        "one device": functools.partial(kept, devices=1),
        "two": functools.partial(kept, devices=2),
        "unkept": functools.partial(not_kept, devices=2),
    }
    seconds: dict[str, list[float]] = {way: [] for way in ways}
    for number, sweep in enumerate(sweeps):
        for way in list(ways)[:: -1 if number % 2 else 1]:
            seconds[way].append(ways[way](sweep))
        print(
            f"scale {number + 1}: {', '.join(f'{way} {times[-1]:.1f} s' for way, times in seconds.items())}", flush=True
        )
    one, two, unkept = (sum(times) for times in seconds.values())
    ratios = [a / b - 1 for a, b in zip(seconds["two"], seconds["unkept"], strict=True)]
    print(f"two devices are {one / two:.2f} times as fast as one")
    print(f"keeping chunks costs {two / unkept - 1:+.1%} (median of the scales {np.median(ratios):+.1%})")


if __name__ == "__main__":
    main()
