"""The verdicts that this repository publishes: of each paper the last run that was recorded (`docs/record.py`)."""

import dataclasses
import json
from collections import Counter
from pathlib import Path
from typing import Any

from moe_theory.core.errors import InvalidReportError
from moe_theory.core.papers import all_papers
from moe_theory.verify.verdict import Status

FOLDER = Path(__file__).with_name("verdicts")
SCHEMA = "moe-theory/recorded/1"
FIELDS = (  # of a verdict; what a claim itself says is not repeated
    "claim",
    "reading",
    "data",
    "status",
    "reason",
    "replicates",
    "at",
    "predicted",
    "observed",
    "standard_error",
    "interval",
    "margin",
    "error",
    "is_exact",
    "stopped",
    "command",
)


@dataclasses.dataclass(frozen=True)
class Recorded:
    """One paper's run of `moe-theory verify`, trimmed to what is published of it."""

    paper: str
    command: str  # without --out, which names a place on the machine that ran it
    seed: int
    error: float  # probability that any of the verdicts is false
    finished: str  # ISO 8601, UTC
    budget: float | None  # seconds, if the time was limited
    seconds: float  # spent on experiments, by all of them together
    versions: dict[str, str]
    readings: dict[str, str]  # summaries by name, in the order of the verdicts
    verdicts: list[dict[str, Any]]  # `FIELDS` of each, claims in the order of the registry

    def of(self, claim: str) -> dict[str, dict[str, Any]]:
        """The verdicts on a claim, by reading."""
        return {verdict["reading"]: verdict for verdict in self.verdicts if verdict["claim"] == claim}

    def counts(self) -> dict[str, int]:
        """How many verdicts there are of each status that occurs, in the order of `Status`."""
        found = Counter(verdict["status"] for verdict in self.verdicts)
        return {str(status): found[status] for status in Status if found[status]}


def read(folder: Path = FOLDER) -> dict[str, Recorded]:
    """What is recorded, by paper, in the order of the registry.

    Raises: InvalidReportError for a file that is damaged or of another schema.
    """
    paths = {paper: folder / f"{paper}.json" for paper in all_papers()}
    return {paper: _read(path) for paper, path in paths.items() if path.is_file()}


def write(recorded: Recorded, folder: Path = FOLDER) -> Path:
    """Write PAPER.json, a verdict a line, so that two records can be compared line by line; returns its path."""
    document = {"schema": SCHEMA, **dataclasses.asdict(recorded)}
    verdicts = [json.dumps(verdict, ensure_ascii=False) for verdict in document.pop("verdicts")]
    head = json.dumps(document, indent=1, ensure_ascii=False).removesuffix("\n}")
    path = folder / f"{recorded.paper}.json"
    path.write_text(head + ',\n "verdicts": [\n  ' + ",\n  ".join(verdicts) + "\n ]\n}\n", encoding="utf-8")
    return path


def _read(path: Path) -> Recorded:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        schema = document.pop("schema")
        if schema != SCHEMA:
            raise InvalidReportError(f"{path} has schema {schema!r}, not {SCHEMA!r}. Record the paper again.")
        return Recorded(**document)
    except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as failure:
        raise InvalidReportError(f"{path} is damaged ({failure}). Record the paper again.") from None
