"""A sweep of 64 cells on one device and on two, and what keeping its chunks costs.

python benchmarks/sweep_devices.py                      (about eight minutes on two cores)
python benchmarks/sweep_devices.py --replicates 128     (one)

8 scales x 8 numbers of experts of the continual system, T = 2000. The grid is cut in four; every quarter is run on one
device, on two, and on two without keeping anything, one after the other, so that a slow spell of the machine meets all
three. Compiling is done before. "One device" has two threads of XLA at its service, which at this size hinder it;
with NPROC=1 in the environment it has one, and is faster.
"""

import argparse
import os
import tempfile
import time
from concurrent.futures import wait
from pathlib import Path

import jax
import numpy as np

from moe_theory.sweep import running, tasks
from moe_theory.sweep.executors import DeviceCrew
from moe_theory.sweep.spec import Sweep

QUARTERS = 4
SCALES = np.geomspace(0.1, 0.8, 8).tolist()
EXPERTS = [1, 2, 4, 6, 8, 10, 15, 20]


def quarter(number: int, replicates: int) -> Sweep:
    """Two of the eight scales, under all numbers of experts."""
    return Sweep(
        system="continual",
        rounds=2000,
        record_every=40,
        replicates=replicates,
        params={"signal_scale": "1 / truth_scale", "cluster_spread": "truth_scale ** 1.5"},
        axes={"truth_scale": SCALES[number::QUARTERS], "num_experts": EXPERTS},
    )


def kept(sweep: Sweep, devices: int) -> float:
    """Seconds of a run into a new folder."""
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        running.run(sweep, Path(folder) / "run", crew=DeviceCrew(devices))
        return time.perf_counter() - began


def not_kept(sweep: Sweep, devices: int) -> float:
    """Seconds of the same work with nothing kept."""
    crew = DeviceCrew(devices)
    began = time.perf_counter()
    plan = tasks.Plan(sweep, running.fingerprint_of(crew, sweep.system))
    wait([crew.open().submit(tasks.compute, part.task) for part in plan.parts])
    crew.close()
    return time.perf_counter() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=1000)
    replicates = parser.parse_args().replicates
    jax.config.update("jax_num_cpu_devices", 2)
    programs = {
        tasks.program_of(part.task)
        for number in range(QUARTERS)
        for part in tasks.Plan(quarter(number, replicates), tasks.fingerprint("continual")).parts
    }
    print(f"64 cells x {replicates} replicates, T = 2000: {len(programs)} program(s), {os.cpu_count()} cores")
    not_kept(quarter(0, 128), 2)  # compiles
    one, two, without = [], [], []
    for number in range(QUARTERS):
        sweep = quarter(number, replicates)
        one.append(kept(sweep, 1))
        two.append(kept(sweep, 2))
        without.append(not_kept(sweep, 2))
        print(
            f"quarter {number + 1}: one device {one[-1]:.1f} s, two {two[-1]:.1f} s, nothing kept {without[-1]:.1f} s"
        )
    print(f"two devices are {sum(one) / sum(two):.2f} times as fast as one")
    print(f"keeping chunks costs {sum(two) / sum(without) - 1:+.1%}; by quarter", end=" ")
    print(", ".join(f"{a / b - 1:+.1%}" for a, b in zip(two, without, strict=True)))


if __name__ == "__main__":
    main()
