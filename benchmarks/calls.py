"""What a user waits for, call by call: `python -m benchmarks.calls` prints the rows that `make bench` records.

Calls of `simulate_batch` in one new process, one after another, each timed twice: as it comes, which is with whatever
it has to compile, and again, as the quickest of several. Then commands, each in a process of its own, with an empty
cache and again.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from benchmarks.contenders import timed

ROOT = Path(__file__).parents[1]
AGAIN = 5  # calls after the first
BATCHES = (1, 64, 1024, 8192, 65_536)
COMMANDS = {
    "import": ("-c", "import moe_theory"),
    "--help": ("-m", "moe_theory", "--help"),
    "why": ("-m", "moe_theory", "why", "continual.lemma-4"),
    "verify of one claim": ("-m", "moe_theory", "verify", "continual.lemma-4", "--reading", "quick"),
    "figures continual figure-2": ("-m", "moe_theory", "figures", "continual", "figure-2"),
}


class Row(NamedTuple):
    """Seconds of a call or command."""

    name: str
    first: float
    again: float


def main() -> None:
    for row in (*calls(), *commands()):
        print(f"{row.name:44} {row.first:8.3f} s, again {row.again:8.4f} s", flush=True)


def calls() -> list[Row]:
    """The rows of calls, from a new process."""
    command = [sys.executable, "-m", "benchmarks.calls", "--in-here"]
    process = subprocess.run(command, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    return [Row(*row) for row in json.loads(process.stdout)]


def commands() -> Iterator[Row]:
    for name, words in COMMANDS.items():
        with tempfile.TemporaryDirectory() as scratch:
            environment = os.environ | {"XDG_CACHE_HOME": scratch, "PYTHONPATH": str(ROOT)}

            def run(name=name, words=words, environment=environment, scratch=scratch) -> None:
                process = subprocess.run([sys.executable, *words], env=environment, cwd=scratch, capture_output=True)
                if process.returncode:
                    raise SystemExit(f"{name}: {process.stderr.decode()}")

            yield Row(name, first=timed(run), again=timed(run))  # in this order


def in_here() -> Iterator[Row]:
    """The rows of calls, in this process."""
    import jax

    import moe_theory as mt
    from moe_theory import continual, edge

    key = mt.root_key(0)

    def row(name, system, replicates, params, num_rounds, record_every):
        def call():
            jax.block_until_ready(mt.simulate_batch(system, key, replicates, params, num_rounds, record_every))

        first = timed(call)
        return Row(name, first, min(timed(call) for _ in range(AGAIN)))

    dims = edge.Dims(max_experts=6, num_tasks=3, num_features=8, num_samples=4, max_delay=10)
    params = edge.reading("orthogonal-signal").params(num_experts=6)
    system = edge.system(dims, lambda gates, state, arrival, params: gates - 0.5 * arrival.distance)
    yield row("README's call: 64 replicates, 200 rounds", system, 64, params, 200, 100)
    yield row("the same over 300 rounds", system, 64, params, 300, 100)
    yield row("over 250 rounds", system, 64, params, 250, 100)
    yield row("of 40 replicates", system, 40, params, 200, 100)
    yield row("of 200 replicates", system, 200, params, 200, 100)
    yield row("under other parameters", system, 64, params._replace(learning_rate=0.4), 200, 100)
    yield row("recorded every 50 rounds", system, 64, params, 200, 50)
    paper = continual.system(continual.Dims(max_experts=10, num_tasks=6, num_features=10, num_samples=6))
    params = continual.Params(num_experts=10)
    for batch in BATCHES:
        yield row(f"continual, {batch:,} replicates, 256 rounds", paper, batch, params, 256, 256)
    many = continual.system(continual.Dims(max_experts=10, num_tasks=128, num_features=128, num_samples=6))
    yield row("continual, 64 replicates, N = d = 128", many, 64, params, 256, 256)
    wide = continual.system(continual.Dims(max_experts=10, num_tasks=6, num_features=128, num_samples=76))
    yield row("continual, 64 replicates, d = 128, s = 76", wide, 64, params, 16, 16)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-here", action="store_true", help="only the calls, in this process, as JSON")
    if parser.parse_args().in_here:
        print(json.dumps(list(in_here())))
    else:
        main()
