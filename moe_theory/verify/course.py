"""Jobs and their course: one experiment under one reading, run look by look until its claims are decided."""

import dataclasses
import time
from collections.abc import MutableMapping, Sequence

from moe_theory.runs import Progress, replicate_rounds, run_cells
from moe_theory.runs.cells import Cell
from moe_theory.verify.archive import Archive
from moe_theory.verify.claim import Claim, Experiment, ReadingLike, Runs
from moe_theory.verify.sequential import Trial, blank_verdict, schedule
from moe_theory.verify.settings import options_of
from moe_theory.verify.stored import runs_of, seed_for
from moe_theory.verify.verdict import Stop, Verdict

UNKNOWN_SECONDS = 3.0  # that a look is taken to need at an experiment of which nothing has been run or compiled


@dataclasses.dataclass(frozen=True)
class Job:
    """One experiment under one reading, and the claims it decides."""

    experiment: Experiment
    reading: ReadingLike
    claims: list[Claim]

    def cells(self) -> list[Cell]:
        """The experiment's cells under the reading."""
        experiment = self.experiment
        return [
            Cell(
                name,
                experiment.system_of(name),
                self.reading.params(**overrides),
                experiment.num_rounds,
                experiment.record_every,
                experiment.observe,
                experiment.start,
                keeps_state=experiment.keeps_state,
            )
            for name, overrides in experiment.cells.items()
        ]


@dataclasses.dataclass(frozen=True)
class Request:
    """What is to be judged, and how long that may take."""

    jobs: list[Job]
    replicates: int | None  # at most
    seed: int
    error: float  # family-wise
    budget: float | None = None  # seconds
    module: str | None = None  # file of the user's own claims, for the commands
    reserve: float = 0.0  # seconds of the budget that are left for what comes after

    @property
    def num_verdicts(self) -> int:
        """How many verdicts share the error."""
        return sum(len(job.claims) for job in self.jobs)


def blank_for(claim: Claim, reading: ReadingLike, request: Request, error: float) -> Verdict:
    """A verdict of the request before anything is known."""
    seed = seed_for(claim.experiment, request.seed)
    return blank_verdict(claim, reading.name, seed, error, request.module, options_of(reading))


def twins_of(jobs: Sequence[Job]) -> dict[int, int]:
    """Places of jobs that would run what an earlier one runs, and its place.

    Two readings may differ in nothing but what an experiment sets itself: it is then one experiment and not two.
    """
    first: dict[tuple[int, str], int] = {}
    places = {}
    for place, job in enumerate(jobs):
        runs = repr([(cell.name, cell.params) for cell in job.cells()])
        earliest = first.setdefault((id(job.experiment), runs), place)
        if earliest != place:
            places[place] = earliest
    return places


class Course:
    """A job look by look.

    Args:
        pace: seconds that a replicate of an experiment has taken, shared by courses so that they can foresee a look.
    """

    def __init__(
        self,
        job: Job,
        request: Request,
        archive: Archive | None = None,
        pace: MutableMapping[Experiment, float] | None = None,
    ) -> None:
        self.job, self.archive, self.seed = job, archive, seed_for(job.experiment, request.seed)
        self.name = f"{job.experiment.name} under {job.reading.name}"
        self.seconds = 0.0
        self.pace = {} if pace is None else pace
        own = job.experiment.replicates
        is_open_ended = request.budget and job.experiment.stored is None
        limit = request.replicates or (None if is_open_ended else own)
        self._looks = schedule(job.experiment, limit)
        self._target = next(self._looks)  # replicates of the next look
        self._cells = job.cells()
        enough = list(schedule(job.experiment, min(limit or own, own)))[-1]
        error = request.error / request.num_verdicts
        self.trials = [Trial(claim, blank_for(claim, job.reading, request, error), enough) for claim in job.claims]
        if archive is not None:
            for trial in self.trials:
                kept = archive.load(trial.claim, job.reading, self.seed)
                if kept is not None:
                    trial.resume(*kept)

    @property
    def undecided(self) -> list[Trial]:
        """The claims that need another look."""
        return [trial for trial in self.trials if not trial.is_settled]

    @property
    def _known(self) -> int:
        """Replicates that all undecided claims have samples of."""
        return min(min(trial.count for trial in self.undecided), self._target)

    @property
    def _needed_cells(self) -> list[Cell]:
        """The cells that the undecided claims look at."""
        seen = [trial.cells for trial in self.undecided]
        needed = set().union(*(cells for cells in seen if cells is not None))
        return self._cells if None in seen else [cell for cell in self._cells if cell.name in needed]

    @property
    def work(self) -> int:
        """Replicate-rounds of the next look."""
        return replicate_rounds(self._needed_cells, self._target - self._known)

    def foreseen(self) -> float:
        """Seconds that the next look will take."""
        share = len(self._needed_cells) / len(self._cells)
        if self.job.experiment not in self.pace and self._known < self._target:
            return UNKNOWN_SECONDS
        return (self._target - self._known) * share * self.pace.get(self.job.experiment, 0.0)

    def look(self, progress: Progress) -> list[Trial]:
        """Run what the next look needs and take it; the trials that it settles."""
        began, undecided, known, cells = time.monotonic(), self.undecided, self._known, self._needed_cells
        if known < self._target:
            self._run(cells, known, undecided, progress)
        for trial in undecided:
            if not trial.is_settled:
                trial.look(self._target)
        spent = time.monotonic() - began
        self.seconds += spent
        if known < self._target:
            share = len(cells) / len(self._cells)
            self.pace[self.job.experiment] = spent / (self._target - known) / share
        following = next(self._looks, None)
        if following is None:
            self.stop(Stop.REPLICATES)
        else:
            self._target = following
        return [trial for trial in undecided if trial.is_settled]

    def stop(self, why: Stop) -> list[Trial]:
        """End undecided; the trials that this settles."""
        undecided = self.undecided
        for trial in undecided:
            trial.stop(why)
        return undecided

    def _run(self, cells: list[Cell], known: int, undecided: list[Trial], progress: Progress) -> None:
        runs = self._taken(cells, known, progress)
        for trial in undecided:
            if trial.count < self._target:
                trial.extend(runs)
                if self.archive is not None and trial.samples is not None:
                    self.archive.save(trial.claim, self.job.reading, self.seed, trial.samples, trial.labels)

    def _taken(self, cells: list[Cell], known: int, progress: Progress) -> Runs:
        """Runs of the cells, of replicates `known` to those of the next look: simulated, or read where they are."""
        count, what = self._target - known, f"{self.name}, replicates {known} to {self._target - 1}"
        experiment = self.job.experiment
        if experiment.measure is not None:
            progress.running(what)
            measured = experiment.measure(cells, known, count, self.seed)
            progress.advance(replicate_rounds(cells, count))
            return measured
        if experiment.stored is None:
            width = experiment.width
            return run_cells(
                cells, count, first=known, seed=self.seed, width=width, progress=progress, what=what, is_announced=True
            )
        progress.running(what)
        runs = runs_of(experiment, [cell.name for cell in cells], known, self._target)
        progress.advance(replicate_rounds(cells, count))
        return runs
