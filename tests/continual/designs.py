"""Rank-one projectors of spherical 4-designs, whose average is the Haar mean of anything quadratic."""

import numpy as np

from moe_theory.core.tasks import Pool

GOLDEN = (1 + 5**0.5) / 2
ICOSAHEDRON = [(0, 1, GOLDEN), (0, 1, -GOLDEN), (1, GOLDEN, 0), (1, -GOLDEN, 0), (GOLDEN, 0, 1), (-GOLDEN, 0, 1)]
DESIGNS = {
    1: np.ones((1, 1)),
    2: np.array([(np.cos(angle), np.sin(angle)) for angle in np.arange(3) * np.pi / 3]),
    3: np.array(ICOSAHEDRON) / np.hypot(1, GOLDEN),
}


def draw_pool(num_tasks, num_features, kind="independent", seed=0):
    truths, signals = np.random.default_rng(seed).normal(size=(2, num_tasks, num_features))
    return Pool(truths, 3.0 * truths if kind == "proportional" else signals, np.arange(num_tasks))


def residual_projectors(basis, rank):
    """A design's projectors of `rank` in the span of the `basis` (d, D), shape (K, d, d)."""
    dimension = basis.shape[1]
    if rank == dimension:
        return (basis @ basis.T)[None]
    lines = [np.outer(line, line) for line in DESIGNS[dimension] @ basis.T]
    if rank == 1:
        return np.array(lines)
    assert rank == dimension - 1
    return np.array([basis @ basis.T - line for line in lines])


def complement_basis(signal):
    return np.linalg.svd(signal[None])[2][1:].T
