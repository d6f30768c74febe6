"""Lemma 9: how far the gates of two experts are apart at the end of exploration."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.verify.statement import rate, statement

LEMMA_9 = statement(
    "lemma-9",
    where="Lemma 9",
    says=r"""When exploration ends the gates of two experts differ by O(eta^-0.5 sigma_0) in every entry.
    $$\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(\eta^{-0.5} \sigma_0)$$""",
    proof="lemma_09.py",
    disproof="common_part_gates.py",
    amendment="truths of size O(sigma_0)",
    why="""Section 3 bounds how far truths differ, and the proof takes them to be of order sigma_0. With a part in
    common of order 1 an expert's first task of a kind moves its gate by Theta(eta), in proportion to that round's beta,
    and the second expert's by another beta.""",
    instance="""Two experts, s = 1, orthonormal signals, all truths (1, ..., 1), beta = 1 or 1/2: two gates are eta/5
    or more apart once a task has come twice with different beta.""",
    free=experiments.FREE_AT_LEVEL,
)


@LEMMA_9.charitable("lemma-9.scale", experiments.BY_SCALE, rate(at_least=0.75)).says(
    "At T1 the gates of two experts are within O(eta^-0.5 sigma_0) of each other: O(sigma_0^0.75), as eta shrinks."
)
@LEMMA_9.charitable(
    "lemma-9.learning-rate", experiments.BY_RATE, rate(at_least=-0.5)
).says(r"""At T1 the gates of two experts are within O(eta^-0.5) of each other for small eta, at a fixed sigma_0.
    $$\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(\eta^{-0.5})$$""")
@LEMMA_9.charitable("lemma-9.experts", experiments.BY_EXPERTS, rate(at_most=0.0)).says(r"""
    At T1 the gates of two experts are within O(1) of each other for many experts: the bound does not grow with M.
    $$\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(M^0)$$""")
def final_gate_gap(run) -> np.ndarray:
    """max |theta_T1^(m) - theta_T1^(m')|: the gates that route in round T1 are those after round T1 - 1."""
    return experiments.explored(run, "gate_gap")[-2]
