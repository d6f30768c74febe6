"""Lemma 6: the order of an expert's routing probabilities when exploration ends."""

import numpy as np

from moe_theory.edge.experiments import ADAPTIVE, EXPLORES, FAILURE, explored_record
from moe_theory.verify.statement import probability, statement


@statement(
    "lemma-6",
    where="Appendix C, Lemma 6, Eq. (27)",
    says=r"""At T1 a specialist gives its own kind of task more probability than it gives any other kind.
    $$\pi_m(\mathbf{X}_n, \Theta_{T_1}) > \pi_m(\mathbf{X}_{n'}, \Theta_{T_1}), \quad m \in \mathcal{M}_n$$""",
    hypotheses=EXPLORES,
    why="""An expert belongs to the kind for which its output is largest, but its probability depends on all of them:
    another expert may outbid it for that kind alone. And the proof turns a bound from above, O(sigma_0^0.5), into
    Omega(sigma_0^0.5).""",
    note="M = 10 is among the runs, and the paper asks for M > N = 10 where the router is to converge.",
).literal(
    "lemma-6.order", ADAPTIVE.over("num_experts", 10, 50), probability(at_most=FAILURE), where="Lemma 6, Eq. (27)"
)
def any_disorder(run) -> np.ndarray:
    r"""At T1 an expert whose output is largest for kind n has its largest probability there, but for chance delta.
    $$\mathbb{P}\left[ \exists\, m \in \mathcal{M}_n, n' \neq n :
    \pi_m(\mathbf{X}_n, \Theta_{T_1}) \le \pi_m(\mathbf{X}_{n'}, \Theta_{T_1}) \right] \le \delta$$"""
    gates = run.records.gates[explored_record(run)][: int(run.params.num_experts)].astype(np.float64)
    drives = np.einsum("mdb,ndb->mnb", gates, run.state.pool.signals.astype(np.float64))
    log_probabilities = drives - np.logaddexp.reduce(drives, axis=0, keepdims=True)
    return np.any(drives.argmax(axis=1) != log_probabilities.argmax(axis=1), axis=0)
