"""Lemma 5: gaps of routing probabilities against gaps of gate outputs."""

import itertools

import numpy as np

from moe_theory.edge.experiments import ADAPTIVE
from moe_theory.edge.statements.lemma_1 import UPDATES
from moe_theory.verify.statement import alike, identity, statement

PAIRS, TOLERANCE = ADAPTIVE.over("num_experts", 10, 50), 1e-6  # of float32 probabilities


def gaps_of_pairs(run) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """|h_m - h_m'|, |pi_m - pi_m'| and pi_m' of all ordered pairs of experts at the last round (M, M, B)."""
    count = int(run.params.num_experts)
    outputs = run.records.gate_outputs[-1][:count].astype(np.float64)
    probabilities = run.records.gate_probabilities[-1][:count].astype(np.float64)
    return (
        np.abs(outputs[:, None] - outputs[None, :]),
        np.abs(probabilities[:, None] - probabilities[None, :]),
        np.broadcast_to(probabilities[None, :], (count, count, probabilities.shape[1])),
    )


@statement(
    "lemma-5-close",
    where="Appendix C, Lemma 5, first sentence",
    says=r"""Where two gate outputs are close, their probabilities differ by no more than the order of the outputs' gap.
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert = \mathcal{O}(\delta_\Theta), \quad
    \delta_\Theta = \left\lvert h_m - h_{m'} \right\rvert = o(1)$$""",
    note="Tried: every pair of experts of runs whose outputs are far apart, not close.",
    proof="lemma_05_close.py",
).charitable("lemma-5.upper", PAIRS, identity(within=TOLERANCE), where="Lemma 5, first case")
def lipschitz_excess(run) -> np.ndarray:
    r"""|pi_m - pi_m'| is at most half of |h_m - h_m'|, for all pairs of experts.
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert \le \frac{1}{2} \left\lvert h_m - h_{m'} \right\rvert$$"""
    gap, difference, _ = gaps_of_pairs(run)
    return np.maximum(difference - gap / 2, 0).max(axis=(0, 1))


LEMMA_5_APART = statement(
    "lemma-5-apart",
    where="Appendix C, Lemma 5, second sentence",
    says=r"""Where two gate outputs are not close, their probabilities differ by at least the order of the outputs' gap.
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert = \Omega(\delta_\Theta), \quad
    \delta_\Theta = \left\lvert h_m - h_{m'} \right\rvert \neq o(1)$$""",
    why="""The proof uses |e^x - 1| > |x|, which is false for x < 0, and drops the factor pi_m', which is no constant:
    where a third expert takes nearly everything, both probabilities and their gap vanish. With outputs that stay
    bounded, and a fixed number of experts, the factor is at least exp(-2 max |h|) / M. Appendix C uses the lemma where
    its case does not arise: for (28) the outputs' gap is O(sigma_0^0.5), and there the first sentence bounds the
    probabilities' gap from above alone.""",
    instance="Three experts with outputs a, 1 and 0: the last two differ by 1 in output and by less than 2 e^-a in "
    "probability, <0.00008> at a = 10.",
    corrected=r"""They differ by exactly (pi_m + pi_m') tanh(delta/2), and so by the smaller of the two times delta or
    more.
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert = (\pi_m + \pi_{m'}) \tanh \frac{\delta_\Theta}{2} \ge \min(\pi_m,
    \pi_{m'})\, \delta_\Theta$$""",
    disproof="powers_of_two.py",
    proof="lemma_05_apart.py",
    amendment="with min(pi_m, pi_m') as a factor, a constant for bounded outputs and a fixed number of experts",
)
OUTPUTS = (-1.0, -0.4, 0.0, 0.7, 1.0)


@LEMMA_5_APART.charitable("lemma-5.bounded", UPDATES.at("M = 4"), identity(within=1e-12), exact=True)
def bounded_shortfall(run) -> np.ndarray:
    r"""For outputs of at most 1 in size, and three experts, the gap is at least e^-2 / 3 of the outputs' gap.
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert \ge \frac{e^{-2 B}}{M} \left\lvert h_m - h_{m'} \right\rvert, \quad
    \left\lvert h_m \right\rvert \le B$$"""
    triples = np.array(list(itertools.product(OUTPUTS, repeat=3)))
    probabilities = np.exp(triples) / np.exp(triples).sum(axis=1, keepdims=True)
    gaps, differences = np.abs(triples[:, 0] - triples[:, 1]), np.abs(probabilities[:, 0] - probabilities[:, 1])
    return alike(run, float(np.maximum(np.exp(-2) / 3 * gaps - differences, 0).max()))


@LEMMA_5_APART.literal(
    "lemma-5.lower",
    PAIRS,
    identity(within=TOLERANCE),
    where="Lemma 5, proof of the second case",
    instead="lemma-5.lower-of-the-smaller",
)
def printed_shortfall(run) -> np.ndarray:
    r"""|pi_m - pi_m'| is at least pi_m' |h_m - h_m'|, for all ordered pairs of experts.
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert \ge \pi_{m'} \left\lvert h_m - h_{m'} \right\rvert$$"""
    gap, difference, other = gaps_of_pairs(run)
    return np.maximum(other * gap - difference, 0).max(axis=(0, 1))


@LEMMA_5_APART.replacement(
    "lemma-5.lower-of-the-smaller", PAIRS, identity(within=TOLERANCE), where="replaces Lemma 5, second case"
)
def smaller_shortfall(run) -> np.ndarray:
    """|pi_m - pi_m'| is at least min(pi_m, pi_m') |h_m - h_m'|, for all pairs of experts."""
    gap, difference, other = gaps_of_pairs(run)
    smaller = np.minimum(other, other.transpose(1, 0, 2))
    return np.maximum(smaller * gap - difference, 0).max(axis=(0, 1))
