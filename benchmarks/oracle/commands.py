"""Commands as users run them, `moe-theory ... --json`, each in a process and a folder of its own."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import moe_theory as mt
from benchmarks.oracle.records import Record, number_or_array, numbers_of
from moe_theory import generalization, merging

BOUNDS: dict[str, Sequence[str]] = {  # options of the command
    "default": (),
    "many-samples": ("--experts", "8", "--active", "1", "--samples", "1e6", "--features", "64"),
    "lipschitz": ("--samples", "1e5", "--delta", "0.01", "--lipschitz", "0.5", "--feature-norm", "1.5"),
    "networks": ("--expert-widths", "16,8", "--samples", "1e8"),
    "weights": ("--weights", "46.7e9", "--bits", "16", "--samples", "1e12"),
    "trained": ("--training-error", "0.1", "--code-bits", "700", "--samples", "1437"),
}
FIELDS: dict[str, Mapping[str, Any]] = {  # fields of `generalization.bound`, in Python
    "expert-network": {"expert_widths": (64,), "num_samples": 10**9},
    "fixed-router": {"router": "fixed", "num_samples": 10**5, "delta": 0.01, "lipschitz": 0.5},
}
FEW_BOUNDS = ("networks", "trained")


class Coins(merging.Stream):
    """A stream of three experts and two tasks, each of which has an expert that is best for it."""

    num_experts, num_tasks = 3, 2

    def slots(self) -> Iterator[tuple[int, int]]:
        return iter([(4, 2), (1, 5), (3, 3)] * 20)

    def serve(self, slot: tuple[int, int], weights: np.ndarray) -> merging.Feedback:
        rewards = np.array([weights[0], 1 - (1 - weights[2]) ** 2])
        return merging.Feedback(rewards, np.array(slot))


def run_json(arguments: Sequence[str], folder: Path) -> Any:
    """Run `moe-theory` with --json in a folder, on the package that this process has, and return what it prints."""
    source = Path(mt.__file__).parents[1]
    command = [sys.executable, "-m", "moe_theory", *arguments, "--json"]
    environment = os.environ | {"PYTHONPATH": str(source)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(arguments)}: {done.stderr[-2000:]}")
    return json.loads(done.stdout)


def bounds(scratch: Path, names: Sequence[str]) -> Iterator[Record]:
    """Run `bound` on numbers."""
    for name in names:
        yield _by_json(f"bound/{name}", ["bound", *BOUNDS[name]], scratch)
    for name, fields in FIELDS.items():
        values = {bound.form.id: number_or_array(bound.value) for bound in generalization.bound(**fields)}
        samples = {f"{bound.form.id}/samples": bound.smallest_num_samples for bound in generalization.bound(**fields)}
        yield Record(f"bound/{name}", values | samples)


def streams() -> Iterator[Record]:
    """Serve a stream of one's own with `merging.compare`, which calls `merge_online` for each policy."""
    names = ["tanbr", "nucb", "average", "uniform"]
    compared = merging.compare(Coins, names, num_slots=40, seed=7)
    for name, rows in compared.items():
        fields = ("weights", "estimated_mix", "rewards", "counts", "reward", "mean_reward", "num_candidates", "depth")
        columns = {field: np.array([getattr(row, field) for row in rows]) for field in fields}
        yield Record(f"stream/{name}", {field: number_or_array(column) for field, column in columns.items()})


def merge(scratch: Path) -> Iterator[Record]:
    """Train the testbed and merge its experts slot by slot, with Tanbr and with all policies."""
    yield _by_json("merge/tanbr", ["merge", "--slots", "12", "--seed", "7"], scratch)
    yield _by_json("merge/all", ["merge", "--policy", "all", "--slots", "4", "--seed", "7"], scratch)


def maps(scratch: Path) -> Iterator[Record]:
    """Map where a claim holds, over a range."""
    claim, axis = "continual.lemma-4", "noise_scale=0.05,0.0875,0.125,0.1625,0.2"
    options = ["--replicates", "64", "--seed", "7"]
    document = run_json(["explore", claim, "--over", axis, *options], scratch)
    points = {str(place): point for place, point in enumerate(document["points"])}
    yield Record(f"explore/{claim}", numbers_of({"points": points}))


def searches(scratch: Path, statements: Sequence[str]) -> Iterator[Record]:
    """Search statements without a limit of time, so that no clock decides which settings are looked at."""
    for statement in statements:
        yield _by_json(f"challenge/{statement}", ["challenge", statement, "--seconds", "1e7", "--seed", "7"], scratch)


def networks(scratch: Path, presets: Mapping[str, Sequence[str]]) -> Iterator[Record]:
    """Run presets of networks, with their tables and verdicts."""
    for preset, options in presets.items():
        arguments = ["deep", preset, *options, "--seed", "7", "--out", str(scratch / preset)]
        yield _by_json(f"deep/{preset}", arguments, scratch)


def figure_files(scratch: Path, paper: str, names: Sequence[str], options: Sequence[str]) -> Iterator[Record]:
    """Draw figures and yield the numbers of their CSV files, column by column."""
    run_json(["figures", paper, *names, *options, "--seed", "7", "--out", str(scratch)], scratch)
    for name in names:
        with (scratch / paper / f"{name}.csv").open(newline="") as file:
            rows = list(csv.DictReader(file))
        columns = {column: [_number(row[column]) for row in rows] for column in rows[0]}
        numeric = {column: values for column, values in columns.items() if not np.all(np.isnan(values))}
        yield Record(f"csv/{paper}.{name}", {column: number_or_array(values) for column, values in numeric.items()})


def _by_json(key: str, arguments: Sequence[str], folder: Path) -> Record:
    return Record(key, numbers_of(run_json(arguments, folder)))


def _number(text: str) -> float:
    """Return a cell of a table as a number, NaN where it is a text."""
    try:
        return float(text)
    except ValueError:
        return np.nan
