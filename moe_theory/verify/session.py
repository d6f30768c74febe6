"""Verification: run the experiments that claims need, each once a reading, and judge."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import InvalidClaimError, InvalidRunError
from moe_theory.core.random import root_key
from moe_theory.sweep import Progress, Run, quiet, replicate_rounds, run_cells
from moe_theory.sweep.chunks import Cell
from moe_theory.verify import registry, statistics
from moe_theory.verify.claim import Claim, Experiment, ReadingLike, Runs
from moe_theory.verify.verdict import Curve, Status, Verdict

FAMILY_ERROR = 0.01  # probability that a report holds any false verdict
MIN_REPLICATES = 30  # below that an asymptotic interval of a mean is not to be trusted


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
                experiment.system,
                self.reading.params(**overrides),
                experiment.num_rounds,
                experiment.record_every,
                experiment.observe,
                experiment.start,
            )
            for name, overrides in experiment.cells.items()
        ]


def verify(
    patterns: str | Sequence[str] = "*",
    *,
    readings: str | Sequence[str] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
    progress: Progress = quiet,
    on_verdict: Callable[[Verdict], None] | None = None,
) -> list[Verdict]:
    """Judge claims, by ids or globs, under readings.

    Args:
        patterns: ids, globs or papers' names.
        readings: names, `all` or `quick`; None takes each paper's defaults.
        replicates: for every experiment; None takes each experiment's own number.
        error: probability that any of the verdicts is false, split evenly over them.
        on_verdict: called with each verdict as soon as it stands.
    Returns: the verdicts, in the order of the claims and their readings.
    Raises: UnknownNameError for a claim or reading that does not exist; InvalidRunError for a number of replicates or
        an error that decides nothing.
    """
    jobs = check_request(patterns, readings, replicates, seed, error)
    num_verdicts = sum(len(job.claims) for job in jobs)
    progress.add_work(sum(replicate_rounds(job.cells(), replicates or job.experiment.replicates) for job in jobs))
    verdicts = []
    for job in jobs:
        for verdict in judge_job(job, replicates, seed, error / num_verdicts, progress):
            verdicts.append(verdict)
            if on_verdict is not None:
                on_verdict(verdict)
    order = {id: place for place, id in enumerate(registry.all_claims())}
    return sorted(verdicts, key=lambda verdict: order[verdict.claim])


def check_request(
    patterns: str | Sequence[str],
    readings: str | Sequence[str] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    error: float = FAMILY_ERROR,
) -> list[Job]:
    """The jobs of a request, before anything runs.

    Raises: as `verify`.
    """
    if replicates is not None and (not isinstance(replicates, (int, np.integer)) or replicates < MIN_REPLICATES):
        raise InvalidRunError(
            f"replicates={replicates} must be a whole number of at least {MIN_REPLICATES}: with fewer, an interval "
            "of a mean is not to be trusted. Raise replicates."
        )
    if not 0 < error < 1:
        raise InvalidRunError(f"error={error} must be in (0, 1): the probability of any false verdict. Mend error.")
    root_key(seed)
    patterns = [patterns] if isinstance(patterns, str) else list(patterns)
    readings = [readings] if isinstance(readings, str) else readings
    jobs = plan(registry.select_claims(patterns), readings)
    if not jobs:
        raise InvalidRunError("there is nothing to judge: name at least one claim and one reading, or leave them out.")
    return jobs


def plan(claims: Sequence[Claim], readings: Sequence[str] | None) -> list[Job]:
    """Jobs in the order of the claims, each experiment once a reading; each paper takes the named readings it has.

    Raises: UnknownNameError for a reading that none of the papers has.
    """
    jobs: dict[tuple[int, str], Job] = {}
    by_paper = registry.readings_by_paper(list(dict.fromkeys(claim.paper for claim in claims)), readings)
    for claim in claims:
        for reading in by_paper[claim.paper]:
            job = jobs.setdefault((id(claim.experiment), reading.name), Job(claim.experiment, reading, []))
            job.claims.append(claim)
    return list(jobs.values())


def judge_job(
    job: Job, replicates: int | None, seed: int, error: float, progress: Progress = quiet
) -> Iterator[Verdict]:
    """Run a job's experiment, whose work `progress` knows of, and judge its claims at the same error probability."""
    experiment = job.experiment
    runs = run_cells(
        job.cells(),
        replicates or experiment.replicates,
        seed=seed,
        progress=progress,
        what=f"{experiment.name} under {job.reading.name}",
        is_announced=True,
    )
    for claim in job.claims:
        yield judge(claim, job.reading.name, runs, seed, error)


def judge(claim: Claim, reading: str, runs: Mapping[str, Run], seed: int, error: float) -> Verdict:
    """The verdict on one claim from its experiment's runs."""
    num_replicates = len(next(iter(runs.values())).replicates)
    blank = Verdict(
        claim=claim.id,
        paper=claim.paper,
        where=claim.where,
        statement=claim.statement,
        kind=claim.kind,
        reading=reading,
        status=Status.ERROR,
        reason="",
        replicates=num_replicates,
        command=f"moe-theory verify {claim.id} --reading {reading} --replicates {num_replicates} --seed {seed} "
        f"--error {error:.6g}",
        error=error,
        replaced_by=claim.replaced_by,
        side=claim.side,
    )
    try:
        failed = [text for text, holds in _call(claim.hypotheses, [], claim.experiment.dims, runs) if not holds]
        if failed:
            return dataclasses.replace(blank, status=Status.INAPPLICABLE, reason=f"fails here: {'; '.join(failed)}")
        return _judge_applicable(claim, runs, blank)
    except Exception as failure:  # a claim's own code may do anything; its failure is its verdict, not the report's end
        return dataclasses.replace(blank, reason=f"{type(failure).__name__}: {failure}")


def _judge_applicable(claim: Claim, runs: Runs, blank: Verdict) -> Verdict:
    observed = _components(claim, "observe", claim.observe(runs))
    labels = list(_call(claim.labels, _default_labels(claim, runs, observed.shape[1]), runs))
    if len(labels) != observed.shape[1]:
        raise InvalidClaimError(f"{len(labels)} labels for {observed.shape[1]} components")
    evidence = _test(claim, runs, observed, blank.error)
    result, predicted, shown, standard_error = evidence[:4]
    status, worst = result.status, result.worst
    mean_prediction = predicted.mean(axis=0)
    reason = _reason(claim, evidence, labels[worst], mean_prediction[worst])
    trivial = float(claim.side == "at_most") if claim.kind == "probability" else _call(claim.trivial, None, runs)
    if status is Status.SUPPORTED and trivial is not None:
        floor = _broadcast(claim, "trivial", trivial, observed).mean(axis=0)
        is_upper = claim.kind == "upper_bound" or claim.side == "at_most"
        is_no_lower = mean_prediction >= floor if is_upper else mean_prediction <= floor
        if np.all(is_no_lower):
            status = Status.VACUOUS
            reason = (
                f"holds, but the bound {mean_prediction[worst]:.4g} says no more than the trivial {floor[worst]:.4g}"
            )
    return dataclasses.replace(
        blank,
        status=status,
        reason=reason,
        at="slope" if claim.kind == "rate" else labels[worst],
        predicted=evidence.claimed if claim.kind == "rate" else float(mean_prediction[worst]),
        observed=evidence.slope if claim.kind == "rate" else float(shown[worst]),
        standard_error=evidence.slope_error if claim.kind == "rate" else float(standard_error[worst]),
        interval=(float(result.low), float(result.high)),
        interval_kind=_interval_kind(claim, observed, predicted),
        margin=result.margin,
        smallest_discrepancy=result.smallest_discrepancy,
        curve=Curve(
            labels,
            mean_prediction.tolist(),
            shown.tolist(),
            standard_error.tolist(),
            None if claim.abscissa is None else [float(place) for place in claim.abscissa],
        ),
    )


class _Evidence(NamedTuple):
    """A judgement, and what its picture shows of each component."""

    result: statistics.Judgement
    predicted: np.ndarray  # (B, V)
    shown: np.ndarray  # (V,)
    standard_error: np.ndarray  # (V,)
    slope: float = float("nan")  # of a rate
    slope_error: float = float("nan")
    claimed: float = float("nan")  # its exponent


def _test(claim: Claim, runs: Runs, observed: np.ndarray, error: float) -> _Evidence:
    if claim.kind == "identity":
        result = statistics.judge_identity(observed, claim.margin, error)
        return _Evidence(
            result, np.zeros_like(observed), np.abs(observed).max(axis=0), np.full(observed.shape[1], np.nan)
        )
    if claim.kind == "rate":
        return _test_rate(claim, _call(claim.predict, None, runs), observed, error)
    predicted = _broadcast(claim, "predict", _call(claim.predict, None, runs), observed)
    shown = observed.mean(axis=0)
    if claim.kind == "probability":
        if not np.all((observed == 0) | (observed == 1)):
            raise InvalidClaimError("observe gave values other than True and False, and an event happens or does not")
        at_most = claim.side == "at_most"
        result = statistics.judge_probability(observed, predicted.mean(axis=0), claim.margin, error, at_most=at_most)
        return _Evidence(result, predicted, shown, statistics.mean_and_error(observed)[1])
    scale = _broadcast(claim, "scale", _call(claim.scale, np.abs(predicted), runs), observed)
    result = _judge_means(claim.kind, observed, predicted, scale * claim.margin, error)
    return _Evidence(result, predicted, shown, statistics.mean_and_error(observed - predicted)[1])


def _judge_means(
    kind: str, observed: np.ndarray, predicted: np.ndarray, allowed: np.ndarray, error: float
) -> statistics.Judgement:
    if kind == "equality":
        return statistics.judge_equality(observed, predicted, allowed, error)
    if kind in {"lower_bound", "at_least"}:
        flipped = statistics.judge_upper_bound(-observed, -predicted, allowed, error)
        return flipped._replace(low=-flipped.high, high=-flipped.low)
    return statistics.judge_upper_bound(observed, predicted, allowed, error, is_strict=kind == "ordering")


def _test_rate(claim: Claim, predicted: Any, observed: np.ndarray, error: float) -> _Evidence:
    """Test the slope; the picture shows the means, and the claimed power law through their middle."""
    abscissa = np.asarray(claim.abscissa, np.float64)
    if abscissa.shape != observed.shape[1:]:
        raise InvalidClaimError(f"{len(abscissa)} grid points for {observed.shape[1]} components")
    slopes = statistics.slope_samples(observed, abscissa)
    claimed, allowed = _broadcast(claim, "predict", predicted, slopes), np.full_like(slopes, claim.margin)
    result = _judge_means(claim.side or "", slopes, claimed, allowed, error)
    exponent = float(claimed.mean())
    means = observed.mean(axis=0)
    law = np.exp(np.mean(np.log(means)) + exponent * (np.log(abscissa) - np.mean(np.log(abscissa))))
    return _Evidence(
        result,
        np.broadcast_to(law, observed.shape),
        means,
        statistics.mean_and_error(observed)[1],
        slope=float(slopes.mean()),
        slope_error=float(statistics.mean_and_error(slopes - claimed)[1][0]),
        claimed=exponent,
    )


def _reason(claim: Claim, evidence: _Evidence, label: str, predicted: float) -> str:
    result, observed = evidence.result, evidence.shown[evidence.result.worst]
    if claim.kind == "identity" and result.status is Status.REFUTED:
        return f"largest error {observed:.3g} exceeds {result.margin:.3g} at {label}"
    if claim.kind == "identity":
        rare = result.smallest_discrepancy
        return f"largest error {observed:.3g} is within {result.margin:.3g}; a worse one is rarer than {rare:.2g}"
    interval = f"in [{result.low:.4g}, {result.high:.4g}]"
    sides = f"{(claim.side or '').replace('_', ' ')} "
    if claim.kind == "rate":
        about = f"slope {evidence.slope:.3g}, claimed {sides}{evidence.claimed:.3g}: difference {interval}"
    elif claim.kind == "probability":
        about = f"at {label} frequency {observed:.4g}, claimed {sides}{predicted:.4g}: difference {interval}"
    else:
        about = f"at {label} observed - predicted = {observed - predicted:.4g}, {interval}"
    return f"{about}, margin {result.margin:.3g}" if result.margin else about


def _interval_kind(claim: Claim, observed: np.ndarray, predicted: np.ndarray) -> str:
    if claim.kind == "identity":
        return "exact (largest error seen)"
    if claim.kind == "probability":
        return "exact (Clopper-Pearson, Bonferroni)"
    if claim.kind == "rate":
        samples = statistics.slope_samples(observed, np.asarray(claim.abscissa, np.float64))
    else:
        samples = observed - predicted
    warning = "; skewed: take more replicates" if statistics.is_skewed(samples) else ""
    method = "delta method" if claim.kind == "rate" else "Bonferroni"
    return f"asymptotic (Student's t, {method}{warning})"


def _call(function: Callable | None, default: Any, *arguments: Any) -> Any:
    return default if function is None else function(*arguments)


def _components(claim: Claim, name: str, values: Any) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InvalidClaimError(f"{name} gave shape {np.shape(values)}, not (replicates,) or (replicates, components)")
    if not np.all(np.isfinite(array)):
        raise InvalidClaimError(f"{name} gave {np.sum(~np.isfinite(array))} values that are not finite")
    return array


def _broadcast(claim: Claim, name: str, values: Any, observed: np.ndarray) -> np.ndarray:
    array = np.asarray(values, np.float64)
    if array.ndim == 1 and observed.shape[1] == 1 and len(array) == len(observed):
        array = array[:, None]
    try:
        array = np.broadcast_to(array, observed.shape)
    except ValueError:
        raise InvalidClaimError(
            f"{name} gave shape {np.shape(values)}, which does not broadcast to {observed.shape}"
        ) from None
    if not np.all(np.isfinite(array)):
        raise InvalidClaimError(f"{name} gave values that are not finite")
    return array


def _default_labels(claim: Claim, runs: Runs, count: int) -> list[str]:
    if claim.abscissa is not None and len(claim.abscissa) == count:
        return [f"x = {place:.3g}" for place in claim.abscissa]
    rounds = next(iter(runs.values())).rounds
    if len(rounds) == count:
        return [f"t = {time}" for time in rounds]
    return ["mean"] if count == 1 else [f"component {index + 1}" for index in range(count)]
