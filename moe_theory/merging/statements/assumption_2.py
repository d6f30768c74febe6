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
    why="A slip, twice: weights that sum to 1 have norm 1 at the corners of the simplex alone, where one half is not "
    "the other, and must be divided by their norm, and written twice; and a leaf that stays is a candidate of every "
    "slot, so that the matrix over all slots has equal rows. Over distinct candidates of norm 1 it has no eigenvalue "
    "0.",
    instance="Two slots without a split between them have the same candidates: their matrix has the eigenvalue 0.",
    corrected=r"Of the distinct candidates, each divided by its norm, it holds. $$M \succeq \lambda_0 I$$",
    disproof="no_weights_assumption_2.py",
    amendment="of distinct candidates, each divided by its norm",
    proof="assumption_02.py",
    derivation="assumption_02.py",
)


@ASSUMPTION_2.charitable(
    "assumption-2.distinct",
    TREES.at(tree_cell("uniform", SMOOTHNESS_RATIOS[1])),
    identity(within=0),
    where="Assumption 2, of distinct candidates divided by their norms",
    labels=["eigenvalues that are 0"],
)
def num_zeros(run) -> np.ndarray:
    r"""Of the candidates of the last slot, divided by their norms, the NTK matrix has no eigenvalue 0.
    $$M \succeq \lambda_0 I, \quad \lambda_0 > 0$$"""
    leaves, found = run.state.tree, []
    for place in range(len(run.replicates)):
        points = np.asarray(leaves.point[:, :, place], np.float64)[leaves.active[:, place]]
        rows = np.unique(points / np.linalg.norm(points, axis=1, keepdims=True), axis=0)
        found.append(len(rows) - np.linalg.matrix_rank(theory.neural_tangent_kernel(rows), hermitian=True))
    return np.array(found, np.float64)


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
