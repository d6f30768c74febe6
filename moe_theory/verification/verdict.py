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

SLOWEST_FALL = 0.05  # exponent. A probability that falls more slowly (by a fifth in two decades) does not tend to 0
AS_RECORDED = "as recorded"  # end of the reason of a published verdict among new ones
OWN_SYSTEM = "system="  # in a reading's name, before the user's algorithm
LONGEST_ID = 120  # characters
ID_WORDS = (
    f"made of lower-case letters and digits, joined by single hyphens and dots, and at most {LONGEST_ID} characters "
    "long, such as mine.lemma-4, because it is also a file's name"
)
LIMITS = ("limit_probability", "limit_rate")  # kinds of claims about a limit


def is_id(text: str) -> bool:
    return len(text) <= LONGEST_ID and re.fullmatch(r"[a-z0-9]+(?:[.-][a-z0-9]+)*", text) is not None


class Status(enum.StrEnum):
    """The status of a verdict."""

    SUPPORTED = "SUPPORTED"  # shown to hold within its margin
    REFUTED = "REFUTED"  # shown to fail by more than its margin
    INCONCLUSIVE = "INCONCLUSIVE"  # the replicates do not decide
    VACUOUS = "VACUOUS"  # holds, but so does a trivial bound
    INAPPLICABLE = "INAPPLICABLE"  # an assumption of the statement fails in this setting
    ERROR = "ERROR"  # the claim's own code failed


# Fields of a verdict in records, which omit the claim's own fields.
FIELDS = tuple(
    "claim reading data status reason replicates at predicted observed standard_error interval margin error is_exact "
    "stopped command doubt trend".split()
)


class Role(enum.StrEnum):
    """The role of a claim for its statement."""

    CHARITABLE = "charitable"  # the most favourable reading, with any constant, in the limit, under its hypotheses
    LITERAL = "literal"  # as printed, with constants 1, at the paper's parameters
    STEP = "step"  # an equation inside a proof
    FIGURE = "figure"  # a sentence about a figure
    INTERVENTION = "intervention"  # the statement without the cause in `why`, which should restore it
    SUSPECT = "suspect"  # the statement without another cause, which should not restore it
    COMPETITOR = "competitor"  # the statement for a system without the property that it credits, which should fail
    CORRECTED = "corrected"  # what is true instead
    OURS = "ours"  # not in the paper


class Stop(enum.StrEnum):
    """The reason why sampling stopped."""

    DECIDED = "decided"
    REPLICATES = "replicates"  # the replicate limit was reached
    BUDGET = "budget"  # the time is over
    FAILED = "failed"  # the claim's own code failed


@dataclasses.dataclass(frozen=True)
class Curve(JsonRecord):
    """All components of a claim, for plots."""

    labels: list[str]
    predicted: list[Number]
    observed: list[Number]
    low: list[Number]  # simultaneous intervals of observed - predicted
    high: list[Number]
    margin: list[Number]  # most that observed - predicted may exceed 0, in the same unit
    abscissa: list[Number] | None = None  # for a rate, x of the components


@dataclasses.dataclass(frozen=True)
class Look(JsonRecord):
    """One interim analysis of a sequential test, at its share of the error."""

    replicates: Count
    at: str  # the component that decides, or is closest to the opposite decision
    estimate: Number  # observed - predicted at this component
    low: Number
    high: Number
    error: Number


@dataclasses.dataclass(frozen=True)
class Trend(JsonRecord):
    """The frequency of failures two decades before a limit's end, or the change of the slope, with its interval."""

    at: str  # the component, empty for a change
    value: Number
    low: Number
    high: Number


@dataclasses.dataclass(frozen=True, repr=False)
class Verdict(Shown, JsonRecord):
    """A verdict on a claim under one reading, or under several with the same parameters.

    Numbers are for the component `at`, which decides or is closest to the opposite decision. The interval is for
    observed - predicted, simultaneous over components, at the error of the last analysis. `error` is the verdict's
    error for all interim analyses.
    """

    claim: str
    paper: str
    where: str
    statement: str
    kind: str
    reading: str
    status: Status
    reason: str  # a failing hypothesis, or an error message of the claim's code
    replicates: Count
    command: str  # command that repeats this verdict
    formula: str = ""  # LaTeX
    at: str = ""
    predicted: Number = math.nan
    observed: Number = math.nan
    standard_error: Number = math.nan
    interval: tuple[Number, Number] = (math.nan, math.nan)
    interval_kind: str = ""  # the method and its caveats in words
    is_exact: Flag = False  # whether the interval is exact and not asymptotic
    margin: Number = math.nan
    error: Number = math.nan  # probability of a false verdict, asymptotic if the interval is
    # Smallest deviation that the last analysis would have refuted with probability 0.9. For an identity, the frequency
    # of violations at which one appears with probability 1 - error.
    smallest_discrepancy: Number = math.nan
    trivial: Number = math.nan  # if VACUOUS, the bound that holds trivially
    stopped: Stop = Stop.REPLICATES
    looks: list[Look] = dataclasses.field(default_factory=list)
    replaced_by: str | None = None
    curve: Curve | None = None
    side: str | None = None  # at_most or at_least for a probability or a rate, or equal for a rate
    data: str = ""  # the data set of its runs, unless the package draws the data
    is_computed: Flag = False  # whether the claim has no randomness, as for algebra or enumeration
    also: list[str] = dataclasses.field(default_factory=list)  # further readings with the same parameters
    doubt: str = ""  # why there is no interval, or why the interval does not decide
    trend: Trend | None = None  # for a limit

    LATER: ClassVar[tuple[str, ...]] = ("doubt", "trend")

    @property
    def unseen(self) -> float:
        """The largest frequency of an event that all replicates may have missed, at the verdict's error.

        The value is NaN if the interval accounts for such events, or if the claim has no randomness.
        """
        if self.is_exact or self.is_computed or not self.replicates:
            return math.nan
        return -math.expm1(math.log(self.error) / self.replicates)

    @property
    def own_system(self) -> str:
        """The name of the user's tested algorithm, or "" for a paper's."""
        return self.reading.partition(f", {OWN_SYSTEM}")[2]

    @property
    def violation(self) -> float:
        """The excess over the margin, in units of the margin. It is negative inside, and NaN without numbers.

        If the margin is 0, the unit is a probability or a replicate's standard deviation.
        """
        difference = self.observed - self.predicted
        margin = self.margin
        if self.kind == "identity":
            difference = self.observed
        elif self.kind == "lower_bound" or self.side == "at_least":
            difference = -difference
        elif self.kind == "equality" or self.side == "equal":
            difference = abs(difference)
        if margin:
            return (difference - margin) / margin
        if self.kind in {"probability", "counterexample", "identity"}:
            return difference - margin
        deviation = self.standard_error * self.replicates**0.5
        return (difference - margin) / (deviation or 1.0)  # equal replicates have no deviation

    @property
    def settings(self) -> list[str]:
        """The verdict's readings, each with its data set if it has one."""
        place = f" on {self.data}" if self.data else ""
        return [f"{reading}{place}" for reading in (self.reading, *self.also)]

    @property
    def setting(self) -> str:
        """The verdict's settings, in words."""
        return " and ".join(self.settings)

    @property
    def record(self) -> dict[str, Any]:
        """The verdict's fields in a record."""
        fields = self.to_json()
        return {name: fields[name] for name in FIELDS if name not in self.LATER or fields[name]}

    def held_for(self, settings: Container[str]) -> "Verdict":
        """Return the verdict restricted to its readings that are among these settings."""
        pairs = zip((self.reading, *self.also), self.settings, strict=True)
        readings = [reading for reading, setting in pairs if setting in settings]
        command = self.command.replace(f"--reading {self.reading} ", f"--reading {readings[0]} ")
        return dataclasses.replace(self, reading=readings[0], also=readings[1:], command=command)

    def row(self) -> dict[str, Any]:
        """Return the row of `Verdicts.to_frame`. The difference is observed - predicted."""
        names = ("claim", "status", "observed", "predicted", "margin", "replicates", "kind", "at", "where")
        facts: dict[str, Any] = {name: getattr(self, name) for name in names}
        for end, difference in zip(("low", "high"), self.interval, strict=True):
            facts |= {f"difference_{end}": difference, f"observed_{end}": self.predicted + difference}
        # Keys stay where they are first, so claim and reading are the first columns.
        return {"claim": self.claim, "reading": self.setting, **facts, "status": str(self.status)}

    def __repr__(self) -> str:
        words = self.reason or f"observed {self.observed:.4g}, predicted {self.predicted:.4g}"
        return f"<Verdict {self.claim} under {self.setting}: {self.status}, {shortest(words)}>"

    def plot(self) -> "Figure":
        """Return the report's figure, which shows observed and predicted values of the components.

        Raises: InvalidValueError if the verdict has no numbers, like an ERROR.
        """
        return pages().plot(self)

    def to_json(self) -> dict[str, Any]:
        """Return a dictionary for JSON, with null for missing numbers."""
        return plain(dataclasses.asdict(self) | {"unseen": self.unseen})


FACTS = ("paper", "where", "statement", "formula", "kind", "side", "replaced_by", "is_computed")  # a claim's own fields
BLANK = Verdict(  # with defaults of absent fields
    claim="",
    paper="",
    where="",
    statement="",
    kind="",
    reading="",
    status=Status.INCONCLUSIVE,
    reason="",
    replicates=0,
    command="",
).to_json()


def verdict_of(declared: Any, **outcome: Any) -> Verdict:
    fields: dict[str, Any] = {name: getattr(declared, name) for name in FACTS}
    return Verdict(**fields, **outcome)


def whole_verdict(claim: Any, record: Mapping[str, Any]) -> Verdict:
    """Return the verdict in a record, with its claim's facts. Raises: DamagedError, or KeyError for a missing field."""
    fields = {name: record[name] for name in FIELDS if name not in Verdict.LATER or name in record}
    return read_record(Verdict, BLANK | {name: getattr(claim, name) for name in FACTS} | fields)


@dataclasses.dataclass(frozen=True)
class Proof(JsonRecord):
    """A short proof that can be checked by hand, and its program in exact arithmetic."""

    path: str  # "package:proofs/NAME.py"
    title: str
    text: list[str]  # paragraphs
    robust: str  # what the proof does not depend on
    objection: str  # a possible objection of the authors, with an answer
    caveat: str  # a hypothesis that the paper does not make, or ""

    @classmethod
    def of(cls, path: str) -> "Proof":
        """Return the proof in a file's docstring, including paragraphs after "Robust:", "Objection:" and "Caveat:"."""
        parts_of_file = source_of(path).split('"""', 2)
        if len(parts_of_file) < 3:
            raise DeclarationError(f"{path} has no docstring. Begin the file with the proof's title and text.")
        _, docstring, _ = parts_of_file
        blocks = inspect.cleandoc(docstring).split("\n\n")
        title, *paragraphs = [" ".join(block.split()) for block in blocks]
        labelled = {"Robust": "", "Objection": "", "Caveat": ""}
        text = list(itertools.takewhile(lambda paragraph: not _LABEL.match(paragraph), paragraphs))
        for paragraph in paragraphs[len(text) :]:
            label, _, words = paragraph.partition(": ")
            if label not in labelled or labelled[label]:  # unknown, or used before
                raise DeclarationError(
                    f"{path}: {shortened(paragraph)} must begin with a label and a colon. The labels are "
                    f"{', '.join(labelled)}. Each label begins one paragraph at the end of the docstring."
                )
            labelled[label] = words
        robust, objection, caveat = labelled.values()
        return cls(path, title, text, robust=robust, objection=objection, caveat=caveat)


_LABEL = re.compile(r"[A-Z][a-z]+: ")


def source_of(path: str) -> str:
    """Return the text of "package:folder/NAME.py" without imports. Raises: DeclarationError if it is missing."""
    package, _, place = path.partition(":")
    if not package:
        raise DeclarationError(
            f"{place} is not in a package, because the module that names this file is in none. Make the module the "
            "__init__.py of the file's folder, and pass module=__name__ to `statement`."
        )
    loaded = sys.modules.get(package)
    spec = find_spec(package) if loaded is None else loaded.__spec__
    if spec is None:  # such as a user's file that --module ran
        raise DeclarationError(
            f"{package} cannot be imported, but its proofs need it. Name the file that declares it with --module."
        )
    for folder in spec.submodule_search_locations or ():
        file = Path(folder, place)
        if file.is_file():
            return file.read_text(encoding="utf-8")
    raise DeclarationError(f"{place} is not in package {package}. Put it next to the package's module.")


@dataclasses.dataclass(frozen=True)
class FreeQuantity(JsonRecord):
    name: str  # name for `--set`
    region: str  # its range in words
    recorded: str  # its values in the recorded runs
    ends: list[Number] = dataclasses.field(default_factory=list)  # ends of a numerical range
    recorded_values: list[Number] = dataclasses.field(default_factory=list)  # least and largest recorded number
    labels: list[str] = dataclasses.field(default_factory=list)  # labels of a choice


@dataclasses.dataclass(frozen=True, repr=False)
class Statement(Shown, JsonRecord):
    """A numbered statement of a paper, or a sentence about a figure, as plain data."""

    id: str  # an id such as "lemma-8", unique in its paper
    paper: str
    where: str  # "Lemma 8, Eq. (32)"
    says: str  # the statement in our words
    formula: str = ""  # LaTeX
    hypotheses: list[str] = dataclasses.field(default_factory=list)
    why: str = ""  # why it fails, is vacuous or is amended
    instance: str = ""  # the smallest example that shows it, with numbers
    corrected: str = ""  # what is true instead
    corrected_formula: str = ""
    untestable: str = ""  # why computation cannot decide it
    undecided: str = ""  # why our claims do not decide it, and what would decide it
    note: str = ""
    witness: str = ""  # "package:counterexamples/NAME.py"
    disproof: Proof | None = None  # proof that its example violates the printed sentence
    proof: Proof | None = None  # proof that it holds under named hypotheses, or is vacuous
    derivation: Proof | None = None  # proof of what is true instead
    amendment: str = ""  # the clause under which it holds, if it is false as printed
    free: list[FreeQuantity] = dataclasses.field(default_factory=list)  # its free parameters
    roles: dict[str, Role] = dataclasses.field(default_factory=dict)  # roles of its claims, by id

    def row(self) -> dict[str, Any]:
        return {"statement": self.name, "where": self.where, "says": self.says, "claims": len(self.roles)}

    @property
    def name(self) -> str:
        return f"{self.paper}.{self.id}"

    def script(self, kind: str = "witness") -> str:
        """Return the source of the statement's program of a kind. Raises: DeclarationError if there is none."""
        if kind not in self.scripts:
            noun = {"witness": "script"}.get(kind, kind)  # other kinds have their own name
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
    error: Number  # probability that any verdict is false, at most
    versions: dict[str, str]  # versions of the package, Python and libraries
    is_x64: Flag  # whether runs were in double precision
    readings: dict[str, str]  # summaries by "paper.reading"
    budget: Number | None = None  # seconds, if the time was limited
    finished: str = ""  # time in UTC
    seconds: dict[str, Number] = dataclasses.field(default_factory=dict)  # seconds spent, by experiment and reading
    statements: list[Statement] = dataclasses.field(default_factory=list)  # statements that its claims test

    @property
    def own_system(self) -> str:
        return next((verdict.own_system for verdict in self.verdicts), "")

    def to_json(self) -> dict[str, Any]:
        return {**plain(dataclasses.asdict(self)), "verdicts": [verdict.to_json() for verdict in self.verdicts]}


class Verdicts(Listing[Verdict]):
    """The verdicts of a call of `verify`, in the order of claims and readings."""

    def __init__(self, source: Report) -> None:
        super().__init__(source.verdicts)
        self.source = source  # the report that contains the verdicts

    def report(self, path: str | os.PathLike[str]) -> list[Path]:
        """Write the files of `moe-theory verify`, and return their paths. Raises: OutputError."""
        return pages().report(self.source, path)
