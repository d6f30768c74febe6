"""Verification: a request's studies, look by look, until every claim is decided or the budget spent.

The claims of one experiment share its runs. Only the samples that claims take from a run are kept, so that memory grows
with the claims' components and not with the states, and samples can be kept on disk to resume from.
"""

import time
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any

from moe_theory.runs import Cell, Progress, Run, quiet, replicate_rounds
from moe_theory.runs.provenance import is_x64, now, versions
from moe_theory.verify.claim import Claim, Experiment
from moe_theory.verify.evidence import Archive, find_overflows, take_runs
from moe_theory.verify.interim import SequentialTest
from moe_theory.verify.request import FAMILY_ERROR, Request, Study, blank_verdict, check_request
from moe_theory.verify.statement import bearing
from moe_theory.verify.verdict import Report, Stop, Verdict

UNKNOWN_SECONDS = 3.0  # that a look is taken to need at an experiment of which nothing has been run or compiled


def verify(
    patterns: str | Sequence[str] = "*",
    *,
    readings: str | Sequence[str] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    budget: float | None = None,
    settings: Mapping[str, Any] | None = None,
    progress: Progress = quiet,
    on_verdict: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """Judge claims, by ids or globs, under readings.

    Replicates double until a claim is decided, beginning with a part of its experiment's number. Claims on stored
    sweeps take their reading, seed and replicates from there.

    Args:
        patterns: ids, globs or papers' names.
        readings: names, `all` or `quick`; None takes each paper's defaults.
        replicates: limit for every experiment; None takes each experiment's own number, or with a budget no limit.
        error: probability that any of the verdicts is false, split evenly over them and spent over the looks. A claim
            is judged once for readings that differ in nothing it depends on, and counts once.
        budget: seconds after which nothing more is run; claims that are not decided by then stay INCONCLUSIVE.
        settings: parameters by name, set beside every reading's own choices.
        on_verdict: called with each verdict as soon as its claim is decided.
    Returns: the verdicts, in the order of the claims and their readings.
    Raises: UnknownNameError for a claim or reading that does not exist; InvalidRunError for a number of replicates, an
        error or a budget that decides nothing; InvalidParamsError for settings that the claims cannot take.

    Examples:
        >>> from moe_theory.verify import verify
        >>> verdicts = verify("generalization.lemma-6.growth", readings="quick", replicates=64)
        >>> [(verdict.claim, str(verdict.status)) for verdict in verdicts]
        [('generalization.lemma-6.growth', 'SUPPORTED')]
    """
    request = check_request(patterns, readings, replicates, seed, error, budget, settings=settings)
    return carry_out(request, progress=progress, on_verdict=on_verdict).verdicts


def carry_out(
    request: Request,
    *,
    archive: Archive | None = None,
    progress: Progress = quiet,
    on_verdict: Callable[[Verdict], None] | None = None,
    command: str = "",
) -> Report:
    """Judge what is asked for: the first look of all studies, then the second of those undecided, and so on."""
    began, pace = time.monotonic(), {}
    monitors = [StudyMonitor(study, archive, pace) for study in request.studies]
    waiting = monitors
    while waiting:
        progress.add_work(sum(monitor.work for monitor in waiting))
        for monitor in waiting:
            expected = time.monotonic() - began + monitor.expected_seconds() + request.reserve
            has_time = request.budget is None or expected < request.budget
            for test in monitor.look(progress) if has_time else monitor.stop(Stop.BUDGET):
                if on_verdict is not None:
                    on_verdict(test.latest)
        waiting = [monitor for monitor in waiting if monitor.undecided]
    order = {id: place for place, id in enumerate(request.claims)}
    verdicts = [test.latest for monitor in monitors for test in monitor.tests]
    return Report(
        verdicts=sorted(verdicts, key=lambda verdict: order[verdict.claim]),
        command=command,
        seed=request.seed,
        error=request.error,
        versions=versions(),
        is_x64=is_x64(),
        readings=dict(request.readings),
        budget=request.budget,
        finished=now(),
        seconds={monitor.study.name: round(monitor.seconds, 1) for monitor in monitors},
        statements=bearing(request.claims),
    )


def judge(claim: Claim, reading: str, runs: Mapping[str, Run], seed: int, error: float) -> Verdict:
    """The verdict on one claim from a single look at its experiment's runs, with the whole error."""
    num_replicates = len(next(iter(runs.values())).replicates)
    test = SequentialTest(claim, blank_verdict(claim, reading, seed, error), num_replicates, is_single_look=True)
    test.extend(runs, find_overflows(runs))
    if not test.has_ended:
        test.look(num_replicates)
    return test.latest


class StudyMonitor:
    """A study under way: the tests of its claims, and the next look at them."""

    def __init__(
        self, study: Study, archive: Archive | None = None, pace: MutableMapping[Experiment, float] | None = None
    ) -> None:
        self.study, self.archive = study, archive
        self.seconds = 0.0
        self.pace = {} if pace is None else pace  # seconds a replicate, shared by studies
        self._looks = iter(study.looks)
        self._target = next(self._looks)  # replicates of the next look
        self.tests = [
            SequentialTest(claim, blank, study.least_replicates, between=between)
            for claim, blank, between in zip(study.claims, study.blanks, study.between, strict=True)
        ]
        if archive is not None:
            for test in self.tests:
                kept = archive.load(test.claim, study.reading, study.seed, test.watched)
                if kept is not None:
                    test.resume(*kept)

    @property
    def undecided(self) -> list[SequentialTest]:
        return [test for test in self.tests if not test.has_ended]

    @property
    def work(self) -> int:
        return replicate_rounds(self._needed_cells, self._target - self._known)

    def expected_seconds(self) -> float:
        share = len(self._needed_cells) / len(self.study.cells)
        if self.study.experiment not in self.pace and self._known < self._target:
            return UNKNOWN_SECONDS
        return (self._target - self._known) * share * self.pace.get(self.study.experiment, 0.0)

    def look(self, progress: Progress) -> list[SequentialTest]:
        """Run what the next look needs and take it; the tests that it ends."""
        began, undecided, known, cells = time.monotonic(), self.undecided, self._known, self._needed_cells
        if known < self._target:
            self._sample(cells, known, undecided, progress)
        for test in undecided:
            if not test.has_ended:
                test.look(self._target)
        spent = time.monotonic() - began
        self.seconds += spent
        if known < self._target:
            share = len(cells) / len(self.study.cells)
            self.pace[self.study.experiment] = spent / (self._target - known) / share
        following = next(self._looks, None)
        if following is None:
            self.stop(Stop.REPLICATES)
        else:
            self._target = following
        return [test for test in undecided if test.has_ended]

    def stop(self, why: Stop) -> list[SequentialTest]:
        undecided = self.undecided
        for test in undecided:
            test.stop(why)
        return undecided

    @property
    def _known(self) -> int:
        return min(min(test.count for test in self.undecided), self._target)

    @property
    def _needed_cells(self) -> list[Cell]:
        read = [test.cells for test in self.undecided]
        needed = set().union(*(cells for cells in read if cells is not None))
        return [cell for cell in self.study.cells if None in read or cell.name in needed]

    def _sample(self, cells: list[Cell], known: int, undecided: list[SequentialTest], progress: Progress) -> None:
        study, last = self.study, self._target
        what = f"{study.name}, replicates {known} to {last - 1}"
        runs = take_runs(study.experiment, cells, known, last, study.seed, progress, what)
        overflows = find_overflows(runs)
        for test in undecided:
            if test.count < last:
                test.extend(runs, overflows)
                if self.archive is not None and test.samples is not None:
                    of = (test.claim, study.reading, study.seed)
                    self.archive.save(*of, test.samples, test.labels, test.watched)
