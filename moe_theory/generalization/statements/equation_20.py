"""Eqs. (18) to (20): McDiarmid's inequality, in the proof of Theorem 1."""

import dataclasses
import math

import numpy as np
import scipy

from moe_theory.generalization import corrected, experiments, theory
from moe_theory.generalization.experiments import COIN, EXACTLY, FORMULA, cell_name, risk_difference
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.statement import alike, probability

SAMPLES = experiments.COIN_SAMPLES[-1]
EXCESS = 2.5 / math.sqrt(2 * SAMPLES)  # x
PRINTED_TAIL = theory.tail_printed(SAMPLES, EXCESS)
FAIR_COIN = COIN.over([cell_name({"m": SAMPLES})])
COMPUTED = dataclasses.replace(FORMULA, labels=("m up to 100",))

# The favourable reading allows any constant in the exponent, because the theorem that follows is an O().
EQUATION_20 = statement("equation-20", module=__name__)


@EQUATION_20.literal("equation-20.tail", FAIR_COIN, probability(at_most=PRINTED_TAIL), instead="equation-20.mcdiarmid")
@EQUATION_20.charitable("equation-20.mcdiarmid", FAIR_COIN, probability(at_most=corrected.tail(SAMPLES, EXCESS)))
def is_in_tail(run) -> np.ndarray:
    return risk_difference(run) >= EXCESS


def exact_tail(num_samples: int, successes: np.ndarray) -> np.ndarray:
    """Return P(L_S - L_S' >= s/m) for a fair coin, a binomial tail of 2m, as m - m L_S' is distributed like m L_S'."""
    return scipy.stats.binom.sf(num_samples + np.asarray(successes) - 1, 2 * num_samples, 0.5)


def largest_log_ratio(tail) -> float:
    """Return the largest log ratio of the exact tail to a bound on it, over m and all x."""
    log_ratios = [0.0]
    for samples in (5, 10, 25, 100):
        successes = np.arange(samples + 1)
        log_tails = np.log(exact_tail(samples, successes))
        log_ratios.append(np.max(log_tails - np.log(tail(samples, successes / samples))))
    return max(log_ratios)


@EQUATION_20.literal("equation-20.exact-tail", COMPUTED, EXACTLY, instead="equation-20.mcdiarmid-exact-tail")
def ratio_to_printed(run) -> np.ndarray:
    return alike(run, largest_log_ratio(theory.tail_printed))


@EQUATION_20.charitable("equation-20.mcdiarmid-exact-tail", COMPUTED, EXACTLY)
def ratio_to_corrected(run) -> np.ndarray:
    return alike(run, largest_log_ratio(corrected.tail))
