"""Eq. (8): how many candidates there are in slot t, from (7)."""

import numpy as np

from moe_theory.merging import theory
from moe_theory.merging.experiments import BY_RATIO, ON_TREES, SMOOTHNESS_RATIOS, by_ratio, candidates, computed
from moe_theory.verify.claim import excess
from moe_theory.verify.statement import alike, identity, statement

RATES, X = 1 / (1 - np.array(SMOOTHNESS_RATIOS)), 100.0
POWER = 2 ** (RATES * np.log(X))

EQUATION_8 = statement(
    "equation-8",
    where="Eq. (8)",
    says=r"""At slot t there are at most 2^(1/(1-rho)) t nu_1^2 / (C^2 log(T/delta)) candidates, as 2 to the power of
    the largest depth. $$N_t \le 2^{1/(1-\rho)} \frac{t \nu_1^2}{C^2 \log(T/\delta)}$$""",
    hypotheses=ON_TREES,
    why="""At a fixed slot t the right side tends to 0 as T grows, and there is always a candidate: log(t/delta), which
    (7) at t has, may not be replaced by log(T/delta). Nor is 2^(a log X) the same as 2^a X: it is X^(a log 2). Later
    slots, as Lemma 1's, pay for their leaves.""",
    amendment="for t >= sqrt(T), where its right side is at least 2, as Lemma 1",
    proof="lemma_01.py",
    instance="rho = 0.3, C = nu_1 = delta = 1, T = <15>: in slot 1 the root is a candidate, and (8) says "
    "at most <0.994>.",
    disproof="early_equation_8.py",
    derivation="leaves.py",
    corrected=r"""The leaves at slot t are at most one more than the splits that t pulls pay for.
    $$N_t \le 1 + \sum_h \min\left(2^h, \frac{t_h}{m_h}\right), \quad m_h = \max(1, \lceil \tau_h(e_h) \rceil)$$""",
)


def excess_over_bound(run) -> np.ndarray:
    """By how much candidates are more than (8) says, relative to it, in each slot (R, B)."""
    bound = theory.leaf_bound_at(run.rounds.astype(float), int(run.rounds[-1]), run.params)
    return excess(candidates(run), np.reshape(bound, (-1, 1)))


@EQUATION_8.charitable(
    "equation-8.later",
    by_ratio("in-turn"),
    identity(within=0),
    where="Eq. (8), first inequality, C = 1, of the slots that Lemma 1 is proved for",
)
def later_candidates_beyond(run) -> np.ndarray:
    """From slot sqrt(T) on there are no more candidates than (8) says, where it says 2 or more."""
    horizon = int(run.rounds[-1])
    allowed = theory.leaf_bound_at(run.rounds.astype(float), horizon, run.params)
    is_counted = (run.rounds >= horizon**0.5) & (allowed >= 2)
    return excess_over_bound(run)[is_counted].max(axis=0)


@EQUATION_8.literal(
    "equation-8.early",
    by_ratio("in-turn"),
    identity(within=0),
    where="Eq. (8), first inequality, C = 1",
    instead="lemma-1.leaves",
)
def candidates_beyond(run) -> np.ndarray:
    """There are at slot t no more candidates than (8) says, from the first slot on."""
    return excess_over_bound(run).max(axis=0)


@EQUATION_8.step(
    "equation-8.power",
    computed(*BY_RATIO),
    identity(within=1e-9),
    where="Eq. (8): 2 to the power of (7)",
    instead="equation-8.right-power",
)
def power_error(run) -> np.ndarray:
    r"""2 to the power of a multiple of log X is that power of 2 times X, relative to the larger.
    $$2^{\frac{1}{1-\rho} \log X} = 2^{1/(1-\rho)} X$$"""
    return alike(run, np.abs(POWER - 2**RATES * X) / np.maximum(POWER, 2**RATES * X))


@EQUATION_8.replacement(
    "equation-8.right-power", computed(*BY_RATIO), identity(within=1e-9), where="replaces Eq. (8), its algebra"
)
def right_power_error(run) -> np.ndarray:
    r"""2 to the power of a multiple of log X is X to that multiple of log 2.
    $$2^{\frac{1}{1-\rho} \log X} = X^{\log 2/(1-\rho)}$$"""
    said = X ** (RATES * np.log(2))
    return alike(run, np.abs(POWER - said) / np.maximum(POWER, said))


EQUATION_8.also("lemma-1.leaves", role="corrected")
