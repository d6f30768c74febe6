"""What claims on trees are made of: the worst slots of runs under the worst rules, one component a rho."""

from collections.abc import Callable
from typing import Any

import numpy as np

from moe_theory.merging.claims.values import Values, excess, named, recorded
from moe_theory.merging.experiments import LARGE_CONSTANT, RATIOS, tree_cell
from moe_theory.merging.params import Params
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs

HORIZONS = (16, 64, 256, 1024)  # T at which bounds that hold are looked at
ANY_TREE = tree_cell("deepest", RATIOS[-1])  # of claims that look at none
BY_RATIO = named(*(f"rho = {ratio:g}" for ratio in RATIOS))


def has_room(dims, runs: Runs) -> list[tuple[str, bool]]:
    """That the runs are those of Algorithm 1, which has no capacity."""
    del dims
    return [("no split was left out", all(not run.records.left_out.any() for run in runs.values()))]


def over_ratios(rule: str, value: Callable[[Run], np.ndarray], constant: float = 1.0) -> Values:
    """What `value` says of each cell of a rule (B,), one component a rho."""
    cells = [tree_cell(rule, ratio, constant) for ratio in RATIOS]
    return lambda runs: np.stack([value(runs[cell]) for cell in cells], axis=1)


def horizon(run: Run) -> int:
    """T."""
    return int(run.rounds[-1])


def beyond(name: str, bound: Callable[[Run], Any]) -> Callable[[Run], np.ndarray]:
    """By how much a number exceeds its bound in the worst slot, of all replicates of a run (B,)."""
    return lambda run: excess(recorded(run, name), np.reshape(bound(run), (-1, 1))).max(axis=0)


def candidates(run: Run) -> np.ndarray:
    """N_t, the active leaves that slot t picks from (R, B): the root, then what the slot before left."""
    after = recorded(run, "num_active")
    return np.concatenate([np.ones_like(after[:1]), after[:-1]])


def beyond_for_both_constants(rule: str, name: str, bound: Callable[[int, Params], float]) -> Values:
    """By how much what there is after T slots exceeds its bound for T, at the worst of `HORIZONS` and either C."""

    def value(run: Run) -> np.ndarray:
        bounds = np.array([bound(slots, run.params) for slots in HORIZONS])
        return excess(recorded(run, name)[np.array(HORIZONS) - 1], bounds[:, None]).max(axis=0)

    small, large = over_ratios(rule, value), over_ratios(rule, value, LARGE_CONSTANT)
    return lambda runs: np.maximum(small(runs), large(runs))
