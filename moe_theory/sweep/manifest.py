"""The record in a sweep's folder: its specification, and the code and machine that computed it."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import InvalidValueError
from moe_theory.runs.files import read_json, write_whole
from moe_theory.runs.provenance import difference
from moe_theory.runs.store import require_no_0_1

SCHEMA = "moe-theory/sweep/3"
MANIFEST = "sweep.json"
WAY_OUT = "name a folder that you may write to, with room in it"
_OF_0_1 = ("manifest.json", "packs")  # what version 0.1 wrote


class Manifest(NamedTuple):
    """What decides all numbers of a sweep."""

    specification: Mapping[str, Any]
    fingerprint: Mapping[str, str]


def read_manifest(folder: Path) -> Manifest:
    """Return the manifest of a folder. Raises: InvalidValueError where there is none, or one that is damaged."""
    require_version(folder)
    path = folder / MANIFEST
    if not path.exists():
        raise InvalidValueError(f"{folder} holds no sweep: there is no {MANIFEST} in it. Name another folder.")
    try:
        document = read_json(path)
        if document["schema"] != SCHEMA:
            raise ValueError(f"its schema is not {SCHEMA}")
        return Manifest(document["specification"], document["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise InvalidValueError(
            f"{path} cannot be read ({reason}): run the sweep again, which computes nothing twice."
        ) from None


def write_manifest(folder: Path, manifest: Manifest, is_part: bool) -> None:
    """Write the manifest of a run that begins.

    Raises: OutputError; InvalidValueError for a part whose numbers would not fit those of the other parts.
    """
    if is_part and (folder / MANIFEST).exists():
        before = read_manifest(folder)
        if before.specification == manifest.specification and before.fingerprint != manifest.fingerprint:
            raise InvalidValueError(
                f"{folder} has parts of another machine or of other code: this one has "
                f"{difference(manifest.fingerprint, before.fingerprint)}. Run all parts on machines that are alike."
            )
    document = {"schema": SCHEMA, **manifest._asdict()}
    write_whole(folder / MANIFEST, json.dumps(document, indent=1) + "\n", WAY_OUT)


def require_version(folder: Path) -> None:
    """Raise InvalidValueError for a folder that version 0.1 wrote."""
    if not (folder / MANIFEST).exists():
        require_no_0_1(folder, *_OF_0_1)
