"""Lemma 4: how large gates become during exploration."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, EXPLORES, MARGIN, explored
from moe_theory.verify.statement import limit_rate, statement


@statement(
    "lemma-4",
    where="Appendix C, Lemma 4",
    says=r"""Up to T1 no gate has an entry above O(sigma_0^0.5).
    $$\left\lVert \theta_t^{(m)} \right\rVert_\infty = \mathcal{O}(\sigma_0^{1/2}), \quad 1 \le t \le T_1$$""",
    hypotheses=EXPLORES,
    note="""Where servers are alike it holds with a whole order of sigma_0 to spare: the proof adds up T1 steps as if
    all had one sign, but who completes a task becomes less likely to get the next. Tried: signals ten times
    as long.""",
    disproof="slow_servers_gates.py",
    proof="lemma_04.py",
    amendment="up to the factor ln(M/delta), which T_1 has",
    why="""T_1 has the factor ln(M/delta), delta = o(1), which the proof leaves out. Where servers differ in
    speed steps do not cancel, and gates have it.""",
    instance="""Servers of three, two and one round, signals e and -e/2, r wide beside the gates: <0.014> sigma_0^0.5
    ln(M/delta).""",
).charitable("lemma-4.gates", BY_SCALE, limit_rate(at_least=0.5, margin=MARGIN), where="Lemma 4")
def largest_gate(run) -> np.ndarray:
    """Up to T1 the gates stay O(sigma_0^(1/2)) in every entry."""
    return explored(run, "gate_size").max(axis=0)
