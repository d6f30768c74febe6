"""Verification of a request's studies in interim analyses, until all claims are decided or the budget is spent."""

import contextlib
import functools
import itertools
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path

from moe_theory.core.errors import OWN_CODE
from moe_theory.runs import Cell, Progress, automatic, quiet, replicate_rounds, shown
from moe_theory.runs.cells import CellBatch
from moe_theory.runs.provenance import is_x64, now, versions
from moe_theory.runs.runner import Runner, run_within
from moe_theory.runs.workers import WorkerPool, num_device_workers
from moe_theory.verification.archive import Archive
from moe_theory.verification.claim import Runs
from moe_theory.verification.evidence import find_nan_runs, is_of_study
from moe_theory.verification.interim import SequentialTest
from moe_theory.verification.proofs import require_proofs
from moe_theory.verification.remote import remote_calls, remote_pool
from moe_theory.verification.request import Request, Study, check_request
from moe_theory.verification.statement import statements_tested_by
from moe_theory.verification.variant import Parts, without_texts
from moe_theory.verification.verdict import Report, Stop, Verdict, Verdicts

SAMPLES = "samples"  # the folder of samples, next to the report
STUDIES_AHEAD = 2  # studies that begin in addition to one per worker, so that no worker waits
PART_BYTES = 1 << 30  # bytes of runs that an analysis reads at once, if the bytes per replicate are known
OnVerdict = Callable[[Verdict], None]


def verify(
    patterns: str | Sequence[str] = "*",
    *,
    readings: str | Sequence[str] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    error: float | None = None,
    budget: float | None = None,
    settings: Mapping[str, float | str] | None = None,
    system: str | Parts | None = None,
    folder: str | os.PathLike[str] | None = None,
    executor: Executor | None = None,
    dask: str | None = None,
    progress: Progress = automatic,
    on_verdict: OnVerdict = lambda verdict: None,
) -> Verdicts:
    """Test claims under readings, with a doubling number of replicates until each claim is decided.

    Args:
        patterns: ids, globs or names of papers.
        readings: names, `all` or `quick`. The default is each paper's default readings.
        replicates: limit for every experiment. The default is its own number, or no limit if there is a budget.
        seed: the seed of all random numbers.
        error: probability that any verdict is false, split evenly over verdicts and then over interim analyses. None is
            0.01, of which each verdict has 1 / `Paper.most_verdicts` in any request.
        budget: seconds. Afterwards no run begins, simulations are abandoned, and open claims stay INCONCLUSIVE.
        settings: parameters by name, in addition to each reading's choices.
        system: your own algorithm, given as parts by their names in the paper's `system`, such as {"router": mine}, or
            as "FILE:NAME" of such a mapping. Its verdicts cannot be published, and some claims are INAPPLICABLE.
        folder: the folder of saved samples, from which a later call or `moe-theory verify --out FOLDER` resumes.
        executor: a `concurrent.futures.Executor` whose workers can import this package and the papers. It stays open,
            and measured runs stay in this process.
        dask: in place of `executor`, the address of a Dask scheduler, or "local:N" for N processes. Anyone who controls
            the scheduler can run any code here and on its workers.
        progress: a listener. By default progress is a line in a notebook, and otherwise on standard error.
        on_verdict: called with each verdict once its claim is decided.
    Returns: the verdicts, by claim and reading.
    Raises: UnknownNameError for an unknown claim, reading or part. InvalidValueError for an impossible argument, or
        workers whose samples would differ. WorkersError for unreachable or lost workers. DeclarationError for parts
        that cannot run or a failing proof. DamagedError for a damaged record. OutputError for an unwritable folder.

    Examples:
        >>> from moe_theory.verification import verify
        >>> verdicts = verify("generalization.lemma-6.growth", readings="quick", replicates=64)
        >>> [(verdict.claim, str(verdict.status)) for verdict in verdicts]
        [('generalization.lemma-6.growth', 'SUPPORTED')]
    """
    request = check_request(
        patterns, readings, replicates, seed=seed, error=error, budget=budget, settings=settings, system=system
    )
    pool = remote_pool(request.studies, executor, dask)
    archive = None if folder is None else Archive(Path(folder) / SAMPLES)
    command = f"moe_theory.verify({patterns!r})"
    with shown(progress) as meter:
        report = carry_out(request, archive=archive, pool=pool, progress=meter, on_verdict=on_verdict, command=command)
    return Verdicts(report)


def carry_out(
    request: Request,
    *,
    archive: Archive | None = None,
    pool: WorkerPool | None = None,
    progress: Progress = quiet,
    on_verdict: OnVerdict = lambda verdict: None,
    command: str = "",
) -> Report:
    """Test the claims of a request by threads of this process, or by a pool, which is closed at the end."""
    statements = statements_tested_by(request.claims)
    require_proofs(statements)
    if request.own is not None:
        statements = [without_texts(statement) for statement in statements]
    deadline = math.inf if request.budget is None else time.monotonic() + request.budget - request.reserve
    closing = contextlib.nullcontext() if pool is None else contextlib.closing(pool)
    with closing:
        if pool is not None:
            pool.fingerprint(versions)  # raises if a worker has other versions
        monitors = [StudyMonitor(study, archive, pool) for study in request.studies]
        take_looks(monitors, progress, on_verdict, deadline)
    order = {id: place for place, id in enumerate(request.claims)}
    tests = itertools.chain.from_iterable(monitor.tests for monitor in monitors)
    verdicts = [*request.inapplicable, *(test.latest for test in tests)]
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
        statements=statements,
    )


def take_looks(
    monitors: Sequence["StudyMonitor"], progress: Progress, on_verdict: OnVerdict, deadline: float = math.inf
) -> None:
    """Analyse studies until all tests have ended, or until a given time on the monotonic clock.

    Several studies run at once, those with fewer analyses first. Measured runs run alone.
    """
    pool = next((monitor.pool for monitor in monitors), None)  # all monitors have the same pool
    places = {monitor: place for place, monitor in enumerate(monitors)}
    with Runner(pool, progress) as runner:
        _Looks(runner, on_verdict, places).take(deadline)


class _Looks:  # interim analyses of studies, of which some are under way and others wait
    def __init__(self, runner: Runner, on_verdict: OnVerdict, places: Mapping["StudyMonitor", int]) -> None:
        self._runner = runner
        self._on_verdict = on_verdict
        self._places = places
        self._waiting = list(places)
        self._under_way: list[StudyMonitor] = []

    def take(self, deadline: float) -> None:
        while deadline > time.monotonic():
            self._begin(deadline)
            if not self._under_way or deadline <= time.monotonic():  # measured runs take time as they begin
                break
            if not any(monitor.is_ready for monitor in self._under_way):
                for result in self._runner.wait(_seconds_until(deadline)):
                    monitor = result.job
                    if monitor in self._under_way:  # its study may have failed meanwhile
                        self._try(monitor, functools.partial(monitor.batch.take, result))
            ready = [monitor for monitor in self._under_way if monitor.is_ready]
            for monitor in ready:
                self._try(monitor, monitor.look)
        if self._under_way:
            self._runner.abandon()
        for monitor in sorted([*self._under_way, *self._waiting], key=self._places.__getitem__):
            self._report(monitor.end(lambda test: test.stop(Stop.BUDGET)))

    def _rank(self, monitor: "StudyMonitor") -> tuple[int, ...]:
        """Return a sort key. Studies with fewer analyses are first, and of these measured ones are last."""
        place = self._places[monitor]
        if monitor.pool is None:
            return monitor.num_looks, int(monitor.is_alone), place
        return int(monitor.is_alone), monitor.num_looks, place  # remote workers never wait for measurements here

    def _begin(self, deadline: float) -> None:
        most_under_way = self._runner.pool.num_workers + STUDIES_AHEAD
        self._waiting.sort(key=self._rank)
        while self._waiting and len(self._under_way) < most_under_way:
            monitor = self._waiting[0]
            # Measured runs begin when no other study is under way, and other studies wait for them.
            if self._under_way and any(other.is_alone for other in (monitor, *self._under_way)):
                return
            self._under_way.append(self._waiting.pop(0))
            self._try(monitor, functools.partial(monitor.begin, self._runner, self._rank(monitor), deadline))
            self._waiting.sort(key=self._rank)

    def _try(self, monitor: "StudyMonitor", step: Callable[[], Sequence[SequentialTest] | None]) -> None:
        """Take a step of a study. An analysis returns the tests that it ends, and other steps return None."""
        try:
            ended = step()
        except OWN_CODE as failure:
            if not is_of_study(failure):
                raise
            self._runner.drop(monitor)
            ended = monitor.fail(failure)
        if ended is not None:
            self._under_way.remove(monitor)
            self._report(ended)
            if monitor.undecided:
                self._waiting.append(monitor)

    def _report(self, ended: Sequence[SequentialTest]) -> None:
        for test in ended:
            self._on_verdict(test.latest)


def _seconds_until(deadline: float) -> float | None:
    """Return the time left, or None if it is unlimited."""
    return None if deadline == math.inf else max(deadline - time.monotonic(), 0.0)


class StudyMonitor:  # the tests of a study, and the runs for their next analysis
    def __init__(self, study: Study, archive: Archive | None = None, pool: WorkerPool | None = None) -> None:
        self.study = study
        self.archive = archive
        self.pool = pool  # remote workers
        self.seconds = 0.0
        self.num_looks = 0
        self.batch: CellBatch | None = None  # chunks of the current runs
        self._measured: Runs | None = None  # current runs that are measured, not simulated
        self._looks = iter(study.looks)
        self._target = next(self._looks)  # replicates of the next analysis
        if archive is not None:  # raises before anything runs if a value in a claim's code has no key
            for claim in study.claims:
                archive.keys.of(claim, study.reading, study.seed)
        self._bytes_per_replicate = 0.0  # unknown before anything has run
        self.tests = [
            SequentialTest(claim, blank, study.least_replicates, random=study.random)
            for claim, blank in zip(study.claims, study.blanks, strict=True)
        ]

    @property
    def undecided(self) -> list[SequentialTest]:
        return [test for test in self.tests if not test.has_ended]

    @property
    def is_alone(self) -> bool:
        return self.study.experiment.measured is not None  # other studies would disturb measured times

    @property
    def is_ready(self) -> bool:
        return self.batch is None or self.batch.is_finished

    def begin(self, runner: Runner, rank: tuple[int, ...], deadline: float) -> None:
        """Begin the runs for the next analysis, if it needs any. Measured runs end before it returns."""
        study = self.study
        for test in self.undecided:
            if self.archive is not None and test.samples is None:
                saved = self.archive.load(test.claim, study.reading, study.seed)
                if saved is not None:
                    test.samples, test.labels = saved
        first = self._num_sampled
        count = self._part_end - first
        if count <= 0:
            return
        cells = self._needed_cells
        words = f"{study.name}, replicates {first} to {first + count - 1}"
        measured = study.experiment.measured
        if measured is not None:
            runner.progress.running(words)
            start_time = time.monotonic()
            call = functools.partial(measured.make, cells, first, count, study.seed)
            self._measured = run_within(call, _seconds_until(deadline))
            self.seconds += time.monotonic() - start_time
            return
        width = study.experiment.width
        call_of = None if self.pool is None else remote_calls(study)
        self.batch = CellBatch(cells, count, first=first, seed=study.seed, width=width, call_of=call_of)
        runner.add(self, self.batch.tasks(), replicate_rounds(cells, count), words, rank)

    def look(self) -> list[SequentialTest]:
        """Analyse the runs after the study `is_ready`, and return the tests that end."""
        start_time = time.monotonic()
        undecided = self.undecided
        first = self._num_sampled
        end = self._part_end
        runs = self._measured if self.batch is None else self.batch.runs()
        if runs is not None:
            overflows = find_nan_runs(runs)
            incomplete = [test for test in undecided if test.count < end]  # others have saved samples
            for test in incomplete:
                test.extend(runs, overflows)
                if self.archive is not None and test.samples is not None:
                    self.archive.save(test.claim, self.study.reading, self.study.seed, test.samples, test.labels)
        is_whole = end == self._target  # otherwise further runs are needed before the analysis
        for test in undecided:
            if is_whole and not test.has_ended:
                test.look(self._target)
        self.seconds += time.monotonic() - start_time
        if self.batch is not None:
            num_workers = num_device_workers() if self.pool is None else self.pool.num_workers
            self.seconds += self.batch.seconds / num_workers
            self._bytes_per_replicate = self.batch.num_bytes / (end - first)
        self.batch = None
        self._measured = None
        if is_whole:
            self.num_looks += 1
            following = next(self._looks, None)
            if following is None:
                self.end(lambda test: test.stop(Stop.REPLICATES))
            else:
                self._target = following
        return [test for test in undecided if test.has_ended]

    def fail(self, failure: BaseException) -> list[SequentialTest]:
        self.batch = None
        return self.end(lambda test: test.fail(failure, self._target))

    def end(self, end_test: Callable[[SequentialTest], None]) -> list[SequentialTest]:
        undecided = self.undecided
        for test in undecided:
            end_test(test)
        return undecided

    @property
    def _num_sampled(self) -> int:
        return min(self._target, *(test.count for test in self.undecided))

    @property
    def _needed_cells(self) -> list[Cell]:
        needed: set[str] = set()
        for test in self.undecided:
            if test.cells is None:  # not known yet
                return list(self.study.cells)
            needed |= test.cells
        return [cell for cell in self.study.cells if cell.name in needed]

    @property
    def _part_end(self) -> int:
        if not self._bytes_per_replicate:  # not known yet
            return self._target
        # The number of replicates in the first sample is doubled as long as their runs fit into PART_BYTES.
        first_size = self.study.looks[0]
        num_fitting = int(PART_BYTES / (self._bytes_per_replicate * first_size))  # first samples that fit
        doublings = max(num_fitting.bit_length() - 1, 0)
        return min(self._num_sampled + (first_size << doublings), self._target)
