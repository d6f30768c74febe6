"""Recorded runs, the published verdicts that `moe-theory record` writes to a paper's `recorded.json`.

`recorded-DATA.json` has verdicts from runs on other data, and `challenged.json` has searches of free parameters.
"""

import dataclasses
import functools
import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from moe_theory.core.errors import DamagedError
from moe_theory.core.papers import ordered_names, paper_folder, paper_names
from moe_theory.verification.catalog import catalog_of, statements
from moe_theory.verification.challenged import Challenge
from moe_theory.verification.status import Judged, judged
from moe_theory.verification.verdict import Statement, Verdict, whole_verdict

NAME = "recorded.json"  # in the paper's folder, like SEARCHES
SEARCHES = "challenged.json"
SCHEMA = "moe-theory/recorded/1"


@dataclasses.dataclass(frozen=True)
class Recorded:
    """A run of `moe-theory verify` for a paper, with the published fields."""

    paper: str
    command: str  # without --out, which names a local folder
    seed: int
    error: float  # probability that any verdict is false
    finished: str  # ISO 8601, UTC
    budget: float | None  # seconds, if the time was limited
    seconds: float | None  # seconds for all experiments together, or None for runs on other data
    versions: dict[str, str]
    readings: dict[str, str]  # summaries by name, in the order of the verdicts
    verdicts: list[dict[str, Any]]  # the `FIELDS` of each, in the order of the registry

    def of(self, claim: str) -> dict[str, dict[str, Any]]:
        return {verdict["reading"]: verdict for verdict in self.verdicts if verdict["claim"] == claim}

    def whole(self) -> list[Verdict]:
        """Return the verdicts with the texts of their claims. Claims that no longer exist are left out."""
        claims = catalog_of(self.paper).claims
        existing = [verdict for verdict in self.verdicts if verdict["claim"] in claims]
        return [whole_verdict(claims[verdict["claim"]], verdict) for verdict in existing]


def read() -> dict[str, Recorded]:
    """Return recorded verdicts by paper. Raises: DamagedError."""
    paths = {name: file_of(name) for name in ordered_names()}
    runs = {name: record_at(path) for name, path in paths.items() if path.is_file()}
    return {name: run for name, run in runs.items() if run.paper == name}  # a copied file may have another paper's run


def file_of(paper: str, name: str = NAME) -> Path:
    return paper_folder(paper) / name


def record_at(path: Path) -> Recorded:
    """Return the record in a file. Raises: DamagedError for a damaged file or another schema."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        schema = document.pop("schema")
        if schema != SCHEMA:
            raise DamagedError(f"{path} has schema {schema!r}, not {SCHEMA!r}. Record the paper again.")
        return Recorded(**document)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as failure:
        raise DamagedError(f"{path} is damaged ({failure}). Record the paper again.") from None


def judged_statements(pattern: str = "*") -> list[Judged]:
    selected = statements(pattern)
    return judged_with_searches(selected, recorded_verdicts(selected))


def judged_with_searches(selected: Sequence[Statement], verdicts: Sequence[Verdict]) -> list[Judged]:
    searches = recorded_searches(selected)
    return [judged(statement, verdicts, searches.get(statement.name)) for statement in selected]


def recorded_verdicts(selected: Iterable[Statement] | None = None) -> list[Verdict]:
    """Return the recorded verdicts of all papers, or of those with claims of the selected statements."""
    runs = read()
    papers = set(runs)
    if selected is not None:
        ids = itertools.chain.from_iterable(statement.roles for statement in selected)
        papers = {id.partition(".")[0] for id in ids}
    return list(itertools.chain.from_iterable(run.whole() for name, run in runs.items() if name in papers))


def record_text(recorded: Recorded) -> str:
    document = {"schema": SCHEMA, **dataclasses.asdict(recorded)}
    verdicts = [json.dumps(verdict, ensure_ascii=False) for verdict in document.pop("verdicts")]  # one line each
    head = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
    return head + ',\n "verdicts": [\n  ' + ",\n  ".join(verdicts) + "\n ]\n}\n"


def recorded_searches(selected: Iterable[Statement]) -> dict[str, Challenge]:
    """Return the recorded searches of the statements' papers, by statement. Raises: DamagedError."""
    papers = dict.fromkeys(statement.paper for statement in selected)
    searches = itertools.chain.from_iterable(searches_of(name) for name in papers if name in paper_names())
    return {search.statement: search for search in searches}


@functools.cache
def searches_of(paper: str) -> list[Challenge]:
    path = file_of(paper, SEARCHES)
    if not path.is_file():
        return []
    searches = parse_searches(path.read_text(encoding="utf-8"), str(path), catalog_of(paper).claims)
    return [search for search in searches if search.statement.partition(".")[0] == paper]


def searches_text(searches: Iterable[Challenge]) -> str:
    lines = [json.dumps(search.to_json(), ensure_ascii=False) for search in searches]
    return "[\n " + ",\n ".join(lines) + "\n]\n"


def parse_searches(text: str, where: str, claims: Mapping[str, Any]) -> list[Challenge]:
    """Parse the output of `searches_text`. Raises: DamagedError, which names `where`."""
    try:
        searches = []
        for document in json.loads(text):
            verdicts = itertools.chain.from_iterable(flip["verdicts"] for flip in document["flips"])
            if all(verdict["claim"] in claims for verdict in verdicts):  # otherwise a claim no longer exists
                searches.append(Challenge.of_json(document, claims))
        return searches
    except (KeyError, TypeError, AttributeError, ValueError) as failure:
        raise DamagedError(f"{where} is damaged ({failure}). Search again.") from None
