"""Searches of many statements, in a folder that `record` reads."""

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from moe_theory.runs import Progress, automatic
from moe_theory.runs.files import prepare_folder, write_whole
from moe_theory.verification import registry
from moe_theory.verification.challenge import SECONDS, axes_of, challenge, every_named
from moe_theory.verification.challenged import Challenge
from moe_theory.verification.recorded import SEARCHES, searches_parsed, searches_written
from moe_theory.verification.statement import free_of


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
    """Search the free parameters of several statements, where there are any.

    Args:
        patterns: as in `mt.statements`.
        error: probability that any flip is false, split evenly, by default the share of `challenge` for each.
        folder: of saved searches. A new search replaces that of the same statement.
    Other arguments are those of `challenge`.
    Raises: as `challenge`. InvalidValueError also for a single statement without free parameters. DamagedError for
        unreadable searches in the folder.
    """
    named = itertools.chain.from_iterable(map(every_named, patterns))
    every = list({statement.name: statement for statement in named}.values())
    searchable = [statement for statement in every if (axes_of(statement) if len(every) == 1 else free_of(statement))]
    share = None if error is None else error / max(len(searchable), 1)
    path = None if folder is None else prepare_folder(folder, [SEARCHES]) / SEARCHES
    saved = {} if path is None else {search.statement: search for search in saved_searches(path.parent)}
    searches: list[Challenge] = []
    for statement in searchable:
        search = challenge(
            statement.name, seconds, reading=reading, seed=seed, error=share, module=module, progress=progress
        )
        searches.append(search)
        saved[search.statement] = search
        if path is not None:
            write_whole(path, searches_written(saved.values()))
    return searches


def saved_searches(folder: Path) -> list[Challenge]:
    """Return the searches in a folder that belong to installed papers. Raises: DamagedError."""
    path = folder / SEARCHES
    if not path.is_file():
        return []
    registry.all_claims()
    return searches_parsed(path.read_text(encoding="utf-8"), str(path), registry.declared_claims())
