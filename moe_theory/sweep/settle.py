"""The fields of a specification as people give them: checked, completed and brought into one plain form."""

import re
from collections.abc import Mapping
from typing import Any

from moe_theory.core.errors import InvalidSpecError, about, shortened
from moe_theory.sweep import columns, locate
from moe_theory.sweep.columns import PRECISIONS, READING, Value, Vocabulary
from moe_theory.sweep.grid import require_few_cells
from moe_theory.sweep.systems import Sweepable, sweepable

KEEP = ("statistics", "replicates")
LARGEST_CHUNK = 2**20  # replicates
MOST_RECORDS = 100_000  # recorded rounds
MOST_QUANTILES = 100
RECORDS = 50  # recorded rounds unless `record_every` is given
# Words that label something else in the results, and so cannot name a zip.
RESERVED = ("replicate", "round", "quantile", "statistic", "cell", "observable")

Fields = Mapping[str, Any]


def settled(given: Fields) -> dict[str, Any]:
    """Every field of a specification in its one plain form, with what was left out; all of them are `given`.

    Raises: InvalidSpecError, UnknownNameError or InvalidParamsError, whose `key` says which field is wrong.
    """
    with about("system"):
        known = sweepable(columns.text("system", given["system"]))
    with about("precision"):
        precision = columns.one_of("precision", given["precision"], PRECISIONS)
    with about("keep"):
        keep = columns.one_of("keep", given["keep"], KEEP)
    vocabulary = Vocabulary(known, precision)
    tables = _tables(given)
    _check_names(vocabulary, tables, given[READING])
    return {
        **_counts(given),
        **_values(vocabulary, tables),
        "system": known.name,
        "reading": _reading(vocabulary, tables, given[READING]),
        "observables": _observables(known, given["observables"]),
        "keep": keep,
        "quantiles": _quantiles(given["quantiles"]),
        "precision": precision,
    }


def _tables(given: Fields) -> dict[str, dict[str, Any]]:
    tables = {}
    for name in ("axes", "zips", "params", "dims", "choices"):
        with about(name):
            tables[name] = columns.table(name, given[name])
    for along, members in tables["zips"].items():
        with about("zips", along):
            tables["zips"][along] = columns.table(f"the zip {shortened(along)}", members)
    return tables


def _reading(vocabulary: Vocabulary, tables: dict[str, dict[str, Any]], given: Any) -> Value | None:
    """The reading of all cells; None where an axis says it."""
    if READING in tables["axes"] or any(READING in members for members in tables["zips"].values()):
        return None
    with about(READING):
        return vocabulary.known.default_reading if given is None else vocabulary.value(READING, given)


def _counts(given: Fields) -> dict[str, int]:
    """The fields that count something."""
    counts: dict[str, int] = {}
    for name, least, most, why in (
        ("rounds", 1, 2**31 - 1, "rounds are counted in 32 bits"),
        ("replicates", 1, 2**32 - 1, "replicates are named by 32 bits"),
        ("seed", 0, 2**32 - 1, "a seed has 32 bits"),
        ("chunk_width", 1, LARGEST_CHUNK, "a chunk is computed as a whole"),
    ):
        value = given[name]
        if name == "chunk_width" and value is None:
            continue
        with about(name):
            counts[name] = columns.whole(name, value, least, most, why)
    rounds = counts["rounds"]
    every = -(-rounds // RECORDS) if given["record_every"] is None else given["record_every"]
    with about("record_every"):
        every = columns.whole("record_every", every, 1, rounds, f"there are {rounds} rounds")
        if rounds / every > MOST_RECORDS:
            raise InvalidSpecError(
                f"record_every={every} keeps {-(-rounds // every)} rounds, above {MOST_RECORDS}. Raise record_every."
            )
    return {**counts, "record_every": every}


def _check_names(vocabulary: Vocabulary, tables: dict[str, dict[str, Any]], reading: Any) -> None:
    """Raise UnknownNameError or InvalidSpecError for a name that is unknown, misplaced, or set twice."""
    set_at: dict[str, str] = {} if reading is None else {READING: "the top level"}

    def claim(name: str, *key: str) -> None:
        with about(*key):
            home = vocabulary.home(name)
            if key[0] in vocabulary.tables and key[0] != home:
                where = f"the table {home}" if home != READING else "the top level"
                raise InvalidSpecError(f"{name} does not belong in {key[0]}. Move it to {where}.")
            if name in set_at:
                raise InvalidSpecError(f"{name} is set twice, here and in {set_at[name]}. Take one away.")
            set_at[name] = locate.dotted(key[:-1])

    for table in ("params", "dims", "choices", "axes"):
        for name in tables[table]:
            claim(name, table, name)
    for along, members in tables["zips"].items():
        with about("zips", along):
            _check_zip_name(vocabulary, along)
            if not members:
                raise InvalidSpecError(f"the zip {along} has no names. Put in lists of equal length, or drop it.")
        for name in members:
            claim(name, "zips", along, name)


def _check_zip_name(vocabulary: Vocabulary, name: str) -> None:
    known = vocabulary.known
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,49}", name):
        raise InvalidSpecError(
            f"the zip {shortened(name)} labels an axis of the results: name it by a letter and up to 49 letters, "
            "digits and underscores."
        )
    own_axes = {axis for observable in known.observables.values() for axis in observable.axes}
    settable = {name for names in vocabulary.tables.values() for name in names}
    if name in settable.union(RESERVED, known.observables, own_axes):
        raise InvalidSpecError(f"the zip {name} has the name of something else in the results. Name it otherwise.")


def _values(vocabulary: Vocabulary, tables: dict[str, dict[str, Any]]) -> dict[str, Any]:
    """The tables with all values in their plain form."""
    lengths = []
    for name, given in tables["axes"].items():
        with about("axes", name):
            lengths.append(columns.count(name, given))
    for along, members in tables["zips"].items():
        counts = [1]
        for name, given in members.items():
            with about("zips", along, name):
                counts.append(columns.count(name, given))
        lengths.append(max(counts))
    with about("axes" if tables["axes"] else "zips"):
        require_few_cells(lengths)
    return {
        "axes": {name: _axis(vocabulary, name, given) for name, given in tables["axes"].items()},
        "zips": {along: _zip(vocabulary, along, members) for along, members in tables["zips"].items()},
        **{
            table: {name: _fixed(vocabulary, table, name, given) for name, given in tables[table].items()}
            for table in ("params", "dims", "choices")
        },
    }


def _axis(vocabulary: Vocabulary, name: str, given: Any) -> tuple[Value, ...]:
    with about("axes", name):
        column = vocabulary.column(name, given)
        _require_distinct(name, column)
        return column


def _zip(vocabulary: Vocabulary, along: str, members: Mapping[str, Any]) -> dict[str, tuple[Value, ...]]:
    zipped = {}
    for name, given in members.items():
        with about("zips", along, name):
            zipped[name] = vocabulary.column(name, given)
    lengths = {name: len(column) for name, column in zipped.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} has {length} values" for name, length in lengths.items())
        with about("zips", along):
            raise InvalidSpecError(f"the names of the zip {along} go together, but {told}. Make them equally long.")
    with about("zips", along):
        _require_distinct(f"zip {along}", tuple(zip(*zipped.values(), strict=True)))
    return zipped


def _fixed(vocabulary: Vocabulary, table: str, name: str, given: Any) -> Value:
    given = columns.plain(given)
    with about(table, name):
        if table != "params" or not isinstance(given, str):
            return vocabulary.value(name, given)
        if vocabulary.is_boolean(name):
            raise InvalidSpecError(
                f"{name}={shortened(given)} is text, but must be true or false: no formula decides it. Drop the quotes."
            )
        return " ".join(given.split())


def _observables(known: Sweepable, given: Any) -> tuple[str, ...]:
    with about("observables"):
        names = known.default_observables if given is None else columns.listed("observables", given)
        if not 1 <= len(names) <= len(known.observables):
            raise InvalidSpecError(
                f"observables has {len(names)} names, but must have 1 to {len(known.observables)} different ones."
            )
        names = tuple(columns.one_of("observable", columns.plain(name), known.observables) for name in names)
        _require_distinct("observables", names)
        return names


def _quantiles(given: Any) -> tuple[float, ...]:
    with about("quantiles"):
        listed = columns.listed("quantiles", given)
        if len(listed) > MOST_QUANTILES:
            raise InvalidSpecError(f"quantiles has {len(listed)} values, above {MOST_QUANTILES}. Ask for fewer.")
        levels = [columns.plain(level) for level in listed]
        for level in levels:
            if isinstance(level, bool) or not isinstance(level, (int, float)) or not 0 <= level <= 1:
                raise InvalidSpecError(f"quantiles has {shortened(level)}, but each must be from 0 to 1. Change it.")
        quantiles = tuple(float(level) + 0.0 for level in levels)
        _require_distinct("quantiles", quantiles)
        return quantiles


def _require_distinct(name: str, values: tuple[Any, ...]) -> None:
    if len(set(values)) < len(values):
        seen: set[Any] = set()
        again = next(value for value in values if value in seen or seen.add(value))
        raise InvalidSpecError(f"{name} has {shortened(again)} twice. Take one away.")
