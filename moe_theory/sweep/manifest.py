"""The records in a sweep's folder. They are for readers: no number depends on them.

| path | what it is |
| --- | --- |
| `manifests/ID.json` | each version that was run there: a specification, and the fingerprint of its machines |
| `manifest.json` | of these the last one that was run to its end; where none was, the last one |
| `runs/*.json` | who ran it when with what: a file each, so that no run waits for another one |
"""

import contextlib
import json
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from moe_theory.core.errors import InvalidRunError, OutputError, shortened
from moe_theory.runs.files import digest, local, read_json, sealed, unsealed, write_whole
from moe_theory.runs.reading import read_bytes

SCHEMA = "moe-theory/sweep/2"
MANIFEST = "manifest.json"
WAY_OUT = "name a folder that you may write to, with room in it"
ID_LENGTH = 12  # of a version's digest
_RUNS, _VERSIONS = "runs", "manifests"


def read_manifest(folder: Path, version: str | None = None) -> dict[str, Any]:
    """The manifest, or that of the version whose ID begins so. Raises: InvalidRunError where there is none, or one that
    is damaged or of another package's version.
    """
    require_version(folder)
    return _read(folder / MANIFEST if version is None else _path_of(folder, version))


def _read(path: Path) -> dict[str, Any]:
    try:
        manifest = unsealed(read_bytes(path))
    except FileNotFoundError:
        raise InvalidRunError(
            f"{path.parent} holds no sweep: there is no {path.name} in it. Name another folder."
        ) from None
    except (OSError, ValueError) as failure:
        reason = getattr(failure, "strerror", None) or failure
        raise InvalidRunError(
            f"{path} cannot be read ({reason}): run the sweep again, which computes nothing twice."
        ) from None
    if manifest.get("schema") != SCHEMA:
        raise InvalidRunError(f"{path} is no manifest of a sweep ({SCHEMA}). Name another folder.")
    texts, specification = manifest.get("fingerprint"), manifest.get("specification")
    known = texts if isinstance(texts, dict) and all(isinstance(text, str) for text in texts.values()) else {}
    if not ({"moe-theory", "backend"} <= known.keys() and isinstance(specification, dict)):
        raise InvalidRunError(f"{path} is not whole: run the sweep again, which computes nothing twice.")
    return manifest


def require_version(folder: Path) -> None:
    """Raise InvalidRunError for the folder of a sweep that another version of this package ran."""
    try:
        manifest = read_json(folder / MANIFEST)
    except (OSError, ValueError):  # there is none, or a damaged one
        return
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if schema != SCHEMA and str(schema).startswith(SCHEMA[:-1]):
        raise InvalidRunError(
            f"{folder} holds a sweep of another version ({schema}, not {SCHEMA}), whose chunks this one cannot use. "
            "Name another folder, or delete this one."
        )


def version_of(manifest: Mapping[str, Any]) -> str:
    """A version's ID."""
    return digest({name: manifest[name] for name in ("specification", "fingerprint")})[:ID_LENGTH]


def versions_in(folder: Path) -> dict[str, dict[str, Any]]:
    """The manifests of all versions that were run in a folder, by ID; damaged ones are left out."""
    found = {}
    for path in sorted((folder / _VERSIONS).glob("*.json")):
        with contextlib.suppress(InvalidRunError):
            found[path.stem] = _read(path)
    return found


def keep_only(folder: Path, version: str) -> None:
    """Remove the manifests of all other versions. Raises: OutputError."""
    manifest = read_manifest(folder, version)
    if version_of(read_manifest(folder)) != version:
        write_whole(folder / MANIFEST, sealed(manifest | {"is_complete": False}), WAY_OUT)
    for path in (folder / _VERSIONS).glob("*.json"):
        if path.stem != version:
            path.unlink(missing_ok=True)


def _path_of(folder: Path, version: str) -> Path:
    known = sorted(path for path in (folder / _VERSIONS).glob("*.json"))
    found = [path for path in known if version and path.stem.startswith(version)]
    if len(found) != 1:
        raise InvalidRunError(
            f"{folder} has {len(found) or 'no'} version{'s' * (len(found) > 1)} {shortened(version)}: name one of "
            f"{', '.join(path.stem for path in known) or 'another folder'}."
        )
    return found[0]


def kept_fingerprint(folder: Path) -> dict[str, str] | None:
    """The fingerprint that the manifest names; None where there is none, or a damaged one."""
    try:
        return read_manifest(folder)["fingerprint"]
    except InvalidRunError:
        return None


Report = Callable[[dict[str, Any]], None]


@contextlib.contextmanager
def recorded(
    folder: Path,
    specification: Mapping[str, Any],
    fingerprint: Mapping[str, str],
    run: dict[str, Any],
    log: Path | None = None,
) -> Iterator[Report]:
    """Record a run when it begins, whenever what it gives is called with how it goes, and when it ends with what `run`
    has become. Its manifest is the folder's once all its chunks are there, or from the beginning where no run came so
    far.

    Args:
        log: file that gets a line of JSON whenever the run reports how it goes, behind what it has.
    Raises: OutputError.
    """
    if log is not None:
        _append(local(log), "")
    manifest = {"schema": SCHEMA, "specification": specification, "fingerprint": dict(fingerprint)}
    try:
        before = read_manifest(folder)
    except InvalidRunError:
        before = {}
    for each in filter(None, (before, manifest)):  # that of an older folder is in no other file
        path = folder / _VERSIONS / f"{version_of(each)}.json"
        if not path.exists():
            write_whole(path, sealed({name: each[name] for name in manifest}), WAY_OUT)
    if not before.get("is_complete"):
        write_whole(folder / MANIFEST, sealed(manifest | {"is_complete": False}), WAY_OUT)
    path = folder / _RUNS / f"{run['started'].replace(':', '')}-{uuid.uuid4().hex[:8]}.json"
    write_whole(path, sealed(run), WAY_OUT)

    def report(facts: dict[str, Any]) -> None:
        if log is not None:
            _append(log, json.dumps(facts) + "\n")
        run["last_heard"] = facts
        with contextlib.suppress(OutputError):  # a full disk is reported by whatever else meets it
            write_whole(path, sealed(run), WAY_OUT)

    try:
        yield report
        if run.get("chunks") == run.get("of"):
            write_whole(folder / MANIFEST, sealed(manifest | {"is_complete": True}), WAY_OUT)
    finally:
        with contextlib.suppress(OutputError):  # a full disk is reported by whatever met it first
            write_whole(path, sealed(run), WAY_OUT)


def _append(log: Path, line: str) -> None:
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a", encoding="utf-8") as file:
            file.write(line)
    except OSError as failure:
        raise OutputError(
            f"{log} cannot be written ({failure.strerror or failure}): name another file for --log."
        ) from None


def failed_in(folder: Path) -> dict[str, str]:
    """What went wrong with chunks in any run: which of them another one has computed since does not count here."""
    return {name: said for run in runs_in(folder) for name, said in (run.get("failed") or {}).items()}


def runs_in(folder: Path) -> list[dict[str, Any]]:
    """The records of all runs in a folder that are whole, the first one first."""
    found = []
    for path in sorted((folder / _RUNS).glob("*.json")):
        with contextlib.suppress(OSError, ValueError):
            found.append(unsealed(read_bytes(path)))
    return found
