"""The remark on Theorem 1: how the right side of (6) grows, and the sum of nu_1 rho^h over the leaves picked in it."""

import dataclasses
from collections.abc import Callable

import numpy as np

from moe_theory.merging import corrected, experiments, theory
from moe_theory.merging.params import Params
from moe_theory.runs import Run
from moe_theory.verify.claim import excess
from moe_theory.verify.statement import alike, identity, probability, rate, statement

GROWING = (64, 256, 1024, 4096)
PICKING = (512, 1024, 2048, experiments.LONG_SLOTS)
LARGEST_RATIO = experiments.SMOOTHNESS_RATIOS[-1]
EXPONENT = corrected.regret_exponent(LARGEST_RATIO)
SIZES = (1e6, 1e8, 1e10, 1e12)  # T at which the right side of (6) is looked at
SUMS = dataclasses.replace(experiments.GROWTH.at(experiments.tree_cell("in-turn", LARGEST_RATIO)), abscissa=GROWING)
BOUNDS = experiments.computed(abscissa=SIZES)
DRAWN = [experiments.SPLITS_AT_RANDOM]  # under effective splits these trees, picked in turn, grow without chance
NEURAL = r"3 \sqrt{T} \sqrt{\tilde{d} \log(1 + TN/\lambda) + 2} \left[ \cdot \right]"
ROOT = r"\mathcal{O}(\sqrt{T} \log T)"

REMARK = statement(
    "remark",
    where="Remark on Theorem 1",
    says=r"""The right side of (6), the bound of Theorem 1, is O(d sqrt(T) log T).
    $$\text{(6)} = \mathcal{O}(\tilde{d} \sqrt{T} \log T)$$""",
    hypotheses=experiments.ON_TREES,
    why="""The right side of (6) has + T + 1, which the remark drops, so that it is linear in T. T stands for the sum of
    nu_1 rho^h over the leaves picked in (10), and that sum need not be O(sqrt(T) log T) either: the threshold (2) lets
    shallow leaves be picked so often that it can grow like T^a with a above 1/2. Nor does the effective dimension make
    up for T + 1: at rho = 0.3 it is O(T^(1/4)).""",
    instance="Effective dimension 10, rho = 0.9, other constants 1: from T = <1e10> to <1e12> the right side over log "
    "T grows like T^0.957, claimed T^0.5. The sum over log T grows like T^0.74 from T = <1,024> to <4,096> if leaves "
    "are picked in turn, and like T^0.66 to T^0.69 from 512 to 5,000 over Tanbr's own picks.",
    corrected=r"""Without T + 1 the right side is as the remark says, and the sum adds T^a (log T)^(1-a).
    $$R_T = \mathcal{O}\left(\tilde{d} \sqrt{T} \log T + T^a (\log T)^{1-a}\right), \quad
    a = \frac{\log(2/\rho)}{\log(2/\rho^2)}$$""",
    witness="remark.py",
    disproof="remark_linear.py",
    derivation="remark_sum.py",
)


def sums_over(log_power: float) -> Callable[[Run], np.ndarray]:
    """sum of nu_1 rho^(h_t) at `GROWING` (V, B), over the power of log T that is claimed beside that of T."""

    def values(run) -> np.ndarray:
        sums = experiments.recorded(run, "cumulative_discretization")[np.searchsorted(run.rounds, GROWING)]
        return sums / (np.log(GROWING) ** log_power)[:, None]

    return values


REMARK.step(
    "remark.boxes",
    SUMS,
    rate(at_most=0.5),
    where="Remark on Theorem 1, the last sum of (10), rho = 0.9",
    hypotheses=DRAWN,
    instead="remark.right-exponent",
).says(r"""The sum of nu_1 rho^h over the leaves picked, which (10) has beside its root, is O(sqrt(T) log T).
    $$\sum_{t \le T} \nu_1 \rho^{h_t} = \mathcal{O}(\sqrt{T} \log T)$$""")(sums_over(1))


@REMARK.step(
    "remark.own-picks",
    experiments.TANBR_LONG,
    probability(at_least=0.5),
    where="Remark on Theorem 1, the last sum of (10) over Tanbr's own picks, rho = 0.9",
    instead="remark.right-exponent",
)
def own_sum_grows_like_root(run) -> np.ndarray:
    r"""In most worlds with one peak the sum of nu_1 rho^h over Tanbr's picks grows at most like T^0.6 log T.

    The exponent of the sum over log T, fitted over T = 512 to 5,000.
    $$\sum_{t \le T} \nu_1 \rho^{h_t} = \mathcal{O}(\sqrt{T} \log T)$$"""
    terms = float(run.params.smoothness) * float(run.params.smoothness_ratio) ** experiments.recorded(run, "depth")
    return experiments.exponent_over_log(np.cumsum(terms, axis=0)[np.array(PICKING) - 1], PICKING) <= 0.6


REMARK.replacement(
    "remark.right-exponent",
    SUMS,
    rate(at_most=EXPONENT, margin=0.05),
    where="replaces the remark on Theorem 1, rho = 0.9",
    hypotheses=DRAWN,
).says(r"""The sum grows no faster than T^a (log T)^(1-a) with a = log(2/rho) / log(2/rho^2).
    $$\sum_{t \le T} \nu_1 \rho^{h_t} = \mathcal{O}(T^a (\log T)^{1-a}), \quad
    a = \frac{\log(2/\rho)}{\log(2/\rho^2)}$$""")(sums_over(1 - EXPONENT))


@REMARK.replacement(
    "remark.finite-sum",
    experiments.GROWTH.over("smoothness_ratio"),
    identity(within=1e-5),
    where="replaces the remark on Theorem 1, at finite T",
    labels=experiments.BY_RATIO,
)
def relative_excess(run) -> np.ndarray:
    r"""The sum is at most what T pulls give that fill up the smallest depths first, relative to that.
    $$\sum_{t \le T} \nu_1 \rho^{h_t} \le \nu_1 \min_H \left[ T \rho^H +
    \sum_{h < H} 2^h m_h (\rho^h - \rho^H) \right]$$"""
    bounds = np.array([corrected.discretization_bound(horizon, run.params) for horizon in GROWING])[:, None]
    return excess(sums_over(0)(run) / bounds, 1.0).max(axis=0)


def parts() -> list[tuple[float, theory.RegretBound]]:
    """T and (6) for an effective dimension of 10, at N of Lemma 1."""
    params = Params(smoothness_ratio=LARGEST_RATIO)
    return [(size, theory.theorem_1(size, 10.0, float(theory.leaf_bound(size, params)))) for size in SIZES]


REMARK.charitable(
    "remark.bound",
    BOUNDS,
    rate(at_most=0.5),
    where="Remark on Theorem 1, the right side of (6) itself",
    instead="remark.neural-part",
).says(f"""The right side of (6), of a given effective dimension, is O(sqrt(T) log T).
    $${NEURAL} + T + 1 = {ROOT}$$
    """)(lambda run: alike(run, [(it.confidence + it.norm + it.remainder) / np.log(size) for size, it in parts()]))
REMARK.replacement(
    "remark.neural-part", BOUNDS, rate(at_most=0.5), where="replaces the remark on Theorem 1, without the T + 1 of (6)"
).says(f"""Without T + 1, of a given effective dimension, the right side of (6) is O(sqrt(T) log T).
    $${NEURAL} = {ROOT}$$
    """)(lambda run: alike(run, [(it.confidence + it.norm) / np.log(size) for size, it in parts()]))
