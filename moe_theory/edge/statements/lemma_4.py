"""Lemma 4: how large gates become during exploration."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, EXPLORES, explored
from moe_theory.verify.statement import rate, statement


@statement(
    "lemma-4",
    where="Appendix C, Lemma 4",
    says=r"""Up to T1 no gate has an entry above O(sigma_0^0.5).
    $$\left\lVert \theta_t^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^{1/2}), \quad 1 \le t \le T_1$$""",
    hypotheses=EXPLORES,
).literal("lemma-4.gates", BY_SCALE, rate(at_least=0.5), where="Lemma 4")
def largest_gate(run) -> np.ndarray:
    r"""Up to T1 the gates stay O(sigma_0^(1/2)) in every entry.
    $$\left\lVert \theta_t^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^{1/2}), \quad 1 \le t \le T_1$$"""
    return explored(run, "gate_size").max(axis=0)
