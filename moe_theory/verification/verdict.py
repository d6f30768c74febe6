"""Statements, verdicts and reports, as plain data."""

import dataclasses
import enum
import inspect
import itertools
import math
import os
import re
import sys
from collections.abc import Container, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from moe_theory.core.errors import DeclarationError, shortened
from moe_theory.core.notebook import Listing, Shown, pages, shortest
from moe_theory.core.papers import find_spec
from moe_theory.runs.files import plain
from moe_theory.verification.records import Count, Flag, JsonRecord, Number, read_record

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SLOWEST_FALL = 0.05  # exponent of decay below which a probability does not tend to 0: a fifth in two decades
AS_RECORDED = "as recorded"  # at the end of the reason of a published verdict among new ones
OWN_SYSTEM = "system="  # in the name of a reading, before an algorithm of one's own
LONGEST_ID = 120  # characters
ID_WORDS = (
    f"of lower-case letters and digits, joined by single hyphens and dots, and at most {LONGEST_ID} characters long, "
    "such as mine.lemma-4: files are named after it"
)

LIMITS = ("limit_probability", "limit_rate")  # kinds of claims


def is_id(text: str) -> bool:
    return len(text) <= LONGEST_ID and re.fullmatch(r"[a-z0-9]+(?:[.-][a-z0-9]+)*", text) is not None


class Status(enum.StrEnum):
    """Status of a verdict."""

    SUPPORTED = "SUPPORTED"  # shown within its margin; not merely "not refuted"
    REFUTED = "REFUTED"  # shown to fail by more than its margin
    INCONCLUSIVE = "INCONCLUSIVE"  # the replicates do not decide
    VACUOUS = "VACUOUS"  # holds, but lies above what is trivially true
    INAPPLICABLE = "INAPPLICABLE"  # an assumption of the statement does not hold in this setting
    ERROR = "ERROR"  # the claim's own code failed


# Fields of a verdict that records keep. What a claim itself says is not repeated.
FIELDS = tuple(
    "claim reading data status reason replicates at predicted observed standard_error interval margin error is_exact "
    "stopped command doubt trend".split()
)


class Role(enum.StrEnum):
    """Role of a claim for its statement."""

    CHARITABLE = "charitable"  # its most favourable reading: any constant, the limit taken, its hypotheses met
    LITERAL = "literal"  # as printed, with constants 1, at the paper's own parameters
    STEP = "step"  # an equation inside a proof
    FIGURE = "figure"  # a sentence about a figure
    INTERVENTION = "intervention"  # the statement with the cause that `why` names taken away, which brings it back
    SUSPECT = "suspect"  # the statement with another cause taken away, which does not
    COMPETITOR = "competitor"  # the statement of something that lacks what it credits, which ought to fail
    CORRECTED = "corrected"  # what holds instead
    OURS = "ours"  # what the paper does not say


class Stop(enum.StrEnum):
    """Reason why no more replicates were taken."""

    DECIDED = "decided"
    REPLICATES = "replicates"  # the replicate limit was reached
    BUDGET = "budget"  # the time was up
    FAILED = "failed"  # the claim's own code


@dataclasses.dataclass(frozen=True)
class Curve(JsonRecord):
    """All components of a claim, for plots."""

    labels: list[str]
    predicted: list[Number]
    observed: list[Number]
    low: list[Number]  # simultaneous interval of observed - predicted
    high: list[Number]
    margin: list[Number]  # what observed - predicted may exceed 0 by, in its own unit
    abscissa: list[Number] | None = None  # of a rate: x at the components


@dataclasses.dataclass(frozen=True)
class Look(JsonRecord):
    """One interim analysis of a sequential test, at its share of the error."""

    replicates: Count
    at: str  # the component that decides, or comes nearest to deciding otherwise
    estimate: Number  # of observed - predicted there
    low: Number
    high: Number
    error: Number


@dataclasses.dataclass(frozen=True)
class Trend(JsonRecord):
    """Frequency of failures two decades before a limit's end, or the slope's change over them, with its interval."""

    at: str  # the component; empty for a change
    value: Number
    low: Number
    high: Number


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict(Shown, JsonRecord):
    """Verdict on a claim under one reading, or several with the same parameters.

    Numbers are of the component `at`, which decides or is nearest to the opposite decision. The interval is of observed
    - predicted, simultaneous over components, at the last analysis's error. `error` is the verdict's, spent over all
    interim analyses.
    """

    claim: str
    paper: str
    where: str
    statement: str
    kind: str
    reading: str
    status: Status
    reason: str  # what no number says: a hypothesis that fails, a message of the claim's own code
    replicates: Count
    command: str  # reproduces this verdict
    formula: str = ""  # LaTeX
    at: str = ""
    predicted: Number = math.nan
    observed: Number = math.nan
    standard_error: Number = math.nan
    interval: tuple[Number, Number] = (math.nan, math.nan)
    interval_kind: str = ""  # in words, the method and its caveats
    is_exact: Flag = False  # whether the interval is exact, or asymptotic
    margin: Number = math.nan
    error: Number = math.nan  # probability of a false verdict; asymptotic where the interval is
    # What would have been refuted with probability 0.9 at the last look; of an identity, the frequency of violations
    # that would have shown one with probability 1 - error.
    smallest_discrepancy: Number = math.nan
    trivial: Number = math.nan  # where it is VACUOUS, the bound that holds anyway
    stopped: Stop = Stop.REPLICATES
    looks: list[Look] = dataclasses.field(default_factory=list)
    replaced_by: str | None = None
    curve: Curve | None = None
    side: str | None = None  # of a probability or a rate: at_most, at_least or, of a rate, equal
    data: str = ""  # the data set that the runs are on, where it is not drawn by the package
    is_computed: Flag = False  # whether nothing random enters: algebra, enumeration, a constructed instance
    also: list[str] = dataclasses.field(default_factory=list)  # further readings, with the same parameters
    doubt: str = ""  # why there is no interval, or why it decides nothing
    trend: Trend | None = None  # of a limit

    LATER: ClassVar[tuple[str, ...]] = ("doubt", "trend")

    @property
    def unseen(self) -> float:
        """Largest frequency of an event that all replicates may have missed, at the verdict's error.

        It is NaN if the interval accounts for the event, or without randomness.
        """
        if self.is_exact or self.is_computed or not self.replicates:
            return math.nan
        return -math.expm1(math.log(self.error) / self.replicates)

    @property
    def own_system(self) -> str:
        """Name of the tested algorithm of the user, empty for a paper's."""
        return self.reading.partition(f", {OWN_SYSTEM}")[2]

    @property
    def violation(self) -> float:
        """Excess of the claim over its margin, in margins: negative within the margin, NaN without numbers.

        For a margin of 0 the unit is a probability, or a replicate's standard deviation.
        """
        difference = self.observed - self.predicted
        margin = self.margin
        if self.kind == "identity":
            difference = self.observed
        elif self.kind == "lower_bound" or self.side == "at_least":
            difference = -difference
        elif self.kind == "equality" or self.side == "equal":
            difference = abs(difference)
        is_share = self.kind in {"probability", "counterexample", "identity"}
        return (difference - margin) / (
            margin or (1.0 if is_share else self.standard_error * self.replicates**0.5) or 1.0
        )

    @property
    def settings(self) -> list[str]:
        """Its readings, each with its data set, if any."""
        place = f" on {self.data}" if self.data else ""
        return [f"{reading}{place}" for reading in (self.reading, *self.also)]

    @property
    def setting(self) -> str:
        """Its settings, in words."""
        return " and ".join(self.settings)

    @property
    def record(self) -> dict[str, Any]:
        """The fields that a record has."""
        fields = self.to_json()
        return {name: fields[name] for name in FIELDS if name not in self.LATER or fields[name]}

    def held_for(self, settings: Container[str]) -> "Verdict":
        """Return the verdict for its readings among these settings."""
        readings = [
            reading
            for reading, setting in zip((self.reading, *self.also), self.settings, strict=True)
            if setting in settings
        ]
        command = self.command.replace(f"--reading {self.reading} ", f"--reading {readings[0]} ")
        return dataclasses.replace(self, reading=readings[0], also=readings[1:], command=command)

    def row(self) -> dict[str, Any]:
        """Return the row of `Verdicts.to_frame`, with observed - predicted as the difference."""
        names = ("claim", "status", "observed", "predicted", "margin", "replicates", "kind", "at", "where")
        facts: dict[str, Any] = {name: getattr(self, name) for name in names}
        for end, difference in zip(("low", "high"), self.interval, strict=True):
            facts |= {f"difference_{end}": difference, f"observed_{end}": self.predicted + difference}
        return {"claim": self.claim, "reading": self.setting, **facts, "status": str(self.status)}

    def __repr__(self) -> str:
        words = self.reason or f"observed {self.observed:.4g}, predicted {self.predicted:.4g}"
        return f"<Verdict {self.claim} under {self.setting}: {self.status}, {shortest(words)}>"

    def plot(self) -> "Figure":
        """Return the report's figure: observed against predicted over the components.

        Raises: InvalidValueError for a verdict without numbers, such as an ERROR.
        """
        return pages().plot(self)

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary for JSON, with null for missing numbers."""
        return plain(dataclasses.asdict(self) | {"unseen": self.unseen})


FACTS = ("paper", "where", "statement", "formula", "kind", "side", "replaced_by", "is_computed")  # of a claim
BLANK = Verdict("", "", "", "", "", "", Status.INCONCLUSIVE, "", 0, "").to_json()


def verdict_of(declared: Any, **outcome: Any) -> Verdict:
    fields: dict[str, Any] = {name: getattr(declared, name) for name in FACTS}
    return Verdict(**fields, **outcome)


def whole_verdict(claim: Any, record: Mapping[str, Any]) -> Verdict:
    """Return the verdict of a record, with its claim's facts. Raises: DamagedError, or KeyError for a lacking field."""
    fields = {name: record[name] for name in FIELDS if name not in Verdict.LATER or name in record}
    return read_record(Verdict, BLANK | {name: getattr(claim, name) for name in FACTS} | fields)


@dataclasses.dataclass(frozen=True)
class Proof(JsonRecord):
    """A short proof, checkable by hand, and its program in exact arithmetic."""

    path: str  # "package:proofs/NAME.py"
    title: str
    text: list[str]  # paragraphs
    robust: str  # what it does not depend on
    objection: str  # an author's, with the answer
    caveat: str  # the hypothesis that the paper does not make; empty where there is none

    @classmethod
    def of(cls, path: str) -> "Proof":
        """Return the proof in a file's docstring: title, and paragraphs, also after "Robust:", "Objection:" or
        "Caveat:".
        """
        _, *opened = source_of(path).split('"""', 2)
        if len(opened) < 2:
            raise DeclarationError(f"{path} has no docstring: begin it with the proof's title and text.")
        title, *parts = (" ".join(paragraph.split()) for paragraph in inspect.cleandoc(opened[0]).split("\n\n"))
        marked = {"Robust": "", "Objection": "", "Caveat": ""}
        text = list(itertools.takewhile(lambda part: not _MARK.match(part), parts))
        for part in parts[len(text) :]:
            mark, _, words = part.partition(": ")
            if marked.get(mark, "given"):
                raise DeclarationError(
                    f"{path}: {shortened(part)} must begin with one of {', '.join(marked)} and a colon, each of which "
                    "opens one paragraph at the docstring's end."
                )
            marked[mark] = words
        return cls(path, title, text, marked["Robust"], marked["Objection"], marked["Caveat"])


_MARK = re.compile(r"[A-Z][a-z]+: ")


def source_of(path: str) -> str:
    """Return the text of "package:folder/NAME.py" without imports. Raises: DeclarationError for none."""
    package, _, place = path.partition(":")
    if not package:
        raise DeclarationError(
            f"{place} is not in any package, as the module that names it is in none. Put it into a folder, with the "
            "module as its __init__.py, and give `statement` module=__name__."
        )
    loaded = sys.modules.get(package)
    spec = find_spec(package) if loaded is None else loaded.__spec__
    if spec is None:  # as of a file of the user's, run once by --module
        raise DeclarationError(
            f"{package} cannot be imported, which its proofs need. Name the file that declares them with --module."
        )
    for folder in spec.submodule_search_locations or ():
        file = Path(folder, place)
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise DeclarationError(f"{place} is not in package {package}. Put it next to the package's module.")


@dataclasses.dataclass(frozen=True)
class FreeQuantity(JsonRecord):
    name: str  # as `--set` has it
    region: str  # from where to where, in words
    recorded: str  # what the recorded runs have
    ends: list[Number] = dataclasses.field(default_factory=list)  # of a region of numbers
    recorded_values: list[Number] = dataclasses.field(default_factory=list)  # the least and the largest, of numbers
    labels: list[str] = dataclasses.field(default_factory=list)  # of a choice


@dataclasses.dataclass(frozen=True, repr=False)
class Statement(Shown, JsonRecord):
    """A numbered statement of a paper, or a sentence about a figure, as plain data."""

    id: str  # unique in its paper: "lemma-8"
    paper: str
    where: str  # "Lemma 8, Eq. (32)"
    says: str  # in our words
    formula: str = ""  # LaTeX
    hypotheses: list[str] = dataclasses.field(default_factory=list)
    why: str = ""  # it fails, is vacuous, or is amended
    instance: str = ""  # the smallest one that shows it, with its numbers
    corrected: str = ""  # what holds instead
    corrected_formula: str = ""
    untestable: str = ""  # why computation cannot decide it
    undecided: str = ""  # why our claims do not decide it, and what would
    note: str = ""
    witness: str = ""  # "package:counterexamples/NAME.py"
    disproof: Proof | None = None  # that the sentence as printed is violated at its instance
    proof: Proof | None = None  # that it holds, under the hypotheses that the proof names, or is vacuous
    derivation: Proof | None = None  # of what holds instead
    amendment: str = ""  # the one clause under which it holds, where as printed it does not
    free: list[FreeQuantity] = dataclasses.field(default_factory=list)  # what its hypotheses leave open
    roles: dict[str, Role] = dataclasses.field(default_factory=dict)  # of its claims, by id

    def row(self) -> dict[str, Any]:
        return {"statement": self.name, "where": self.where, "says": self.says, "claims": len(self.roles)}

    @property
    def name(self) -> str:
        return f"{self.paper}.{self.id}"

    def script(self, kind: str = "witness") -> str:
        """Return the source of its program of a kind. Raises: DeclarationError for none."""
        if kind not in self.scripts:
            noun = {"witness": "script"}.get(kind, kind)
            kinds = ", ".join(self.scripts) or "none"
            raise DeclarationError(f"statement {self.name} has no {noun}. Its programs: {kinds}.")
        return source_of(self.scripts[kind])

    @property
    def scripts(self) -> dict[str, str]:
        witness = {"witness": self.witness} if self.witness else {}
        return witness | {kind: proof.path for kind, proof in self.proofs.items()}

    @property
    def proofs(self) -> dict[str, Proof]:
        every = {"disproof": self.disproof, "proof": self.proof, "derivation": self.derivation}
        return {name: proof for name, proof in every.items() if proof is not None}


@dataclasses.dataclass(frozen=True)
class Report(JsonRecord):
    verdicts: list[Verdict]
    command: str
    seed: Count
    error: Number  # family-wise: probability that any verdict is false, at most
    versions: dict[str, str]  # of the package, Python and the libraries that compute
    is_x64: Flag  # whether runs were in double precision
    readings: dict[str, str]  # summaries by "paper.reading"
    budget: Number | None = None  # seconds, if the time was limited
    finished: str = ""  # when, UTC
    seconds: dict[str, Number] = dataclasses.field(default_factory=dict)  # spent, by experiment and reading
    statements: list[Statement] = dataclasses.field(default_factory=list)  # that its claims bear on

    @property
    def own_system(self) -> str:
        return next((verdict.own_system for verdict in self.verdicts), "")

    def to_json(self) -> dict[str, Any]:
        return {**plain(dataclasses.asdict(self)), "verdicts": [verdict.to_json() for verdict in self.verdicts]}


class Verdicts(Listing[Verdict]):
    """The verdicts of a call of `verify`, in the order of claims and readings."""

    def __init__(self, source: Report) -> None:
        super().__init__(source.verdicts)
        self.source = source  # what the verdicts share

    def report(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the files of `moe-theory verify`, and return their paths. Raises: OutputError."""
        return pages().report(self.source, path)
