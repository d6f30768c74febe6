"""Assumption 1 for Algorithm 1's trees, and for a tree that satisfies it in the sup norm."""

import numpy as np

from moe_theory.merging import tree
from moe_theory.merging.experiments import ABLATION, CONFIDENCE, CYCLIC, TREES, by_ratio, recorded
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import identity, probability

ASSUMPTION_1 = statement("assumption-1", module=__name__)


@ASSUMPTION_1.ours("assumption-1.diameter", by_ratio("uniform"), identity(within=0), instead="assumption-1.cyclic")
def diameter_excess(run) -> np.ndarray:
    return _excess(run, is_tightened=True)


@ASSUMPTION_1.replacement("assumption-1.cyclic", TREES.at(CYCLIC), identity(within=1e-6), labels=["largest excess"])
def cyclic_excess(run) -> np.ndarray:
    return _excess(run, is_tightened=False)


@ASSUMPTION_1.ours("assumption-1.best-leaf", ABLATION.over("smoothness_ratio"), probability(at_least=1 - CONFIDENCE))
def is_near_best(run) -> np.ndarray:
    return np.all(recorded(run, "best_gap") <= _allowed(run, recorded(run, "best_depth")), axis=0)


def _excess(run, is_tightened: bool) -> np.ndarray:
    leaves = run.state.tree
    lower = np.moveaxis(np.asarray(leaves.lower, np.float64), 1, -1)
    upper = np.moveaxis(np.asarray(leaves.upper, np.float64), 1, -1)
    if is_tightened:
        lower, upper = tree.tightened(lower, upper)
    sides = np.where(leaves.active, (upper - lower).max(axis=-1), 0)
    return excess(sides, _allowed(run, np.asarray(leaves.depth, np.float64))).max(axis=0)


def _allowed(run, depth: np.ndarray) -> np.ndarray:
    return float(run.params.smoothness) * float(run.params.smoothness_ratio) ** depth
