"""The numbered statements of the papers, and whether claims reach every one of them.

A paper's folder holds `statements.toml`, one table `[[statement]]` for each lemma, proposition, theorem and sentence
about a figure. It says which claims answer for the statement, as globs over their ids, or why nothing can.
"""

import dataclasses
import tomllib
from importlib import resources
from typing import Any

from moe_theory.core.errors import InvalidStatementError
from moe_theory.core.papers import find_paper
from moe_theory.verify.claim import KINDS, Kind


@dataclasses.dataclass(frozen=True)
class Statement:
    id: str  # unique in its paper
    paper: str
    source: str  # "Lemma 8, Eq. (32)"
    kind: Kind  # the kind of test that fits
    paraphrase: str  # one sentence, in our words
    claims: tuple[str, ...] = ()  # globs over the ids of the claims that answer for it
    untestable: str = ""  # or why none can
    note: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InvalidStatementError(
                f"statement {self.id} of {self.paper}: kind={self.kind!r} must be one of {', '.join(KINDS)}."
            )


def statements(paper: str) -> list[Statement]:
    """The numbered statements of `paper`, in its order; none of one whose claims answer for other papers. Raises:
    UnknownNameError for another paper; InvalidStatementError for an entry with missing or unknown fields.
    """
    found = find_paper(paper)
    if not found.statements:
        return []
    text = resources.files(found.package).joinpath(found.statements).read_text(encoding="utf-8")
    return [_statement(paper, entry) for entry in tomllib.loads(text)["statement"]]


def _statement(paper: str, entry: dict[str, Any]) -> Statement:
    fields = {field.name: field for field in dataclasses.fields(Statement) if field.name != "paper"}
    needed = [name for name, field in fields.items() if field.default is dataclasses.MISSING]
    missing = [name for name in needed if not entry.get(name)]
    unknown = sorted(entry.keys() - fields.keys())
    problems = [f"{name} is missing" for name in missing]
    problems += [f"{name} is no field of a statement" for name in unknown]
    if problems:
        raise InvalidStatementError(
            f"statement {entry.get('id', '?')} of {paper}: {'; '.join(problems)}. Each has "
            f"{', '.join(needed)}, then claims or untestable, and may have a note."
        )
    return Statement(paper=paper, **{**entry, "claims": tuple(entry.get("claims", ()))})
