"""Proposition 1: how many servers keep an idle specialist for every task."""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import corrected, theory
from moe_theory.edge.experiments import BY_FAILURE, CONVERGES, FEW_DELAYS, FEW_TASKS, MARGIN, MAX_DELAY, SUFFICIENT
from moe_theory.edge.statements.lemma_1 import UPDATES
from moe_theory.runs import Run
from moe_theory.verify.claim import Selection
from moe_theory.verify.statement import Hypothesis, alike, identity, limit_probability, limit_rate, statement

NUM_TASKS = 10  # N of Fig. 3
DELTAS = (0.05, 1e-3, 1e-6)
WINDOWS = tuple(10**power for power in (2, 3, 4, 5))  # d_u
EXACTLY = identity(within=0.0)
SHORT_DELAYS = Hypothesis(
    "no delay is longer than d_u",
    lambda dims, run: run.params.max_transfer_delay + run.params.max_execution_delay <= dims.max_delay,
)
ENOUGH_SERVERS = (
    *CONVERGES,
    SHORT_DELAYS,
    Hypothesis("M >= N M_th ln(1/delta)", lambda dims, run: run.params.num_experts in SUFFICIENT.values()),
)
# A run that is not looked at.
COMPUTED = Selection(UPDATES, ("M = 4",), tuple(f"delta = {delta:g}" for delta in DELTAS), is_computed=True)

NORMAL_QUANTILE = r"M_{th} = \frac{d_u}{N} + \Phi^{-1}(1 - \delta) \sqrt{\frac{d_u}{N} \left( 1 - \frac{1}{N} \right)}"
BINOMIAL_QUANTILE = r"M_{th} = \min\left\{ k : \mathbb{P}[\text{Binomial}(d_u, 1/N) > k] < \delta \right\}"
TAIL = r"\mathbb{P}[A_n > %s] \le \delta, \quad %s"
CEILING = r"\lceil M_{th} \rceil"

QUANTILE = statement(
    "proposition-1-quantile",
    where="Proposition 1, Eq. (16), and Appendix B",
    says="M_th, from a normal quantile, is exceeded by the arrivals of one kind within d_u rounds with probability at "
    f"most delta.$${TAIL % ('M_{th}', NORMAL_QUANTILE)}$$",
    hypotheses=[SHORT_DELAYS],
    why="""Arrivals of one kind are binomial, and a normal quantile stands in for theirs. That is right for a d_u long
    beside N and ln(1/delta), where the chance over delta tends to 1, from above or from below; at Fig. 3's d_u = 10 the
    binomial has the heavier tail, and the more so the smaller delta is, though the paper asks for delta = o(1).""",
    instance="d_u = 10, N = 10: M_th = <2.56> for delta = 0.05 is exceeded with probability 0.0702; M_th = <5.51> "
    "for delta = 1e-6 with <1.5e-4>, and rounded up to 6 with <9.1e-6>.",
    corrected=f"The binomial's own quantile.$${BINOMIAL_QUANTILE}$$",
    disproof="poisson_arrivals.py",
    amendment="P over delta tends to 1, in place of P at most delta, for ln(1/delta)^3 = o(d_u/N)",
)


@QUANTILE.charitable(
    "proposition-1.normal-quantile-limit",
    Selection(UPDATES, ("M = 4",), abscissa=WINDOWS, is_computed=True),
    limit_rate(at_most=-0.25, margin=MARGIN),
    labels=[f"d_u = {window}" for window in WINDOWS],
)
def relative_error(run) -> np.ndarray:
    r"""For long d_u, at delta = 0.05, the probability tends to delta: it is off by less than d_u^(-1/4) of it.
    $$\left\lvert \frac{\mathbb{P}[A_n > M_{th}]}{\delta} - 1 \right\rvert = \mathcal{O}(d_u^{-1/4})$$"""
    worst = []
    for window in WINDOWS:  # the worst of a tenth more, since tails of counts jump up and down
        around = np.unique(np.linspace(window, 1.1 * window, 40).astype(int))
        tails = [theory.tail(long, NUM_TASKS, theory.specialists_needed(long, NUM_TASKS, 0.05)) for long in around]
        worst.append(np.abs(np.array(tails) / 0.05 - 1).max())
    return alike(run, worst)


def excess(quantile: str, round_up: bool = False) -> Callable[[Run], np.ndarray]:
    """How far the exact tail beyond M_th is above delta, over delta."""

    def of(run: Run) -> np.ndarray:
        needed = [theory.specialists_needed(MAX_DELAY, NUM_TASKS, delta, quantile) for delta in DELTAS]
        tails = [theory.tail(MAX_DELAY, NUM_TASKS, np.ceil(each) if round_up else each) for each in needed]
        return alike(run, np.maximum(np.array(tails) / DELTAS - 1, 0))

    return of


QUANTILE.literal("proposition-1.normal-quantile", COMPUTED, EXACTLY, instead="proposition-1.binomial-quantile").says(
    "A kind of task arrives more than M_th times in d_u = 10 rounds with probability at most delta, with (16) as it is."
)(excess("normal"))
QUANTILE.literal(
    "proposition-1.normal-quantile-rounded-up",
    COMPUTED,
    EXACTLY,
    where="Proposition 1, Eq. (16), to whole experts",
    instead="proposition-1.binomial-quantile",
).says(f"The same for M_th rounded up to whole experts.$${TAIL % (CEILING, NORMAL_QUANTILE)}$$")(
    excess("normal", round_up=True)
)
QUANTILE.replacement(
    "proposition-1.binomial-quantile", COMPUTED, EXACTLY, where="replaces Proposition 1, Eq. (16)"
).says(
    "A kind of task arrives more than M_th times in d_u = 10 rounds with probability at most delta, M_th binomial."
    f"$${TAIL % ('M_{th}', BINOMIAL_QUANTILE)}$$"
)(excess("binomial"))


@QUANTILE.replacement(
    "proposition-1.arriving-task",
    COMPUTED,
    EXACTLY,
    where="replaces Proposition 1, Eq. (16), for the task that arrives",
)
def unserved_excess(run) -> np.ndarray:
    r"""So many specialists that the kinds of d_u - 1 earlier tasks leave one idle for the next, but for chance delta.
    $$\mathbb{P}[\text{at least } k \text{ of the last } d_u - 1 \text{ tasks are in } \mathcal{W}_n] \le \delta,
    \quad k = \min\left\{ j : \mathbb{P}[\text{Binomial}(d_u - 1, 1/N) \ge j] < \delta \right\}$$"""
    chances = np.array([corrected.unserved(MAX_DELAY, NUM_TASKS, count) for count in range(MAX_DELAY + 1)])
    return alike(run, [max(chances[np.argmax(chances < delta)] / delta - 1, 0) for delta in DELTAS])


SPECIALISTS = statement(
    "proposition-1-specialists",
    where="Proposition 1 and the end of Appendix B",
    says=r"""Omega(N M_th ln(1/delta)) servers give every kind at least M_th specialists, except with vanishing
    probability. $$\mathbb{P}\left[ \left\lvert \mathcal{M}_n \right\rvert < M_{th} \right] = o(1), \quad
    M = \Omega\left( N M_{th} \ln(1/\delta) \right)$$""",
    hypotheses=ENOUGH_SERVERS,
    note="""The proof lets every expert choose its kind by itself and evenly, though all follow the same tasks; there
    are so many more than M_th of each kind that this does no harm. Tried: all signals, weak and strong.""",
    why="""A set (15) has the experts whose output is largest for its kind. Outputs are linear in the signals, so that
    a signal between others never has the largest, at no gate.""",
    instance="Three kinds, v_3 = (v_1 + v_2)/2: the third has no specialist, whatever gates, M and delta are.",
    disproof="signal_between.py",
    amendment="no signal in the convex hull of the others",
)


@SPECIALISTS.charitable(
    "proposition-1.specialists",
    BY_FAILURE,
    limit_probability(to=0, margin=0.1),
    where="Proposition 1, proof: M_n has M_th members",
)
def too_few_specialists(run) -> np.ndarray:
    r"""As delta falls, with M = N M_th ln(1/delta), ever more rarely fewer than M_th specialise in the arriving kind.
    $$\mathbb{P}\left[ \left\lvert \mathcal{M}_n \right\rvert < M_{th} \right] = o(1),
    \quad M = N M_{th} \ln\left( \frac{1}{\delta} \right), \; t > T_1$$"""
    failure = next(delta for delta, number in SUFFICIENT.items() if number == int(run.params.num_experts))
    return run.records.num_specialists[-1] < theory.specialists_needed(FEW_DELAYS, FEW_TASKS, failure)


@SPECIALISTS.twin(
    "proposition-1-availability",
    where="Proposition 1",
    says=r"""With so many servers a task that arrives after convergence finds an idle specialist, except with vanishing
    probability. $$\mathbb{P}\left[ \exists\, m \in \mathcal{M}_n : \gamma_t^{(m)} = 1 \right] = 1 - o(1),
    \quad \mathbf{w}_t \in \mathcal{W}_n$$""",
    note="""With delta falling, so that M grows as the proposition has it. Tried: all signals, weak and strong. A
    specialist in the sense of (15) is an expert whose output is largest for the kind, and need not know the task.""",
).charitable("proposition-1.availability", BY_FAILURE, limit_probability(to=0, margin=0.1))
def no_idle_specialist(run) -> np.ndarray:
    r"""As delta falls, with M = N M_th ln(1/delta), ever more rarely no idle server specialises in the arriving kind.
    $$\mathbb{P}\left[ \gamma_t^{(m)} = 0 \text{ for all } m \in \mathcal{M}_n \right] = o(1),
    \quad M = N M_{th} \ln\left( \frac{1}{\delta} \right), \; t > T_1$$"""
    return ~run.records.specialist_idle[-1]
