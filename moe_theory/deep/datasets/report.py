"""What a folder of data holds, what of it is read and how: lines, a table of classes, JSON and a contact sheet."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moe_theory.core.errors import InvalidDimsError
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.datasets.files import md5_of
from moe_theory.deep.runs import digest_of
from moe_theory.plot.style import PAGE_WIDTH
from moe_theory.report.document import Document, Picture, ruled

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

SCHEMA = "moe-theory/data/1"
SHOWN = 6  # kinds of files, and reasons, that a line names
SHEET_CLASSES, SHEET_IMAGES = 20, 6  # on the contact sheet, and images of a class and split


def lines(data: DataSet) -> list[str]:
    """In short: what was recognised and why, how much of it, and everything that was left out or changed."""
    found, (height, width, channels) = data.inventory, data.train.pixels.shape[1:]
    what = "images" if height * width > 1 else "samples"
    shape = f"{height} x {width} pixels, {channels} channels" if height * width > 1 else f"{channels} features"
    counted = [
        f"data: {data.title}: {found.recognised}",
        f"  {len(data.train.labels):,} training and {len(data.test.labels):,} test {what} of "
        f"{len(data.class_names)} classes, {shape} ({data.train.pixels.dtype})",
    ]
    for told, counts in (("left out", found.left_out), ("converted", found.converted)):
        if counts:
            counted.append(f"  {told}: {_listed(counts, len(counts))}")
    return [*counted, *(f"  note: {note}" for note in found.notes)]


def further_lines(data: DataSet) -> list[str]:
    """The kinds of files that were read, and digests."""
    said = [f"  {kind}s: {_listed(counts, SHOWN)}" for kind, counts in data.inventory.kinds.items()]
    said += [f"  MD5 {md5}: {name}" for name, md5 in _digests(data).items()]
    return [*said, f"  SHA-256 {digest_of(data)}: what networks see, with labels"]


def document(data: DataSet, others: Sequence[str] = (), drawn: Path | None = None) -> Document:
    """What was recognised, with the images of each class by split, and the path of a picture that was drawn; `others`
    are in the folder too, and not read.
    """
    rows = ((str(row["number"]), row["class"], f"{row['training']:,}", f"{row['test']:,}") for row in _classes(data))
    table = ruled(("number", "class", "training", "test"), rows, numbers=("number", "training", "test"))
    unread = [f"also there, and not read: {', '.join(others)}"] if others else []
    parts = (*lines(data), *further_lines(data), table, *unread)
    return Document(
        lambda: _body(data) | {"others": others}, lambda _: parts, SCHEMA, [f"picture: {drawn}"] if drawn else []
    )


def _body(data: DataSet) -> dict[str, Any]:
    found = data.inventory
    return {
        "title": data.title,
        "recognised": found.recognised,
        "shape": list(data.train.pixels.shape[1:]),
        "type": str(data.train.pixels.dtype),
        "classes": _classes(data),
        "files": {kind: dict(counts) for kind, counts in found.kinds.items()},
        "left_out": dict(found.left_out),
        "converted": dict(found.converted),
        "notes": list(found.notes),
        "md5": _digests(data),
        "digest": digest_of(data),
    }


def picture(data: DataSet) -> Picture:
    """A contact sheet: some images of each class, as networks see them before they are standardised.

    Raises: InvalidDimsError for data that are no images.
    """
    height, width, channels = data.train.pixels.shape[1:]
    if height * width == 1 or channels not in (1, 3):
        raise InvalidDimsError(
            f"{data.title} has {channels} features or channels, which are no picture. Drop --picture."
        )
    labels = np.unique(data.train.labels)
    labels = labels[np.linspace(0, len(labels) - 1, min(len(labels), SHEET_CLASSES)).astype(int)]
    title = f"{data.title}: {len(labels)} of {len(data.class_names)} classes, {height} x {width} pixels"
    inches = 0.5 + PAGE_WIDTH * len(labels) * height / (2 * SHEET_IMAGES * width)
    return Picture(title, inches, lambda figure: _draw(figure, data, labels, title))


def _draw(figure: "FigureBase", data: DataSet, labels: np.ndarray, title: str) -> None:
    (height, width, _), axes = data.train.pixels.shape[1:], figure.add_subplot()
    sheet = np.concatenate(
        [np.concatenate([_row(split, label) for split in (data.train, data.test)], axis=1) for label in labels]
    )
    if sheet.dtype != np.uint8:
        sheet = (sheet - np.nanmin(sheet)) / max(np.nanmax(sheet) - np.nanmin(sheet), 1e-30)
    axes.imshow(sheet if sheet.shape[-1] == 3 else sheet[..., 0], cmap="gray", interpolation="nearest")
    axes.set_yticks((np.arange(len(labels)) + 0.5) * height, [data.class_names[label][:20] for label in labels])
    half = SHEET_IMAGES * width
    axes.set_xticks([half / 2, half * 3 / 2], ["training images", "test images"])
    axes.axvline(half - 0.5, color="red")
    axes.tick_params(length=0)
    axes.set_title(title)


def _row(split: Images, label: int) -> np.ndarray:
    """Images of a class beside one another, evenly spread over all of them; white where there are no more."""
    rows = np.flatnonzero(split.labels == label)
    rows = rows[np.unique(np.linspace(0, len(rows) - 1, min(SHEET_IMAGES, len(rows))).astype(int))]
    blank = 255 if split.pixels.dtype == np.uint8 else np.nan
    row = np.full((SHEET_IMAGES, *split.pixels.shape[1:]), blank, split.pixels.dtype)
    row[: len(rows)] = split.pixels[rows]
    return np.concatenate(list(row), axis=1)


def _classes(data: DataSet) -> list[dict[str, Any]]:
    counts = [np.bincount(each.labels, minlength=len(data.class_names)).tolist() for each in (data.train, data.test)]
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
