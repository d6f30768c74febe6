"""Lemma 6: the order of an expert's routing probabilities when exploration ends."""

import dataclasses
import math

import numpy as np

from moe_theory.core.random import normals
from moe_theory.edge import interventions
from moe_theory.edge.experiments import (
    BY_SCALE,
    BY_SCALE_QUIET,
    CONVERGES,
    FREE,
    FREE_NOISE,
    FREE_SERVERS,
    MARGIN,
    QUIET,
    drives,
    log_probabilities,
    outputs_of,
)
from moe_theory.edge.statements.proposition_2 import ITS_NEEDS, OF_MANY_SERVERS
from moe_theory.runs.draws import draws_of
from moe_theory.verify.statement import limit_probability, limit_rate, statement

LEMMA_6 = statement(
    "lemma-6",
    where="Appendix C, Lemma 6, Eq. (27)",
    says=r"""At T1 a specialist gives its own kind of task more probability than it gives any other kind.
    $$\pi_m(\mathbf{X}_n, \Theta_{T_1}) > \pi_m(\mathbf{X}_{n'}, \Theta_{T_1}), \quad m \in \mathcal{M}_n$$""",
    hypotheses=CONVERGES,
    note="""An expert belongs to the kind for which its output is largest, but its probability depends on all of them:
    another may outbid it for that kind alone, as happens at Fig. 3's sigma_0 = 0.6 with strong signals. In the limit
    outputs vanish and their sum over experts is 0, so that probabilities are in the order of outputs. The proof is
    another matter: it takes it from (28), which is false.""",
    disproof="noise_swaps_kinds.py",
    amendment="without noise in the features, for equal strengths beta_t, and small sigma_0",
    why="""The sentence is about feature matrices, and noise in them does not vanish with sigma_0 or with the gates: it
    may exchange two kinds for any gates. Its proof looks at the signals alone. (27) has no O(): with outputs of order 1
    another expert may outbid a specialist for its own kind.""",
    instance="""Noise with (s - 1) sigma_t^2 of half of |v_n - v_n'|^2 or more: (27) fails with a chance above 1/19,
    for any gates at every sigma_0.""",
    free=(*(dataclasses.replace(axis, low=QUIET) if axis is FREE_NOISE else axis for axis in FREE), FREE_SERVERS),
)
VANISHES = limit_probability(to=0, margin=0.15)


@LEMMA_6.charitable("lemma-6.features", BY_SCALE_QUIET, VANISHES, where="Lemma 6, Eq. (27)")
def any_disorder_of_features(run) -> np.ndarray:
    r"""At T1 a specialist in kind n gives features of kind n its largest probability, but for chance o(1), where noise
    is small beside the signals.
    $$\mathbb{P}\left[ \exists\, m \in \mathcal{M}_n, n' \neq n :
    \pi_m(\mathbf{X}_n, \Theta_{T_1}) \le \pi_m(\mathbf{X}_{n'}, \Theta_{T_1}) \right] = o(1)$$"""
    signals, params = run.state.pool.signals.astype(np.float64), run.params
    num_tasks, num_features, _ = signals.shape
    least, most = float(params.min_strength), float(params.max_strength)
    strengths = least + (most - least) * draws_of(run, num_tasks, 1).T
    columns = draws_of(run, signals[..., 0].size, 2, normals).T.reshape(num_tasks, num_features, -1)
    noise = float(params.noise_scale) * math.sqrt(run.dims.num_samples - 1) * columns  # the sum of s - 1 of them
    probabilities = log_probabilities(outputs_of(run, strengths[:, None] * signals + noise))
    return np.any(drives(run).argmax(axis=1) != probabilities.argmax(axis=1), axis=0)


@LEMMA_6.replacement("lemma-6.order", BY_SCALE, VANISHES, where="replaces Lemma 6, Eq. (27)")
def any_disorder(run) -> np.ndarray:
    r"""At T1 a specialist in kind n gives its signal its largest probability, but for chance o(1), whatever the noise.
    $$\mathbb{P}\left[ \exists\, m \in \mathcal{M}_n, n' \neq n :
    \pi_m(\mathbf{v}_n, \Theta_{T_1}) \le \pi_m(\mathbf{v}_{n'}, \Theta_{T_1}) \right] = o(1)$$"""
    outputs = drives(run)
    return np.any(outputs.argmax(axis=1) != log_probabilities(outputs).argmax(axis=1), axis=0)


EQUATION_28 = statement(
    "equation-28",
    where="Appendix C, proof of Lemma 6, Eq. (28)",
    says=r"""Up to T1 an expert's probabilities for two kinds of tasks are Omega(sigma_0^0.5) apart.
    $$\left\lvert \pi_m(\mathbf{X}_n, \Theta_t) - \pi_m(\mathbf{X}_{n'}, \Theta_t) \right\rvert =
    \Omega(\sigma_0^{1/2})$$""",
    hypotheses=CONVERGES,
    why="""The line before bounds the gap of two outputs by O(sigma_0^0.5), from above, and Lemma 5 then gives
    O(sigma_0^0.5) again; Omega is written instead. Where servers are alike gates are in fact of order sigma_0^1.5 at T1
    for eta = sigma_0^0.5: who completes a task becomes less likely to get the next, so that steps do not add up. All of
    Proposition 2 hangs on this line.""",
    instance="M = 13, N = 2, orthonormal signals, sigma_0 = 0.02: the largest such gap is 0.00004, and sigma_0^0.5 is "
    "0.14.",
    corrected=f"""{OF_MANY_SERVERS} Where servers are alike they are as in (33): `edge.equation-33`."""
    r"""$$\left\lvert \pi_m(\mathbf{X}_n, \Theta_t) - \pi_m(\mathbf{X}_{n'}, \Theta_t) \right\rvert =
    \mathcal{O}\left( \sigma_0^{1/2} M^{-1} \ln(M/\delta) \right)$$""",
    note=ITS_NEEDS,
    witness="limit.py",
    disproof="opposite_truths_gates.py",
    derivation="gaps_of_many_servers.py",
)
KINDS_APART = limit_rate(at_most=0.5, margin=MARGIN)
APART = r"""$$\underset{m, n, n'}{\max} \left\lvert \pi_m(\mathbf{X}_n, \Theta_{T_1}) -
\pi_m(\mathbf{X}_{n'}, \Theta_{T_1}) \right\rvert = \Omega(\sigma_0^{1/2})$$"""


@EQUATION_28.intervention("equation-28.long-signals", interventions.WITHOUT_SMALL_OUTPUTS, KINDS_APART).says(
    f"Without small outputs, by signals of length 3 sigma_0^-0.75, that gap is Omega(sigma_0^0.5).{APART}"
)
@EQUATION_28.suspect("equation-28.no-noise", interventions.WITHOUT_NOISE, KINDS_APART).says(
    f"Without the noise r of (4), and with short signals, that gap is Omega(sigma_0^0.5).{APART}"
)
@EQUATION_28.charitable("equation-28.kinds", BY_SCALE, KINDS_APART, instead="equation-33.all-pairs")
def gap_of_kinds(run) -> np.ndarray:
    r"""At T1 even the largest gap of an expert's probabilities between two kinds of tasks is Omega(sigma_0^0.5).
    $$\underset{m, n, n'}{\max} \left\lvert \pi_m(\mathbf{X}_n, \Theta_{T_1}) - \pi_m(\mathbf{X}_{n'}, \Theta_{T_1})
    \right\rvert = \Omega(\sigma_0^{1/2})$$"""
    return np.ptp(np.exp(log_probabilities(drives(run))), axis=1).max(axis=0)
