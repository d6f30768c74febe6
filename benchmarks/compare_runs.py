"""Whether two folders of results hold the same numbers, field by field: what a change that moves code must not change.

    python -m benchmarks.compare_runs BEFORE AFTER

Compares every verdicts.json (by claim and reading), *.nc (by variable) and *.csv (by cell) that BEFORE holds with the
file of the same name in AFTER. Words are not compared: sentences, commands and names of places. Exits 1 where a number
differs or is missing.
"""

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import xarray as xr

WORDS = {"command", "reason", "statement", "where", "formula"}  # of a verdict


def main(arguments: list[str]) -> None:
    """Print a line a file, and the differences."""
    if len(arguments) != 2:
        raise SystemExit("usage: python -m benchmarks.compare_runs BEFORE AFTER")
    before, after = map(Path, arguments)
    kinds = {"verdicts.json": verdicts, "*.nc": datasets, "*.csv": tables}
    has_difference = False
    for pattern, compare in kinds.items():
        for path in sorted(before.rglob(pattern)):
            name = path.relative_to(before)
            other = after / name
            found = list(compare(path, other)) if other.is_file() else ["is missing"]
            print(f"{name}: {'; '.join(found[:20]) or 'equal'}")
            has_difference |= bool(found)
    raise SystemExit(int(has_difference))


def verdicts(before: Path, after: Path) -> Iterator[str]:
    """Verdicts by claim and reading."""
    one, other = (
        {(each["claim"], each["reading"]): each for each in json.loads(path.read_text())["verdicts"]}
        for path in (before, after)
    )
    for key in one.keys() ^ other.keys():
        yield f"{key} is only in one"
    for key in sorted(one.keys() & other.keys()):
        for field in sorted((one[key].keys() | other[key].keys()) - WORDS):
            if one[key].get(field) != other[key].get(field):
                yield f"{key} {field}: {one[key].get(field)!r:.200} and {other[key].get(field)!r:.200}"


def datasets(before: Path, after: Path) -> Iterator[str]:
    """Variables and coordinates, to the last bit."""
    with xr.open_dataset(before) as one, xr.open_dataset(after) as other:
        for name in sorted({*map(str, one.variables)} | {*map(str, other.variables)}):
            if name not in one.variables or name not in other.variables:
                yield f"{name} is only in one"
            elif not one[name].equals(other[name]):
                yield f"{name} differs"


def tables(before: Path, after: Path) -> Iterator[str]:
    """Rows of a table; numbers by their value."""
    with before.open() as one, after.open() as other:
        rows, others = list(csv.reader(one)), list(csv.reader(other))
    if np.shape(rows) != np.shape(others):
        yield f"shape {np.shape(rows)} and {np.shape(others)}"
        return
    for place, (row, second) in enumerate(zip(rows, others, strict=True)):
        for cell, now in zip(row, second, strict=True):
            if cell != now and not (_is_number(cell) and _is_number(now) and float(cell) == float(now)):
                yield f"row {place}: {cell} and {now}"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


if __name__ == "__main__":
    main(sys.argv[1:])
