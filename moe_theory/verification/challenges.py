"""Searches of many statements, here or on workers elsewhere, saved in a folder that `record` reads."""

import contextlib
import functools
import hashlib
import json
import logging
import os
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any, NamedTuple

from moe_theory.core.errors import DamagedError, InvalidValueError
from moe_theory.runs import Progress, automatic, quiet, shown
from moe_theory.runs.runner import Runner, Task
from moe_theory.runs.store import Store, require_no_0_1
from moe_theory.runs.workers import WorkerPool
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys
from moe_theory.verification.challenge import SECONDS, axes_of, challenge, every_named
from moe_theory.verification.challenged import SCHEMA, Challenge
from moe_theory.verification.claim import registered
from moe_theory.verification.registry import declared_claims
from moe_theory.verification.remote import machine, pool_for
from moe_theory.verification.statement import free_of
from moe_theory.verification.status import deciding
from moe_theory.verification.verdict import Statement

FOLDER = "challenges"

_LOG = logging.getLogger(__name__)


def search_each(
    patterns: Sequence[str],
    seconds: float = SECONDS,
    *,
    reading: str | None = None,
    seed: int = 0,
    error: float | None = None,
    module: str | None = None,
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    dask: str | None = None,
    progress: Progress = automatic,
) -> list[Challenge]:
    """Search what each of several statements leaves free, those left out that leave nothing.

    Args:
        patterns: as of `mt.statements`, or a claim's id.
        error: probability that any flip of all of them is false, split evenly; None gives each the share that
            `challenge` takes alone.
        folder: where each search is saved. One of the same code, time, seed and error that is there is not made again.
        executor: or workers that search a statement each, with all cores that they may use, as of `mt.verify`.
        dask: or those of a Dask cluster, by its address.
    Raises: InvalidValueError for one statement that leaves nothing free, a folder of version 0.1, or workers that would
        search other code; else as `challenge`, and WorkersError for workers that are lost: searches that have
        ended are saved.
    """
    every = list({each.name: each for pattern in patterns for each in every_named(pattern)}.values())
    chosen = [each for each in every if (axes_of(each) if len(every) == 1 else free_of(each))]
    share, keys = None if error is None else error / max(len(chosen), 1), Keys()
    how = seconds, reading, seed, share
    asked = {of.name: SearchTask(of.name, *how, _key(keys, of, *how)) for of in chosen}
    store = None if folder is None else _store(Path(folder))
    found = {}
    if store is not None:
        rows = {name: store.get(task.key) for name, task in asked.items()}
        found = {name: _parsed(row) for name, row in rows.items() if row is not None}
        for reason in store.damaged.values():
            _LOG.warning("%s. It is searched again.", reason)
    left = [task for name, task in asked.items() if name not in found]
    pool = pool_for([registered()[id] for of in chosen for id in deciding(of)], executor, dask)
    searches = _searched(left, module, progress) if pool is None else _searched_remotely(left, pool, progress)
    for name, known in searches:
        found[name] = known
        if store is not None:
            store.put({asked[name].key: json.dumps(known.to_json(), ensure_ascii=False).encode()}, label=name)
    return [found[name] for name in asked]


class SearchTask(NamedTuple):
    """The search of a statement, as plain data."""

    statement: str
    seconds: float
    reading: str | None
    seed: int
    error: float | None
    key: str  # of what it depends on


def search(task: SearchTask) -> dict[str, Any]:
    """What a worker does: the search, as plain data. Raises: InvalidValueError where its code is other code."""
    (of,) = every_named(task.statement)
    how = task.seconds, task.reading, task.seed, task.error
    if _key(Keys(), of, *how) != task.key:
        raise InvalidValueError(
            f"the worker on {platform.node()} has other code of {task.statement}, other versions or another processor: "
            "its search would be another one. Install the same where the workers run, and start these again."
        )
    about = {"reading": task.reading, "seed": task.seed, "error": task.error}
    return challenge(task.statement, task.seconds, **about, progress=quiet).to_json()


def _searched(tasks: Sequence[SearchTask], module: str | None, progress: Progress) -> Iterator[tuple[str, Challenge]]:
    for task in tasks:
        about = {"reading": task.reading, "seed": task.seed, "error": task.error, "module": module}
        yield task.statement, challenge(task.statement, task.seconds, **about, progress=progress)


def _searched_remotely(
    tasks: Sequence[SearchTask], pool: WorkerPool, progress: Progress
) -> Iterator[tuple[str, Challenge]]:
    """As workers end them."""
    if not tasks:
        return
    with contextlib.closing(pool), shown(progress) as listener, Runner(pool, listener) as runner:
        pool.fingerprint(machine)
        work = [Task(functools.partial(search, task), 0, place=task.statement) for task in tasks]
        runner.add(None, iter(work), 0, f"searches on {pool.description}")
        done = 0
        while runner.is_busy:
            listener.at(f"{done} of {len(tasks)} searches")
            for result in runner.wait():
                done += 1
                yield result.task.place, Challenge.of_json(result.value(), declared_claims())


def kept(folder: Path) -> list[Challenge]:
    """Return the searches in a folder, of papers that are installed.

    Raises: DamagedError for one that is damaged; InvalidValueError for a folder of version 0.1.
    """
    registry.all_claims()
    store = _store(folder)
    rows = [*map(store.get, store.keys())]
    if store.damaged:
        raise DamagedError(f"{next(iter(store.damaged.values()))}. Search again with the same --out.")
    return sorted((_parsed(row) for row in rows if row is not None), key=lambda search: search.statement)


def _store(folder: Path) -> Store:
    """The searches in a folder. Raises: InvalidValueError for one that version 0.1 wrote."""
    place = folder / FOLDER
    require_no_0_1(place, "*.json")
    return Store(place, way_out="make room or name another --out")


def _parsed(row: bytes) -> Challenge:
    """The search in a row."""
    try:
        return Challenge.of_json(json.loads(row), declared_claims())
    except (KeyError, TypeError, ValueError) as failure:
        raise DamagedError(f"a saved search is of other code ({failure}). Search again.") from None


def _key(keys: Keys, of: Statement, *settings: object) -> str:
    """A digest of the code of a statement's claims, of what it leaves free and of how it is searched."""
    claims = [registered()[id] for id in deciding(of)]
    readings = registry.select_readings(claims[0].paper, None)
    parts = [keys.of(claim, reading, 0) for claim in claims for reading in readings]
    return hashlib.sha256(repr((SCHEMA, of.name, parts, of.free, settings)).encode()).hexdigest()
