"""Lemma 6: the size of the gates."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.verify.statement import identity, rate, statement

LEMMA_6 = statement(
    "lemma-6",
    where="Lemma 6",
    says=r"""No gate ever has an entry above O(sigma_0^0.5).
    $$\|\theta_t^{(m)}\|_\infty = O(\sigma_0^{0.5})$$""",
    proof="lemma_06.py",
    free=experiments.FREE_AT_LEVEL,
)


@LEMMA_6.charitable("lemma-6.gates", experiments.BY_SCALE, rate(at_least=0.5), hypotheses=experiments.MORE).says(
    "In all rounds the gates of every expert stay O(sigma_0^0.5) in every entry; with more experts than tasks."
)
@LEMMA_6.charitable(
    "lemma-6.gates-fewer",
    experiments.BY_SCALE_FEWER,
    rate(at_least=0.5),
    where="Lemma 6, M < N",
    hypotheses=experiments.FEWER,
).says(r"""In all rounds the gates of every expert stay O(sigma_0^0.5) in every entry; with fewer experts than tasks.
    $$M < N \Rightarrow \|\theta_t^{(m)}\|_\infty = O(\sigma_0^{0.5})$$""")
def largest_gate(run) -> np.ndarray:
    return run.records.gate_size.max(axis=0).astype(np.float64)


@LEMMA_6.step("lemma-6.bound", experiments.BY_SCALE, identity(within=1e-6), where="Lemma 6, proof")
def gate_excess(run) -> np.ndarray:
    r"""No gate's entry exceeds eta T1 alpha M up to T1, nor that and eta (T - T1) alpha M / T1 after it.

    The proof's explicit bound, which leaves out what the locality loss adds; the largest relative excess.
    $$\|\theta_t^{(m)}\|_\infty \leq \eta T_1 \alpha M \ (t \leq T_1), \quad \|\theta_t^{(m)}\|_\infty \leq \eta T_1
    \alpha M + \eta (T - T_1) \frac{\alpha M}{T_1} \ (t > T_1)$$"""
    params, last = run.params, int(run.rounds[-1])
    rate, step = float(params.learning_rate), float(params.balance_weight) * int(params.num_experts)
    rounds = experiments.stage_rounds(params)
    early = rate * rounds * step
    late = early + rate * (last - rounds) * step / rounds
    excess = np.maximum(
        experiments.explored(run, "gate_size").max(axis=0) / early,
        experiments.recorded(run, "gate_size", rounds + 1, last).max(axis=0) / late,
    )
    return np.maximum(excess - 1, 0)
