"""Lemmas 8 and 9, on how evenly the exploration stage loads the experts, and how near it leaves their gates.

Both are tested in mean, by their exponents over grids of eta, of M and of sigma_0, and Lemma 8's chance delta by the
bound that its proof gives explicitly. There are more experts than tasks.
"""

import numpy as np

from moe_theory.continual.claims.values import EXPONENT_MARGIN, FAILURE, SCALE_CELLS, named, over, recorded
from moe_theory.continual.grids import (
    BLIND,
    EXPERT_GRID,
    EXPERTS,
    RATES,
    SCALES,
    SCALING,
    experts_name,
    exploration_rounds,
    rate_name,
)
from moe_theory.runs import Run
from moe_theory.verify.claim import claim

RATE_CELLS = tuple(rate_name(rate) for rate in RATES)
EXPERT_CELLS = tuple(experts_name(number) for number in EXPERTS)
BLIND_CELLS = tuple(experts_name(number, BLIND) for number in EXPERTS)


def _load_gap(run: Run) -> np.ndarray:
    """max_m |f_T1(m) - 1/M|."""
    count = int(run.params.num_experts)
    shares = run.state.explored_visits[:count].astype(np.float64) / exploration_rounds(run.params)
    return np.abs(shares - 1 / count).max(axis=0)


def _one_load_gap(run: Run) -> np.ndarray:
    """|f_T1(1) - 1/M|, of one expert that is fixed before the run."""
    share = run.state.explored_visits[0].astype(np.float64) / exploration_rounds(run.params)
    return np.abs(share - 1 / int(run.params.num_experts))


@claim(
    "continual.lemma-8.learning-rate",
    paper="continual",
    where="Lemma 8, Eq. (32)",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma8Rate:
    """At T1 every expert's share of the tasks is within O(eta^0.5) of 1/M for small eta, in mean."""

    formula = r"|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5})"
    experiment = SCALING
    side = "at_least"
    abscissa = RATES
    labels = named(*RATE_CELLS)
    observe = over(RATE_CELLS, _load_gap)
    predict = staticmethod(lambda runs: 0.5)


@claim(
    "continual.lemma-8.experts",
    paper="continual",
    where="Lemma 8, Eq. (32)",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.lemma-8.independent",
)
class Lemma8Experts:
    """At T1 every expert's share of the tasks is within O(1/M) of 1/M, in mean.

    "Any expert m" is read as all experts at once: the largest distance of a share from 1/M.
    """

    formula = r"\max_m |f_{T_1}^{(m)} - \frac{1}{M}| = O(M^{-1})"
    experiment = EXPERT_GRID
    side = "at_most"
    abscissa = EXPERTS
    labels = named(*EXPERT_CELLS)
    observe = over(EXPERT_CELLS, _load_gap)
    predict = staticmethod(lambda runs: -1.0)


@claim(
    "continual.lemma-8.one-expert",
    paper="continual",
    where="Lemma 8, Eq. (32), for one expert",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.lemma-8.independent-one-expert",
)
class Lemma8OneExpert:
    """At T1 the share of one expert, fixed beforehand, is within O(1/M) of 1/M, in mean."""

    formula = r"|f_{T_1}^{(1)} - \frac{1}{M}| = O(M^{-1})"
    experiment = EXPERT_GRID
    side = "at_most"
    abscissa = EXPERTS
    labels = named(*EXPERT_CELLS)
    observe = over(EXPERT_CELLS, _one_load_gap)
    predict = staticmethod(lambda runs: -1.0)


@claim(
    "continual.lemma-8.experts-proved",
    paper="continual",
    where="Lemma 8, what its proof gives",
    kind="rate",
    margin=EXPONENT_MARGIN,
    replaced_by="continual.lemma-8.independent",
)
class Lemma8ExpertsProved:
    """At T1 every expert's share of the tasks is within O(M^-0.5) of 1/M, in mean.

    What the proof's inequality gives with T1 = M/eta: eps = (eta ln(2M/delta) / (2M))^0.5, and not eta^0.5 / M.
    """

    formula = r"|f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5} M^{-0.5})"
    experiment = EXPERT_GRID
    side = "at_most"
    abscissa = EXPERTS
    labels = named(*EXPERT_CELLS)
    observe = over(EXPERT_CELLS, _load_gap)
    predict = staticmethod(lambda runs: -0.5)


def _exceeds_hoeffding(run: Run) -> np.ndarray:
    """Whether some expert's share is farther from 1/M than (ln(2M/delta) / (2 T1))^0.5."""
    explored = exploration_rounds(run.params)
    return _load_gap(run) > np.sqrt(np.log(2 * int(run.params.num_experts) / FAILURE) / (2 * explored))


@claim(
    "continual.lemma-8.hoeffding",
    paper="continual",
    where="Lemma 8, proof",
    kind="probability",
    replaced_by="continual.lemma-8.independent-hoeffding",
)
class Lemma8Hoeffding:
    """At T1 every expert's share is within (ln(2M/delta) / (2 T1))^0.5 of 1/M, but for chance delta = 0.05.

    The proof applies Hoeffding's inequality to routes that depend on each other.
    """

    formula = r"P(\exists m: |f_{T_1}^{(m)} - \frac{1}{M}| > \epsilon) \leq 2 M \exp (-2 \epsilon^2 T_1) = \delta"
    experiment = EXPERT_GRID
    side = "at_most"
    labels = named(*EXPERT_CELLS)
    observe = over(EXPERT_CELLS, _exceeds_hoeffding)
    predict = staticmethod(lambda runs: FAILURE)


@claim(
    "continual.lemma-8.independent",
    paper="continual",
    where="replaces Lemma 8, Eq. (32)",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma8Independent:
    """Where the perturbation outweighs the gate outputs, every expert's share at T1 is within O(M^-0.5) of 1/M.

    Routes are then independent and uniform, as the proof supposes; lambda is 1000. O(M^-0.5) is what Hoeffding's
    inequality gives, and not sharp: the largest distance of such shares is of order eta^0.5 M^-1 (ln M)^0.5.
    """

    formula = r"\lambda \gg \|h\|_\infty \Rightarrow |f_{T_1}^{(m)} - \frac{1}{M}| = O(\eta^{0.5} M^{-0.5})"
    experiment = EXPERT_GRID
    side = "at_most"
    abscissa = EXPERTS
    labels = named(*BLIND_CELLS)
    observe = over(BLIND_CELLS, _load_gap)
    predict = staticmethod(lambda runs: -0.5)


@claim(
    "continual.lemma-8.independent-one-expert",
    paper="continual",
    where="replaces Lemma 8, Eq. (32), for one expert",
    kind="rate",
    margin=EXPONENT_MARGIN,
)
class Lemma8IndependentOneExpert:
    """Where the perturbation outweighs the gate outputs, one expert's share at T1 is within O(1/M) of 1/M, in mean.

    Its number of tasks is then binomial with mean T1/M = 1/eta, so that the distance is of order eta^0.5 / M.
    """

    formula = r"\lambda \gg \|h\|_\infty \Rightarrow |f_{T_1}^{(1)} - \frac{1}{M}| = O(\eta^{0.5} M^{-1})"
    experiment = EXPERT_GRID
    side = "at_most"
    abscissa = EXPERTS
    labels = named(*BLIND_CELLS)
    observe = over(BLIND_CELLS, _one_load_gap)
    predict = staticmethod(lambda runs: -1.0)


@claim(
    "continual.lemma-8.independent-hoeffding",
    paper="continual",
    where="replaces Lemma 8, proof",
    kind="probability",
)
class Lemma8IndependentHoeffding:
    """There every share is within (ln(2M/delta) / (2 T1))^0.5 of 1/M, but for chance delta = 0.05."""

    formula = (
        r"\lambda \gg \|h\|_\infty \Rightarrow "
        r"P(\exists m: |f_{T_1}^{(m)} - \frac{1}{M}| > \epsilon) \leq 2 M \exp (-2 \epsilon^2 T_1) = \delta"
    )
    experiment = EXPERT_GRID
    side = "at_most"
    labels = named(*BLIND_CELLS)
    observe = over(BLIND_CELLS, _exceeds_hoeffding)
    predict = staticmethod(lambda runs: FAILURE)


def _final_gate_gap(run: Run) -> np.ndarray:
    """max |theta_T1^(m) - theta_T1^(m')|: the gates that route in round T1 are those after round T1 - 1."""
    explored = exploration_rounds(run.params)
    return recorded(run, "gate_gap", explored - 1, explored - 1)[0]


@claim("continual.lemma-9.scale", paper="continual", where="Lemma 9", kind="rate", margin=EXPONENT_MARGIN)
class Lemma9Scale:
    """At T1 the gates of two experts are within O(eta^-0.5 sigma_0) of each other: O(sigma_0^0.75), as eta shrinks."""

    formula = r"\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(\eta^{-0.5} \sigma_0) = O(\sigma_0^{0.75})"
    experiment = SCALING
    side = "at_least"
    abscissa = SCALES
    labels = named(*SCALE_CELLS)
    observe = over(SCALE_CELLS, _final_gate_gap)
    predict = staticmethod(lambda runs: 0.75)


@claim("continual.lemma-9.learning-rate", paper="continual", where="Lemma 9", kind="rate", margin=EXPONENT_MARGIN)
class Lemma9Rate:
    """At T1 the gates of two experts are within O(eta^-0.5) of each other for small eta, at a fixed sigma_0."""

    formula = r"\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(\eta^{-0.5})"
    experiment = SCALING
    side = "at_least"
    abscissa = RATES
    labels = named(*RATE_CELLS)
    observe = over(RATE_CELLS, _final_gate_gap)
    predict = staticmethod(lambda runs: -0.5)


@claim("continual.lemma-9.experts", paper="continual", where="Lemma 9", kind="rate", margin=EXPONENT_MARGIN)
class Lemma9Experts:
    """At T1 the gates of two experts are within O(1) of each other for many experts: the bound does not grow with M."""

    formula = r"\|\theta_{T_1}^{(m)} - \theta_{T_1}^{(m')}\|_\infty = O(M^0)"
    experiment = EXPERT_GRID
    side = "at_most"
    abscissa = EXPERTS
    labels = named(*EXPERT_CELLS)
    observe = over(EXPERT_CELLS, _final_gate_gap)
    predict = staticmethod(lambda runs: 0.0)
