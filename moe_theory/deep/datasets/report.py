"""What a folder of data holds, what of it is read and how: lines, a table of classes, and JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.deep import datasets
from moe_theory.deep.datasets import DataSet
from moe_theory.deep.datasets.files import md5_of
from moe_theory.deep.runs import digest_of
from moe_theory.plot.document import Document, ruled

SCHEMA = "moe-theory/data/1"
SHOWN = 6  # kinds of files, and reasons, that a line names


def lines(data: DataSet) -> list[str]:
    """In short: what was recognised and why, how much of it, and everything that was left out or changed."""
    inventory = data.inventory
    height, width, channels = data.train.pixels.shape[1:]
    kind, shape = "samples", f"{channels} features"
    if height * width > 1:
        kind, shape = "images", f"{height} x {width} pixels, {channels} channels"
    lines = [
        f"data: {data.title}: {inventory.recognised}",
        f"  {len(data.train.labels):,} training and {len(data.test.labels):,} test {kind} of "
        f"{len(data.class_names)} classes, {shape} ({data.train.pixels.dtype})",
    ]
    for heading, counts in (("left out", inventory.left_out), ("converted", inventory.converted)):
        if counts:
            lines.append(f"  {heading}: {_listed(counts, len(counts))}")
    return [*lines, *(f"  note: {note}" for note in inventory.notes)]


def further_lines(data: DataSet) -> list[str]:
    """The kinds of files that were read, and digests."""
    return [
        *(f"  {kind}s: {_listed(counts, SHOWN)}" for kind, counts in data.inventory.kinds.items()),
        *(f"  MD5 {md5}: {name}" for name, md5 in _digests(data).items()),
        f"  SHA-256 {digest_of(data)}: what networks see, with labels",
    ]


def folder_document(folder: Path) -> Document:
    """Return what a folder holds, and what `--data` reads of it. Raises: MissingError; DataError."""
    names = datasets.found_in(folder)
    if not names:
        raise datasets.missing(folder)
    return document(datasets.load(names[0], folder), names[1:])


def document(data: DataSet, others: Sequence[str] = ()) -> Document:
    """Return what was recognised, with the images of each class by split; `others` are in the folder and not read."""
    rows = ((str(row["number"]), row["class"], f"{row['training']:,}", f"{row['test']:,}") for row in _classes(data))
    table = ruled(("number", "class", "training", "test"), rows, numbers=("number", "training", "test"))
    unread = [f"also there, and not read: {', '.join(others)}"] if others else []
    parts = (*lines(data), *further_lines(data), table, *unread)
    return Document(lambda: _body(data) | {"others": others}, lambda _: parts, SCHEMA)


def _body(data: DataSet) -> dict[str, Any]:
    inventory = data.inventory
    return {
        "title": data.title,
        "recognised": inventory.recognised,
        "shape": list(data.train.pixels.shape[1:]),
        "type": str(data.train.pixels.dtype),
        "classes": _classes(data),
        "files": {kind: dict(counts) for kind, counts in inventory.kinds.items()},
        "left_out": dict(inventory.left_out),
        "converted": dict(inventory.converted),
        "notes": list(inventory.notes),
        "md5": _digests(data),
        "digest": digest_of(data),
    }


def _classes(data: DataSet) -> list[dict[str, Any]]:
    counts = [np.bincount(part.labels, minlength=len(data.class_names)).tolist() for part in (data.train, data.test)]
    return [
        {"number": number, "class": name, "training": train, "test": test}
        for number, (name, train, test) in enumerate(zip(data.class_names, *counts, strict=True))
    ]


def _digests(data: DataSet) -> dict[str, str]:
    """MD5 of what files hold, where these are few."""
    return {path.name: md5_of(path) for path in data.inventory.files}


def _listed(counts: Mapping[str, int], most: int) -> str:
    named = sorted(counts.items(), key=lambda item: -item[1])
    more = f"; {len(named) - most} more" if len(named) > most else ""
    return "; ".join(f"{count:,} {name}" for name, count in named[:most]) + more
