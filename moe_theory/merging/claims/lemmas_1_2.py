"""Lemmas 1 and 2 and Eq. (8): the tree's leaves and depth against what the paper says of them, and what holds.

Trees are run alone, their leaves picked by the rules that are worst for a statement. Its proof uses nothing of how
Algorithm 1 picks leaves, so that it is held against every way to; Tanbr's own bounds need not lead to the worst.
"""

from collections.abc import Callable

import numpy as np

from moe_theory.merging import corrected, theory
from moe_theory.merging.claims.values import (
    ANY_TREE,
    BY_RATIO,
    beyond,
    beyond_for_both_constants,
    candidates,
    claim,
    has_room,
    horizon,
    over_ratios,
    recorded,
)
from moe_theory.merging.experiments import LARGE_CONSTANT, SMOOTHNESS_RATIOS, TREES
from moe_theory.runs import Run
from moe_theory.verify.claim import computed, excess, named

_LEAVES = r"2^{1/(1-\rho)} \frac{%s \nu_1^2}{C^2 \log(T/\delta)}"
_ROOM = r"\log \frac{%s \nu_1^2}{C^2 \log(%s/\delta)}"


@claim("merging.lemma-1.candidates", where="Lemma 1, Eq. (5), C = 1", kind="identity")
class Candidates:
    """With C = 1 there are at no slot more candidates than (5) says, which is more than T for rho of 0.7 and 0.9."""

    formula = r"N_t \le " + _LEAVES % "T"
    experiment = TREES
    labels = BY_RATIO
    hypotheses = has_room
    observe = over_ratios("in-turn", lambda run: _leaf_excess(run))


@claim(
    "merging.lemma-1.large-constant",
    where=f"Lemma 1, Eq. (5), C = {LARGE_CONSTANT:g}",
    kind="identity",
    replaced_by="merging.lemma-1.leaves",
)
class CandidatesOfLargeConstant:
    """With a large C there are at no slot more candidates than (5) says."""

    formula = r"N_t \le " + _LEAVES % "T"
    experiment = TREES
    labels = BY_RATIO
    hypotheses = has_room
    observe = over_ratios("in-turn", lambda run: _leaf_excess(run), LARGE_CONSTANT)


def _leaf_excess(run: Run) -> np.ndarray:
    return excess(candidates(run), theory.leaf_bound(horizon(run), run.params)).max(axis=0)


@claim("merging.lemma-1.leaves", where="replaces Lemma 1, Eq. (5)", kind="identity")
class Leaves:
    """All leaves, inactive ones too, are no more than splits at their least thresholds leave, for either C."""

    formula = r"1 + \sum_h \min\left(2^h, \frac{T_h}{m_h}\right), \quad m_h = \max(1, \lceil \tau_h(e_h) \rceil)"
    experiment = TREES
    labels = BY_RATIO
    hypotheses = has_room
    observe = beyond_for_both_constants("in-turn", "num_leaves", corrected.leaf_bound)


@claim("merging.lemma-2.depth", where="Lemma 2, Eq. (7), C = 1", kind="identity")
class Depth:
    """With C = 1 the tree is at no slot deeper than (7) says, even if the deepest leaf is always picked."""

    formula = r"H(t) \le \frac{1}{1-\rho} " + _ROOM % ("T", "T")
    experiment = TREES
    labels = BY_RATIO
    observe = over_ratios("deepest", beyond("max_depth", lambda run: theory.depth_bound(horizon(run), run.params)))


@claim(
    "merging.lemma-2.large-constant",
    where=f"Lemma 2, Eq. (7), C = {LARGE_CONSTANT:g}",
    kind="identity",
    replaced_by="merging.lemma-2.right-depth",
)
class DepthOfLargeConstant:
    """With a large C the tree is at no slot deeper than (7) says."""

    formula = r"H(t) \le \frac{1}{1-\rho} " + _ROOM % ("T", "T")
    experiment = TREES
    labels = BY_RATIO
    observe = over_ratios(
        "deepest", beyond("max_depth", lambda run: theory.depth_bound(horizon(run), run.params)), LARGE_CONSTANT
    )


@claim(
    "merging.lemma-2.intermediate",
    where="Lemma 2, proof, the bound before its last step, C = 1",
    kind="identity",
    replaced_by="merging.lemma-2.right-depth",
)
class IntermediateDepth:
    """Before its last step, the proof bounds the depth at each slot from the third on by half a logarithm."""

    formula = r"H(t) \le \frac{1}{2 \log(1/\rho)} " + _ROOM % ("t", "t")
    experiment = TREES
    labels = BY_RATIO
    observe = over_ratios("deepest", lambda run: _intermediate_excess(run))


def _intermediate_excess(run: Run) -> np.ndarray:
    times = run.rounds[2:].astype(float)  # t/log(t/delta) has its minimum at e delta
    bound = theory.intermediate_depth_bound(times, run.params)
    return excess(recorded(run, "max_depth")[2:], np.reshape(bound, (-1, 1))).max(axis=0)


@claim("merging.lemma-2.right-depth", where="replaces Lemma 2, Eq. (7)", kind="identity")
class RightDepth:
    """The tree is as deep as the first slots in which each depth can be split allow, and no deeper."""

    formula = r"H(T) \le \left\lvert \{ h : e_h \le T \} \right\rvert, \quad e_h - e_{h-1} \ge \tau_h(e_h)"
    experiment = TREES
    labels = BY_RATIO
    hypotheses = has_room
    observe = beyond_for_both_constants("deepest", "max_depth", corrected.depth_bound)


@claim("merging.lemma-2.simple-depth", where="replaces Lemma 2, Eq. (7), in closed form", kind="identity")
class SimpleDepth:
    """One level more than the proof's bound, with the least logarithm that a threshold after the root's can have."""

    formula = r"H(T) \le 1 + \max\left(0, \frac{1}{2 \log(1/\rho)} \log \frac{T \nu_1^2}{C^2 \log(2/\delta)}\right)"
    experiment = TREES
    labels = BY_RATIO
    hypotheses = has_room
    observe = beyond_for_both_constants("deepest", "max_depth", corrected.simple_depth_bound)


_TIMES = np.arange(3, 1025, dtype=float)


@claim(
    "merging.lemma-2.log-time",
    where="Lemma 2, proof: log(t/delta) >= log(T/delta) for t <= T",
    kind="identity",
    replaced_by="merging.lemma-2.log-time-right",
)
class LogTime:
    """A logarithm of an earlier slot is at least that of the last."""

    formula = r"\log(t/\delta) \ge \log(T/\delta), \quad t \le T"
    experiment = TREES
    labels = named("largest shortfall")
    observe = computed(ANY_TREE, lambda: np.log(_TIMES[-1]) - np.log(_TIMES).min())


@claim("merging.lemma-2.log-time-right", where="replaces the step of Lemma 2's proof to T", kind="identity")
class LogTimeRight:
    """What the step is for holds from t = e delta on: t / log(t/delta) grows with t."""

    formula = r"\frac{t}{\log(t/\delta)} \le \frac{T}{\log(T/\delta)}, \quad e \delta \le t \le T"
    experiment = TREES
    labels = named("largest excess")
    observe = computed(ANY_TREE, lambda: excess(-np.diff(_TIMES / np.log(_TIMES)), 0).max())


@claim("merging.lemma-2.log-ratio", where="Lemma 2, proof, last step", kind="identity")
class LogRatio:
    """2 log(1/rho) is at least 1 - rho."""

    formula = r"2 \log(1/\rho) \ge 1 - \rho, \quad 0 < \rho < 1"
    experiment = TREES
    labels = named("largest shortfall")
    observe = computed(ANY_TREE, lambda: _log_ratio_shortfall(np.linspace(0, 1, 1001)[1:-1]))


def _log_ratio_shortfall(ratios: np.ndarray) -> float:
    return float(excess(1 - ratios, 2 * np.log(1 / ratios)).max())


@claim(
    "merging.equation-8.early",
    where="Eq. (8), first inequality, C = 1",
    kind="identity",
    replaced_by="merging.lemma-1.leaves",
)
class EarlyCandidates:
    """There are at slot t no more candidates than (8) says, from the first slot on."""

    formula = r"N_t \le " + _LEAVES % "t"
    experiment = TREES
    labels = BY_RATIO
    observe = over_ratios("in-turn", lambda run: _early_excess(run))


def _early_excess(run: Run) -> np.ndarray:
    bound = theory.leaf_bound_at(run.rounds.astype(float), horizon(run), run.params)
    return excess(candidates(run), np.reshape(bound, (-1, 1))).max(axis=0)


@claim(
    "merging.equation-8.power",
    where="Eq. (8): 2 to the power of (7)",
    kind="identity",
    margin=1e-9,
    replaced_by="merging.equation-8.right-power",
)
class Power:
    """2 to the power of a multiple of log X is that power of 2 times X, relative to the larger."""

    formula = r"2^{\frac{1}{1-\rho} \log X} = 2^{1/(1-\rho)} X"
    experiment = TREES
    labels = BY_RATIO
    observe = computed(ANY_TREE, lambda: _power_error(lambda rate, x: 2**rate * x))


@claim("merging.equation-8.right-power", where="replaces Eq. (8), its algebra", kind="identity", margin=1e-9)
class RightPower:
    """2 to the power of a multiple of log X is X to that multiple of log 2."""

    formula = r"2^{\frac{1}{1-\rho} \log X} = X^{\log 2/(1-\rho)}"
    experiment = TREES
    labels = BY_RATIO
    observe = computed(ANY_TREE, lambda: _power_error(lambda rate, x: x ** (rate * np.log(2))))


def _power_error(right: Callable[[np.ndarray, float], np.ndarray]) -> np.ndarray:
    rates, x = 1 / (1 - np.array(SMOOTHNESS_RATIOS)), 100.0
    left, said = 2 ** (rates * np.log(x)), right(rates, x)
    return np.abs(left - said) / np.maximum(left, said)
