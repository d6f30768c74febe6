"""Results as named numbers: one line of JSON for each result, with its key and the numbers of its fields."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MOST_LISTED = 16  # entries of an array that is stored as it is
NUM_FIRST = 4  # entries of a larger one that are stored beside its digest
NAMES = ("id", "name", "claim", "cell", "policy")  # fields that name an entry of a list
WORDS = frozenset({"status", "stopped", "sought"})  # texts that are results
NOT_NUMBERS = frozenset({"seconds", "budget", "versions", "finished", "files", "command", "schema"})  # clocks and texts


class Record(NamedTuple):
    """One result."""

    key: str  # such as "verify/continual/continual.lemma-4/unit-signal"
    fields: dict[str, Any]  # numbers, short lists of them, or summaries of arrays, by name


def number_or_array(value: Any) -> Any:
    """Return a number, a short list of numbers, or a summary of a large array with its digest.

    Sum, least and largest are those of the finite entries, in float64. NumPy's scalars become Python's, which JSON
    writes by `repr`, so that they round-trip to the last digit.
    """
    array = np.asarray(value)
    if array.size <= MOST_LISTED:
        return array.tolist()
    contiguous = np.ascontiguousarray(array)
    wide = contiguous.astype(np.float64).ravel()
    finite = wide[np.isfinite(wide)]
    return {
        "shape": list(array.shape),
        "dtype": str(array.dtype),
        "sha256": hashlib.sha256(contiguous.tobytes()).hexdigest(),
        "first": contiguous.ravel()[:NUM_FIRST].tolist(),
        "finite": finite.size,
        "sum": float(finite.sum()),
        "min": float(finite.min(initial=np.inf)),
        "max": float(finite.max(initial=-np.inf)),
    }


def numbers_of(document: Any, name: str = "") -> dict[str, Any]:
    """Return the numbers of a JSON document by their paths. Texts are left out, except those of `WORDS`."""
    last = name.rpartition("/")[2]
    if last in NOT_NUMBERS:
        return {}
    if isinstance(document, str):
        return {name: document} if last in WORDS else {}
    if isinstance(document, Mapping):
        fields: dict[str, Any] = {}
        for part, value in document.items():
            fields |= numbers_of(value, _joined(name, str(part)))
        return fields
    if isinstance(document, list):
        return _numbers_of_list(document, name)
    return {name: document}


def write(records: Iterable[Record], path: Path) -> int:
    """Write records in the order of their keys, and return how many numbers there are."""
    ordered = sorted(records)
    lines = [json.dumps([record.key, record.fields], sort_keys=True) for record in ordered]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return sum(len(record.fields) for record in ordered)


def read(path: Path) -> dict[str, str]:
    """Return the values of a file as JSON, by "key/field". A file that does not exist has none."""
    values = {}
    if path.exists():
        for line in path.read_text(encoding="utf-8").splitlines():
            key, fields = json.loads(line)
            values |= {f"{key}/{name}": json.dumps(value) for name, value in fields.items()}
    return values


def differences(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return a line for each key with different values, and for each key that only one side has."""
    lines = []
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key, "nothing"), after.get(key, "nothing")
        if old != new:
            lines.append(f"{key}: {old} -> {new}")
    return lines


def _numbers_of_list(entries: Sequence[Any], name: str) -> dict[str, Any]:
    if all(isinstance(entry, (int, float)) for entry in entries):
        return {name: number_or_array(entries)} if entries else {}
    fields: dict[str, Any] = {}
    for place, entry in enumerate(entries):
        fields |= numbers_of(entry, _joined(name, _label(entry, place)))
    return fields


def _label(entry: Any, place: int) -> str:
    """Return the entry's own name, or else its place."""
    if isinstance(entry, Mapping):
        for name in NAMES:
            if isinstance(entry.get(name), str):
                return entry[name]
    return str(place)


def _joined(*parts: str) -> str:
    return "/".join(part for part in parts if part)
