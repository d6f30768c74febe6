"""Assumption 1 of the trees that Algorithm 1 makes, and of one that meets it in the sup norm."""

import numpy as np

from moe_theory.merging import tree
from moe_theory.merging.experiments import ABLATION, CONFIDENCE, CYCLIC, ON_TREES, TREES, by_ratio, recorded
from moe_theory.verify.claim import excess
from moe_theory.verify.statement import identity, probability, statement

ASSUMPTION_1 = statement(
    "assumption-1",
    where="Assumption 1",
    says=r"""Every node of depth h has a diameter of at most nu_1 rho^h, and so holds values within that of its best.
    $$\mathrm{diam}(\mathcal{H}_{h,i}) \le \nu_1 \rho^h$$""",
    hypotheses=ON_TREES,
    untestable="An assumption on tree and reward together, which leaves the dissimilarity free: nu_1 rho^h, with h the "
    "depth of the deepest node that holds both weights, meets it for any tree, and asks the more of the reward, that "
    "it falls by no more away from its best. Beside it: the sup norm, in which the paper's rho are too small to halve "
    "one of eight coordinates a level, and a reward of ours.",
)


@ASSUMPTION_1.ours(
    "assumption-1.diameter",
    by_ratio("uniform"),
    identity(within=0),
    where="Assumption 1, ii a), at the paper's rho and nu_1, in the sup norm",
    instead="assumption-1.cyclic",
)
def diameter_excess(run) -> np.ndarray:
    """Leaves of depth h, or what the simplex leaves of them, are at most nu_1 rho^h in diameter, in any coordinate."""
    return _excess(run, is_cut=True)


@ASSUMPTION_1.replacement(
    "assumption-1.cyclic",
    TREES.at(CYCLIC),
    identity(within=1e-6),
    where="replaces Assumption 1, ii a): cyclic splits, rho = 2^(-1/K), nu_1 = 2^((K-1)/K) for 1",
    labels=["largest excess"],
)
def cyclic_excess(run) -> np.ndarray:
    r"""Split along one coordinate after another, leaves are within nu_1 rho^h, rho = 2^(-1/K), nu_1 = 2^((K-1)/K).
    $$\mathrm{diam}(\mathcal{H}_{h,i}) \le \nu_1 2^{-h/K}$$"""
    return _excess(run, is_cut=False)


@ASSUMPTION_1.ours(
    "assumption-1.best-leaf",
    ABLATION.over("smoothness_ratio"),
    probability(at_least=1 - CONFIDENCE),
    where="Assumption 1, iii) and iv), as Lemma 4 uses it",
)
def is_near_best(run) -> np.ndarray:
    r"""The leaf with the best weights has a candidate within nu_1 rho^h of their reward, in all recorded slots.
    $$f^*(x_t^*) - f^*(x_{h_t^*, i_t^*}) \le \nu_1 \rho^{h_t^*}$$"""
    return np.all(recorded(run, "best_gap") <= _allowed(run, recorded(run, "best_depth")), axis=0)


def _excess(run, is_cut: bool) -> np.ndarray:
    """By how much the longest side of the worst leaf at the end exceeds nu_1 rho^h (B,)."""
    leaves = run.state.tree
    lower, upper = (np.moveaxis(np.asarray(side, np.float64), 1, -1) for side in (leaves.lower, leaves.upper))
    if is_cut:
        lower, upper = tree.tightened(lower, upper)
    sides = np.where(leaves.active, (upper - lower).max(axis=-1), 0)
    return excess(sides, _allowed(run, np.asarray(leaves.depth, np.float64))).max(axis=0)


def _allowed(run, depth: np.ndarray) -> np.ndarray:
    return float(run.params.smoothness) * float(run.params.smoothness_ratio) ** depth
