"""Verification: what is asked for, and its report once every claim is decided or the budget spent.

The claims of one experiment share its runs. Of a run nothing stays but the samples that claims take from it, so that
memory grows with the claims' components and not with the states, and samples can be kept on disk to go on from.
"""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidRunError
from moe_theory.core.random import root_key
from moe_theory.runs import Progress, Run, quiet
from moe_theory.runs.provenance import is_x64, now, versions
from moe_theory.verify import registry
from moe_theory.verify.archive import Archive
from moe_theory.verify.claim import Claim
from moe_theory.verify.course import Course, Job, Request, blank_for, twins_of
from moe_theory.verify.sequential import Trial, blank_verdict
from moe_theory.verify.settings import adjusted
from moe_theory.verify.stored import check_asked, reading_for
from moe_theory.verify.verdict import Report, Stop, Verdict

FAMILY_ERROR = 0.01  # probability that a report holds any false verdict
MIN_REPLICATES = 30  # below that an asymptotic interval of a mean is not to be trusted


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

    Replicates double until a claim is decided, from a part of its experiment's number on. Claims on stored sweeps
    take their reading, seed and replicates from there.

    Args:
        patterns: ids, globs or papers' names.
        readings: names, `all` or `quick`; None takes each paper's defaults.
        replicates: at most, for every experiment; None takes each experiment's own number, or with a budget any.
        error: probability that any of the verdicts is false, split evenly over them and spent over the looks. Readings
            that an experiment does not tell apart count once.
        budget: seconds after which nothing more is run; claims that are not decided by then stay INCONCLUSIVE.
        settings: parameters by name, set beside every reading's own choices.
        on_verdict: called with each verdict as soon as it stands.
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


def check_request(
    patterns: str | Sequence[str],
    readings: str | Sequence[str] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    budget: float | None = None,
    module: str | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Request:
    """The jobs of a request, before anything runs.

    Raises: as `verify`.
    """
    if replicates is not None and (not isinstance(replicates, (int, np.integer)) or replicates < MIN_REPLICATES):
        raise InvalidRunError(
            f"replicates={replicates} must be a whole number of at least {MIN_REPLICATES}: with fewer, an interval "
            "of a mean is not to be trusted. Raise replicates."
        )
    if not 0 < error < 1:
        raise InvalidRunError(f"error={error} must be in (0, 1): the probability of any false verdict. Change error.")
    if budget is not None and not budget > 0:
        raise InvalidRunError(f"budget={budget} must be above 0 seconds. Raise budget.")
    root_key(seed)
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    readings = [readings] if isinstance(readings, str) else readings
    jobs = plan(registry.select_claims(patterns), readings)
    if not jobs:
        raise InvalidRunError("there is nothing to judge: name at least one claim and one reading, or leave them out.")
    for job in jobs:
        check_asked(job.experiment, replicates, seed)
    jobs = [dataclasses.replace(job, reading=adjusted(job.reading, settings or {}, job.experiment)) for job in jobs]
    return Request(jobs, replicates, seed, error, budget, module)


def plan(claims: Sequence[Claim], readings: Sequence[str] | None) -> list[Job]:
    """Jobs in the order of the claims, each experiment once a reading; each paper takes the named readings it has.

    A claim on a stored sweep is judged under the sweep's.

    Raises: UnknownNameError for a reading that none of the papers has; InvalidRunError for one that a sweep has not.
    """
    jobs: dict[tuple[int, str], Job] = {}
    papers = dict.fromkeys(claim.paper for claim in claims if claim.experiment.stored is None)
    by_paper = registry.readings_by_paper(list(papers), readings) if papers else {}
    for claim in claims:
        is_simulated = claim.experiment.stored is None
        for reading in by_paper[claim.paper] if is_simulated else [reading_for(claim, readings)]:
            job = jobs.setdefault((id(claim.experiment), reading.name), Job(claim.experiment, reading, []))
            job.claims.append(claim)
    return list(jobs.values())


def carry_out(
    request: Request,
    *,
    archive: Archive | None = None,
    progress: Progress = quiet,
    on_verdict: Callable[[Verdict], None] | None = None,
    command: str = "",
) -> Report:
    """Judge what is asked for: the first look of all jobs, then the second of those undecided, and so on.

    Args:
        archive: samples on disk, to go on from and to add to.
        command: what the report says it was made by.
    """
    began, pace, twins = time.monotonic(), {}, twins_of(request.jobs)
    own = dataclasses.replace(request, jobs=[job for place, job in enumerate(request.jobs) if place not in twins])
    courses = [Course(job, own, archive, pace) for job in own.jobs]
    waiting = courses
    while waiting:
        progress.add_work(sum(course.work for course in waiting))
        for course in waiting:
            foreseen = time.monotonic() - began + course.foreseen() + request.reserve
            has_time = request.budget is None or foreseen < request.budget
            for trial in course.look(progress) if has_time else course.stop(Stop.BUDGET):
                if on_verdict is not None:
                    on_verdict(trial.latest)
        waiting = [course for course in waiting if course.undecided]
    return Report(
        verdicts=_verdicts(request, courses, twins, request.error / own.num_verdicts),
        command=command,
        seed=request.seed,
        error=request.error,
        versions=versions(),
        is_x64=is_x64(),
        readings={
            f"{claim.paper}.{job.reading.name}": job.reading.summary for job in request.jobs for claim in job.claims
        },
        budget=request.budget,
        finished=now(),
        seconds={course.name: round(course.seconds, 1) for course in courses},
    )


def _verdicts(request: Request, courses: Sequence[Course], twins: Mapping[int, int], error: float) -> list[Verdict]:
    """The verdicts of all jobs, of twins too, in the order of the claims and of their readings."""
    own = iter(courses)
    by_place: dict[int, list[Verdict]] = {}
    for place, job in enumerate(request.jobs):
        if place not in twins:
            by_place[place] = [trial.latest for trial in next(own).trials]
            continue
        first = request.jobs[twins[place]]
        told = {verdict.claim: verdict for verdict in by_place[twins[place]]}
        by_place[place] = [
            _retold(told[claim.id], blank_for(claim, job.reading, request, error), first.reading.name)
            for claim in job.claims
        ]
    order = {id: place for place, id in enumerate(registry.declared_claims())}
    verdicts = [verdict for place in sorted(by_place) for verdict in by_place[place]]
    return sorted(verdicts, key=lambda verdict: order.get(verdict.claim, len(order)))


def _retold(verdict: Verdict, blank: Verdict, first: str) -> Verdict:
    """The verdict of another reading, under which the same is run."""
    reason = f"{verdict.reason}; the same runs as under {first}: the experiment sets what the two readings differ in"
    replicates = f" --replicates {verdict.replicates}" if " --replicates " in verdict.command else ""
    return dataclasses.replace(verdict, reading=blank.reading, command=blank.command + replicates, reason=reason)


def judge(claim: Claim, reading: str, runs: Mapping[str, Run], seed: int, error: float) -> Verdict:
    """The verdict on one claim from a single look at its experiment's runs, with the whole error."""
    num_replicates = len(next(iter(runs.values())).replicates)
    trial = Trial(claim, blank_verdict(claim, reading, seed, error), num_replicates, is_single_look=True)
    trial.extend(runs)
    if not trial.is_settled:
        trial.look(num_replicates)
    return trial.latest
