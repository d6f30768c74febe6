"""Assumptions 1 and 2 of the trees that Algorithm 1 makes, and of one that meets the first."""

import numpy as np

from moe_theory.merging import theory, tree
from moe_theory.merging.claims.values import BY_RATIO, claim, over_ratios
from moe_theory.merging.experiments import CYCLIC, SMOOTHNESS_RATIOS, TREES, tree_cell
from moe_theory.runs import Run
from moe_theory.verify.claim import excess, named


@claim(
    "merging.assumption-1.diameter",
    where="Assumption 1, ii a), at the paper's rho and nu_1, in the sup norm",
    kind="identity",
    replaced_by="merging.assumption-1.cyclic",
)
class Diameter:
    """Leaves of depth h, or what the simplex leaves of them, are at most nu_1 rho^h in diameter, in any coordinate."""

    formula = r"\mathrm{diam}(\mathcal{H}_{h,i}) \le \nu_1 \rho^h"
    experiment = TREES
    labels = BY_RATIO
    observe = over_ratios("uniform", lambda run: _diameter_excess(run))


@claim(
    "merging.assumption-1.cyclic",
    where="replaces Assumption 1, ii a): cyclic splits, rho = 2^(-1/K), nu_1 = 2^((K-1)/K) for 1",
    kind="identity",
    margin=1e-6,
)
class CyclicDiameter:
    """Split along one coordinate after another, leaves are within nu_1 rho^h, rho = 2^(-1/K), nu_1 = 2^((K-1)/K)."""

    formula = r"\mathrm{diam}(\mathcal{H}_{h,i}) \le \nu_1 2^{-h/K}"
    experiment = TREES
    labels = named("largest excess")
    observe = staticmethod(lambda runs: _diameter_excess(runs[CYCLIC], is_cut=False))


def _diameter_excess(run: Run, is_cut: bool = True) -> np.ndarray:
    """By how much the longest side of the worst leaf at the end exceeds nu_1 rho^h (B,)."""
    leaves = run.state.tree
    lower, upper = (np.moveaxis(np.asarray(side, np.float64), 1, -1) for side in (leaves.lower, leaves.upper))
    if is_cut:
        lower, upper = tree.tightened(lower, upper)
    sides = np.where(leaves.active, (upper - lower).max(axis=-1), 0)
    diameter = float(run.params.smoothness) * float(run.params.smoothness_ratio) ** np.asarray(leaves.depth, np.float64)
    return excess(sides, diameter).max(axis=0)


@claim("merging.assumption-2.unit-norm", where="Assumption 2", kind="identity", margin=1e-3)
class UnitNorm:
    """Candidates have Euclidean norm 1."""

    formula = r"\lVert x \rVert_2 = 1, \quad x \in \mathcal{X}_T"
    experiment = TREES
    labels = BY_RATIO
    observe = over_ratios("uniform", lambda run: _norm_error(run))


def _norm_error(run: Run) -> np.ndarray:
    norms = np.sqrt(np.sum(np.asarray(run.state.tree.point, np.float64) ** 2, axis=1))
    return np.where(run.state.tree.active, np.abs(norms - 1), 0).max(axis=0)


@claim(
    "merging.assumption-2.positive-kernel",
    where="Assumption 2, of the candidates of two slots in a row",
    kind="counterexample",
)
class PositiveKernel:
    """The NTK matrix of all candidates of all slots has no eigenvalue 0, though a leaf that stays is one in each."""

    formula = r"M \succeq \lambda_0 I, \quad \lambda_0 > 0"
    experiment = TREES
    observe = staticmethod(lambda runs: _is_singular(runs[tree_cell("uniform", SMOOTHNESS_RATIOS[1])]))


def _is_singular(run: Run) -> np.ndarray:
    """Whether the kernel over the last two slots' candidates has numerical rank below their number."""
    leaves, found = run.state.tree, []
    for place in range(len(run.replicates)):
        points = np.asarray(leaves.point[:, :, place], np.float64)[leaves.active[:, place]]
        split_last = run.records.num_leaves[-1, place] != run.records.num_leaves[-2, place]
        # A split leaf's row is a child's now; the other child, if there is one, took the last row.
        new = [int(run.records.row[-1, place]), len(points) - 1]
        stayed = np.delete(points, new, axis=0) if split_last else points
        rows = np.concatenate([points, stayed])
        found.append(np.linalg.matrix_rank(theory.neural_tangent_kernel(rows), hermitian=True) < len(rows))
    return np.array(found)
