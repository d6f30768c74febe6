"""Experiments whose runs are read from a stored sweep and never simulated.

The sweep decides what there is to judge: its cells, its reading, its seed and how many replicates. Whoever asks for
others is told so, instead of being given verdicts of something else.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from moe_theory.core.errors import InvalidParamsError, InvalidRunError, unknown_name
from moe_theory.runs import Run
from moe_theory.sweep.results import Results
from moe_theory.verify.claim import Claim, Experiment, ReadingLike
from moe_theory.verify.registry import SPECIAL_NAMES


def experiment_from(sweep: Results | str | os.PathLike[str], name: str | None = None) -> Experiment:
    """The experiment that `Experiment.from_sweep` describes."""
    results = sweep if isinstance(sweep, Results) else Results.open(sweep)
    if not results.coverage.is_complete:
        raise InvalidRunError(
            f"{results.store.folder}: a verdict needs every replicate, and some are missing. The same `moe-theory "
            "sweep` command goes on with them."
        )
    spec, cells = results.sweep, results.sweep.grid.cells
    sizes = {cell.dims for cell in cells}
    return Experiment(
        name=name or Path(results.store.folder).resolve().name,
        dims=sizes.pop() if len(sizes) == 1 else {n: cell.dims for n, cell in zip(results.names, cells, strict=True)},
        system=results.kind.system(cells[0].dims, cells[0].choices),
        cells={n: cell.params._asdict() for n, cell in zip(results.names, cells, strict=True)},
        num_rounds=spec.rounds,
        record_every=results.stride,
        observe=results.kind.observe(results.kept),
        replicates=spec.replicates,
        stored=results,
    )


def reading_for(claim: Claim, names: Sequence[str] | None) -> ReadingLike:
    """The reading that a claim on a stored sweep is judged under.

    Raises: InvalidRunError where only others are asked for.
    """
    results = _results(claim.experiment)
    reading = results.reading
    if names is None or {reading.name, *SPECIAL_NAMES} & set(names):
        return reading
    raise InvalidRunError(
        f"claim {claim.id} reads the sweep in {results.store.folder}, which is of reading {reading.name} and not "
        f"{', '.join(names)}. Leave the reading out, or run that sweep under another reading."
    )


def seed_for(experiment: Experiment, seed: int) -> int:
    """The seed of an experiment's runs: a stored sweep's own, else `seed`."""
    return seed if experiment.stored is None else experiment.stored.sweep.seed


def check_asked(experiment: Experiment, replicates: int | None, seed: int) -> None:
    """Raise InvalidRunError where a stored sweep has fewer replicates than asked for, or another seed.

    Seed 0 is nobody's wish: it is what is asked for where nothing is said.
    """
    if experiment.stored is None:
        return
    results = experiment.stored
    where, spec = f"the experiment {experiment.name} reads the sweep in {results.store.folder}", results.sweep
    if seed not in (0, spec.seed):
        raise InvalidRunError(f"{where}, which is of seed {spec.seed} and not {seed}. Leave the seed out.")
    if replicates is not None and replicates > spec.replicates:
        raise InvalidRunError(
            f"{where}, which has {spec.replicates} replicates and not {replicates}. Lower replicates, or raise "
            "`replicates` in the specification and run the sweep again, which computes only what is new."
        )


def require_adjustable(experiment: Experiment, name: str) -> None:
    """Raise InvalidParamsError where a parameter is to be set for runs that are there already."""
    if experiment.stored is not None:
        raise InvalidParamsError(
            f"{name} cannot be set: the experiment {experiment.name} reads the sweep in "
            f"{experiment.stored.store.folder}. Run a sweep with another {name}."
        )


def runs_of(experiment: Experiment, names: Sequence[str], first: int, last: int) -> Mapping[str, Run]:
    """Replicates `first` to `last` - 1 of these cells. Raises: MissingChunkError for a chunk that is damaged."""
    runs = _results(experiment).runs(first, last - first)
    return _ByCell({name: runs[name] for name in names})


class _ByCell(dict[str, Run]):
    """Runs by cell, which help with a mistyped name."""

    def __missing__(self, name: str) -> Run:
        raise unknown_name("cell", name, self)


def origin_of(experiment: Experiment) -> str:
    """What a verdict's reason says of where its replicates come from; nothing of simulated ones."""
    if experiment.stored is None:
        return ""
    has_readings = "reading" in experiment.stored.sweep.grid.cells[0].settings
    return f"; replicates of the sweep {experiment.name}" + (
        ", whose cells have readings of their own" if has_readings else " under its own reading"
    )


def _results(experiment: Experiment) -> Any:
    assert experiment.stored is not None  # callers have looked
    return experiment.stored
