"""Assumption 2 for the candidates of trees that Algorithm 1 makes."""

import numpy as np

from moe_theory.merging import theory
from moe_theory.merging.experiments import SMOOTHNESS_RATIOS, TREES, by_ratio, tree_cell
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import counterexample, identity

RANDOM_TREES = TREES.at(tree_cell("uniform", SMOOTHNESS_RATIOS[1]))

ASSUMPTION_2 = statement("assumption-2", module=__name__)


@ASSUMPTION_2.charitable("assumption-2.distinct", RANDOM_TREES, identity(within=0), labels=["eigenvalues that are 0"])
def num_zeros(run) -> np.ndarray:
    leaves = run.state.tree
    counts = []
    for column in range(len(run.replicates)):
        points = np.asarray(leaves.point[:, :, column], np.float64)[leaves.active[:, column]]
        rows = np.unique(points / np.linalg.norm(points, axis=1, keepdims=True), axis=0)
        counts.append(len(rows) - np.linalg.matrix_rank(theory.neural_tangent_kernel(rows), hermitian=True))
    return np.array(counts, np.float64)


@ASSUMPTION_2.literal("assumption-2.unit-norm", by_ratio("uniform"), identity(within=1e-3))
def norm_error(run) -> np.ndarray:
    norms = np.sqrt(np.sum(np.asarray(run.state.tree.point, np.float64) ** 2, axis=1))
    return np.where(run.state.tree.active, np.abs(norms - 1), 0).max(axis=0)


@ASSUMPTION_2.literal("assumption-2.positive-kernel", RANDOM_TREES, counterexample())
def is_singular(run) -> np.ndarray:
    leaves = run.state.tree
    flags = []
    for column in range(len(run.replicates)):
        points = np.asarray(leaves.point[:, :, column], np.float64)[leaves.active[:, column]]
        has_split = run.records.num_leaves[-1, column] != run.records.num_leaves[-2, column]
        # A child now has the row of the split leaf. If there is a second child, it took the last row.
        new = [int(run.records.row[-1, column]), len(points) - 1]
        unsplit = np.delete(points, new, axis=0) if has_split else points
        rows = np.concatenate([points, unsplit])  # candidates of the last slot, and those that the one before shares
        flags.append(np.linalg.matrix_rank(theory.neural_tangent_kernel(rows), hermitian=True) < len(rows))
    return np.array(flags)
