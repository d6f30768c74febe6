"""Tests of the claims of a preset's figure on networks."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.machine import available_cores
from moe_theory.deep import datasets, presets, runs
from moe_theory.deep.datasets import DataSet, Images
from moe_theory.deep.experiments import claims_for
from moe_theory.deep.params import READINGS
from moe_theory.deep.presets import Preset
from moe_theory.deep.runs import Plan
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


def plan(
    preset: str | Preset,
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
) -> Plan:
    """Return a checked request to `judge`: cells with sizes, data, seeds and parameters.

    Args:
        preset: its name, or one of your own.
        data: a data set, or the folder of its files, by default the preset's, for digits only.
        network: of the experts: a key of `networks.NETWORKS`.
        epochs, samples, batch: of an expert on a task: passes, training images, images of a gradient step.
        rounds, experts, classes: T, the compared numbers M, and the classes that are tasks.
        test_images: number of these, evenly spread.
        reading, settings: choices where the papers are silent, and parameters by name over the preset's.
        replicates: seeds for each cell.
        folder: where runs are saved, if anywhere, to resume from.
    Raises: UnknownNameError, InvalidValueError, MissingError, DataError, DeclarationError or OutputError.

    Examples:
        >>> from moe_theory import deep
        >>> plan = deep.plan("continual-mnist-small", experts=(1, 4, 7), network="mlp", replicates=2)
        >>> list(plan.params())
        ['M = 1', 'M = 4', 'M = 4, no termination', 'M = 7', 'M = 7, no termination']
    """
    resized_preset = resized(
        presets.preset(preset) if isinstance(preset, str) else preset,
        experts,
        classes,
        network=network,
        num_epochs=epochs,
        num_samples=samples,
        batch_size=batch,
        max_rounds=rounds,
    )
    if isinstance(reading, str) and reading not in READINGS:
        raise unknown_name("reading", reading, READINGS)
    images = _images(resized_preset, data)  # last: it may take long
    return Plan(
        preset=resized_preset,
        reading=READINGS[reading] if isinstance(reading, str) else reading,
        replicates=resized_preset.replicates if replicates is None else replicates,
        seed=seed,
        folder=None if folder is None else Path(folder) / "runs",
        settings=settings or {},
        data=thinned(images, resized_preset.test_images, test_images),
    )


def _images(preset: Preset, data: DataSet | Path | str | None) -> DataSet:
    if data is None:
        return datasets.load(preset.data)
    if isinstance(data, DataSet):
        return data
    original = presets.PRESETS.get(preset.name.removesuffix(presets.SMALL), preset)
    return datasets.read_folder(data, original.data)


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
    with shown(progress) as listener:
        for first, last in zip((0, *plan.looks), plan.looks, strict=False):
            records = runs.joined(records, runs.run_plan(plan, listener, threads, range(first, last)))
            if _has_decided(tests, records):
                break
    plan = dataclasses.replace(plan, replicates=len(next(iter(records.values())).replicates))
    if command is None:
        options = {"reading": plan.reading.name, "settings": dict(plan.settings), "seed": plan.seed}
        words = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
        command = f"deep.judge(deep.plan({plan.preset.name!r}, replicates={plan.replicates}, {words}))"
    report = _report(plan, tests, command)
    return Judgement(plan, records, summarize(plan, records), Verdicts(report))


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


def resized(
    preset: Preset, experts: Sequence[int] | None, classes: Sequence[int] | None, **sizes: int | str | None
) -> Preset:
    """Return the preset with other sizes of `Dims`, and batches within the samples."""
    experts = tuple(preset.experts if experts is None else experts)
    classes = tuple(preset.classes if classes is None else classes)
    if not experts or len(set(experts)) < len(experts):
        raise InvalidValueError(
            f"experts={list(experts)} must be one or more different numbers. Change experts.", argument="experts"
        )
    changes: dict[str, Any] = {name: value for name, value in sizes.items() if value is not None}
    changes |= {"num_classes": len(classes), "max_experts": max(experts)}
    samples = changes.get("num_samples", preset.dims.num_samples)
    changes.setdefault("batch_size", min(preset.dims.batch_size, max(samples, 1)))
    return dataclasses.replace(
        preset, dims=dataclasses.replace(preset.dims, **changes), experts=experts, classes=classes
    )


def thinned(data: DataSet, default: int | None, test_images: int | None) -> DataSet:
    """Return the data set with `test_images` test images, evenly spread (None: all)."""
    total = len(data.test.labels)
    if test_images is not None and not 1 <= test_images <= total:
        raise InvalidValueError(
            f"test_images={test_images} must be in 1..{total}, as many as {data.title} has. Change test_images.",
            argument="test_images",
        )
    number = min(test_images or default or total, total)
    if number == total:
        return data
    rows = np.linspace(0, total - 1, number).round().astype(int)
    return dataclasses.replace(data, test=Images(data.test.pixels[rows], data.test.labels[rows]))
