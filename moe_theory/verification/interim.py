"""Interim analyses: when to look at the samples, how much of the error a look may spend, and one claim's test by looks.

Replicates double from look to look. Look k of a verdict at error a spends a/(k (k + 1)), which adds up to a however
many looks there are, so that a verdict does not depend on when its last look was meant to be.
"""

import dataclasses
import difflib
from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from moe_theory.core.errors import (
    OWN_CODE,
    DeclarationError,
    InvalidValueError,
    MoeTheoryError,
    described,
    frames,
    unknown_name,
)
from moe_theory.runs import Run
from moe_theory.verification import evidence
from moe_theory.verification.claim import Claim, Runs
from moe_theory.verification.criteria import Identity, Prior, Samples
from moe_theory.verification.intervals import is_dependent
from moe_theory.verification.verdict import Look, Status, Stop, Verdict

FIRST_SHARE = 32  # of an experiment's replicates are its first look,
FIRST_LOOK = 64  # but at no fewer than this
MOST_REPLICATES = 1 << 22  # of a run without another limit


def look_sizes(replicates: int, limit: int | None = None) -> tuple[int, ...]:
    """Sample sizes of the interim analyses: doubling, up to `limit` (None: to `MOST_REPLICATES`). A
    limit below the first look is the only look. A limit between two looks is not looked at: a look at each limit that
    somebody tries would spend error that is not accounted for.
    """
    first, last = max(replicates // FIRST_SHARE, FIRST_LOOK), limit or MOST_REPLICATES
    if last < first:
        return (last,)
    return tuple(first << doublings for doublings in range((last // first).bit_length()))


def alpha_spent(error: float, number: int) -> float:
    """Share of a verdict's error that look `number`, from 1 on, may spend."""
    return error / (number * (number + 1))


def examine(claim: Claim, samples: Samples, labels: list[str], error: float, blank: Verdict) -> tuple[Verdict, Look]:
    """Return the verdict `blank`, filled in from a look at these samples, and the look.

    Intervals that hold at all looks together have the error of `blank`, others have `error`, what this look may spend.

    Raises: DeclarationError where the samples have no verdict, such as means without a logarithm.
    """
    criterion = claim.criterion
    compared = criterion.compared(samples, Prior(claim.ranges, claim.is_computed), blank.error)
    outcome = criterion.outcome(compared, labels, error)
    decision = outcome.decision
    worst = decision.worst
    interval = float(decision.low[worst]), float(decision.high[worst])
    verdict = dataclasses.replace(
        blank,
        status=decision.status,
        at=outcome.at,
        predicted=outcome.predicted,
        observed=outcome.observed,
        standard_error=outcome.standard_error,
        interval=interval,
        interval_kind=f"{'exact' if decision.is_exact else 'asymptotic'} ({decision.method})",
        is_exact=decision.is_exact,
        margin=float(decision.margin),
        smallest_discrepancy=float(decision.smallest_discrepancy),
        doubt=decision.doubt,
        curve=outcome.curve,
        trend=outcome.trend,
    )
    if verdict.status is Status.SUPPORTED and compared.trivial is not None and criterion.is_vacuous(compared):
        trivial = float(compared.trivial.mean(axis=0)[worst])
        verdict = dataclasses.replace(verdict, status=Status.VACUOUS, trivial=trivial)
    estimate = outcome.observed - outcome.predicted
    look = Look(samples.num_replicates, outcome.at, estimate, *interval, decision.error or error)
    is_decided = verdict.status in {Status.SUPPORTED, Status.REFUTED, Status.VACUOUS}
    is_of_means = not criterion.is_of_instances and not claim.is_computed
    differences = compared.observed - compared.predicted
    if is_decided and is_of_means and any(map(is_dependent, differences.T)):
        doubt = "replicates depend on one another, as those of a shared seed do"
        verdict = dataclasses.replace(verdict, status=Status.INCONCLUSIVE, doubt=doubt)
    return verdict, look


class Taken(NamedTuple):
    """What a claim took from the runs of replicates `first` to `last` - 1."""

    first: int
    last: int
    samples: Samples | None = None
    labels: Sequence[str] = ()  # of the components, where it is the first that was taken
    cells: frozenset[str] = frozenset()  # whose runs it has read
    end: tuple[Status, str] | None = None  # a verdict and its reason, where these runs alone decide it


class SequentialTest:
    """The test of one claim under one reading: its samples so far, and the looks at them.

    An identity is not supported by fewer than `least_replicates`; a single look has the whole error. A claim that is
    declared exact may not read the states and records of runs that are `random`.
    """

    def __init__(
        self,
        claim: Claim,
        blank: Verdict,
        least_replicates: int,
        *,
        is_single_look: bool = False,
        random: Set[str] = frozenset(),
    ) -> None:
        self.claim, self.blank, self.random = claim, blank, random if claim.is_computed else frozenset()
        self.is_single_look, self.least_replicates = is_single_look, least_replicates
        self.samples: Samples | None = None
        self.labels: list[str] = []
        self.looks: list[Look] = []
        self.latest: Verdict = blank
        self.has_ended = False
        self.cells = claim.cells and set(claim.cells)  # those that the claim reads; None: not known yet

    @property
    def count(self) -> int:
        return 0 if self.samples is None else self.samples.num_replicates

    def extend(self, runs: Runs, overflows: Mapping[str, str]) -> None:
        """Take samples from the runs of further replicates; those known already are passed over. `overflows` says what
        is wrong with runs, by name: reading one of these is an error.
        """
        self.add([taken(self.claim, runs, overflows, self.random, self.samples is None)])

    def add(self, parts: Sequence[Taken]) -> None:
        """Add what was taken from parts of further replicates, which follow one another."""
        last = parts[-1].last
        ends = [part.end for part in parts if part.end is not None]
        if ends:
            self._end(*ends[0], last)
            return
        try:
            for part in parts:
                if part.samples is not None and self.count < part.last:
                    self.labels = self.labels if self.samples is not None else list(part.labels)
                    self.samples = part.samples.rows(slice(max(self.count - part.first, 0), None)).after(self.samples)
            self.cells = set().union(*(part.cells for part in parts))
        except OWN_CODE as failure:  # of the claim's own code: an ERROR of this claim alone
            self.fail(failure, last)

    def look(self, count: int) -> None:
        """Judge the first `count` replicates, at what this look may spend."""
        assert self.samples is not None  # a test without samples has ended
        error = self.blank.error if self.is_single_look else alpha_spent(self.blank.error, len(self.looks) + 1)
        try:
            samples = self.samples.rows(slice(count))
            verdict, look = examine(self.claim, samples, self.labels, error, self.blank)
        except OWN_CODE as failure:
            self.fail(failure, count)
            return
        self.looks.append(look)
        self.latest = dataclasses.replace(self._repeatable(verdict, count), looks=list(self.looks))
        is_early = self.claim.kind == Identity.kind and verdict.status is not Status.REFUTED
        if verdict.status is not Status.INCONCLUSIVE and (not is_early or count >= self.least_replicates):
            self.latest = dataclasses.replace(self.latest, stopped=Stop.DECIDED)
            self.has_ended = True

    def stop(self, why: Stop) -> None:
        reason = self.latest.reason or "not looked at: the budget was spent before"
        self.latest = dataclasses.replace(self.latest, reason=reason, stopped=why)
        if self.claim.kind == Identity.kind:  # fewer replicates than its experiment's own would support it
            self.latest = dataclasses.replace(self.latest, status=Status.INCONCLUSIVE, command=self.blank.command)
        self.has_ended = True

    def fail(self, failure: BaseException, count: int) -> None:
        self._end(Status.ERROR, reason_of(failure), count)

    def _end(self, status: Status, reason: str, count: int) -> None:
        stopped = Stop.FAILED if status is Status.ERROR else Stop.DECIDED
        blank = dataclasses.replace(self.blank, status=status, reason=reason, stopped=stopped, looks=list(self.looks))
        self.latest = self._repeatable(blank, count)
        self.has_ended = True

    def _repeatable(self, verdict: Verdict, count: int) -> Verdict:
        return dataclasses.replace(
            verdict,
            replicates=count,
            command=f"{self.blank.command} --replicates {count}",
        )


def taken(claim: Claim, runs: Runs, overflows: Mapping[str, str], random: Set[str], is_first: bool) -> Taken:
    """What a claim takes from runs of some replicates, with arguments as of `SequentialTest`; an end where its own code
    fails. Its hypotheses and the names of its components are those of the first.
    """
    try:
        return take(claim, runs, overflows, random, is_first)
    except OWN_CODE as failure:
        return Taken(*_span(runs), end=(Status.ERROR, reason_of(failure)))


def take(claim: Claim, runs: Runs, overflows: Mapping[str, str], random: Set[str], is_first: bool) -> Taken:
    """As `taken`. Raises: what the claim's own code does; InvalidValueError for a run that it reads and that is
    wrong.
    """
    anyone, span, runs = next(iter(runs.values())), _span(runs), _ReadRuns(runs)
    failed = evidence.failed_hypotheses(claim, runs) if is_first else []
    if failed:
        return Taken(*span, end=(Status.INAPPLICABLE, f"fails here: {'; '.join(failed)}"))
    samples = evidence.collect(claim, _ReadRuns(runs, random), len(anyone.replicates))
    for name in sorted(runs.read & overflows.keys()):
        raise InvalidValueError(overflows[name])
    labels = evidence.labels_of(claim, runs, anyone.rounds, samples.observed.shape[1]) if is_first else []
    return Taken(*span, samples, labels, frozenset(runs.read))


def _span(runs: Runs) -> tuple[int, int]:
    """The first of the runs' replicates, and the one after the last."""
    replicates = next(iter(runs.values())).replicates
    return int(replicates[0]), int(replicates[-1]) + 1


def is_of_study(failure: BaseException) -> bool:
    """Whether what running a study has raised is an ERROR of its claims, and ends no other."""
    return not isinstance(failure, MoeTheoryError) or isinstance(failure, DeclarationError)


def reason_of(failure: BaseException) -> str:
    """The reason of an ERROR, with the line of the user's code that raised it."""
    return f"{described(failure)}{_nearest(failure)}{frames(failure)}"


def _nearest(failure: BaseException) -> str:
    """Suggestion for a mistyped attribute."""
    if not isinstance(failure, AttributeError) or failure.name is None:
        return ""
    fields = getattr(failure.obj, "_fields", ())
    known = fields or [name for name in dir(failure.obj) if not name.startswith("_")]
    near = difflib.get_close_matches(failure.name, known, n=1)
    listed = f". Known: {', '.join(known)}." if fields else ""
    return f". Did you mean {near[0]!r}?" if near else listed


class _ReadRuns(Mapping[str, Run]):
    """Runs by name that remember which of them were read, and give parameters alone of those that are `random`."""

    def __init__(self, runs: Runs, random: Set[str] = frozenset()) -> None:
        self._runs, self._random = runs, random
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        if name not in self._runs:
            raise unknown_name("cell", name, self._runs)
        self.read.add(name)
        return _Parameters(name, self._runs[name]) if name in self._random else self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


class _Parameters:
    """A run of which what random numbers enter is an error to read."""

    def __init__(self, name: str, run: Run) -> None:
        self._name = name
        self.params, self.rounds, self.replicates, self.dims = run.params, run.rounds, run.replicates, run.dims

    def __getattr__(self, field: str) -> Any:
        raise DeclarationError(
            f"it reads {field} of {self._name!r}, which random numbers enter, and is declared exact. Leave out `exact`."
        )
