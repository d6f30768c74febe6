"""Results of searches of statements' free parameters."""

import dataclasses
import operator
from collections.abc import Mapping
from typing import Any

from moe_theory.core.errors import DamagedError, shortened, text_of
from moe_theory.core.notebook import Shown
from moe_theory.runs.files import plain
from moe_theory.verification.records import Count, Finite, read_record
from moe_theory.verification.verdict import FreeQuantity, Status, Verdict, whole_verdict

SCHEMA = "moe-theory/challenge/3"
Values = dict[str, int | float | str]  # by the name of the free parameter
_RELATIONS = {"≤": operator.le, "≥": operator.ge, "=": operator.eq}


@dataclasses.dataclass(frozen=True)
class Looked:
    """A tried setting."""

    setting: Values
    violation: Finite  # in margins, negative if the statement holds within its margin
    replicates: Count


@dataclasses.dataclass(frozen=True)
class Flip:
    """A setting with opposite verdicts on a fresh seed."""

    setting: Values
    verdicts: list[Verdict]  # first under the reading of the search, then under others
    borders: dict[str, list[Any]]  # by axis, the last found value without the flip, and the first with it

    @property
    def command(self) -> str:
        return self.verdicts[0].command

    def under(self, reading: str) -> list[Verdict]:
        return [verdict for verdict in self.verdicts if verdict.reading.partition(", ")[0] == reading]


@dataclasses.dataclass(frozen=True)
class ClauseBound:
    name: str
    relation: str  # "≤", "≥" or "="
    value: Any

    def allows(self, value: Any) -> bool:
        return bool(_RELATIONS[self.relation](value, self.value))

    @property
    def words(self) -> str:
        return f"{self.name} {self.relation} {text_of(self.value)}"


@dataclasses.dataclass(frozen=True)
class Clause:
    """One or two inequalities within which a search found no violation of the statement."""

    bounds: list[ClauseBound]
    settings: Count  # settings tried within the inequalities
    nearest: Looked  # the closest of these to a violation
    readings: list[str]  # the search's reading, and others without a violation there

    @property
    def words(self) -> str:
        return " and ".join(bound.words for bound in self.bounds)


@dataclasses.dataclass(frozen=True, repr=False)
class Challenge(Shown):
    statement: str
    where: str
    sought: str  # "break" if the statement holds at the recorded setting, and otherwise "rescue"
    reading: str
    readings: list[str]  # all readings in which the statement holds, or fails, at the recorded setting
    free: list[FreeQuantity]
    flips: list[Flip]
    clause: Clause | None  # where the statement holds, if the search found flips and a clause without them
    recorded: Looked
    nearest: Looked  # the setting closest to a flip, except flips
    settings: Count  # tried settings that satisfy the hypotheses
    inadmissible: Count  # settings that violate a hypothesis or that the system refuses
    shapes: Count  # array shapes that were compiled for the tried settings
    idle: list[str]  # axes whose ends do not change the violation
    seconds: Finite
    seed: Count
    error: Finite  # probability that any flip is false
    command: str

    @property
    def name(self) -> str:
        return self.statement

    @property
    def is_thorough(self) -> bool:
        """Whether the search tried more than the two ends of each axis."""
        return self.settings + self.inadmissible > 2 * len(self.free)

    def restores(self, reading: str) -> bool:
        return self.clause is not None and reading in self.clause.readings

    def row(self) -> dict[str, Any]:
        flips = "; ".join(placed(flip.setting) for flip in self.flips) or "none"
        return {"statement": self.statement, "sought": self.sought, "found": flips, "settings": self.settings}

    def to_json(self) -> dict[str, Any]:
        flips = []
        for flip in self.flips:
            flips.append({**dataclasses.asdict(flip), "verdicts": [verdict.record for verdict in flip.verdicts]})
        return plain({"schema": SCHEMA, **dataclasses.asdict(self), "flips": flips})

    @classmethod
    def of_json(cls, document: Mapping[str, Any], claims: Mapping[str, Any]) -> "Challenge":
        """Return the search that `to_json` wrote. Raises: DamagedError, KeyError or TypeError for other data."""
        if document["schema"] != SCHEMA:
            raise DamagedError(f"schema={shortened(document['schema'])} is not {SCHEMA!r}")
        flips = []
        for flip in document["flips"]:
            verdicts = [whole_verdict(claims[verdict["claim"]], verdict) for verdict in flip["verdicts"]]
            flips.append({**flip, "verdicts": verdicts})
        return read_record(cls, {**document, "flips": flips})

    def flips_under(self, reading: str) -> list[Flip]:
        flips = []
        for flip in self.flips:
            statuses = [verdict.status for verdict in flip.under(reading)]
            is_opposite = Status.REFUTED in statuses
            if self.sought != "break":
                is_opposite = set(statuses) == {Status.SUPPORTED}
            if is_opposite:
                flips.append(flip)
        return flips


def placed(setting: Values) -> str:
    return ", ".join(f"{name} = {text_of(value)}" for name, value in setting.items()) or "the recorded point"
