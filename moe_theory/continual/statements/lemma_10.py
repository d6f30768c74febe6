"""Lemma 10: softmax probabilities of two experts whose gate outputs, after round T, are set delta apart."""

from collections.abc import Callable

import numpy as np
from jaxtyping import Float

from moe_theory.continual.experiments import FREE_AT_LEVEL, ROUTER_GRID, ROUTER_SCALE, gate_output_pairs, router_cell
from moe_theory.runs import Run
from moe_theory.verify.claim import Selection
from moe_theory.verify.statement import identity, rate, statement

CELL = router_cell(ROUTER_SCALE)
SMALL_GAPS = (1e-4, 1e-3, 1e-2, 1e-1)  # close to 0
BOUNDED_GAPS = (1 / 512, 1 / 64, 1 / 8, 1.0)
LARGE_GAPS = (2.0, 8.0, 32.0, 128.0)  # from not close to 0 on
GAPS = SMALL_GAPS + LARGE_GAPS
TOLERANCE = 1e-9  # of probabilities in float64

CLOSE = statement(
    "lemma-10-close",
    where="Appendix E, Lemma 10, first sentence",
    says=r"""Where two gate outputs are close, their probabilities differ by no more than the order of the outputs' gap.
    $$\delta_\Theta \to 0 \Rightarrow |\pi_m - \pi_{m'}| = O(\delta_\Theta)$$""",
    proof="lemma_10.py",
    free=FREE_AT_LEVEL,
    note="""As printed, both outputs in delta are of one expert's gate, so that it is |h_m - h_m'| of one theta; read,
    as the proof does, with each expert's own.""",
)
APART = statement(
    "lemma-10-apart",
    where="Appendix E, Lemma 10, second sentence",
    says=r"""Where two gate outputs are not close, their probabilities differ by at least the order of the outputs' gap.
    $$|\pi_m - \pi_{m'}| = \Omega(\delta_\Theta)$$""",
    why="""A bound on the gap is missing: two probabilities differ by at most 1, so no multiple of delta stays below
    their difference as delta grows. Lemma 6 keeps gate outputs small, and for bounded gaps the statement holds.""",
    instance="Two experts: at delta = 2 they differ by 0.76, or 0.38 delta, and at delta = 128 by 1, or 0.008 delta.",
    corrected=r"""They differ by exactly (pi_m + pi_m') tanh(delta/2).
    $$|\pi_m - \pi_{m'}| = (\pi_m + \pi_{m'}) \tanh (\delta_\Theta / 2)$$""",
    witness="lemma_10.py",
    proof="lemma_10.py",
    derivation="lemma_10.py",
    amendment="all gate outputs are at most 1 in size, for fixed M",
    free=FREE_AT_LEVEL,
)


def set_apart(*gaps: float) -> Selection:
    """One run, whose components are the gaps that two of its gate outputs are set to."""
    return Selection(ROUTER_GRID, (CELL,), tuple(f"delta = {gap:g}" for gap in gaps), gaps)


def probabilities_at(run, *gaps: float) -> Float[np.ndarray, "B gaps 2"]:
    outputs = np.repeat(gate_output_pairs(run)[:, :1], len(gaps), axis=1)
    outputs[..., 0] = outputs[..., 1] + np.asarray(gaps)
    weights = np.exp(outputs - outputs.max(axis=-1, keepdims=True))
    return (weights / weights.sum(axis=-1, keepdims=True))[..., :2]


def difference(*gaps: float) -> Callable[[Run], Float[np.ndarray, "gaps B"]]:
    """|pi_m - pi_m'| at each gap."""
    return lambda run: np.abs(np.diff(probabilities_at(run, *gaps), axis=-1))[..., 0].T


CLOSE.charitable("lemma-10.near", set_apart(*SMALL_GAPS), rate(at_least=1.0), where="Lemma 10, first case").says(
    "Two experts' probabilities differ by O(delta), for a small gap delta of their gate outputs."
)(difference(*SMALL_GAPS))
APART.charitable(
    "lemma-10.far-bounded", set_apart(*BOUNDED_GAPS), rate(at_most=1.0), where="Lemma 10, second case, for bounded gaps"
).says(r"""
    For gaps up to 1 they differ by Omega(delta): towards 0 the difference shrinks no faster than in proportion.

    From gaps of 1/512 on, since Omega is about the limit: pi_m + pi_m' grows with the gap as well, so that between 1/8
    and 1 alone the slope is near 1.16, above 1, although the difference stays above a multiple of the gap.
    $$\delta_\Theta \leq 1 \Rightarrow |\pi_m - \pi_{m'}| = \Omega(\delta_\Theta)$$""")(difference(*BOUNDED_GAPS))


@APART.literal(
    "lemma-10.far",
    set_apart(*LARGE_GAPS),
    identity(within=TOLERANCE),
    where="Lemma 10, second case",
    instead="lemma-10.exact",
)
def short_of_proportion(run) -> np.ndarray:
    """They differ by Omega(delta) for gaps that are not small: the difference grows at least in proportion.

    The lemma's "otherwise" is read as gaps from 2 to 128, although Lemma 6 keeps gates, and so gate outputs, small.
    Measured is what the difference lacks to half the gap times the difference at 2.
    """
    found = difference(*LARGE_GAPS)(run)
    return np.maximum(np.asarray(LARGE_GAPS)[:, None] / LARGE_GAPS[0] * found[:1] - found, 0)


@APART.step(
    "lemma-10.smaller", set_apart(*GAPS), identity(within=TOLERANCE), where="Lemma 10, proof of the second case"
)
def shortfall(run) -> np.ndarray:
    r"""They differ by at least min(pi_m, pi_m') delta, at small gaps and at large ones; the largest shortfall.

    The proof's step, whose pi_m' is that of the expert of lower gate output.
    $$|\pi_m - \pi_{m'}| \geq \min(\pi_m, \pi_{m'}) |h_m - h_{m'}|$$"""
    probabilities = probabilities_at(run, *GAPS)
    least = probabilities.min(axis=-1) * np.asarray(GAPS)
    return np.maximum(least - np.abs(np.diff(probabilities, axis=-1))[..., 0], 0).T


@APART.replacement(
    "lemma-10.exact", set_apart(*GAPS), identity(within=TOLERANCE), where="replaces Lemma 10, second case"
)
def error_of_exact(run) -> np.ndarray:
    """They differ by exactly (pi_m + pi_m') tanh(delta/2), which grows like delta for small gaps and stays below 1."""
    exact = probabilities_at(run, *GAPS).sum(axis=-1) * np.tanh(np.asarray(GAPS) / 2)
    return difference(*GAPS)(run) - exact.T
