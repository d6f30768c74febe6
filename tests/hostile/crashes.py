"""Kill commands at random moments and run them again: they end with the numbers of a run that nobody disturbed."""

import argparse
import contextlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stored import rows

from moe_theory.report import pages

PRESET = "continual-mnist-small"
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
COMMANDS = {
    "sweep": ("sweep", "{folder}/grid.toml"),
    "verify": ("verify", "continual.lemma-3*", "--reading", "unit-signal", "--replicates", "512"),
    "deep": ("deep", PRESET, "--replicates", "2"),
}


def kill(number: int, seed: int, folder: Path, command: str) -> str:
    """Run a command until it is done, killed at random moments so many times; exits unless all bytes are the same."""
    moments = random.Random(seed)
    (folder / "grid.toml").write_text(SPECIFICATION)
    out = folder / "out"  # always the same: the command is in what it writes
    for _ in range(2):  # the first compiles
        shutil.rmtree(out, ignore_errors=True)
        began = time.monotonic()
        _finish(_start(command, folder))
    length, expected = time.monotonic() - began, _contents(out)
    kills = runs = 0
    while kills < number:
        shutil.rmtree(out)
        runs += 1
        while True:
            process = _start(command, folder)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(moments.uniform(0, length) if kills < number else None)
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                kills += 1
            if process.wait() != -signal.SIGKILL:
                break
        _finish(process)
        found = _contents(out)
        if found != expected:
            names = sorted(name for name in found.keys() | expected.keys() if found.get(name) != expected.get(name))
            sys.exit(f"{command}, run {runs}, differs from the undisturbed one after {kills} kills, in {names}")
    return f"{command}: {kills} kills, {runs} runs: every file identical to the last byte"


def _start(command: str, folder: Path) -> subprocess.Popen:
    """A run of the command line, in a process group of its own."""
    words = [word.format(folder=folder) for word in COMMANDS[command]]
    line = [sys.executable, "-m", "moe_theory", *words, "--out", str(folder / "out")]
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}
    with (folder / "said").open("wb") as said:
        return subprocess.Popen(line, env=environment, start_new_session=True, stdout=subprocess.DEVNULL, stderr=said)


def _finish(process: subprocess.Popen) -> None:
    """Wait for a run that nobody kills, and end with what it says if it fails."""
    if process.wait() != 0:
        said = Path(str(process.args[-1])).parent / "said"  # pyright: ignore
        sys.exit(f"a resumed run failed with code {process.returncode}: {said.read_text()}")


def _contents(out: Path) -> dict[str, bytes]:
    """Everything whose bytes must not depend on what happened."""
    found = {path.name: path.read_bytes() for path in out.glob("results.nc")}
    found |= rows(out)
    if (out / pages.NUMBERS).is_file():
        document = json.loads((out / pages.NUMBERS).read_text())
        found["verdicts"] = json.dumps([each | {"command": ""} for each in document["verdicts"]]).encode()
    return found


def main() -> None:
    """Kill each command so many times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for place, command in enumerate(COMMANDS):
        with tempfile.TemporaryDirectory() as folder:
            print(kill((options.kills + place) // len(COMMANDS), options.seed, Path(folder), command), flush=True)


if __name__ == "__main__":
    main()
