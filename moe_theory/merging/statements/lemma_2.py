"""Lemma 2: how deep the tree is, even if the deepest leaf is always picked; and the steps of its proof."""

import numpy as np

from moe_theory.merging import corrected, theory
from moe_theory.merging.experiments import (
    EXACTLY,
    FREE_TREE,
    ON_TREES,
    TREES_BY_RATIO,
    by_ratio,
    computed,
    recorded,
    worst_excess,
)
from moe_theory.verify.claim import Runs, excess
from moe_theory.verify.statement import alike, statement

EQUATION_7 = r"H(t) \le \frac{1}{1-\rho} \log \frac{T \nu_1^2}{C^2 \log(T/\delta)}"
SIMPLE = r"H(T) \le 1 + \max\left(0, \frac{1}{2 \log(1/\rho)} \log \frac{T \nu_1^2}{C^2 \log(T/\delta)}\right)"
TIMES = np.arange(3, 1025, dtype=float)

LEMMA_2 = statement(
    "lemma-2",
    where="Lemma 2, Eq. (7)",
    says=f"The tree is never deeper than log(T nu_1^2 / (C^2 log(T/delta))) / (1-rho). $${EQUATION_7}$$",
    hypotheses=ON_TREES,
    why="""The proof bounds the depth of a leaf that is split, and its children are one deeper. For T large against
    C^2 log(T/delta) the slack of its last step makes up for that; otherwise the right side is below 1, or below 0, at
    a tree of depth 1.""",
    instance="C = 2, rho = 0.3, nu_1 = delta = 1, T = 2: the root is split in slot 1, and (7) says a depth of at most "
    "<-0.47>.",
    corrected=f"One level more than the proof's bound at T, and never less than 1. $${SIMPLE}$$",
    disproof="large_constant.py",
    amendment="where its right side is at least 1",
    proof="lemma_02.py",
    derivation="lemma_02.py",
    free=FREE_TREE,
    note="Its proof passes through a smaller bound, through log(t/delta) >= log(T/delta) for t <= T and through "
    "2 log(1/rho) >= 1 - rho, each tested by itself.",
)


@LEMMA_2.charitable(
    "lemma-2.depth", by_ratio("deepest"), EXACTLY, where="Lemma 2, Eq. (7), C = 1", instead="lemma-2.right-depth"
).says("With C = 1 the tree is at no slot deeper than (7) says, even if the deepest leaf is always picked.")
def depth_beyond(run) -> np.ndarray:
    """Excess over (7) in the worst slot (B,)."""
    return excess(recorded(run, "max_depth"), theory.depth_bound(int(run.rounds[-1]), run.params)).max(axis=0)


@LEMMA_2.step(
    "lemma-2.intermediate",
    by_ratio("deepest"),
    EXACTLY,
    where="Lemma 2, proof, the bound before its last step, C = 1",
    instead="lemma-2.right-depth",
)
def depth_beyond_step(run) -> np.ndarray:
    r"""Before its last step, the proof bounds the depth at each slot from the third on by half a logarithm.
    $$H(t) \le \frac{1}{2 \log(1/\rho)} \log \frac{t \nu_1^2}{C^2 \log(t/\delta)}$$"""
    times = run.rounds[2:].astype(float)  # t/log(t/delta) has its minimum at e delta
    bound = theory.intermediate_depth_bound(times, run.params)
    return excess(recorded(run, "max_depth")[2:], np.reshape(bound, (-1, 1))).max(axis=0)


@LEMMA_2.replacement("lemma-2.right-depth", TREES_BY_RATIO, EXACTLY)
def depth_beyond_right(runs: Runs) -> np.ndarray:
    r"""The tree is as deep as the first slots in which each depth can be split allow, and no deeper.
    $$H(T) \le \left\lvert \{ h : e_h \le T \} \right\rvert, \quad e_h - e_{h-1} \ge \tau_h(e_h)$$"""
    return worst_excess(runs, "deepest", "max_depth", corrected.depth_bound)


@LEMMA_2.replacement(
    "lemma-2.simple-depth", TREES_BY_RATIO, EXACTLY, where="replaces Lemma 2, Eq. (7), in closed form"
).says("One level more than the proof's bound at T, and never less than 1.")
def depth_beyond_simple(runs: Runs) -> np.ndarray:
    """Excess over `corrected.simple_depth_bound` (V, B)."""
    return worst_excess(runs, "deepest", "max_depth", corrected.simple_depth_bound)


@LEMMA_2.step(
    "lemma-2.log-time",
    computed("largest shortfall"),
    EXACTLY,
    where="Lemma 2, proof: log(t/delta) >= log(T/delta) for t <= T",
    instead="lemma-2.log-time-right",
)
def log_time(run) -> np.ndarray:
    r"""A logarithm of an earlier slot is at least that of the last.
    $$\log(t/\delta) \ge \log(T/\delta), \quad t \le T$$"""
    return alike(run, np.log(TIMES[-1]) - np.log(TIMES).min())


@LEMMA_2.replacement(
    "lemma-2.log-time-right", computed("largest excess"), EXACTLY, where="replaces the step of Lemma 2's proof to T"
)
def log_time_right(run) -> np.ndarray:
    r"""What the step is for holds from t = e delta on: t / log(t/delta) grows with t.
    $$\frac{t}{\log(t/\delta)} \le \frac{T}{\log(T/\delta)}, \quad e \delta \le t \le T$$"""
    return alike(run, excess(-np.diff(TIMES / np.log(TIMES)), 0).max())


@LEMMA_2.step("lemma-2.log-ratio", computed("largest shortfall"), EXACTLY, where="Lemma 2, proof, last step")
def log_ratio(run) -> np.ndarray:
    r"""2 log(1/rho) is at least 1 - rho. $$2 \log(1/\rho) \ge 1 - \rho, \quad 0 < \rho < 1$$"""
    ratios = np.linspace(0, 1, 1001)[1:-1]
    return alike(run, excess(1 - ratios, 2 * np.log(1 / ratios)).max())
