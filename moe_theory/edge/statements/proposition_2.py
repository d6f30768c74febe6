"""Proposition 2: when the router has converged."""

import numpy as np

from moe_theory.core.gating import pairs_of
from moe_theory.edge import experiments, interventions
from moe_theory.verify.statement import identity, limit_probability, limit_rate, statement

VANISHING = limit_rate(at_least=0.4, margin=0.2)  # of a share: one that falls slower than sigma_0^0.2 stays
ADDED_UP = r"""\log \frac{\pi_m(\mathbf{X}_n)}{\pi_{m'}(\mathbf{X}_n)} + \log
\frac{\pi_{m'}(\mathbf{X}_{n'})}{\pi_m(\mathbf{X}_{n'})} > 0, \quad m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}"""
PAIRS = r"""$$\mathbb{P}\left[ \pi_m(\mathbf{X}_n) \le \pi_{m'}(\mathbf{X}_n) \text{ or }
\pi_{m'}(\mathbf{X}_{n'}) \le \pi_m(\mathbf{X}_{n'}) \right] = o(1)$$"""
SHARE = r"\mathbb{E}\, \frac{1}{T - T_1} \sum_{t = T_1 + 1}^{T} \mathbb{1}\{ m_t \notin \mathcal{M}_{n_t} \}"

ITS_NEEDS = """A gap of order sigma_0^0.5 at T_1 needs three conditions: a fixed M, speeds that differ by a fixed share,
r = Omega(sigma_0^0.5 ln(M/delta)), as for Lemma 8."""
OF_MANY_SERVERS = """With M as Proposition 1 asks all gaps are o(sigma_0^0.5) up to T_1 and a round later, whatever
delays, r and signals are, for ln(M/delta) = o(sigma_0^-0.5)."""


def probabilities_of(run) -> tuple[np.ndarray, np.ndarray]:
    """pi of every expert for every kind at T1, and who specialises in which, (M, N, B) both."""
    outputs = experiments.drives(run)
    return np.exp(experiments.log_probabilities(outputs)), experiments.specialists(outputs)


SAME_SET = statement(
    "proposition-2-same-set",
    where="Proposition 2, Eq. (17), first case",
    says=r"""After T1 the gate probabilities of two specialists of the arriving kind are within O(sigma_0).
    $$\left\lvert \pi_m - \pi_{m'} \right\rvert = \mathcal{O}(\sigma_0), \quad m, m' \in \mathcal{M}_n$$""",
    hypotheses=experiments.CONVERGES,
    note="""Of any two experts where all servers are alike: `edge.equation-33`. eta = O(sigma_0^0.5), as in the proof.
    Tried: signals ten times as long, which put specialists up to 1 apart at Fig. 3's sigma_0 = 0.6 alone.""",
    disproof="slow_servers_gates.py",
    amendment="delays of one law in each set, drawn anew for each task, up to a factor ln(M/delta)^0.5; for t = "
    "O(T_1), or r = O(sigma_0^0.5)",
    why="""Two slow servers of different speed are in one set, and their gates apart by a share of all T_1 steps. Long
    after T_1 a wide r balances gates at (eta sigma_0 r)^0.5, above sigma_0.""",
    instance="""Servers of three and two rounds among faster ones: the gap is <0.002> sigma_0^0.5 ln(M/delta), and
    sigma_0 is claimed.""",
    free=(*experiments.FREE, experiments.FREE_SERVERS),
)


@SAME_SET.competitor(
    "proposition-2.same-set-constant-router",
    interventions.FIRST_IDLE,
    limit_rate(at_least=1, margin=experiments.MARGIN),
).says("With a constant router, to the first idle server, that gap is O(sigma_0) too.")
@SAME_SET.charitable(
    "proposition-2.same-set",
    experiments.BY_SCALE,
    limit_rate(at_least=1, margin=experiments.MARGIN),
    where="Proposition 2, Eq. (17), first line",
)
def same_gaps(run) -> np.ndarray:
    r"""At T1 even the largest gap between the probabilities of two specialists of a kind is O(sigma_0).
    $$\underset{n}{\max}\, \underset{m, m' \in \mathcal{M}_n}{\max}
    \left\lvert \pi_m - \pi_{m'} \right\rvert = \mathcal{O}(\sigma_0)$$"""
    probabilities, own = probabilities_of(run)
    highest = np.max(np.where(own, probabilities, -np.inf), axis=0)
    lowest = np.min(np.where(own, probabilities, np.inf), axis=0)
    return np.maximum(highest - lowest, 0).max(axis=0)  # -inf where there is none


OTHER_SET = statement(
    "proposition-2-other-set",
    where="Proposition 2, Eq. (17), second case",
    says=r"""After T1 the gate probabilities of a specialist of the arriving kind and of any other expert are
    Omega(sigma_0^0.5) apart. $$\left\lvert \pi_m - \pi_{m'} \right\rvert = \Omega(\sigma_0^{1/2}), \quad
    m \in \mathcal{M}_n, m' \notin \mathcal{M}_n$$""",
    hypotheses=experiments.CONVERGES,
    why="""By Lemma 4 all probabilities are O(sigma_0^0.5 ln(M/delta)/M) apart, and M grows by Proposition 1; where
    servers are alike its own (33) has O(sigma_0 eta^-0.5) for any two, O(sigma_0^0.75) for eta = sigma_0^0.5. (28)
    takes an upper bound for a lower one.""",
    instance="M = 13, N = 2, orthonormal signals, sigma_0 = 0.02: the largest such gap is 0.00006, and sigma_0^0.5 is "
    "0.14.",
    note=f"{ITS_NEEDS} Tried: the largest gap, strong signals, r far below a gate step.",
    corrected=f"""{OF_MANY_SERVERS} Where servers are alike they are as in (33)."""
    r"""$$\left\lvert \pi_m - \pi_{m'} \right\rvert = \mathcal{O}\left( \sigma_0^{1/2} M^{-1} \ln(M/\delta)
    \right)$$""",
    witness="limit.py",
    disproof="opposite_truths_gates.py",
    derivation="gaps_of_many_servers.py",
)
OTHER_SET.also("equation-33.all-pairs", role="corrected")


SETS_APART = limit_rate(at_most=0.5, margin=experiments.MARGIN)
OTHER_GAP = r"""$$\underset{n}{\max}\, \underset{m \in \mathcal{M}_n, m' \notin \mathcal{M}_n}{\max}
\left\lvert \pi_m - \pi_{m'} \right\rvert = \Omega(\sigma_0^{1/2})$$"""


@OTHER_SET.intervention("proposition-2.other-set-long-signals", interventions.WITHOUT_SMALL_OUTPUTS, SETS_APART).says(
    f"Without small outputs, by signals of length 3 sigma_0^-0.75, that gap is Omega(sigma_0^0.5).{OTHER_GAP}"
)
@OTHER_SET.suspect("proposition-2.other-set-no-noise", interventions.WITHOUT_NOISE, SETS_APART).says(
    f"Without the noise r of (4), and with short signals, that gap is Omega(sigma_0^0.5).{OTHER_GAP}"
)
@OTHER_SET.charitable(
    "proposition-2.other-set",
    experiments.BY_SCALE,
    SETS_APART,
    where="Proposition 2, Eq. (17), second line",
    instead="equation-33.all-pairs",
)
def other_gaps(run) -> np.ndarray:
    r"""At T1 at least the largest gap between a specialist of a kind and another expert is Omega(sigma_0^0.5).
    $$\underset{n}{\max}\, \underset{m \in \mathcal{M}_n, m' \notin \mathcal{M}_n}{\max}
    \left\lvert \pi_m - \pi_{m'} \right\rvert = \Omega(\sigma_0^{1/2})$$"""
    probabilities, own = probabilities_of(run)
    highest, lowest = (
        [extreme(np.where(side, probabilities, none), axis=0) for side in (own, ~own)]
        for extreme, none in ((np.max, -np.inf), (np.min, np.inf))
    )
    return np.maximum(np.maximum(highest[0] - lowest[1], highest[1] - lowest[0]), 0).max(axis=0)


EQUATION_30 = statement(
    "equation-30",
    where="Appendix C, Eq. (30)",
    says=r"""At T1 an expert of one set has the higher probability for its kind, and one of another set for its own.
    $$\pi_m(\mathbf{X}_n) > \pi_{m'}(\mathbf{X}_n), \quad \pi_{m'}(\mathbf{X}_{n'}) > \pi_m(\mathbf{X}_{n'}), \quad
    m \in \mathcal{M}_n, m' \in \mathcal{M}_{n'}$$""",
    hypotheses=experiments.CONVERGES,
    why="""A set (15) compares one expert's outputs between kinds, and (30) two experts' for one kind, which does not
    follow: one of them may have the larger output for both. The proof excludes that by (28), which is false; but where
    (28) is made true (30) fails for a share of pairs that stays.""",
    instance="M = 13, N = 2, orthonormal signals: a third of such pairs violates it, at any sigma_0 below 0.2.",
    corrected="For the signals alone (without noise, at equal strengths) one of the two inequalities holds of every "
    f"pair: by the sets what (30) compares adds up to more than 0. $${ADDED_UP}$$",
    witness="limit.py",
    disproof="two_planes_order.py",
    derivation="one_of_two_inequalities.py",
)


@EQUATION_30.suspect("equation-30.long-signals", interventions.WITHOUT_SMALL_OUTPUTS, VANISHING).says(
    f"Without small outputs, by signals of length 3 sigma_0^-0.75, that share tends to 0.{PAIRS}"
)
@EQUATION_30.charitable("equation-30.pairs", experiments.BY_SCALE, VANISHING, instead="equation-30.one-of-two").says(
    f"At T1 the share of pairs of experts of different sets for which (30) fails tends to 0.{PAIRS}"
)
def share_out_of_order(run) -> np.ndarray:
    pairs = pairs_of(experiments.drives(run))
    count = np.maximum(pairs.exist.sum(axis=(0, 1)), 1)
    return np.sum(pairs.exist & (pairs.trail | pairs.swapped), axis=(0, 1)) / count


@EQUATION_30.replacement("equation-30.one-of-two", experiments.BY_SCALE, identity(within=0))
def num_without_order(run) -> np.ndarray:
    r"""At T1 at least one of the two inequalities of (30) holds of every pair of experts of different sets.

    For the signals alone, without noise and at equal strengths, this follows from the sets.
    $$\pi_m(\mathbf{X}_n) > \pi_{m'}(\mathbf{X}_n) \text{ or } \pi_{m'}(\mathbf{X}_{n'}) > \pi_m(\mathbf{X}_{n'})$$"""
    pairs = pairs_of(experiments.drives(run))
    return np.sum(pairs.exist & pairs.trail & pairs.swapped, axis=(0, 1)).astype(float)


ROUTING = statement(
    "proposition-2-routing",
    where="Proposition 2, last sentence",
    says=r"""After T1 the router sends every task to one of its specialists.
    $$m_t \in \mathcal{M}_{n_t}, \quad t > T_1$$""",
    hypotheses=experiments.CONVERGES,
    why="""The router compares outputs of different experts for one kind, and the sets (15) the outputs of one expert;
    and gates are of order eta sigma_0, so small that (28), on which the proof rests, is false. A share of the tasks,
    which does not fall with sigma_0, goes to an expert of another set. Neither is the cause alone, nor is the noise r:
    without any one of the three the share stays.""",
    instance="M = 13, N = 2, orthonormal signals, r a hundredth of a gate step: 12 % of the tasks after T1, at any "
    "sigma_0 below 0.2; chance is 50 %.",
    corrected="It does not fall with sigma_0: at fixed M, with r in a fixed ratio to a gate step, the share stays as "
    f"it is. $${SHARE} = \\Theta(1)$$",
    note="""As M grows the share stays where r is wide, and levels off where signals differ in length. Where r is below
    a gate step, signals have one length and noise is small it falls, slowly.""",
    witness="limit.py",
    disproof="opposite_truths_routing.py",
)
ROUTING.charitable("proposition-2.routing", experiments.BY_SCALE, VANISHING, instead="proposition-2.share-stays").says(
    f"The share of tasks past T1 that go to an expert that specialises in another kind tends to 0.$${SHARE} = o(1)$$"
)(experiments.misrouted_share)
ROUTING.suspect("proposition-2.routing-long-signals", interventions.WITHOUT_SMALL_OUTPUTS, VANISHING).says(
    f"Without small outputs, by signals of length 3 sigma_0^-0.75, that share tends to 0.$${SHARE} = o(1)$$"
)(experiments.misrouted_share)
ROUTING.suspect("proposition-2.routing-no-noise", interventions.WITHOUT_NOISE, VANISHING).says(
    f"Without the noise r of (4) that share tends to 0.$${SHARE} = o(1)$$"
)(experiments.misrouted_share)
ROUTING.suspect("proposition-2.routing-above-own-mean", interventions.ABOVE_OWN_MEAN, VANISHING).says(
    "Without a comparison of experts' outputs, but of how far each is above its own mean over kinds, that share tends "
    f"to 0.$${SHARE} = o(1)$$"
)(experiments.misrouted_share)
ROUTING.replacement("proposition-2.share-stays", experiments.BY_SCALE, limit_rate(equal=0, margin=0.1)).says(
    "The share of tasks past T1 that go to an expert that specialises in another kind stays as it is as sigma_0 falls."
)(experiments.misrouted_share)


@statement(
    "proposition-2-exploration",
    where="Appendix C, proof of Proposition 2, after Lemma 8",
    says=r"""Each expert has been explored at least eta^-1 sigma_0^-0.5 times by T1, except with probability delta.
    $$L_{T_1}^{(m)} \ge \eta^{-1} \sigma_0^{-1/2}, \quad m \in \mathbb{M}$$""",
    hypotheses=experiments.EXPLORES,
    note="""The proof multiplies a bound for one visit by eta^-1 sigma_0^-0.5, for which its chance delta would have to
    be multiplied too; but on average each expert is explored ln(M/delta) times as often. Tried: the least explored
    expert of all, under every reading.""",
    why="""With one sample and no noise models come to rest once every server has met every kind, and gates with them.
    If the perturbation r is below what outputs then differ by, the same idle servers win for ever.""",
    instance="""Ten servers, three orthonormal kinds, s = 1, tasks of two rounds, r far below a gate step: from a
    round on five servers get all tasks, and one has had three for ever.""",
    proof="everyone_explored.py",
    disproof="models_at_rest.py",
    amendment="eta sigma_0/M = o(r), or noise that keeps models moving",
).charitable("proposition-2.exploration", experiments.BY_SCALE, limit_probability(to=0, margin=0.1))
def is_rarely_explored(run) -> np.ndarray:
    r"""At T1 the chance that some expert has had fewer than eta^-1 sigma_0^-0.5 tasks tends to 0.
    $$\mathbb{P}\left[ \underset{m \in \mathbb{M}}{\min}\, L_{T_1}^{(m)} < \eta^{-1} \sigma_0^{-1/2} \right] = o(1)$$"""
    loads = run.records.loads[experiments.explored_record(run)][: int(run.params.num_experts)]
    return loads.min(axis=0) < float(run.params.learning_rate) ** -1 * float(run.params.truth_scale) ** -0.5
