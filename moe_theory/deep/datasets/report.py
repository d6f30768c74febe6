"""What a folder of data holds: lines, a table of classes, and JSON."""

from pathlib import Path
from typing import Any

import numpy as np

from moe_theory.deep import datasets
from moe_theory.deep.datasets import DataSet
from moe_theory.deep.runs import digest_of
from moe_theory.plot.document import Document
from moe_theory.plot.markdown import paragraphs, table

SCHEMA = "moe-theory/data/2"


def lines(data: DataSet) -> list[str]:
    """Return what was read from where, and every note on it."""
    shape = " x ".join(map(str, data.train.pixels.shape[1:]))
    return [
        f"data: {data.title}: {data.source}",
        f"  {len(data.train.labels):,} training and {len(data.test.labels):,} test images of "
        f"{len(data.class_names)} classes, {shape} (height, width, channels), {data.train.pixels.dtype}",
        *(f"  note: {note}" for note in data.notes),
    ]


def folder_document(folder: Path) -> Document:
    """Return what a folder holds, and what `--data` reads of it. Raises: MissingError; DataError."""
    names = datasets.found_in(folder)
    if not names:
        raise datasets.missing(folder)
    data = datasets.load(names[0], folder)
    classes = _classes(data)
    rows = ((str(row["number"]), row["class"], f"{row['training']:,}", f"{row['test']:,}") for row in classes)
    columns = ("number", "class", "training", "test")
    text = paragraphs([*lines(data), table(columns, rows, ("number", "training", "test"))])
    body = {
        "title": data.title,
        "source": data.source,
        "notes": list(data.notes),
        "shape": list(data.train.pixels.shape[1:]),
        "type": str(data.train.pixels.dtype),
        "classes": classes,
        "digest": digest_of(data),
    }
    return Document(lambda: body, lambda _: text, SCHEMA)


def _classes(data: DataSet) -> list[dict[str, Any]]:
    """Return the number of images of each class in both splits."""
    train = np.bincount(data.train.labels, minlength=len(data.class_names)).tolist()
    test = np.bincount(data.test.labels, minlength=len(data.class_names)).tolist()
    return [
        {"number": number, "class": name, "training": train[number], "test": test[number]}
        for number, name in enumerate(data.class_names)
    ]
