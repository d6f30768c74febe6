"""Sequential looks: when to look, what error a look may spend, and one claim's way to its verdict.

Replicates double from look to look. Look k of a verdict at error a spends a/(k (k + 1)), which adds up to a however
many looks there are, so that a verdict does not depend on when its last look was meant to be.
"""

import dataclasses
import shlex
from collections.abc import Iterator, Mapping

from moe_theory.runs import Run
from moe_theory.runs.provenance import is_x64
from moe_theory.verify import evidence, judgement
from moe_theory.verify.claim import Claim, Experiment, Runs
from moe_theory.verify.evidence import Samples
from moe_theory.verify.stored import origin_of
from moe_theory.verify.verdict import Look, Status, Stop, Verdict

FIRST_SHARE = 32  # the first look is at an experiment's replicates over this,
FIRST_LOOK = 64  # or at so many if that is more
MOST_REPLICATES = 1 << 22  # of a run without another limit


def schedule(experiment: Experiment, limit: int | None = None) -> Iterator[int]:
    """Replicates at the looks: doubling, up to `limit` (None: the doubling goes on).

    A limit below the first look is the only look. One between two looks is not looked at: each limit that is tried
    would be one look more, and nobody would have paid for it.
    """
    count, last = max(experiment.replicates // FIRST_SHARE, FIRST_LOOK), limit or MOST_REPLICATES
    if last < count:
        yield last
    while count <= last:
        yield count
        count *= 2


def look_error(error: float, number: int) -> float:
    """What look `number`, from 1 on, may spend of a verdict's error."""
    return error / (number * (number + 1))


class Watched(Mapping[str, Run]):
    """Runs by name that remember which of them were asked for."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        self.seen: set[str] = set()

    def __getitem__(self, name: str) -> Run:
        self.seen.add(name)
        return self._runs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._runs)

    def __len__(self) -> int:
        return len(self._runs)


class Trial:
    """One claim under one reading on its way to a verdict: its samples so far, and its looks at them."""

    def __init__(self, claim: Claim, blank: Verdict, least_replicates: int, *, is_single_look: bool = False) -> None:
        self.claim = claim
        self.blank = blank
        self.is_single_look = is_single_look  # which has the whole error
        self.least_replicates = least_replicates  # an identity is not supported by fewer: no error is spent by waiting
        self.samples: Samples | None = None
        self.labels: list[str] = []
        self.looks: list[Look] = []
        self.latest: Verdict = blank
        self.is_settled = False
        self.cells: set[str] | None = None  # those of the experiment that the claim looks at; None: not known yet

    @property
    def count(self) -> int:
        """Replicates there are samples of."""
        return 0 if self.samples is None else self.samples.num_replicates

    def resume(self, samples: Samples, labels: list[str]) -> None:
        """Start from samples of replicates 0, 1, ... that were taken before."""
        self.samples, self.labels = samples, labels

    def extend(self, runs: Runs) -> None:
        """Take samples from the runs of further replicates; those known already are passed over."""
        anyone = next(iter(runs.values()))
        replicates, runs = anyone.replicates, Watched(runs)
        try:
            if self.samples is None:
                failed = evidence.failed_hypotheses(self.claim, runs)
                if failed:
                    self._settle(Status.INAPPLICABLE, f"fails here: {'; '.join(failed)}", len(replicates))
                    return
            samples = evidence.collect(self.claim, runs, len(replicates))
            if self.samples is None:
                self.labels = evidence.labels_of(self.claim, runs, anyone.rounds, samples.observed.shape[1])
            self.samples = samples.from_place(self.count - int(replicates[0])).after(self.samples)
            self.cells = runs.seen
        except Exception as failure:  # a claim's own code may do anything; its failure is its verdict and no more
            self._fail(failure, int(replicates[-1]) + 1)

    def look(self, count: int) -> None:
        """Judge the first `count` replicates, at what this look may spend."""
        assert self.samples is not None  # a trial without samples is settled
        error = self.blank.error
        if not self.is_single_look:
            error = look_error(error, len(self.looks) + 1)
        try:
            samples = self.samples.first(count)
            verdict, look = judgement.examine(self.claim, samples, self.labels, error, self.blank)
        except Exception as failure:
            self._fail(failure, count)
            return
        self.looks.append(look)
        self.latest = dataclasses.replace(self._repeatable(verdict, count), looks=list(self.looks))
        is_early = self.claim.kind == "identity" and verdict.status is not Status.REFUTED
        if verdict.status is not Status.INCONCLUSIVE and (not is_early or count >= self.least_replicates):
            self.latest = dataclasses.replace(self.latest, stopped=Stop.DECIDED)
            self.is_settled = True

    def stop(self, why: Stop) -> None:
        """End without a decision."""
        reason = self.latest.reason or "not looked at: the budget was spent before"
        self.latest = dataclasses.replace(self.latest, reason=reason, stopped=why)
        if self.claim.kind == "identity":  # with so few replicates the command would be content
            self.latest = dataclasses.replace(self.latest, status=Status.INCONCLUSIVE, command=self.blank.command)
        self.is_settled = True

    def _fail(self, failure: Exception, count: int) -> None:
        self._settle(Status.ERROR, f"{type(failure).__name__}: {failure}", count)

    def _settle(self, status: Status, reason: str, count: int) -> None:
        stopped = Stop.FAILED if status is Status.ERROR else Stop.DECIDED
        blank = dataclasses.replace(self.blank, status=status, reason=reason, stopped=stopped, looks=list(self.looks))
        self.latest = self._repeatable(blank, count)
        self.is_settled = True

    def _repeatable(self, verdict: Verdict, count: int) -> Verdict:
        return dataclasses.replace(
            verdict,
            reason=f"{verdict.reason}{origin_of(self.claim.experiment)}",
            replicates=count,
            command=f"{self.blank.command} --replicates {count}",
        )


def blank_verdict(
    claim: Claim, reading: str, seed: int, error: float, module: str | None = None, options: str | None = None
) -> Verdict:
    """A verdict before anything is known, at this error; `options` name the reading, unless its name does."""
    options = options or f"--reading {reading}"
    precision = "JAX_ENABLE_X64=1 " if is_x64() else ""
    command = f"{precision}moe-theory verify {claim.id} {options} --seed {seed} --error {error!r}"
    return Verdict(
        claim=claim.id,
        paper=claim.paper,
        where=claim.where,
        statement=claim.statement,
        formula=claim.formula,
        kind=claim.kind,
        reading=reading,
        status=Status.INCONCLUSIVE,
        reason="",
        replicates=0,
        command=f"{command} --module {shlex.quote(module)}" if module else command,
        error=error,
        replaced_by=claim.replaced_by,
        side=claim.side,
        data=claim.experiment.data,
    )
