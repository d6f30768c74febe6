"""Theorem 2: bounds from the loads, with fewer experts than tasks."""

import functools

import numpy as np

from moe_theory.continual import corrected, experiments, interventions, theory
from moe_theory.continual.statements.theorem_1 import (
    EQUATION_19,
    ERROR_REDUCED,
    GIVEN_ROUTES,
    REDUCED,
    ROUTES_MARGIN,
    says_along_routes,
)
from moe_theory.verify.statement import Hypothesis, bound, equality, statement
from moe_theory.verify.verdict import Role

EXPLORING = (5, 10)  # the recorded rounds up to T1 = 10 of M = 5
AFTER = (20, 50, 100)  # of those soon after T1, where what routes make of tasks is compared
ROUNDS = (100, 200, 500, 1000, 2000)  # rounds at which the theorem is tested, the last being the paper's T
BY_ROUNDS = experiments.by_rounds(experiments.FIGURE_2, experiments.FEW, *ROUNDS)
ENOUGH = Hypothesis(
    "M >= K ln K, the constant of Omega read as 1",
    lambda dims, run: run.params.num_experts >= run.params.num_clusters * np.log(run.params.num_clusters),
)
SUPPOSED = [*experiments.FEWER, ENOUGH]

EQUATION_21 = r"""$$\mathbb{E}[F_t] < \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \left( r^{L_t^{(m_\tau)}} -
r^{L_\tau^{(m_\tau)}} \right) W + \frac{1}{t - 1} \sum_{\tau=1}^{T_1} \left( r^{L_\tau^{(m_\tau)}} -
r^{L_{T_1}^{(m_\tau)}} \right) \Delta + \frac{1}{t - 1} \sum_{\tau=T_1+1}^{t} \left( 1 - r^{L_t^{(m_\tau)} -
L_\tau^{(m_\tau)}} \right) r^{L_t^{(m_\tau)} - L_{T_1}^{(m_\tau)} - 1} \Psi_1, \quad W = \mathbb{E}\left\lVert
\mathbf{w}_n \right\rVert^2, \; \Delta = \mathbb{E}\left\lVert \mathbf{w}_n - \mathbf{w}_{n'} \right\rVert^2, \;
\Psi_1 = \Delta \text{ within a cluster}$$"""
EQUATION_22 = r"""$$\mathbb{E}[G_T] < \frac{1}{T} \sum_{\tau=1}^{T} r^{L_T^{(m_\tau)}} W + \frac{1}{T}
\sum_{\tau=1}^{T_1} r^{k_\tau} \left( 1 - r^{L_{T_1}^{(m_\tau)}} \right) \Delta + \frac{1}{T} \left\{
\sum_{\tau=1}^{T_1} \left( 1 - r^{k_\tau} \right) + \sum_{\tau=T_1+1}^{T} r^{k_\tau} \left( 1 -
r^{L_{T_1}^{(m_\tau)}} \right) \right\} \Psi_2 + \frac{1}{T} \sum_{\tau=T_1+1}^{T} \left( 1 - r^{k_\tau} \right)
\Psi_1, \quad k_\tau = L_T^{(m_\tau)} - L_{T_1}^{(m_\tau)}, \quad W = \mathbb{E}\left\lVert \mathbf{w}_n
\right\rVert^2, \; \Delta = \mathbb{E}\left\lVert \mathbf{w}_n - \mathbf{w}_{n'} \right\rVert^2, \; \Psi_1 = \Delta
\text{ within a cluster}, \; \Psi_2 = \Delta \text{ to a random cluster}$$"""
# With the exponents that the sums of Appendix J add up to, and that it ends with.
APPENDIX_21 = EQUATION_21.replace(r"L_t^{(m_\tau)} - L_{T_1}^{(m_\tau)} - 1", r"L_\tau^{(m_\tau)} - L_{T_1}^{(m_\tau)}")
APPENDIX_22 = EQUATION_22.replace(r"r^{k_\tau} \right)", r"r^{k_\tau - 1} \right)")

EXPLORATION = statement(
    "theorem-2-forgetting-exploration",
    where="Theorem 2, first sentence",
    says="With fewer experts than tasks, too, the load bound (19) holds for expected forgetting up to T1."
    + EQUATION_19,
    hypotheses=SUPPOSED,
    why="""The bound is (19), and fails as it does in Theorem 1: the task whose error is asked for is at distance 0 from
    itself and not Delta, and that term is what is forgotten.""",
    instance="""Two orthogonal clusters of two tasks, s = 1, d = 3, M = 3: (19) says E[F_2] < 0, and it is sigma_0^2/6.
    N = 24 tasks in K = 6 orthonormal clusters, M = 12, d = 8, s = 2, at T1: forgetting is 1.33, 0.96 and 0.85
    sigma_0^2, and the bound 0.15, 0.06 and 0.02, at sigma_0 = 0.01, 0.001 and 0.0001. With Fig. 2's sizes and M = 5 it
    is 1.99, the bound 0.12.""",
    corrected=GIVEN_ROUTES
    + r""" If routes do not depend on tasks either, and all samples are Gaussian, it is (19) as an equality, with one
    term more; L is the load of m_tau, W the mean of |w_n|^2, Delta that of |w_n - w_n'|^2 over all pairs.
    $$\mathbb{E}[F_t] = \frac{1}{t - 1} \sum_{\tau=1}^{t-1} \mathbb{E} \left\{ (r^{L_t} - r^{L_\tau}) W + \left(
    r^{L_\tau} - r^{L_t} + (1 - r)(1 - r^{L_t - L_\tau}) \right) \Delta \right\}, \quad L = L^{(m_\tau)}$$""",
    witness="theorem_2.py",
    disproof="clusters_forgetting.py",
    derivation="gaussian_samples.py",
)
FORGETTING = statement(
    "theorem-2-forgetting",
    where="Theorem 2, Eq. (21)",
    says="With fewer experts than tasks the expected forgetting after T1 is below a load bound with a term for "
    "gaps inside clusters." + EQUATION_21,
    note="The sums in Appendix J add up to another exponent in the third term, L_tau - L_T1, than it prints.",
    hypotheses=SUPPOSED,
    why="""Its first two sums lose the task's own term, as (19) does: they may be negative, while forgetting is not. Its
    third sum supposes that from T1 on an expert meets tasks of one cluster only, which Lemma 15's failure leaves
    open.""",
    instance="""N = 24 tasks in K = 6 orthonormal clusters, M = 12, d = 8, s = 2, at 2 T1: forgetting is 1.06, 0.84 and
    0.78 sigma_0^2, and the bound at most 0.04, 0.03 and 0.01, at sigma_0 = 0.01, 0.001 and 0.0001. With Fig. 2's sizes,
    M = 5 and t = 200 it is 0.96, the bound -0.02, and -0.01 as Appendix J's sums have it.""",
    corrected=GIVEN_ROUTES,
    witness="theorem_2.py",
    disproof="clusters_forgetting.py",
)
GENERALIZATION_ERROR = statement(
    "theorem-2-generalization-error",
    where="Theorem 2, Eq. (22)",
    says="With fewer experts than tasks the expected overall generalization error is below a load bound with gaps "
    "inside and across clusters." + EQUATION_22,
    note="The last line of Appendix J has exponents lower by 1. With a baseline in (6): reinforced.experts-needed.",
    hypotheses=SUPPOSED,
    why="""It supposes that from T1 on an expert meets tasks of one cluster only, so that what it learned before fades
    as r^(L_T - L_T1). That rests on Lemma 15 and Proposition 3, which fail: an expert that is chosen for another
    cluster is wrong about its own again. The little that is left without such arrivals comes from E P = (s/d) I, which
    asks for samples that are all Gaussian.""",
    instance="""N = 24 tasks in K = 6 orthonormal clusters, M = 12, d = 8, s = 2, at 2 T1: the error is 3.3 sigma_0^2,
    and the bound at most 0.89, at sigma_0 = 0.01 to 0.0001. With Fig. 2's sizes, M = 5 and T = 100 it is 1.65, the
    bound 0.92.""",
    corrected=GIVEN_ROUTES,
    witness="theorem_2.py",
    disproof="clusters_error.py",
)


later_error = experiments.metric("generalization_error", *ROUNDS)

EXPLORATION.charitable(
    "theorem-2.exploration-forgetting",
    experiments.by_rounds(experiments.JUST_EXPLORED, experiments.FEW, *EXPLORING),
    bound(at_most=experiments.printed("forgetting", *EXPLORING)),
    where="Theorem 2, first line, Eq. (19)",
    instead="theorem-2.exploration-given-routes",
).says(
    "With fewer experts than tasks, expected forgetting during exploration is below the load bound of (19) as well."
)(experiments.metric("forgetting", *EXPLORING))
FORGETTING.literal(
    "theorem-2.forgetting", BY_ROUNDS, bound(at_most=experiments.printed("forgetting", *ROUNDS, form=theory.theorem_2))
).says("With fewer experts than tasks, expected forgetting is below (21) as printed, for t from 100 to 2000.")(
    experiments.metric("forgetting", *ROUNDS)
)
FORGETTING.charitable(
    "theorem-2.forgetting-exponent",
    BY_ROUNDS,
    bound(at_most=experiments.printed("forgetting", *ROUNDS, form=corrected.theorem_2)),
    where="Theorem 2, Eq. (21), third term as Appendix J derives it",
    instead="theorem-2.forgetting-given-routes",
).says("Expected forgetting after exploration is below (21) with r^(L_tau - L_T1) in its third term." + APPENDIX_21)(
    experiments.metric("forgetting", *ROUNDS)
)
GENERALIZATION_ERROR.charitable(
    "theorem-2.generalization-error",
    BY_ROUNDS,
    bound(at_most=experiments.printed("generalization_error", *ROUNDS, form=theory.theorem_2)),
    instead="theorem-2.error-given-routes",
).says("With fewer experts than tasks, expected overall generalization error is below (22), for T from 100 to 2000.")(
    later_error
)
for role, id, runs, without in (
    (
        Role.INTERVENTION,
        "sorted-gaussian",
        interventions.BOTH,
        "arrivals of other clusters after T1, and the signal among the samples,",
    ),
    (Role.SUSPECT, "sorted", interventions.SORTED_LATER, "arrivals of other clusters after T1 alone"),
    (Role.SUSPECT, "gaussian", interventions.GAUSSIAN, "the signal among the samples alone"),
):
    GENERALIZATION_ERROR.claim(
        f"theorem-2.generalization-error-{id}",
        experiments.by_rounds(runs, experiments.FEW, *ROUNDS),
        bound(at_most=experiments.printed("generalization_error", *ROUNDS, form=theory.theorem_2)),
        role=role,
    ).says(f"Without {without} the expected overall generalization error is below (22).")(later_error)
GENERALIZATION_ERROR.literal(
    "theorem-2.generalization-error-appendix",
    BY_ROUNDS,
    bound(
        at_most=experiments.printed(
            "generalization_error", *ROUNDS, form=functools.partial(theory.theorem_2, form="appendix")
        )
    ),
    where="Theorem 2, Eq. (22) as Appendix J ends",
).says(
    "The expected overall generalization error is below the appendix's form of (22), with exponents lower by "
    "1." + APPENDIX_22
)(experiments.metric("generalization_error", *ROUNDS))
for printed, id, name, rounds in (
    (EXPLORATION, "theorem-2.exploration-given-routes", "forgetting", EXPLORING),
    (FORGETTING, "theorem-2.forgetting-given-routes", "forgetting", AFTER),
    (GENERALIZATION_ERROR, "theorem-2.error-given-routes", "generalization_error", AFTER),
):
    runs = experiments.by_rounds(experiments.JUST_EXPLORED, experiments.FEW, *rounds)
    printed.replacement(id, runs, equality(experiments.expected(name, *rounds), margin=ROUTES_MARGIN)).says(
        says_along_routes(name)
    )(experiments.metric(name, *rounds))
GENERALIZATION_ERROR.replacement(
    "theorem-2.error-reduced", experiments.DRIVE_GRID.over(experiments.DRIVES_FEW), REDUCED
).says(f"With fewer experts than tasks {ERROR_REDUCED}")(experiments.final("generalization_error"))
