"""Kill a sweep at random moments, resume it each time, and compare what comes out with an undisturbed run.

python benchmarks/sweep_kills.py --kills 50     (about five minutes; the tests do three)

Exits 1 when a result differs by a byte, or when a chunk that was finished is written again.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SPECIFICATION = """
system = "continual"
rounds = 400
record_every = 40
replicates = 384
chunk_width = 32
[axes]
truth_scale = [0.2, 0.4, 0.8]
num_experts = [2, 5, 8]
"""

Files = dict[str, tuple[int, int]]  # a chunk's inode and time of writing, by its name


def start(specification: Path, out: Path, cache: Path) -> subprocess.Popen:
    """A run of the command line, in a process group of its own."""
    command = [sys.executable, "-m", "moe_theory.cli", "sweep", str(specification), "--out", str(out)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    environment = os.environ | {"XDG_CACHE_HOME": str(cache)}
    return subprocess.Popen(command, env=environment, start_new_session=True, **quiet)  # pyright: ignore


def finish(process: subprocess.Popen) -> None:
    """Wait for a run that nobody kills, and fail with what it says if it does."""
    _, said = process.communicate()
    if process.returncode != 0:
        sys.exit(f"a resumed run failed with code {process.returncode}: {said.decode()}")


def chunks(out: Path) -> Files:
    """The finished chunks of a folder."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in out.glob("chunks/*/*.npz")}


def contents(out: Path) -> dict[str, bytes]:
    """Everything whose bytes must not depend on what happened."""
    return {path.name: path.read_bytes() for path in [out / "results.nc", *out.glob("chunks/*/*.npz")]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    moments = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        specification = folder / "grid.toml"
        specification.write_text(SPECIFICATION)
        finish(start(specification, folder / "compiled", folder / "cache"))
        began = time.monotonic()
        finish(start(specification, folder / "undisturbed", folder / "cache"))
        length = time.monotonic() - began
        expected = contents(folder / "undisturbed")
        print(f"undisturbed: {length:.1f} s, {len(expected) - 1} chunks", flush=True)
        kills, runs = 0, 0
        while kills < options.kills:
            runs += 1
            kills += disturbed(
                specification, folder / f"run-{runs}", folder / "cache", length, moments, options.kills - kills
            )
            found = contents(folder / f"run-{runs}")
            if found != expected:
                names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
                sys.exit(f"run {runs} differs from the undisturbed one after {kills} kills, in {names}")
            print(f"run {runs}: identical; {kills} kills so far", flush=True)
    print(f"{kills} kills, {runs} runs: every result identical to the last byte, no finished chunk written twice")


def disturbed(specification: Path, out: Path, cache: Path, length: float, moments: random.Random, most: int) -> int:
    """Run until done, killed again and again on the way, at most so many times; how often it was."""
    seen: Files = {}
    kills = 0
    while True:
        process = start(specification, out, cache)
        try:
            process.wait(moments.uniform(0, length) if kills < most else None)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            kills += 1
        _, said = process.communicate()
        there = chunks(out)
        again = [name for name, file in seen.items() if there.get(name) != file]
        if again:
            sys.exit(f"finished chunks were written again: {again}")
        seen = there
        if process.returncode == 0:
            return kills
        if process.returncode != -signal.SIGKILL:
            sys.exit(f"a run ended with code {process.returncode}: {said.decode()}")


if __name__ == "__main__":
    main()
