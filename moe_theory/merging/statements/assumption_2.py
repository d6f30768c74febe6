"""Assumption 2 of the candidates of trees that Algorithm 1 makes."""

import numpy as np

from moe_theory.merging import theory
from moe_theory.merging.experiments import ON_TREES, SMOOTHNESS_RATIOS, TREES, by_ratio, tree_cell
from moe_theory.verify.statement import counterexample, identity, statement

ASSUMPTION_2 = statement(
    "assumption-2",
    where="Assumption 2",
    says=r"""Candidates have norm 1 and an NTK matrix whose smallest eigenvalue is above 0.
    $$\lVert x \rVert_2 = 1, \quad M \succeq \lambda_0 I, \quad \lambda_0 > 0$$""",
    hypotheses=ON_TREES,
    note="Literal: weights that sum to 1 have norm 1 at the simplex's corners alone, but could be divided by their "
    "norm; the kernel is singular because a leaf that stays counts in every slot, and is not over distinct weights.",
)


@ASSUMPTION_2.literal("assumption-2.unit-norm", by_ratio("uniform"), identity(within=1e-3), where="Assumption 2")
def norm_error(run) -> np.ndarray:
    r"""Candidates have Euclidean norm 1. $$\lVert x \rVert_2 = 1, \quad x \in \mathcal{X}_T$$"""
    norms = np.sqrt(np.sum(np.asarray(run.state.tree.point, np.float64) ** 2, axis=1))
    return np.where(run.state.tree.active, np.abs(norms - 1), 0).max(axis=0)


@ASSUMPTION_2.literal(
    "assumption-2.positive-kernel",
    TREES.at(tree_cell("uniform", SMOOTHNESS_RATIOS[1])),
    counterexample(),
    where="Assumption 2, of the candidates of two slots in a row",
)
def is_singular(run) -> np.ndarray:
    r"""The NTK matrix of all candidates of all slots has no eigenvalue 0, though a leaf that stays is one in each.
    $$M \succeq \lambda_0 I, \quad \lambda_0 > 0$$"""
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
