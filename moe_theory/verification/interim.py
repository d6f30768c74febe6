"""Interim analyses, with their sample sizes and errors, and the sequential test of a claim.

The number of replicates doubles. Analysis k of a verdict with error a has error a/(k (k + 1)). The sum is at most a.
"""

import dataclasses
from collections.abc import Mapping, Set

from moe_theory.core.errors import OWN_CODE, described, frames
from moe_theory.verification.claim import Claim, Runs
from moe_theory.verification.criteria import Identity, Samples
from moe_theory.verification.evidence import BrokenHypothesisError, collect_sample
from moe_theory.verification.intervals import is_dependent
from moe_theory.verification.verdict import Look, Status, Stop, Verdict

FIRST_PART = 32  # the first analysis has a 32nd part of the experiment's replicates
LEAST_FIRST = 64  # fewest replicates of the first analysis
MOST_REPLICATES = 1 << 22  # limit of replicates if there is no other


def look_sizes(replicates: int, limit: int | None = None) -> tuple[int, ...]:
    """Return the doubling sample sizes of the interim analyses, up to `limit` or `MOST_REPLICATES`.

    A limit below the first size is the only size. A limit between two sizes is not a size itself.
    """
    first = max(replicates // FIRST_PART, LEAST_FIRST)
    last = limit or MOST_REPLICATES
    if last < first:
        return (last,)
    return tuple(first << doublings for doublings in range((last // first).bit_length()))


def alpha_spent(error: float, number: int) -> float:
    """Return the share of a verdict's error for interim analysis `number`, counted from 1."""
    return error / (number * (number + 1))


def examine(claim: Claim, samples: Samples, labels: list[str], error: float, blank: Verdict) -> tuple[Verdict, Look]:
    """Return `blank` with the results of these samples, and the interim analysis.

    Intervals that hold at all interim analyses together have the error of `blank`. Others have `error`.
    """
    criterion = claim.criterion
    compared = criterion.compared(samples, claim.ranges, claim.is_computed, blank.error)
    verdict, decision = criterion.outcome(compared, labels, error, blank)
    worst = decision.worst
    interval = (float(decision.low[worst]), float(decision.high[worst]))
    precision = "exact" if decision.is_exact else "asymptotic"
    verdict = dataclasses.replace(
        verdict,
        status=decision.status,
        interval=interval,
        interval_kind=f"{precision} ({decision.method})",
        is_exact=decision.is_exact,
        margin=float(decision.margin),
        smallest_discrepancy=float(decision.smallest_discrepancy),
        doubt=decision.doubt,
    )
    if verdict.status is Status.SUPPORTED and compared.trivial is not None:
        trivial = compared.trivial.mean(axis=0)
        if criterion.is_vacuous(compared.predicted.mean(axis=0), trivial):
            verdict = dataclasses.replace(verdict, status=Status.VACUOUS, trivial=float(trivial[worst]))
    estimate = verdict.observed - verdict.predicted
    look = Look(samples.num_replicates, verdict.at, estimate, *interval, error=decision.error or error)
    is_decided = verdict.status in {Status.SUPPORTED, Status.REFUTED, Status.VACUOUS}
    is_of_means = not criterion.is_of_instances and not claim.is_computed
    differences = compared.observed - compared.predicted
    if is_decided and is_of_means and any(map(is_dependent, differences.T)):
        doubt = "replicates depend on one another, as replicates with a shared seed do"
        verdict = dataclasses.replace(verdict, status=Status.INCONCLUSIVE, doubt=doubt)
    return verdict, look


class SequentialTest:
    """The test of a claim under a reading, with its samples and interim analyses so far.

    An identity needs `least_replicates` for support. A single analysis has the whole error.
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
        self.claim = claim
        self.blank = blank
        self.random = random
        self.is_single_look = is_single_look
        self.least_replicates = least_replicates
        self.samples: Samples | None = None
        self.labels: list[str] = []
        self.looks: list[Look] = []
        self.latest: Verdict = blank
        self.has_ended = False
        self.cells = None if claim.cells is None else set(claim.cells)  # cells that the claim reads, once known

    @property
    def count(self) -> int:
        return 0 if self.samples is None else self.samples.num_replicates

    def extend(self, runs: Runs, overflows: Mapping[str, str]) -> None:
        replicates = next(iter(runs.values())).replicates
        first = int(replicates[0])
        end = int(replicates[-1]) + 1
        try:
            is_first = self.samples is None
            samples, labels, cells = collect_sample(self.claim, runs, overflows, random=self.random, is_first=is_first)
            self.cells = cells
            if self.count < end:
                num_known = max(self.count - first, 0)  # replicates of these runs that `samples` has already
                self.labels = self.labels or labels
                self.samples = samples.rows(slice(num_known, None)).after(self.samples)
        except BrokenHypothesisError as broken:
            self._end(Status.INAPPLICABLE, Stop.DECIDED, str(broken), end)
        except OWN_CODE as failure:  # the claim's own code fails, so only this claim becomes an ERROR
            self.fail(failure, end)

    def look(self, count: int) -> None:
        """Test the claim on the first `count` replicates, at the error of this analysis."""
        assert self.samples is not None  # otherwise the test has ended
        error = self.blank.error if self.is_single_look else alpha_spent(self.blank.error, len(self.looks) + 1)
        try:
            samples = self.samples.rows(slice(count))
            verdict, look = examine(self.claim, samples, self.labels, error=error, blank=self.blank)
        except OWN_CODE as failure:
            self.fail(failure, count)
            return
        self.looks.append(look)
        self.latest = dataclasses.replace(self._repeatable(verdict, count), looks=list(self.looks))
        needs_least = self.claim.kind == Identity.kind and verdict.status is not Status.REFUTED
        if verdict.status is not Status.INCONCLUSIVE and (not needs_least or count >= self.least_replicates):
            self.latest = dataclasses.replace(self.latest, stopped=Stop.DECIDED)
            self.has_ended = True

    def stop(self, why: Stop) -> None:
        reason = self.latest.reason
        if not self.looks:  # only a budget stops a test so early
            reason = "not tested: the budget ended before its first analysis"
        self.latest = dataclasses.replace(self.latest, reason=reason, stopped=why)
        if self.claim.kind == Identity.kind:  # with fewer than `least_replicates` it is not supported
            self.latest = dataclasses.replace(self.latest, status=Status.INCONCLUSIVE, command=self.blank.command)
        self.has_ended = True

    def fail(self, failure: BaseException, count: int) -> None:
        self._end(Status.ERROR, Stop.FAILED, f"{described(failure)}{frames(failure)}", count)

    def _end(self, status: Status, stopped: Stop, reason: str, count: int) -> None:
        blank = dataclasses.replace(self.blank, status=status, reason=reason, stopped=stopped, looks=list(self.looks))
        self.latest = self._repeatable(blank, count)
        self.has_ended = True

    def _repeatable(self, verdict: Verdict, count: int) -> Verdict:
        command = f"{self.blank.command} --replicates {count}"
        return dataclasses.replace(verdict, replicates=count, command=command)
