"""Proposition 1: how many servers keep an idle specialist for every task."""

from collections.abc import Callable

import numpy as np

from moe_theory.edge import corrected, theory
from moe_theory.edge.experiments import BY_FAILURE, FEW_DELAYS, FEW_TASKS, MARGIN, MAX_DELAY, SUFFICIENT
from moe_theory.edge.statements.lemma_1 import UPDATES
from moe_theory.edge.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.claim import Selection
from moe_theory.verification.statement import alike, identity, limit_probability, limit_rate

NUM_TASKS = 10  # N of Fig. 3
DELTAS = (0.05, 1e-3, 1e-6)
WINDOWS = tuple(10**power for power in (2, 3, 4, 5))  # d_u
EXACTLY = identity(within=0.0)
DELTA_LABELS = tuple(f"delta = {delta:g}" for delta in DELTAS)
COMPUTED = Selection(
    UPDATES, cells=("M = 4",), labels=DELTA_LABELS, is_computed=True
)  # claims on formulas ignore the run

QUANTILE = statement("proposition-1-quantile", module=__name__)


@QUANTILE.charitable(
    "proposition-1.normal-quantile-limit",
    Selection(UPDATES, cells=("M = 4",), abscissa=WINDOWS, is_computed=True),
    limit_rate(at_most=-0.25, margin=MARGIN),
    labels=[f"d_u = {window}" for window in WINDOWS],
)
def relative_error(run) -> np.ndarray:
    delta = DELTAS[0]
    errors = []
    for window in WINDOWS:  # the worst window up to a tenth longer decides, because tails of counts jump
        lengths = np.unique(np.linspace(window, 1.1 * window, 40).astype(int))
        needed = [theory.specialists_needed(length, NUM_TASKS, delta) for length in lengths]
        tails = [theory.tail(length, NUM_TASKS, number) for length, number in zip(lengths, needed, strict=True)]
        errors.append(np.abs(np.array(tails) / delta - 1).max())
    return alike(run, errors)


def excess_by(quantile: str, rounding: Callable = float) -> Callable[[Run], np.ndarray]:
    def excess(run: Run) -> np.ndarray:
        needed = [rounding(theory.specialists_needed(MAX_DELAY, NUM_TASKS, delta, quantile)) for delta in DELTAS]
        tails = np.array([theory.tail(MAX_DELAY, NUM_TASKS, threshold) for threshold in needed])
        return alike(run, np.maximum(tails / DELTAS - 1, 0))

    return excess


for suffix, rounding in (("", float), ("-rounded-up", np.ceil)):
    QUANTILE.literal(
        f"proposition-1.normal-quantile{suffix}", COMPUTED, EXACTLY, instead="proposition-1.binomial-quantile"
    )(excess_by("normal", rounding))
QUANTILE.replacement("proposition-1.binomial-quantile", COMPUTED, EXACTLY)(excess_by("binomial"))


@QUANTILE.replacement("proposition-1.arriving-task", COMPUTED, EXACTLY)
def unserved_excess(run) -> np.ndarray:
    chances = np.array([corrected.unserved(MAX_DELAY, NUM_TASKS, count) for count in range(MAX_DELAY + 1)])
    first_below = [chances[np.argmax(chances < delta)] for delta in DELTAS]
    return alike(run, [max(chance / delta - 1, 0) for chance, delta in zip(first_below, DELTAS, strict=True)])


SPECIALISTS = statement("proposition-1-specialists", module=__name__)


@SPECIALISTS.charitable("proposition-1.specialists", BY_FAILURE, limit_probability(to=0, margin=0.1))
def too_few_specialists(run) -> np.ndarray:
    failure = next(delta for delta, number in SUFFICIENT.items() if number == int(run.params.num_experts))
    return run.records.num_specialists[-1] < theory.specialists_needed(FEW_DELAYS, FEW_TASKS, failure)


@statement("proposition-1-availability", module=__name__).charitable(
    "proposition-1.availability", BY_FAILURE, limit_probability(to=0, margin=0.1)
)
def no_idle_specialist(run) -> np.ndarray:
    return ~run.records.specialist_idle[-1]
