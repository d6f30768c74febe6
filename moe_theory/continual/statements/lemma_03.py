"""Lemma 3: an expert whose task repeats."""

import numpy as np

from moe_theory.continual.experiments import FEW, HISTORY, SINGLE, repeats_of, truth_length
from moe_theory.continual.theory import error_contraction
from moe_theory.verify.statement import equality, identity, statement

LEMMA_3 = statement(
    "lemma-3",
    where="Lemma 3",
    says=r"""An expert that gets the same task again as last time does not change.
    $$\mathbf{w}_{n_t} = \mathbf{w}_{n_\tau} \;\Rightarrow\; \mathbf{w}_t^{(m_t)} = \mathbf{w}_{t-1}^{(m_t)} =
    \cdots = \mathbf{w}_\tau^{(m_t)}$$""",
    why="""An arrival has s samples in d > s dimensions. It shows the expert the truth on their span only, and the
    samples of the next arrival of that task span another one: the expert moves again, unless it knew the truth already.
    The paper leaves the proof out.""",
    instance="""d = 3, s = 2, truth (1, 1, 1), a signal along e_1, an expert at 0, three arrivals whose other samples
    are e_2, e_2 + e_3 and e_3: it moves by 2, 1/2 and 1/4 in square.""",
    corrected=r"""A repeat multiplies the expected squared error by (d - s)/(d - 1): the error falls, and does not stay.
    $$\mathbb{E}\left\lVert w_t^{(m_t)} - w_{n_t} \right\rVert^2 = \frac{d - s}{d - 1}\, \mathbb{E}\left\lVert
    w_{t-1}^{(m_t)} - w_{n_t} \right\rVert^2$$""",
    disproof="lemma_03.py",
    derivation="repeat_contraction.py",
    note="""With one sample, the signal alone, it holds. That is one value of s, not a part of a range that the paper
    leaves open (its own is 6, and Definition 1 has samples beside the signal's), so that it is no amendment.""",
)


@LEMMA_3.charitable("lemma-3", HISTORY.at(FEW), identity(within=1e-3), labels=[FEW], instead="lemma-3.contraction")
def largest_repeat_move(run) -> np.ndarray:
    """An expert whose last task comes again does not change; its largest move, over the truths' root mean square."""
    largest = np.max(np.where(repeats_of(run), run.records.update_norm, 0), axis=0)
    return largest / truth_length(run)


def contracted_errors_before_repeats(run) -> np.ndarray:
    # A move is orthogonal to what it leaves, so the squared error before it is the sum of both squares.
    before = run.records.error.astype(np.float64) + run.records.update_norm.astype(np.float64) ** 2
    contraction = error_contraction(HISTORY.dims.num_features, HISTORY.dims.num_samples)
    return contraction * np.sum(np.where(repeats_of(run), before, 0), axis=0)


@LEMMA_3.replacement(
    "lemma-3.contraction", HISTORY.at(SINGLE), equality(contracted_errors_before_repeats, margin=0.02), labels=[SINGLE]
)
def errors_after_repeats(run) -> np.ndarray:
    r"""A repeat multiplies an expert's expected squared error by (d - s)/(d - 1).
    $$\mathbf{w}_{n_t} = \mathbf{w}_{n_\tau} \;\Rightarrow\; \mathbb{E}\left\lVert \mathbf{w}_t^{(m_t)} -
    \mathbf{w}_{n_t} \right\rVert^2 = \frac{d - s}{d - 1}\, \mathbb{E}\left\lVert \mathbf{w}_{t-1}^{(m_t)} -
    \mathbf{w}_{n_t} \right\rVert^2$$"""
    return np.sum(np.where(repeats_of(run), run.records.error.astype(np.float64), 0), axis=0)
