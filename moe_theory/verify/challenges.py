"""Searches of many statements, one after another, kept in a folder from which they resume and which `record` reads."""

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moe_theory.core.errors import InvalidReportError
from moe_theory.runs import Progress, automatic
from moe_theory.runs.files import made_folder, write_whole
from moe_theory.runs.reading import read_bytes
from moe_theory.verify import registry
from moe_theory.verify.archive import Keys
from moe_theory.verify.challenge import SECONDS, axes_of, challenge, every_named
from moe_theory.verify.challenged import SCHEMA, Challenge
from moe_theory.verify.claim import registered
from moe_theory.verify.registry import declared_claims
from moe_theory.verify.statement import free_of
from moe_theory.verify.status import deciding
from moe_theory.verify.verdict import Statement

FOLDER = "challenges"


def search_each(
    patterns: Sequence[str],
    seconds: float = SECONDS,
    *,
    reading: str | None = None,
    seed: int = 0,
    error: float | None = None,
    module: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    progress: Progress = automatic,
) -> list[Challenge]:
    """Search what each of several statements leaves free, those left out that leave nothing.

    Args:
        patterns: as of `mt.statements`, or a claim's id.
        error: probability that any flip of all of them is false, split evenly; None gives each the share that
            `challenge` takes alone.
        folder: where each search is kept; one of the same code, time, seed and error that is there is not made again.
    Raises: InvalidRunError for one statement that leaves nothing free; else as `challenge`.
    """
    every = list({each.name: each for pattern in patterns for each in every_named(pattern)}.values())
    chosen = [each for each in every if (axes_of(each) if len(every) == 1 else free_of(each))]
    share, keys, found = None if error is None else error / max(len(chosen), 1), Keys(), []
    for of in chosen:
        key = _key(keys, of, seconds, reading, seed, share)
        path = None if folder is None else Path(folder) / FOLDER / f"{of.name}.json"
        known = None if path is None else _known(path, key)
        if known is None:
            about = {"reading": reading, "seed": seed, "error": share, "module": module}
            known = challenge(of.name, seconds, **about, progress=progress)
            if path is not None:
                made_folder(path.parent)
                text = json.dumps({"key": key, "search": known.to_json()}, ensure_ascii=False, indent=1)
                write_whole(path, f"{text}\n".encode())
        found.append(known)
    return found


def kept(folder: Path) -> list[Challenge]:
    """The searches in a folder, of papers that are installed. Raises: InvalidReportError for a file that is damaged."""
    registry.all_claims()
    return [_read(path) for path in sorted((folder / FOLDER).glob("*.json"))]


def _known(path: Path, key: str) -> Challenge | None:
    """The search in a file; None where there is none, or one of other code, settings or schema."""
    return _read(path, key) if path.is_file() else None


def _read(path: Path, key: str | None = None) -> Any:
    try:
        document = json.loads(read_bytes(path))
        if key not in (None, document["key"]):
            return None
        return Challenge.of_json(document["search"], declared_claims())
    except (KeyError, TypeError, AttributeError, ValueError) as failure:
        raise InvalidReportError(f"{path} is damaged ({failure}). Remove it, and search again.") from None


def _key(keys: Keys, of: Statement, *settings: object) -> str:
    """A digest of the code of a statement's claims, of what it leaves free and of how it is searched."""
    claims = [registered()[id] for id in deciding(of)]
    readings = registry.select_readings(claims[0].paper, None)
    parts = [keys.of(claim, reading, 0) for claim in claims for reading in readings]
    return hashlib.sha256(repr((SCHEMA, parts, of.free, settings)).encode()).hexdigest()
