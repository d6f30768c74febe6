"""How many chunks a second the process that runs a sweep can hand out and keep, whatever its workers do.

    python -m benchmarks.sweep_client [--workers 1000] [--chunks 20000] [--seconds 1] [--slow 0.005]

Workers are pretended: each takes so many seconds for a chunk and returns bytes that were made beforehand. With `--slow`
every operation on files takes so many seconds longer, as on a busy shared file system.
"""

import argparse
import builtins
import fcntl
import functools
import heapq
import io
import itertools
import os
import tempfile
import threading
import time
from collections import Counter
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.runs.files import pack
from moe_theory.runs.workers import ExecutorPool
from moe_theory.sweep import plan as planning
from moe_theory.sweep import runner
from moe_theory.sweep.results import Sweep

WIDTH = 16
OPERATIONS = [
    *((os, name) for name in ("open", "stat", "lstat", "mkdir", "replace", "rename", "unlink", "scandir", "fsync")),
    (io, "open"),
    (builtins, "open"),
    (fcntl, "lockf"),
]


class Pretended(Executor):
    """Workers that take their time and no processor."""

    def __init__(self, seconds: float) -> None:
        rounds, replicates = 2, WIDTH
        names = ("forgetting", "generalization_error")
        self.seconds, self.data = seconds, pack({}, {name: np.zeros((rounds, replicates), "f4") for name in names})
        self.tasks, self.chunks = 0, 0
        self.numbers, self.due, self.changed = itertools.count(), [], threading.Condition()
        threading.Thread(target=self.work, daemon=True).start()

    def submit(self, function: Any, /, *arguments: Any, **_: Any) -> Future:
        future: Future = Future()
        if function is not planning.compute:
            future.set_result(function(*arguments))
            return future
        number = sum(len(part.firsts) for part in arguments[0])
        self.tasks, self.chunks = self.tasks + 1, self.chunks + number
        with self.changed:
            due = time.monotonic() + number * self.seconds
            heapq.heappush(self.due, (due, next(self.numbers), future, number))
            self.changed.notify()
        return future

    def work(self) -> None:
        while True:
            with self.changed:
                while not self.due or self.due[0][0] > time.monotonic():
                    self.changed.wait(self.due[0][0] - time.monotonic() if self.due else None)
                _, _, future, number = heapq.heappop(self.due)
            if future.set_running_or_notify_cancel():
                future.set_result(planning.Computed([self.data] * number, number * self.seconds, "pretended"))


def slowed(seconds: float, counted: Counter) -> None:
    """Make every operation on files slower, and count it."""
    for module, name in OPERATIONS:
        real = getattr(module, name)

        def slower(*arguments: Any, real: Any = real, name: str = name, **options: Any) -> Any:
            counted[name] += 1
            time.sleep(seconds)
            return real(*arguments, **options)

        setattr(module, name, functools.wraps(real)(slower))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--workers", type=int, default=1000)
    parser.add_argument("--chunks", type=int, default=20_000)
    parser.add_argument("--seconds", type=float, default=1.0, help="of a worker for a chunk")
    parser.add_argument("--slow", type=float, default=0.0, help="seconds longer for each operation on files")
    asked = parser.parse_args()
    axes = {"learning_rate": np.linspace(0.1, 0.9, max(1, asked.chunks // 100)).tolist()}
    small = {"dims": {"num_tasks": 4, "num_features": 6, "num_samples": 2}, "params": {"num_experts": 3}}
    sweep = Sweep(system="continual", rounds=4, record_every=2, axes=axes, replicates=1600, chunk_width=WIDTH, **small)
    counted: Counter = Counter()
    with tempfile.TemporaryDirectory() as folder:
        executor = Pretended(asked.seconds)
        planning.SweepPlan(sweep, planning.fingerprint("continual")).require_memory(1)  # imports, traces
        if asked.slow:
            slowed(asked.slow, counted)
        began, used = time.monotonic(), time.process_time()
        counts = runner.run(sweep, folder, pool=ExecutorPool(executor, asked.workers)).counts
        wall, used = time.monotonic() - began, time.process_time() - used
        packs = len(list(Path(folder).glob("packs/*.zip")))
    done = counts.computed
    print(
        f"{done:,} chunks in {executor.tasks:,} tasks and {packs} files, {asked.workers:,} workers of {asked.seconds} s"
    )
    print(f"{done / wall:,.0f} chunks a second, {1e3 * used / done:.3f} ms of processor time each ({wall:.1f} s)")
    if counted:
        print(f"{sum(counted.values()) / done:.2f} file operations a chunk: {dict(counted.most_common(6))}")


if __name__ == "__main__":
    main()
