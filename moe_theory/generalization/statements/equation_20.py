"""Eqs. (18) to (20): McDiarmid's inequality, in the proof of Theorem 1."""

import dataclasses
import math

import numpy as np
import scipy

from moe_theory.generalization import corrected, experiments, theory
from moe_theory.generalization.experiments import COIN, EXACTLY, FORMULA, cell_name, difference
from moe_theory.verify.statement import alike, probability, statement

SAMPLES = experiments.COIN_SAMPLES[-1]
EXCESS = 2.5 / math.sqrt(2 * SAMPLES)  # x
FAIR_COIN, COMPUTED = COIN.over([cell_name(m=SAMPLES)]), dataclasses.replace(FORMULA, labels=("m up to 100",))
TAIL = r"\mathbb{P}\left( \phi(\mathcal{S}, \mathcal{S}') - \mathbb{E}\, \phi(\mathcal{S}, \mathcal{S}') \ge x \right)"

# Any constant in the exponent is the favourable reading: the theorem that follows is an O().
EQUATION_20 = statement(
    "equation-20",
    where="Eqs. (18) to (20)",
    says="For any mask phi(S, S') exceeds its mean by x with probability at most exp(-2 m x^2), by McDiarmid's "
    rf"inequality.$${TAIL} \le e^{{-2 m x^2}}$$",
    why="""The exponent is that of a function of m samples, and phi is one of 2m, those of S and of S': McDiarmid's
    inequality gives half of it. The slip changes the constant inside the root of (8) alone.""",
    instance="""One function whose loss is a fair coin, m = 1: phi is 1 with probability 1/4, and exp(-2) is .135. At
    m = 100 and x = .18 the tail is .006, and .0019 is allowed.""",
    corrected=rf"With half the exponent it holds. $${TAIL} \le e^{{-m x^2}}$$",
    disproof="coin_equation_20.py",
    amendment="with m in place of 2m in the exponent, and eps/2 at least the mean of phi",
    proof="equation_20.py",
    derivation="equation_20.py",
)


@EQUATION_20.literal(
    "equation-20.tail",
    FAIR_COIN,
    probability(at_most=theory.tail_printed(SAMPLES, EXCESS)),
    instead="equation-20.mcdiarmid",
).says(
    "For one function whose loss is a fair coin phi exceeds its mean by x with probability at most exp(-2 m x^2)."
    rf"$${TAIL} \le e^{{-2 m x^2}}, \quad x = \frac{{2.5}}{{\sqrt{{2m}}}}$$"
)
@EQUATION_20.charitable(
    "equation-20.mcdiarmid", FAIR_COIN, probability(at_most=corrected.tail(SAMPLES, EXCESS)), where="replaces Eq. (20)"
).says(
    "For one function whose loss is a fair coin phi exceeds its mean by x with probability at most exp(-m x^2)."
    rf"$${TAIL} \le e^{{-m x^2}}, \quad x = \frac{{2.5}}{{\sqrt{{2m}}}}$$"
)
def is_in_tail(run) -> np.ndarray:
    return difference(run) >= EXCESS


def exact_tail(num_samples: int, successes: np.ndarray) -> np.ndarray:
    """P(L_S - L_S' >= s/m) of a fair coin: a binomial of 2m, since m - m L_S' has the same law as m L_S'."""
    return scipy.stats.binom.sf(num_samples + np.asarray(successes) - 1, 2 * num_samples, 0.5)


def largest_ratio(tail) -> float:
    """The largest log of the exact tail over a bound on it, over m and all x."""
    ratios = [0.0]
    for samples in (5, 10, 25, 100):
        successes = np.arange(samples + 1)
        ratios.append(np.max(np.log(exact_tail(samples, successes)) - np.log(tail(samples, successes / samples))))
    return max(ratios)


@EQUATION_20.literal("equation-20.exact-tail", COMPUTED, EXACTLY, instead="equation-20.mcdiarmid-exact-tail")
def ratio_to_printed(run) -> np.ndarray:
    r"""That tail, exactly and for every x, is at most exp(-2 m x^2): no logarithm of their ratio is above 0.
    $$2^{-2m} \sum_{i = m + m x}^{2m} \binom{2m}{i} \le e^{-2 m x^2}$$"""
    return alike(run, largest_ratio(theory.tail_printed))


@EQUATION_20.charitable("equation-20.mcdiarmid-exact-tail", COMPUTED, EXACTLY, where="replaces Eq. (20)")
def ratio_to_corrected(run) -> np.ndarray:
    r"""That tail, exactly and for every x, is at most exp(-m x^2): no logarithm of their ratio is above 0.
    $$2^{-2m} \sum_{i = m + m x}^{2m} \binom{2m}{i} \le e^{-m x^2}$$"""
    return alike(run, largest_ratio(corrected.tail))
