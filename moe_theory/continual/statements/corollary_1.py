"""Corollary 1: routing probabilities of two arrivals of one ground truth."""

import numpy as np

from moe_theory.continual.corrected import routing_probabilities
from moe_theory.continual.experiments import BY_SCALE_QUIET, SMALL_NOISE, gate_output_pairs
from moe_theory.verify.statement import rate, statement

COROLLARY_1 = statement(
    "corollary-1",
    where="Corollary 1",
    says=r"""Arrivals of one ground truth have routing probabilities within O(lambda M^2 sigma_0^1.5).
    $$\|p - \hat{p}\|_\infty = O(\lambda M^2 \sigma_0^{1.5}), \lambda = \Theta(\sigma_0^{1.25})$$""",
    hypotheses=[SMALL_NOISE],
    why="""It multiplies Lemma 1's gap by the constant of Lemma 2, and inherits its slip: lambda M^2 stands for M^2 /
    lambda. As lambda shrinks, the same gap of outputs moves the probabilities more, not less.""",
    instance="""M = 3, N = 2, d = 3, s = 2, after one round: 9 of 10 pairs of arrivals of the other task have
    probabilities 51 times lambda M^2 sigma_0^1.5 apart or more at sigma_0 = 0.01, and 518,244 times at 0.0001.""",
    corrected=r"""With M^2 / lambda, or 2 / lambda, in place of lambda M^2 it holds where noise is O(sigma_0) and
    strengths are equal, as Lemma 1 needs.
    $$\|p - \hat{p}\|_\infty = O(\sigma_0^{1.5} / \lambda)$$""",
    witness="corollary_1.py",
    proof="corollary_1.py",
    amendment="1/lambda in place of lambda; sigma_t = O(sigma_0), and one strength beta in both",
)


@COROLLARY_1.literal(
    "corollary-1.probabilities", BY_SCALE_QUIET, rate(at_least=2.75), instead="corollary-1.lipschitz"
).says("""Two arrivals of one task are routed with probabilities within O(lambda M^2 sigma_0^1.5) = O(sigma_0^2.75).

    M is fixed and lambda = sigma_0^1.25; the noise is small, so that Lemma 1 is not what fails.""")
@COROLLARY_1.charitable(
    "corollary-1.lipschitz", BY_SCALE_QUIET, rate(at_least=0.25), where="replaces Corollary 1"
).says(r"""
    Where noise is O(sigma_0), they are routed with probabilities within O(sigma_0^1.5/lambda) = O(sigma_0^0.25).
    $$\|p - \hat{p}\|_\infty = O(\sigma_0^{1.5} / \lambda), \lambda = \Theta(\sigma_0^{1.25})$$""")
def probability_gap(run) -> np.ndarray:
    probabilities = routing_probabilities(gate_output_pairs(run), float(run.params.perturbation_scale))
    return np.abs(np.diff(probabilities, axis=1)).max(axis=(1, 2))
