"""Searches of many statements, in a folder that `record` reads."""

import hashlib
import itertools
import json
import logging
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from moe_theory.core.errors import DamagedError
from moe_theory.runs.store import Store
from moe_theory.verification import registry
from moe_theory.verification.archive import Keys
from moe_theory.verification.challenge import SECONDS, axes_of, challenge, every_named
from moe_theory.verification.challenged import SCHEMA, Challenge
from moe_theory.verification.claim import registered
from moe_theory.verification.registry import declared_claims
from moe_theory.verification.statement import free_of
from moe_theory.verification.status import deciding

FOLDER = "challenges"

_LOG = logging.getLogger(__name__)


def search_each(
    patterns: Sequence[str],
    seconds: float = SECONDS,
    *,
    error: float | None = None,
    folder: str | os.PathLike[str] | None = None,
    **how: Any,
) -> list[Challenge]:
    """Search the free parameters of several statements, where there are any.

    Args:
        patterns: as in `mt.statements`.
        error: probability that any flip is false, split evenly, by default the share of `challenge` for each.
        folder: of saved searches, not repeated for the same code, time, seed and error.
        how: further arguments of `challenge`.
    Raises: as `challenge`. InvalidValueError also for a single statement without free parameters, or a folder of
        version 0.1.
    """
    named = itertools.chain.from_iterable(map(every_named, patterns))
    every = list({statement.name: statement for statement in named}.values())
    searchable = [statement for statement in every if (axes_of(statement) if len(every) == 1 else free_of(statement))]
    share = None if error is None else error / max(len(searchable), 1)
    store = None if folder is None else Store(Path(folder) / FOLDER)
    digests = Keys()
    searches = []
    for statement in searchable:
        claims = [registered()[id] for id in deciding(statement)]
        readings = registry.select_readings(claims[0].paper, None)
        parts = [digests.of(claim, reading, 0) for claim, reading in itertools.product(claims, readings)]
        decisive = (seconds, how.get("reading"), how.get("seed"), share)
        record = repr((SCHEMA, statement.name, parts, statement.free, decisive))
        key = hashlib.sha256(record.encode()).hexdigest()
        row = store and store.get(key)
        search = challenge(statement.name, seconds, error=share, **how) if row is None else _parsed(row)
        searches.append(search)
        if store is not None and row is None:
            text = json.dumps(search.to_json(), ensure_ascii=False)
            store.put({key: text.encode()}, label=statement.name)
    if store is not None:
        for reason in store.damaged.values():
            _LOG.warning("%s. It was searched again.", reason)
    return searches


def kept(folder: Path) -> list[Challenge]:
    """Return the searches in a folder that belong to installed papers.

    Raises: DamagedError for a damaged search. InvalidValueError for a folder of version 0.1.
    """
    registry.all_claims()
    store = Store(folder / FOLDER)
    rows = [*map(store.get, store.keys())]
    if store.damaged:
        raise DamagedError(f"{next(iter(store.damaged.values()))}. Search again with the same --out.")
    return sorted((_parsed(row) for row in rows if row is not None), key=lambda search: search.statement)


def _parsed(row: bytes) -> Challenge:
    try:
        return Challenge.of_json(json.loads(row), declared_claims())
    except (KeyError, TypeError, ValueError) as failure:
        raise DamagedError(f"a saved search is of other code ({failure}). Search again.") from None
