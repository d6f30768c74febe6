"""Proposition 1: how many servers keep an idle specialist for every task."""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import corrected, theory
from moe_theory.edge.experiments import AVAILABILITY, CONVERGES, FAILURE, FIRST_TASKS, MAX_DELAY, SUFFICIENT
from moe_theory.runs import Run
from moe_theory.verify.statement import Hypothesis, probability, statement

NUM_TASKS = FIRST_TASKS.experiment.dims.num_tasks  # N of Fig. 3
NORMAL = theory.specialists_needed(MAX_DELAY, NUM_TASKS, FAILURE, "normal")
ROUNDED = int(np.ceil(NORMAL))
BINOMIAL = theory.specialists_needed(MAX_DELAY, NUM_TASKS, FAILURE, "binomial")
SERVING = next(count for count in range(MAX_DELAY) if corrected.unserved(MAX_DELAY, NUM_TASKS, count) < FAILURE)
AT_MOST_DELTA = probability(at_most=FAILURE)
PAST_T1 = AVAILABILITY.over("num_experts")
SHORT_DELAYS = Hypothesis(
    "no delay is longer than d_u",
    lambda dims, run: run.params.max_transfer_delay + run.params.max_execution_delay <= dims.max_delay,
)
ENOUGH_SERVERS = (
    *CONVERGES,
    SHORT_DELAYS,
    Hypothesis("M >= N M_th ln(1/delta)", lambda dims, run: run.params.num_experts >= SUFFICIENT),
)


def overfull(specialists: float) -> Callable[[Run], np.ndarray]:
    """Whether kind 0, chosen beforehand, came more than `specialists` times in the last d_u rounds (B,)."""
    return lambda run: np.sum(run.records.task[-MAX_DELAY:] == 0, axis=0) > specialists


NORMAL_QUANTILE = r"M_{th} = \frac{d_u}{N} + \Phi^{-1}(1 - \delta) \sqrt{\frac{d_u}{N} \left( 1 - \frac{1}{N} \right)}"
BINOMIAL_QUANTILE = r"M_{th} = \min\left\{ k : \mathbb{P}[\text{Binomial}(d_u, 1/N) > k] < \delta \right\}"
CEILING = r"\lceil M_{th} \rceil"
TAIL = r"\mathbb{P}[A_n > %s] \le \delta, \quad %s"

QUANTILE = statement(
    "proposition-1-quantile",
    where="Proposition 1, Eq. (16), and Appendix B",
    says="M_th, from a normal quantile, is exceeded by the arrivals of one kind within d_u rounds with probability at "
    f"most delta.$${TAIL % ('M_{th}', NORMAL_QUANTILE)}$$",
    hypotheses=[SHORT_DELAYS],
    why="""Arrivals of one kind are binomial, and a normal quantile stands in for theirs. That is right for a long d_u
    at a fixed delta; at d_u = 10 the binomial has the heavier tail, and rounding up to whole servers makes up for it
    only while delta is not small.""",
    instance="d_u = 10, N = 10: M_th = 2.56 for delta = 0.05 is exceeded with probability 0.0702; M_th = 5.51 for "
    "delta = 1e-6 with 1.5e-4, and rounded up to 6 with 9.1e-6.",
    corrected=f"The binomial's own quantile.$${BINOMIAL_QUANTILE}$$",
    witness="proposition_1.py",
)
QUANTILE.literal(
    "proposition-1.normal-quantile",
    FIRST_TASKS,
    AT_MOST_DELTA,
    labels=[f"M_th = {NORMAL:.3g}"],
    instead="proposition-1.binomial-quantile",
).says(
    "A kind of task arrives more than M_th times in d_u rounds with probability at most delta, with (16) as it is."
    f"$${TAIL % ('M_{th}', NORMAL_QUANTILE)}$$"
)(overfull(NORMAL))
QUANTILE.literal(
    "proposition-1.normal-quantile-rounded-up",
    FIRST_TASKS,
    AT_MOST_DELTA,
    where="Proposition 1, Eq. (16), to whole experts",
    labels=[f"M_th = {ROUNDED}"],
).says(
    "The same for M_th rounded up to whole experts, at this delta; for small delta it fails too."
    f"$${TAIL % (CEILING, NORMAL_QUANTILE)}$$"
)(overfull(ROUNDED))
QUANTILE.replacement(
    "proposition-1.binomial-quantile",
    FIRST_TASKS,
    AT_MOST_DELTA,
    where="replaces Proposition 1, Eq. (16)",
    labels=[f"M_th = {BINOMIAL}"],
).says(
    "A kind of task arrives more than M_th times in d_u rounds with probability at most delta, M_th binomial."
    f"$${TAIL % ('M_{th}', BINOMIAL_QUANTILE)}$$"
)(overfull(BINOMIAL))


@QUANTILE.replacement(
    "proposition-1.arriving-task",
    FIRST_TASKS,
    AT_MOST_DELTA,
    where="replaces Proposition 1, Eq. (16), for the task that arrives",
    labels=[f"{SERVING} specialists"],
)
def is_unserved(run) -> np.ndarray:
    r"""So many specialists that the kinds of d_u - 1 earlier tasks leave one idle for the next, but for chance delta.
    $$\mathbb{P}[\text{at least } k \text{ of the last } d_u - 1 \text{ tasks are in } \mathcal{W}_n] \le \delta,
    \quad k = \min\left\{ j : \mathbb{P}[\text{Binomial}(d_u - 1, 1/N) \ge j] < \delta \right\}$$"""
    tasks = run.records.task
    return np.sum(tasks[-MAX_DELAY:-1] == tasks[-1], axis=0) >= SERVING


@statement(
    "proposition-1-specialists",
    where="Proposition 1 and the end of Appendix B",
    says=r"""Omega(N M_th ln(1/delta)) servers give every kind at least M_th specialists, except with vanishing
    probability. $$\mathbb{P}\left[ \left\lvert \mathcal{M}_n \right\rvert < M_{th} \right] = o(1), \quad
    M = \Omega\left( N M_{th} \ln(1/\delta) \right)$$""",
    hypotheses=ENOUGH_SERVERS,
    note="The proof lets every expert choose its kind by itself and evenly, though all follow the same tasks.",
).literal("proposition-1.specialists", PAST_T1, AT_MOST_DELTA, where="Proposition 1, proof: M_n has M_th members")
def too_few_specialists(run) -> np.ndarray:
    r"""Past T1, with M = N M_th ln(1/delta), fewer than M_th specialise in the arriving kind: at most delta.
    $$\mathbb{P}\left[ \left\lvert \mathcal{M}_n \right\rvert < M_{th} \right] \le \delta,
    \quad M = N M_{th} \ln\left( \frac{1}{\delta} \right), \; t > T_1$$"""
    return run.records.num_specialists[-1] < NORMAL


@statement(
    "proposition-1-availability",
    where="Proposition 1",
    says=r"""With so many servers a task that arrives after convergence finds an idle specialist, except with vanishing
    probability. $$\mathbb{P}\left[ \exists\, m \in \mathcal{M}_n : \gamma_t^{(m)} = 1 \right] = 1 - o(1),
    \quad \mathbf{w}_t \in \mathcal{W}_n$$""",
    hypotheses=ENOUGH_SERVERS,
).literal("proposition-1.availability", PAST_T1, AT_MOST_DELTA)
def no_idle_specialist(run) -> np.ndarray:
    r"""Past T1, with M = N M_th ln(1/delta), no idle one specialises in the arriving kind: at most delta.
    $$\mathbb{P}\left[ \gamma_t^{(m)} = 0 \text{ for all } m \in \mathcal{M}_n \right] \le \delta,
    \quad M = N M_{th} \ln\left( \frac{1}{\delta} \right), \; t > T_1$$"""
    return ~run.records.specialist_idle[-1]
