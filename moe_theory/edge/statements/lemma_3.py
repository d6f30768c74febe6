"""Lemma 3: what one completed task does to the gates."""

import itertools

import numpy as np

from moe_theory.edge.experiments import BY_SCALE, BY_SERVERS, EXPLORES, MARGIN, explored
from moe_theory.edge.statements.lemma_1 import UPDATES
from moe_theory.verify.statement import alike, identity, limit_rate, statement


def largest_step(run, name: str, sign: int) -> np.ndarray:
    """The largest change by a gate step, of this sign, over the recorded rounds up to T1 with one completion (B,)."""
    return float(run.params.learning_rate) * np.nanmax(sign * explored(run, name), axis=0)


LEMMA_3_OWN = statement(
    "lemma-3-own",
    where="Appendix C, Lemma 3, first case",
    says="Up to T1 completing a task lowers the expert's own output for its signal by O(sigma_0).",
    hypotheses=EXPLORES,
    note="Tried: signals ten times as long, and strengths down to 0.",
    disproof="noise_turns_steps.py",
    amendment="truths of size O(sigma_0), no noise in the features, and one task that ends a round",
    why="""The sign of a step is that of <sum_i X_i, v>, and the noise of s - 1 columns turns it with a chance that does
    not fall with sigma_0. Steps of tasks that end in one round add up, and another's may win. The proof leaves out
    both, and Assumption 1 bounds how far truths differ, not their size.""",
    instance="""Noise of (s - 1)^0.5 sigma_t = beta |v|: wrong signs with a chance above 1/19. Two servers, no noise: 1
    has learned a kind, and both end a task of it together: its output rises by about eta sigma_0/4.""",
    proof="lemma_03_signs.py",
)


@LEMMA_3_OWN.charitable("lemma-3.own", BY_SCALE, limit_rate(at_least=1, margin=MARGIN), where="Lemma 3, first case")
def own_step(run) -> np.ndarray:
    r"""Completing a task of kind n lowers the expert's own output <theta, v_n> by O(sigma_0), in all rounds up to T1.
    $$\left\langle \theta_t^{(m)} - \theta_{t-1}^{(m)}, \mathbf{v}_n \right\rangle = -\mathcal{O}(\sigma_0)
    \quad \text{if } m \text{ completes a task of } \mathcal{W}_n \text{ at } t \le T_1$$"""
    return largest_step(run, "own_change", -1)


OTHERS = r"""$$\left\langle \theta_t^{(m)} - \theta_{t-1}^{(m)}, \mathbf{v}_n \right\rangle = \mathcal{O}(%s)
\quad \text{if another expert completes a task of } \mathcal{W}_n \text{ at } t \le T_1$$"""
LEMMA_3_OTHERS = LEMMA_3_OWN.twin(
    "lemma-3-others",
    where="Lemma 3, second case",
    says="Up to T1 it raises every other expert's output for that signal by O(sigma_0 / M)."
    + OTHERS % r"M^{-1} \sigma_0",
    instance="M = 3, first tasks of kinds 1 and 2 end together, v_1'v_2 = 3/5: 2's output for v_1 falls by eta "
    "sigma_0/<45>.",
)


@LEMMA_3_OTHERS.charitable("lemma-3.others-scale", BY_SCALE, limit_rate(at_least=1, margin=MARGIN)).says(
    "It raises every other expert's output <theta, v_n> by O(sigma_0), in all rounds up to T1." + OTHERS % r"\sigma_0"
)
@LEMMA_3_OTHERS.charitable("lemma-3.others", BY_SERVERS, limit_rate(at_most=-1, margin=MARGIN)).says(
    "It raises every other expert's output <theta, v_n> by O(1/M), in all rounds up to T1." + OTHERS % "M^{-1}"
)
def step_of_others(run) -> np.ndarray:
    return largest_step(run, "others_change", 1)


@statement(
    "lemma-3-sum",
    where="Appendix C, Lemma 3, proof",
    says="The gates' gradients cancel when summed over experts.",
    note="Tried: outputs from equal to 40 apart, where one probability is 1 to the last digit.",
    proof="lemma_03_sum.py",
).charitable(
    "lemma-3.sum", UPDATES.at("M = 4"), identity(within=1e-15), where="Lemma 3, proof, Eqs. (24) to (26)", exact=True
)
def sum_of_slopes(run) -> np.ndarray:
    r"""The derivatives (25) and (26) of any probability in the outputs sum to zero over the experts.
    $$\sum_{m \in \mathbb{M}} \nabla_{\theta_t^{(m)}} \mathcal{L}_t = \left\lVert \mathbf{w}_t^{(m_t)} -
    \mathbf{w}_{t-1}^{(m_t)} \right\rVert_2 \sum_{m \in \mathbb{M}}
    \pi_{m_t} \left( \mathbb{1}\{m = m_t\} - \pi_m \right) \sum_{i} \mathbf{X}_{t,i} = \mathbf{0}$$"""
    worst = 0.0
    for outputs in itertools.product((-20.0, -1.0, 0.0, 0.5, 20.0), repeat=3):
        probabilities = np.exp(outputs) / np.exp(outputs).sum()
        for chosen in np.eye(3):
            slopes = (probabilities @ chosen) * (chosen - probabilities)
            worst = max(worst, abs(float(slopes.sum())))
    return alike(run, worst)
