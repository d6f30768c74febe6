"""Proposition 4: the expected error of offloading that does not look at the task."""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import corrected, experiments, theory
from moe_theory.edge.experiments import FASTEST, FIGURE_3_DIMS, ISOTROPIC, NEAREST
from moe_theory.runs import Run
from moe_theory.verify.statement import equality, statement

STEADY = 1000  # from this round on errors are averaged over the recorded rounds: one round alone is noisy
BY_NEAREST, BY_FASTEST = NEAREST.over("num_experts", 10, 50), FASTEST.over("num_experts", 10, 50)


def steady(run, errors: np.ndarray) -> np.ndarray:
    """The mean of errors (R, B) over the recorded rounds from `STEADY` on."""
    return errors[run.rounds >= STEADY].astype(np.float64).mean(axis=0)


def observed(run) -> np.ndarray:
    return steady(run, run.records.flushed)


def by(formula: Callable) -> Callable[[Run], np.ndarray]:
    """(22), or its correction, from the pools and loads of a run (B,)."""
    return lambda run: steady(run, experiments.proposition_4(run, FIGURE_3_DIMS, formula))


def exact(run) -> np.ndarray:
    return steady(run, experiments.exact_errors(run))


EQUATION_22 = r"""$$
\mathbb{E}[G_T] = \frac{1}{T} \sum_{t=1}^{T} r^{L_T^{(m_t)}} \left\lVert \mathbf{w}_t \right\rVert^2 +
\frac{1}{T} \sum_{t=1}^{T} \left( 1 - r^{L_T^{(m_t)}} \right)
\mathbb{E}\left\lVert \mathbf{w}_n - \mathbf{w}_{n'} \right\rVert^2$$"""
BY_LOADS = r"""$$\mathbb{E}[G_T \mid L_T] = \sum_{m \in \mathbb{M}} \frac{L_T^{(m)}}{T}\, g\left( L_T^{(m)} \right),
\quad g(L) = \text{a single expert's exact error after } L \text{ tasks}$$"""
LIMIT = r"""$$\underset{T \to \infty}{\lim}\, \mathbb{E}[G_T] =
\mathbb{E}\left\lVert \mathbf{w}_n - \mathbf{w}_{n'} \right\rVert^2$$"""

PROPOSITION_4 = statement(
    "proposition-4",
    where="Proposition 4, Eq. (22)",
    says="Always choosing the nearest or the most powerful server has an expected error that mixes the truths' norm "
    "and the task gap by loads." + EQUATION_22,
    why="""(34), which the proof sums, has no error between a task and itself; the last step puts the mean distance of
    two random tasks there, so that every task counts its own arrival, and the error is overestimated by about M/T of
    it. Beside that it needs features without a preferred direction: signals along the truths make the error a fifth
    larger.""",
    instance="One server, two orthonormal truths, T = 10, p = 15, s = 10, all columns isotropic: (22) is 1.000, the "
    "error <0.900>.",
    corrected="Given the loads each expert has a single one's error, exact by a recursion for the moments of its model."
    + BY_LOADS,
    disproof="opposite_truths_offloading.py",
    derivation="haar_moments.py",
)
for server, cells, offloading, mixture in (
    ("nearest", BY_NEAREST, "nearest", "(22), a mixture of |w|^2 and the task gap by loads"),
    ("fastest", BY_FASTEST, "most-powerful", "(22)"),
):
    under = f"Under the {offloading}-server strategy the expected error"
    PROPOSITION_4.charitable(
        f"proposition-4.{server}",
        cells,
        equality(by(theory.proposition_4), margin=0.02),
        hypotheses=[ISOTROPIC],
        instead=f"exact.{server}",
    ).says(f"{under} is {mixture}.")(observed)
    PROPOSITION_4.replacement(f"exact.{server}", cells, equality(exact, margin=0.02)).says(
        f"{under} given the loads is the exact moment recursion's."
    )(observed)
PROPOSITION_4.replacement(
    "proposition-4.nearest-own-task",
    BY_NEAREST,
    equality(by(corrected.proposition_4), margin=0.02),
    where="Lemma 9, Eq. (34), summed",
    hypotheses=[ISOTROPIC],
    instead="exact.nearest",
).says(r"""The same with the own-task term of (34), which (22) forgets.
    $$\mathbb{E}[G_T] = \frac{1}{T} \sum_{t=1}^{T} r^{L_T^{(m_t)}} \left\lVert \mathbf{w}_t \right\rVert^2 +
    \frac{1}{T} \sum_{t=1}^{T} \left( 1 - \frac{1}{L_T^{(m_t)}} \right) \left( 1 - r^{L_T^{(m_t)}} \right)
    \mathbb{E}\left\lVert \mathbf{w}_n - \mathbf{w}_{n'} \right\rVert^2$$""")(observed)

statement(
    "proposition-4-limit",
    where="Proposition 4, last line",
    says=f"With a growing horizon that error approaches the mean squared distance of two random tasks.{LIMIT}",
    note="""It is the fixed point of (34), so it needs features without a preferred direction. A signal along its task's
    truth gives another.""",
    corrected="Where every column of X_t is isotropic and drawn anew, the signal's too, it holds. By Definition 1 the "
    "limit is that of a single expert's recursion, with its signal column." + BY_LOADS,
    hypotheses=[ISOTROPIC],
    disproof="orthonormal_limit.py",
    derivation="isotropic_limit.py",
    why="""The limit is the fixed point of (34), which needs features without a preferred direction; by Definition 1 one
    column is the signal's, and signals of a cluster are alike: similar by Section II, O(sigma_0^2) apart in
    Appendix A.""",
    instance="""Orthonormal truths with signals along them, p = 15, s = 10, N = 10: the error tends to 2.19 |w|^2, the
    gap is 1.8 |w|^2. One sample and orthonormal signals apart from truths: W (1 + (N - 2)/p), W their mean square,
    where 2 W (1 - 1/N) is stated.""",
).charitable(
    "proposition-4.limit",
    NEAREST.over("num_experts", 10),
    equality(experiments.task_gap, margin=0.02),
    instead="exact.nearest",
).says("With a long horizon the nearest-server strategy's error approaches the gap between two random tasks.")(observed)
