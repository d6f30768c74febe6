"""Tests of the claims of a preset's figure on networks."""

import dataclasses
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from moe_theory.core.errors import InvalidValueError, shortened, unknown_name
from moe_theory.core.machine import available_cores
from moe_theory.deep import datasets, fitting, own, presets, runs
from moe_theory.deep.datasets import DataSet
from moe_theory.deep.experiments import claims_for
from moe_theory.deep.params import READINGS
from moe_theory.deep.presets import Preset
from moe_theory.deep.runs import EVERY, Plan, RunProgress
from moe_theory.deep.summary import Summary, summarize
from moe_theory.runs import Progress, automatic, shown
from moe_theory.runs.provenance import backend, is_x64, now, versions
from moe_theory.verification.claim import ReadingLike, Runs
from moe_theory.verification.interim import SequentialTest
from moe_theory.verification.request import FAMILY_ERROR, blank_verdict
from moe_theory.verification.verdict import Report, Verdicts

if TYPE_CHECKING:
    import xarray as xr

THREADS = 2  # seeds that run at once on a CPU
FILES = ("results.nc", "summary.json", "verdicts.json", "deep.svg")  # of a judgement, in its folder


@dataclasses.dataclass(frozen=True)
class Judgement:
    """Runs of a preset, and its figure's verdicts.

    Examples:
        >>> from moe_theory import deep
        >>> plan = deep.plan("edge-mnist-small", rounds=2, samples=8, batch=8, epochs=1, test_images=50, replicates=1)
        >>> found = deep.judge(plan)
        >>> isinstance(found, deep.Judgement), len(found.verdicts)  # one seed decides nothing
        (True, 0)
    """

    plan: Plan  # as it was run: with the seeds that its last interim analysis had
    runs: Runs  # by cell: records of every round and seed, (T, ..., B)
    summary: Summary  # of each cell: final measures, paired differences to a baseline, the gate's drive kappa
    verdicts: Verdicts  # which name the data; none of a single seed, or of other cells than the figure's

    def to_xarray(self) -> "xr.Dataset":
        """Return all records (T, ..., B), over cells, rounds, seeds and possibly experts or classes."""
        return runs.dataset(self.plan, self.runs, self.verdicts.source.command)


def preset_for(name: str | None, folder: Path | str | None) -> Preset:
    """Return the preset called `name` on a folder's data set, by default the first on these data.

    Raises: UnknownNameError, MissingError for other contents, DataError, or InvalidValueError where neither names a
        preset.
    """
    data_set = None if folder is None else datasets.found_in(folder)
    if folder is not None and not data_set and name is None:
        raise datasets.missing(folder)
    return presets.on_data(name, data_set)


def plan(
    preset: str | Preset | None = None,
    data: DataSet | Path | str | None = None,
    *,
    network: str | None = None,
    epochs: int | None = None,
    samples: int | None = None,
    batch: int | None = None,
    rounds: int | None = None,
    experts: Sequence[int] | None = None,
    classes: Sequence[int] | None = None,
    test_images: int | None = None,
    reading: str | ReadingLike = "balanced",
    settings: Mapping[str, Any] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    folder: Path | str | None = None,
    every: int = EVERY,
    tell: Callable[..., object] | None = None,
) -> Plan:
    """Return a checked request to `judge`: cells with sizes, data, seeds and parameters.

    Args:
        preset: its name, or one of your own, by default the first on `data`.
        data: a data set, or the folder of its files, by default the preset's, for digits only.
        network: of the experts: a key of `networks.NETWORKS`, or "package.module:name".
        epochs, samples, batch: of an expert on a task: passes, training images, images of a gradient step.
        rounds, experts, classes: T, the compared numbers M, and the classes that are tasks.
        test_images: number of these, evenly spread.
        reading, settings: choices where the papers are silent, and parameters by name over the preset's.
        replicates: seeds for each cell.
        folder, every: where runs are saved, if anywhere, to resume from, and rounds between checkpoints.
        tell: called with lines about the input.
    Raises: UnknownNameError, InvalidValueError, MissingError, DataError, DeclarationError or OutputError for unknown,
        impossible, unreadable or unwritable arguments.

    Examples:
        >>> from moe_theory import deep
        >>> plan = deep.plan("continual-mnist-small", experts=(1, 4, 7), network="mlp", replicates=2)
        >>> list(plan.params())
        ['M = 1', 'M = 4', 'M = 4, no termination', 'M = 7', 'M = 7, no termination']
    """
    place = _folder_of(data)
    resized_preset = _resized(
        preset, place, experts, classes, network=network, epochs=epochs, samples=samples, batch=batch, rounds=rounds
    )
    named_reading = _reading_named(reading)
    images = data if isinstance(data, DataSet) else datasets.load(resized_preset.data, place)  # last: it may take long
    if place is not None and tell is not None:
        tell(*images.lines)
    return Plan(
        preset=resized_preset,
        reading=named_reading,
        replicates=resized_preset.replicates if replicates is None else replicates,
        seed=seed,
        every=every,
        folder=None if folder is None else Path(folder) / "runs",
        settings=settings or {},
        data=fitting.thinned(images, resized_preset.test_images, test_images),
    )


def judge(plan: Plan, *, progress: Progress = automatic, command: str | None = None) -> Judgement:
    """Run a plan and test the claims of its preset's figure on it.

    The claims share one error. A single seed gives no verdicts, and few seeds leave most INCONCLUSIVE. An interim
    analysis follows each of `plan.looks`, and runs end once every claim is decided. Saved runs are not repeated.

    Args:
        progress: where to report, by default standard error.
        command: the command that repeats the verdicts, by default this call.
    Raises: InvalidValueError for diverging experts, OutputError for an unwritable folder, or InvalidValueError,
        DeclarationError and UnknownNameError for a plan changed by hand.

    Examples:
        >>> from moe_theory import deep
        >>> plan = deep.plan("edge-mnist-small", rounds=2, samples=8, batch=8, epochs=1, test_images=50, replicates=2)
        >>> {verdict.data for verdict in deep.judge(plan).verdicts}
        {'digits'}
    """
    tests = _tests(plan)
    records = {}
    threads = min(THREADS, available_cores()) if backend() == "cpu" else 1  # another device is busy with one seed
    with shown(progress) as showing:
        record = _recorder(plan, showing)
        for first, last in zip((0, *plan.looks), plan.looks, strict=False):
            records = runs.joined(records, runs.run_plan(plan, record, threads, range(first, last)))
            if _has_decided(tests, records):
                break
    plan = dataclasses.replace(plan, replicates=len(next(iter(records.values())).replicates))
    if command is None:
        options = {"reading": plan.reading.name, "settings": dict(plan.settings), "seed": plan.seed}
        words = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
        command = f"deep.judge(deep.plan({plan.preset.name!r}, replicates={plan.replicates}, {words}))"
    report = _report(plan, tests, command)
    return Judgement(plan, records, summarize(plan, records), Verdicts(report))


def _folder_of(data: DataSet | Path | str | None) -> Path | None:
    """Return the folder that `data` names, or None for a data set. Raises: InvalidValueError for another type."""
    if not isinstance(data, DataSet | Path | str | None):
        raise InvalidValueError(
            f"data of type {shortened(type(data).__name__)} is no data set and no folder of one. Make one of arrays by "
            "`deep.datasets.from_arrays`."
        )
    return None if data is None or isinstance(data, DataSet) else Path(data)


def _resized(
    preset: str | Preset | None,
    folder: Path | None,
    experts: Sequence[int] | None,
    classes: Sequence[int] | None,
    *,
    network: str | None,
    epochs: int | None,
    samples: int | None,
    batch: int | None,
    rounds: int | None,
) -> Preset:
    return fitting.resized(
        preset if isinstance(preset, Preset) else preset_for(preset, folder),
        _numbers("experts", experts),
        _numbers("classes", classes),
        network=own.network_named(network),
        num_epochs=epochs,
        num_samples=samples,
        batch_size=batch,
        max_rounds=rounds,
    )


def _reading_named(reading: str | ReadingLike) -> ReadingLike:
    if not isinstance(reading, str):
        return reading
    if reading not in READINGS:
        raise unknown_name("reading", reading, READINGS)
    return READINGS[reading]


def _numbers(name: str, numbers: Sequence[int] | None) -> tuple[int, ...] | None:
    try:
        if numbers is None:
            return None
        return tuple(numbers)
    except TypeError:
        complaint = f"{name}={shortened(numbers)} must be a sequence of whole numbers, such as (1, 4)"
        raise InvalidValueError(f"{complaint}. Put it in brackets.") from None


def _tests(plan: Plan) -> list[SequentialTest]:
    claims = claims_for(plan.preset, plan.data.title) if plan.replicates > 1 else []
    errors = FAMILY_ERROR / max(len(claims), 1)
    verdicts = [blank_verdict(claim, plan.setting, plan.seed, errors) for claim in claims]
    is_single_look = len(plan.looks) == 1
    return [
        SequentialTest(claim, verdict, plan.replicates, is_single_look=is_single_look)
        for claim, verdict in zip(claims, verdicts, strict=True)
    ]


def _has_decided(tests: list[SequentialTest], runs: Runs) -> bool:
    undecided = [test for test in tests if not test.has_ended]
    for test in undecided:
        test.extend(runs, {})
        if not test.has_ended:
            test.look(test.count)
    return bool(tests) and all(test.has_ended for test in tests)


def _report(plan: Plan, tests: list[SequentialTest], command: str) -> Report:
    return Report(
        verdicts=[dataclasses.replace(test.latest, command=command) for test in tests],
        command=command,
        seed=plan.seed,
        error=FAMILY_ERROR,
        versions=versions(),
        is_x64=is_x64(),
        readings={f"{test.claim.paper}.{plan.setting}": plan.reading.summary for test in tests},
        finished=now(),
    )


def _recorder(plan: Plan, progress: Progress) -> Callable[[RunProgress], None]:
    lock = threading.Lock()
    num_rounds = plan.preset.num_rounds
    progress.add_work(len(plan.preset.cells()) * plan.replicates * num_rounds)
    progress.running(f"the first {min(plan.every, num_rounds)} rounds")

    def record(step: RunProgress) -> None:
        with lock:
            progress.at(f"{step.cell}, seed {step.replicate}, round {step.done} of {num_rounds}")
            if step.is_begin:  # rounds that an earlier run has saved are no work of this one
                progress.add_work(-step.rounds)
            else:
                progress.advance(step.rounds)
                progress.running("rounds")

    return record
