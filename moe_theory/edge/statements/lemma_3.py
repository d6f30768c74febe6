"""Lemma 3: what one completed task does to the gates."""

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, BY_SERVERS, EXPLORES, SCALES, SCALING, explored, scale_name
from moe_theory.verify.statement import identity, rate, statement


def largest_step(run, name: str, sign: int) -> np.ndarray:
    """The largest change by a gate step, of this sign, over the rounds up to T1 with one completion (B,)."""
    return float(run.params.learning_rate) * np.nanmax(sign * explored(run, name), axis=0)


@statement(
    "lemma-3-own",
    where="Appendix C, Lemma 3, first case",
    says="Up to T1 completing a task lowers the expert's own output for its signal by O(sigma_0).",
    hypotheses=EXPLORES,
).literal("lemma-3.own", BY_SCALE, rate(at_least=1), where="Lemma 3, first case")
def own_step(run) -> np.ndarray:
    r"""Completing a task of kind n lowers the expert's own output <theta, v_n> by O(sigma_0), in all rounds up to T1.
    $$\left\langle \theta_t^{(m)} - \theta_{t-1}^{(m)}, \mathbf{v}_n \right\rangle = -\mathcal{O}(\sigma_0)
    \quad \text{if } m \text{ completes a task of } \mathcal{W}_n \text{ at } t \le T_1$$"""
    return largest_step(run, "own_change", -1)


OTHERS = r"""$$\left\langle \theta_t^{(m)} - \theta_{t-1}^{(m)}, \mathbf{v}_n \right\rangle = \mathcal{O}(%s)
\quad \text{if another expert completes a task of } \mathcal{W}_n \text{ at } t \le T_1$$"""
LEMMA_3_OTHERS = statement(
    "lemma-3-others",
    where="Lemma 3, second case",
    says="Up to T1 it raises every other expert's output for that signal by O(sigma_0 / M)."
    + OTHERS % r"M^{-1} \sigma_0",
    hypotheses=EXPLORES,
    why="""That steps sum to zero over the experts bounds the mean of the other M - 1 steps, not each of them: the step
    of expert m is in proportion to pi_m, which is of order 1/M only while the router prefers nobody.""",
)


@LEMMA_3_OTHERS.literal("lemma-3.others-scale", BY_SCALE, rate(at_least=1)).says(
    "It raises every other expert's output <theta, v_n> by O(sigma_0), in all rounds up to T1." + OTHERS % r"\sigma_0"
)
@LEMMA_3_OTHERS.literal("lemma-3.others", BY_SERVERS, rate(at_most=-1)).says(
    "It raises every other expert's output <theta, v_n> by O(1/M), in all rounds up to T1." + OTHERS % "M^{-1}"
)
def step_of_others(run) -> np.ndarray:
    return largest_step(run, "others_change", 1)


@statement(
    "lemma-3-sum",
    where="Appendix C, Lemma 3, proof",
    says="The gates' gradients cancel when summed over experts.",
    hypotheses=EXPLORES,
).charitable(
    "lemma-3.sum", SCALING.over([scale_name(scale) for scale in SCALES]), identity(within=1e-3), where="Lemma 3, proof"
)
def gate_drift(run) -> np.ndarray:
    r"""Gate steps sum to zero over the experts, and so in every round do the gates, relative to their largest entry.
    $$\sum_{m \in \mathbb{M}} \left( \theta_t^{(m)} - \theta_{t-1}^{(m)} \right) = \mathbf{0}, \quad
    \sum_{m \in \mathbb{M}} \theta_t^{(m)} = \mathbf{0}$$"""
    return run.records.gate_drift.max(axis=0).astype(np.float64)
