"""A claim before it is judged: what its function gets, and what it makes of a few replicates."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from moe_theory.core.constraints import shown
from moe_theory.core.errors import OWN_CODE, DeclarationError, InvalidValueError, MoeTheoryError, described, frames
from moe_theory.core.system import check_system
from moe_theory.runs import Cell, Progress, quiet, run_cells
from moe_theory.verification import registry
from moe_theory.verification.claim import Claim
from moe_theory.verification.evidence import collect, failed_hypotheses, labels_of
from moe_theory.verification.request import require_one

REPLICATES = 8
Shapes = dict[str, tuple[int, ...]]  # by an array's name, such as "records.forgetting"


@dataclasses.dataclass(frozen=True)
class Check:
    """A claim's runs by name, and what its function makes of a few replicates of them: no verdict."""

    claim: str
    reading: str
    replicates: int  # B
    shapes: Mapping[str, Shapes]  # of the arrays of each run, replicates last; empty where runs are measured
    labels: list[str]  # of the components
    observed: list[float]  # their means
    predicted: list[float]  # and of what they are compared with; one number for all of a rate
    broken: list[str]  # hypotheses that the reading breaks, so that the verdict is INAPPLICABLE

    def __repr__(self) -> str:
        lines = [f"{self.claim} under {self.reading}, {self.replicates} replicates, no verdict"]
        alike: dict[str, list[str]] = {}  # runs by what they have
        for run, shapes in self.shapes.items():
            alike.setdefault("\n".join(f"    {name} {shape}" for name, shape in shapes.items()), []).append(repr(run))
        lines += [f"runs {', '.join(runs)}\n{arrays}" for arrays, runs in alike.items()]
        predicted = self.predicted if len(self.predicted) == len(self.labels) else self.predicted * len(self.labels)
        against = [f", compared with {shown(float(f'{value:.4g}'))}" for value in predicted] or [""] * len(self.labels)
        rows = zip(self.labels, self.observed, against, strict=True)
        lines += [f"component {label!r}: {shown(float(f'{mean:.4g}'))}{more}" for label, mean, more in rows]
        return "\n".join([*lines, *(f"breaks: {text}" for text in self.broken)])


def check(
    claim: str | Claim,
    *,
    reading: str | None = None,
    replicates: int = REPLICATES,
    seed: int = 0,
    progress: Progress = quiet,
) -> Check:
    """Try a claim on a few replicates, without judging it: shapes first, before anything is compiled, then its numbers.

    Args:
        claim: a claim or its id.
        reading: a name; None takes the paper's first default.
        replicates: B, of every run.
    Raises: UnknownNameError for a name that is not known, with the nearest suggested; InvalidValueError for a name of
        several claims; DeclarationError, with the line, for what the claim's own code gets wrong; InvalidValueError,
        InvalidValueError or DeclarationError for runs that cannot be made.

    Examples:
        >>> import moe_theory as mt
        >>> found = mt.check("continual.lemma-4")
        >>> found.reading, len(found.labels), max(found.observed) < 1e-4
        ('unit-signal', 1, True)
        >>> list(found.shapes)[0], found.shapes["M = 5"]["state.visits"]
        ('M = 1', (5, 8))
    """
    checked_claim = claim if isinstance(claim, Claim) else require_one(claim, registry.select_claims([claim]))
    if replicates < 2:
        raise InvalidValueError(
            f"replicates={replicates} must be at least 2, or their axis cannot be recognised. Raise it.",
            argument="replicates",
        )
    experiment = checked_claim.experiment
    choice = registry.select_readings(checked_claim.paper, None if reading is None else [reading])[0]
    cells = experiment.cells_under(choice)
    try:
        shapes = {cell.name: _shapes(cell, replicates) for cell in cells} if experiment.measured is None else {}
        if experiment.measured is None:
            runs = run_cells(cells, replicates, seed=seed, width=replicates, progress=progress)
        else:
            runs = experiment.measured.make(cells, 0, replicates, seed)
        samples = collect(checked_claim, runs, replicates)
        rounds = next(iter(runs.values())).rounds
        return Check(
            claim=checked_claim.id,
            reading=choice.name,
            replicates=replicates,
            shapes=shapes,
            labels=labels_of(checked_claim, runs, rounds, samples.observed.shape[1]),
            observed=samples.observed.mean(axis=0).tolist(),
            predicted=[] if samples.predicted is None else samples.predicted.mean(axis=0).tolist(),
            broken=failed_hypotheses(checked_claim, runs),
        )
    except MoeTheoryError:
        raise
    except OWN_CODE as failure:
        raise DeclarationError(f"claim {checked_claim.id}: {described(failure)}{frames(failure)}") from failure


def _shapes(cell: Cell, replicates: int) -> Shapes:
    with cell.precision():
        start_state = check_system(cell.system, cell.params)
        key = jax.eval_shape(lambda: jax.random.key(0))
        state, info = jax.eval_shape(lambda key, state: cell.system.step(key, state, cell.params), key, start_state)
        records = jax.eval_shape(cell.observe, state, info)
    trees: dict[str, tuple[Any, tuple[int, ...]]] = {"records": (records, (len(cell.rounds),))}
    trees |= {"state": (state, ())} if cell.keeps_state else {}
    return {
        ".".join(part for part in (name, jax.tree_util.keystr(path, simple=True, separator=".")) if part): (
            *first,
            *np.shape(leaf),
            replicates,
        )
        for name, (tree, first) in trees.items()
        for path, leaf in jax.tree_util.tree_flatten_with_path(tree)[0]
    }
