"""Lemma 7: what a round of exploration does to gate outputs. "For any" is the largest over experts, signals, rounds."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.verify.statement import counterexample, identity, rate, statement

AMENDMENT = "truths O(sigma_0); signs for the task's own signal, where its product with the features' sum is above 0"
CHOSEN = statement(
    "lemma-7-chosen",
    where="Lemma 7, first case",
    says=r"""Up to T1 a round lowers the chosen expert's output for a signal by O(sigma_0).
    $$|\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_n \rangle| = O(\sigma_0)$$""",
    why="""The order is right where truths are O(sigma_0) (Section 3 bounds their differences only), the sign not for
    every signal: the output for v_n moves by the sign of beta_t v_{n_t}'v_n, up to noise.""",
    instance="""M = 3, N = 2, v_1 = (1, 0, 0), v_2 = (-0.6, 0.8, 0), sigma_0 = 0.01, task 1 first: the chosen expert's
    output falls by 0.69 sigma_0 for v_1 and rises by 0.41 sigma_0 for v_2.""",
    corrected=r"""For the arriving task's own signal the chosen expert's output falls, and all others' rise.
    $$\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_{n_t} \rangle \leq 0 \leq \langle \theta_{t+1}^{(m)} -
    \theta_t^{(m)}, v_{n_t} \rangle, \ m \neq m_t$$""",
    witness="lemma_07.py",
    disproof="obtuse_signals.py",
    proof="lemma_07.py",
    amendment=AMENDMENT,
    free=experiments.FREE_AT_LEVEL,
)
OTHERS = statement(
    "lemma-7-others",
    where="Lemma 7, second case",
    says="Up to T1 a round raises every other expert's output for a signal by O(sigma_0 / M).",
    why="As for the chosen expert: the order is right for every signal, the sign for the arriving task's own only.",
    instance="""M = 3, N = 2, v_1 = (1, 0), v_2 = (-3/5, 4/5), task 1 first: the others' outputs for v_2 fall.""",
    disproof="obtuse_signals.py",
    proof="lemma_07.py",
    amendment=AMENDMENT,
    free=experiments.FREE_AT_LEVEL,
)
OTHERS.also("lemma-7.sign-own", role="corrected")


@CHOSEN.charitable("lemma-7.chosen", experiments.BY_SCALE, rate(at_least=1.0))
def chosen_change(run) -> np.ndarray:
    """In a round up to T1, the chosen expert's output for any signal changes by O(sigma_0) in size."""
    return experiments.explored(run, "chosen_change").max(axis=0)


@OTHERS.charitable(
    "lemma-7.others", experiments.BY_SCALE, rate(at_least=1.0)
).says(r"""In a round up to T1, every other expert's output for any signal changes by O(sigma_0) in size, for fixed M.
    $$m \neq m_t \Rightarrow |\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_n \rangle| = O(\sigma_0)$$""")
@OTHERS.charitable("lemma-7.others-experts", experiments.BY_EXPERTS, rate(at_most=-1.0)).says(r"""
    In a round up to T1, every other expert's output for any signal changes by O(1/M) in size, for fixed sigma_0.
    $$m \neq m_t \Rightarrow |\langle \theta_{t+1}^{(m)} - \theta_t^{(m)}, v_n \rangle| = O(M^{-1})$$""")
def others_change(run) -> np.ndarray:
    return experiments.explored(run, "others_change").max(axis=0)


@CHOSEN.literal(
    "lemma-7.sign", experiments.BY_SCALE, counterexample(), where="Lemma 7, for any signal", instead="lemma-7.sign-own"
)
def rises_once(run) -> np.ndarray:
    r"""In every round up to T1, the chosen expert's output falls for all signals.

    The minus sign before O(sigma_0), which the text below the lemma takes for a fall; a run in which it rises for
    another task's signal in some round violates it.
    $$\langle \theta_{t+1}^{(m_t)} - \theta_t^{(m_t)}, v_n \rangle \leq 0 \ \forall n$$"""
    return experiments.explored(run, "chosen_rise").max(axis=0) > 0


@CHOSEN.replacement(
    "lemma-7.sign-own",
    experiments.BY_SCALE_QUIET,
    identity(within=1e-6),
    where="replaces Lemma 7, signs",
    hypotheses=[experiments.SMALL_NOISE],
)
def largest_wrong_sign(run) -> np.ndarray:
    """Where the noise is O(sigma_0), the chosen expert's output for the arriving task's signal falls and others' rise.

    The largest change of the wrong sign up to T1, over sigma_0."""
    wrong = np.maximum(experiments.explored(run, "own_rise"), experiments.explored(run, "own_fall")).max(axis=0)
    return np.maximum(wrong, 0) / float(run.params.truth_scale)
