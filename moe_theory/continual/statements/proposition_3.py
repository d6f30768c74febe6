"""Proposition 3: when the gates are fixed, and how they route then."""

import numpy as np

from moe_theory.continual import experiments, interventions
from moe_theory.continual.statements.proposition_1 import claim_competitors
from moe_theory.core.routes import own_share
from moe_theory.verify.statement import bound, equality, probability, ranged, statement

MANY = experiments.SPECIALIZATION.over(experiments.MANY_SMALLEST)
FEW = experiments.SPECIALIZATION.over(experiments.FEW_SMALLEST)
AT_FIGURE_2 = experiments.SPECIALIZATION.over(experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2)
SHARE_MARGIN = 0.1  # of a share 1/|M_n|
REDUCED_MARGIN = 0.05  # of all arrivals

LEVEL = "a start from level gates (outputs sigma_0^0.5 higher for"
EARLY = "large first steps of the auxiliary loss (alpha = sigma_0)"

TERMINATION = statement(
    "proposition-3-termination",
    where="Proposition 3, first sentence",
    says=r"""Algorithm 1 has stopped updating the gates by a round T2 of order sigma_0^-0.25 M / eta.
    $$T_2 = \mathcal{O}(\eta^{-1} \sigma_0^{-0.25} M)$$""",
    why="""Every expert has to be flagged, and the proof lets each come near to who is chosen. Where signals have a part
    in common the first step of the auxiliary loss puts an expert out of reach for all tasks, for longer than T2.""",
    instance="""Two signals of cosine 3/5, s = 1, M of order ln 1/sigma_0: the expert of round 1 trails all others by
    far more than lambda and Gamma up to 10 T2, so that it is not chosen and gets no flag.""",
    note="""An expert is flagged whenever it is chosen, its output being 0 away from its own: gates are fixed once every
    expert has been chosen after T1, M (ln M + 0.58) rounds later if routes are even, however small Gamma is.""",
    disproof="never_flagged.py",
    amendment="unless signals are orthogonal, alpha = o(sigma_0^0.75)",
)
TASKS = statement(
    "proposition-3-more-experts",
    where="Proposition 3 (M > N version)",
    note="With a baseline in (6) and gates that are never fixed a task gets experts of its own: reinforced.settling.",
    witness="lemma_15.py",
    disproof="opposite_truths_routing.py",
    says=r"""After T2 an arriving task goes to each of its specialists equally often, and to no other expert.
    $$\mathbb{P}(m_t = m \mid m \in \mathcal{M}_{n_t}) = \frac{1}{|\mathcal{M}_{n_t}|}, \quad t > T_2$$""",
    why="""The proof takes from Proposition 2 that outputs outside a set are lower by Theta(sigma_0^0.75), far above
    lambda = Theta(sigma_0^1.25). Sets are not ordered so: (11) compares an expert's outputs for different tasks; for
    one task another set's may be above its own, see Lemma 15.""",
    instance="""M = 24, N = 6 orthonormal tasks (for M < N 30 in six clusters), d = 8, s = 2: about half of the arrivals
    leave their set, at sigma_0 = 0.01 as at 0.0001.""",
    corrected=r"""Whether tasks keep to experts is decided by kappa, how far a step of the gates moves an output: below
    a critical drive near 1 (`corrected.critical_drive`) a leader loses its task by paying for it, and kappa goes to 0.
    Fixed gates freeze what chance has left, little where kappa is below lambda. Own arrivals are those of
    `continual.reduced`, to 0.05. A leader's chance is 1/|M_n| plus the set's gap over lambda, at most.
    $$\mathbb{P}(m_t = m) \leq \frac{1}{|\mathcal{M}_{n_t}|} + \frac{1}{\lambda} \max_{m, m' \in \mathcal{M}_{n_t}} |h_m
    - h_{m'}|$$""",
)
CLUSTERS = TASKS.twin(
    "proposition-3-fewer-experts",
    note="",
    where="Proposition 3 (full version, M < N)",
    says=r"""After T2, with fewer experts than tasks, an arriving task goes to each specialist of its cluster equally
    often.
    $$\mathbb{P}(m_t = m \mid m \in \mathcal{M}_k) = \frac{1}{|\mathcal{M}_k|}, \quad t > T_2$$""",
)
CLUSTERS.also("proposition-3.leader", role="corrected")
CLUSTERS.also("proposition-3.inside-own", "proposition-3.uniform-own", role="ours")


@TERMINATION.charitable(
    "proposition-3.time", experiments.LIMIT_MANY, experiments.LIKELY, where="Proposition 3, T2, M > N"
).says("With M > N, the gates are fixed by T2, but for o(1): they are by 1.25 T1, which is sooner.")
@TERMINATION.charitable(
    "proposition-3.time-clusters", experiments.LIMIT_FEW, experiments.LIKELY, where="Proposition 3, T2, M < N"
).says("With M < N, the gates are fixed by T2, but for o(1): they are by the end of runs that are shorter.")
def is_soon_terminated(run) -> np.ndarray:
    return run.state.state.terminated


claim_competitors(
    is_soon_terminated,
    {"proposition-3.time": TERMINATION, "proposition-3.time-clusters": TERMINATION},
    {
        "tiny": ("Gamma = sigma_0^6, which no two outputs are near to", interventions.TINY),
        "habit": ("a router that always takes the first expert", interventions.HABIT),
    },
    "the gates are fixed by T2, but for o(1)",
)


@TERMINATION.ours(
    "proposition-3.time-own", AT_FIGURE_2, probability(at_least=1 - experiments.FAILURE), where="Proposition 3, T2"
).says(r"""At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, gates are fixed from T2 on.

    With probability at least 1 - delta. O() is about the limit of small sigma_0, which says nothing of a single point.
    $$T_2 = \mathcal{O}(\eta^{-1} \sigma_0^{-0.25} M), \quad \sigma_0 = 0.4$$""")
def is_terminated(run) -> np.ndarray:
    return run.records.terminated[experiments.stage_rounds(run.params, experiments.T2_POWER)]


def fixed(run) -> np.ndarray:
    """Arrivals past T2 with the gates fixed, whose set is not empty (T, B)."""
    is_past_stage_2 = run.rounds > experiments.stage_rounds(run.params, experiments.T2_POWER)
    return run.records.terminated & is_past_stage_2[:, None] & (run.records.set_size >= 1)


def share(happens: np.ndarray) -> np.ndarray:
    return np.asarray(np.mean(happens, axis=0, dtype=np.float64))


@ranged(0, experiments.FAILURE)
def tolerated_outside(run) -> np.ndarray:
    return experiments.FAILURE * share(fixed(run))


@TASKS.charitable(
    "proposition-3.inside-tasks",
    experiments.LIMIT_MANY,
    experiments.UNLIKELY,
    where="Proposition 3, and its full version, case 1",
    hypotheses=experiments.MORE,
).says(r"""With M > N, once the gates are fixed an arrival whose set is not empty goes outside it with probability o(1).

    Whether any of the first 20 does, which has probability o(1) too.
    $$\mathbb{P}(m_t \notin \mathcal{M}_{n_t}) = o(1), \quad t > T_2$$""")
@CLUSTERS.charitable(
    "proposition-3.inside-clusters",
    experiments.LIMIT_FEW,
    experiments.UNLIKELY,
    where="Proposition 3, full version, case 2",
    hypotheses=experiments.FEWER,
).says(r"""With M < N, once the gates are fixed an arrival whose cluster has specialists goes to none with chance o(1).
    $$\mathbb{P}(m_t \notin \mathcal{M}_k) = o(1), \quad t > T_2$$""")
@TASKS.intervention(
    "proposition-3.inside-tasks-apart",
    interventions.QUIET_APART_MANY,
    experiments.UNLIKELY,
    hypotheses=experiments.MORE,
).says(f"Without {LEVEL} own tasks; alpha = sigma_0) no arrival leaves its set once the gates are fixed, but for o(1).")
@CLUSTERS.intervention(
    "proposition-3.inside-clusters-apart",
    interventions.QUIET_APART_FEW,
    experiments.UNLIKELY,
    hypotheses=experiments.FEWER,
).says(f"Without {LEVEL} own clusters; alpha = sigma_0) no arrival leaves its set once the gates are fixed.")
@TASKS.suspect(
    "proposition-3.inside-tasks-quiet", interventions.QUIET_MANY, experiments.UNLIKELY, hypotheses=experiments.MORE
).says(f"Without {EARLY} alone no arrival leaves its set then, but for o(1).")
@CLUSTERS.suspect(
    "proposition-3.inside-clusters-quiet", interventions.QUIET_FEW, experiments.UNLIKELY, hypotheses=experiments.FEWER
).says(f"Without {EARLY} alone no arrival leaves its set then, but for o(1).")
def is_soon_outside(run) -> np.ndarray:
    return run.state.was_outside


@TASKS.ours(
    "proposition-3.inside-own", AT_FIGURE_2, bound(at_most=tolerated_outside), where="Proposition 3, full version"
).says(r"""
    At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, past T2 few leave their set.

    Both cases, at most a fraction delta of arrivals. O() is about the limit of small sigma_0, not of a single point.
    $$\mathbb{P}(m_t \notin \mathcal{M}_{n_t}) \leq \delta, \quad t > T_2, \sigma_0 = 0.4$$""")
@ranged(0, 1)
def outside(run) -> np.ndarray:
    return share(fixed(run) & ~run.records.is_inside)


def contested(run) -> np.ndarray:
    """Of those arrivals the ones with at least two experts in the set (T, B)."""
    return fixed(run) & (run.records.set_size >= 2)


def even_share(run) -> np.ndarray:
    return share(contested(run) / np.maximum(run.records.set_size, 1))


def bounded_share(run) -> np.ndarray:
    gap = run.records.own_gap.astype(np.float64) / float(run.params.perturbation_scale)
    return share(contested(run) * np.minimum(1 / np.maximum(run.records.set_size, 1) + gap, 1))


@TASKS.literal(
    "proposition-3.uniform-tasks",
    MANY,
    equality(even_share, margin=SHARE_MARGIN),
    where="Proposition 3, and its full version, case 1",
    hypotheses=experiments.MORE,
    instead="proposition-3.leader",
).says("""
    With M > N, once the gates are fixed a set's expert of highest gate output is chosen as often as any, 1/|M_n|.

    Over arrivals past T2 with at least two experts in the set, as shares of all rounds.""")
@CLUSTERS.literal(
    "proposition-3.uniform-clusters",
    FEW,
    equality(even_share, margin=SHARE_MARGIN),
    where="Proposition 3, full version, case 2",
    hypotheses=experiments.FEWER,
    instead="proposition-3.leader",
).says("With M < N, once the gates are fixed a set's expert of highest gate output is chosen as often as any, 1/|M_k|.")
@TASKS.ours(
    "proposition-3.uniform-own",
    AT_FIGURE_2,
    equality(even_share, margin=SHARE_MARGIN),
    where="Proposition 3, full version",
    instead="proposition-3.leader",
).says(r"""
    At Fig. 2's sigma_0 = 0.4, a point that refutes no O(), its constant read as 1, a leader past T2 has 1/|M_n|.

    Both cases, of the arrivals of its set. O() is about the limit of small sigma_0, not of a single point.
    $$\mathbb{P}(m_t = m \mid m \in \mathcal{M}_{n_t}) = \frac{1}{|\mathcal{M}_{n_t}|}, \quad \sigma_0 = 0.4$$""")
@TASKS.replacement(
    "proposition-3.leader",
    experiments.SPECIALIZATION.over(
        experiments.MANY_SMALLEST + experiments.FEW_SMALLEST + experiments.MANY_FIGURE_2 + experiments.FEW_FIGURE_2
    ),
    bound(at_most=bounded_share, trivial=lambda run: share(contested(run))),
    where="replaces Proposition 3, identical probabilities",
).says("""
    Once the gates are fixed a set's leader is chosen with chance 1/|M_n| plus the set's gap over lambda, at most.

    The density of r_m is 1/lambda: to close a gap moves the chance to win by the gap over lambda or less.""")
def leader_share(run) -> np.ndarray:
    return share(contested(run) & run.records.led)


@ranged(0, 1)
def reduced_share(run) -> np.ndarray:
    return own_share(run.records.task, run.records.reduced_expert, run.state.pool.clusters)


REDUCED = r"""the share of arrivals whose expert met their kind last is that of Algorithm 1 reduced to its gates.

    For kappa/lambda from 0.01 to 100, over the last quarter of the rounds. In the reduced model an expert is its
    expected squared distances to the truths, and what it shows of them to the signals.
    $$\left|\mathbb{P}(k_{n_t} = k_{n_{t'}}) - \mathbb{P}_{\mathrm{reduced}}(k_{n_t} = k_{n_{t'}})\right|
    \leq 0.05, \quad t' = \max\{\tau < t : m_\tau = m_t\}$$"""


@TASKS.replacement(
    "proposition-3.reduced-tasks",
    experiments.DRIVE_GRID.over(experiments.DRIVES_MANY),
    equality(reduced_share, margin=REDUCED_MARGIN, scale=1.0),
    hypotheses=experiments.MORE,
).says(f"With M > N, {REDUCED}")
@CLUSTERS.replacement(
    "proposition-3.reduced-clusters",
    experiments.DRIVE_GRID.over(experiments.DRIVES_FEW),
    equality(reduced_share, margin=REDUCED_MARGIN, scale=1.0),
    hypotheses=experiments.FEWER,
).says(f"With M < N, {REDUCED}")
@ranged(0, 1)
def full_share(run) -> np.ndarray:
    return own_share(run.records.task, run.records.expert, run.state.pool.clusters)
