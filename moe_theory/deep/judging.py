"""Tests of the claims about a preset's figure, by training networks."""

import dataclasses
import itertools
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

THREADS = 2  # most seeds that run together on a CPU
FILES = ("results.nc", "summary.json", "verdicts.json", "deep.svg")  # a judgement's files, in its folder


@dataclasses.dataclass(frozen=True)
class Judgement:
    """Runs of a preset, and the verdicts on its figure, as `judge` returns them.

    Examples:
        >>> from moe_theory import deep
        >>> plan = deep.plan("edge-mnist-small", rounds=2, samples=8, batch=8, epochs=1, test_images=50, replicates=1)
        >>> judgement = deep.judge(plan)
        >>> isinstance(judgement, deep.Judgement), len(judgement.verdicts)  # one seed decides nothing
        (True, 0)
    """

    plan: Plan  # the plan that ran, with the seeds of its last interim analysis
    runs: Runs  # records of every round and seed (T, ..., B), by cell
    summary: Summary  # final measures, paired differences to a baseline and gate drives, by cell
    verdicts: Verdicts  # none for a single seed, or for other cells than the figure's

    def to_xarray(self) -> "xr.Dataset":
        """Return all records (T, ..., B) over cells, rounds, seeds and possibly experts or classes."""
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
    settings: Mapping[str, float | str] | None = None,
    replicates: int | None = None,
    seed: int = 0,
    folder: Path | str | None = None,
) -> Plan:
    """Return a checked request for `judge`, with cells, sizes, data, seeds and parameters.

    Args:
        preset: the preset's name, or your own preset.
        data: a data set, or the folder of its files. The default is the preset's data set, if these are the digits.
        network: the experts' network, a key of `networks.NETWORKS`.
        epochs, samples, batch: passes, training images, and images per gradient step of an expert on a task.
        rounds, experts, classes: T, the numbers M to compare, and the classes that become tasks.
        test_images: number of test images, which are evenly spread.
        reading, settings: choices that the papers leave open, and parameters by name that replace the preset's.
        replicates: number of seeds for each cell.
        folder: the folder in which runs are saved and from which they resume, if any.
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
    images = _images(resized_preset, data)  # last, because it may take long
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
    """Run a plan, and test the claims about its preset's figure.

    The claims share one error. A single seed gives no verdicts, and with few seeds most stay INCONCLUSIVE. An interim
    analysis follows each number of seeds in `plan.looks`. Runs end when every claim is decided. Saved runs are reused.

    Args:
        progress: a listener. By default progress goes to standard error.
        command: the command that repeats the verdicts, by default this call.
    Raises: InvalidValueError for diverging experts. OutputError if the folder cannot be written. InvalidValueError,
        DeclarationError or UnknownNameError for a plan that was changed by hand.

    Examples:
        >>> from moe_theory import deep
        >>> plan = deep.plan("edge-mnist-small", rounds=2, samples=8, batch=8, epochs=1, test_images=50, replicates=2)
        >>> {verdict.data for verdict in deep.judge(plan).verdicts}
        {'digits'}
    """
    tests = _tests(plan)
    records: Runs = {}
    num_threads = min(THREADS, available_cores()) if backend() == "cpu" else 1  # one seed fills another device
    with shown(progress) as listener:
        for first, last in itertools.pairwise((0, *plan.looks)):
            new_records = runs.run_plan(plan, listener, num_threads, range(first, last))
            records = runs.joined(records, new_records)
            if _decide(tests, records):
                break
    first_run = next(iter(records.values()))
    plan = dataclasses.replace(plan, replicates=len(first_run.replicates))
    if command is None:
        options = {"reading": plan.reading.name, "settings": dict(plan.settings), "seed": plan.seed}
        arguments = ", ".join(f"{name}={value!r}" for name, value in options.items() if value)
        command = f"deep.judge(deep.plan({plan.preset.name!r}, replicates={plan.replicates}, {arguments}))"
    report = Report(
        verdicts=[dataclasses.replace(test.latest, command=command) for test in tests],
        command=command,
        seed=plan.seed,
        error=FAMILY_ERROR,
        versions=versions(),
        is_x64=is_x64(),
        readings={f"{test.claim.paper}.{plan.setting}": plan.reading.summary for test in tests},
        finished=now(),
    )
    return Judgement(plan, records, summarize(plan, records), Verdicts(report))


def _tests(plan: Plan) -> list[SequentialTest]:
    claims = claims_for(plan.preset, plan.data.title) if plan.replicates > 1 else []
    error = FAMILY_ERROR / max(len(claims), 1)
    is_single_look = len(plan.looks) == 1
    tests = []
    for claim in claims:
        verdict = blank_verdict(claim, plan.setting, plan.seed, error)
        tests.append(SequentialTest(claim, verdict, plan.replicates, is_single_look=is_single_look))
    return tests


def _decide(tests: list[SequentialTest], runs: Runs) -> bool:
    """Test undecided claims on these runs, and return whether all are decided."""
    undecided = [test for test in tests if not test.has_ended]
    for test in undecided:
        test.extend(runs, {})
        if not test.has_ended:
            test.look(test.count)
    return bool(tests) and all(test.has_ended for test in tests)


def resized(
    preset: Preset, experts: Sequence[int] | None, classes: Sequence[int] | None, **sizes: int | str | None
) -> Preset:
    """Return the preset with other sizes in `Dims`, and batches that are not larger than the samples."""
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
    """Return the data with evenly spread test images: `test_images` of them, or else `default` of them, or all."""
    total = len(data.test.labels)
    if test_images is not None and not 1 <= test_images <= total:
        raise InvalidValueError(
            f"test_images={test_images} must be in 1..{total}, because {data.title} has no more. Lower test_images.",
            argument="test_images",
        )
    number = min(test_images or default or total, total)
    if number == total:
        return data
    rows = np.linspace(0, total - 1, number).round().astype(int)
    return dataclasses.replace(data, test=Images(data.test.pixels[rows], data.test.labels[rows]))
