"""Lemma 8: how far apart the gates of two experts are when exploration ends."""

import numpy as np

from moe_theory.edge import experiments, interventions
from moe_theory.verify.statement import limit_rate, statement

GAP = r"""$$\left\lVert \theta_{T_1}^{(m)} - \theta_{T_1}^{(m')} \right\rVert_\infty = \mathcal{O}(%s),
\quad m \neq m'$$"""
LEMMA_8 = statement(
    "lemma-8",
    where="Lemma 8",
    says="When exploration ends the gates of two experts differ by O(eta^-0.5 sigma_0) in every entry."
    + GAP % r"\eta^{-1/2} \sigma_0",
    hypotheses=experiments.EXPLORES,
    note="""Gates shrink with eta, where it would let them grow. At a fixed eta, which the proof of Proposition 2
    excludes and this lemma does not, a wide r leaves them of order eta^0.5 sigma_0^0.75 apart, as loads differ by the
    root of their number. Tried: signals ten times as long, and strengths down to 0.""",
    disproof="slow_servers_gates.py",
    amendment="truths of size O(sigma_0), delays of one law at all servers, drawn anew for each task; eta = "
    "O(sigma_0^0.5)",
    why="""Where servers differ in speed so do their loads, by a share of all T_1 tasks, and gate steps that do not
    cancel add up to the order of sigma_0^0.5 ln(M/delta). So it is if speeds are drawn once, by one law. With a
    part in common of all truths, of order 1, first moves leave gates Theta(eta) apart.""",
    instance="""Servers of three, two and one round, signals e and -e/2, r wide beside the gates: gates at T1 differ
    by <0.024> sigma_0^0.5 ln(M/delta).""",
    free=(*experiments.FREE, experiments.FREE_SERVERS),
)


@LEMMA_8.charitable(
    "lemma-8.learning-rate", experiments.BY_RATE, limit_rate(at_least=-0.5, margin=experiments.MARGIN)
).says(
    "At T1 the gates of two experts are within O(eta^(-1/2)) of each other in every entry, for small eta."
    + GAP % r"\eta^{-1/2}"
)
@LEMMA_8.competitor(
    "lemma-8.constant-router", interventions.FIRST_IDLE, limit_rate(at_least=0.75, margin=experiments.MARGIN)
).says("With a constant router, to the first idle server, gates are within O(eta^-0.5 sigma_0) too.")
@LEMMA_8.charitable("lemma-8.scale", experiments.BY_SCALE, limit_rate(at_least=0.75, margin=experiments.MARGIN)).says(
    "At T1 the gates of two experts are within O(eta^-0.5 sigma_0), which is O(sigma_0^0.75) for eta = sigma_0^0.5."
)
def largest_difference(run) -> np.ndarray:
    return experiments.explored(run, "gate_gap")[-1]


EQUATION_33 = statement(
    "equation-33",
    where="Appendix C, Eqs. (32) and (33)",
    says=r"""At T1 any two experts' probabilities for a task are within O(sigma_0 eta^-0.5) of each other.
    $$\left\lvert \pi_m(\mathbf{X}_n, \Theta_{T_1}) - \pi_{m'}(\mathbf{X}_n, \Theta_{T_1}) \right\rvert =
    \mathcal{O}(\sigma_0 \eta^{-1/2})$$""",
    hypotheses=experiments.CONVERGES,
    note="""For all pairs of experts, whichever sets they are in: where servers are alike that is what contradicts (28)
    and the second line of (17). Tried: signals ten times as long.""",
    disproof="slow_servers_gates.py",
    amendment="delays of one law at all servers, drawn anew for each task",
    why="It rests on Lemma 8, which needs servers alike; eta = O(sigma_0^0.5), which that needs too, is said here.",
    instance="""Servers of three, two and one round: the gap is <0.006> sigma_0^0.5 ln(M/delta), and sigma_0^0.75 is
    claimed.""",
    free=(*experiments.FREE, experiments.FREE_SERVERS),
)


@EQUATION_33.competitor(
    "equation-33.constant-router", interventions.FIRST_IDLE, limit_rate(at_least=0.75, margin=experiments.MARGIN)
).says("With a constant router, to the first idle server, probabilities are within O(sigma_0 eta^-0.5) too.")
@EQUATION_33.charitable(
    "equation-33.all-pairs", experiments.BY_SCALE, limit_rate(at_least=0.75, margin=experiments.MARGIN)
)
def gap_of_any(run) -> np.ndarray:
    r"""At T1 any two experts' probabilities are within O(sigma_0 eta^-0.5), O(sigma_0^0.75) for eta = sigma_0^0.5.
    $$\underset{m, m', n}{\max} \left\lvert \pi_m(\mathbf{X}_n, \Theta_{T_1}) - \pi_{m'}(\mathbf{X}_n, \Theta_{T_1})
    \right\rvert = \mathcal{O}(\sigma_0 \eta^{-1/2}) = \mathcal{O}(\sigma_0^{3/4})$$"""
    return np.ptp(np.exp(experiments.log_probabilities(experiments.drives(run))), axis=0).max(axis=0)
