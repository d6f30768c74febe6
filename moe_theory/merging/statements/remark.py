"""The remark on Theorem 1: growth of (6), and of the sum of nu_1 rho^h over the leaves picked."""

import dataclasses
from collections.abc import Callable

import numpy as np

from moe_theory.merging import corrected, experiments, theory
from moe_theory.merging.params import Params
from moe_theory.merging.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.claim import excess
from moe_theory.verification.statement import alike, identity, probability, rate

GROWING = (64, 256, 1024, 4096)
PICKING = (512, 1024, 2048, experiments.LONG_SLOTS)
LARGEST_RATIO = experiments.SMOOTHNESS_RATIOS[-1]
EXPONENT = corrected.regret_exponent(LARGEST_RATIO)
SIZES = (1e6, 1e8, 1e10, 1e12)  # T at which the right side of (6) is looked at
SUMS = dataclasses.replace(experiments.GROWTH.at(experiments.tree_cell("in-turn", LARGEST_RATIO)), abscissa=GROWING)
BOUNDS = experiments.computed(abscissa=SIZES)

REMARK = statement("remark", module=__name__)
# Under effective splits these trees, picked in turn, grow without chance.
DRAWN = ["random-splits"]


def sums_over(log_power: float) -> Callable[[Run], np.ndarray]:
    """Sum of nu_1 rho^(h_t) at `GROWING` (V, B), over the claimed power of log T."""

    def values(run) -> np.ndarray:
        sums = experiments.recorded(run, "cumulative_discretization")[np.searchsorted(run.rounds, GROWING)]
        return sums / (np.log(GROWING) ** log_power)[:, None]

    return values


REMARK.step("remark.boxes", SUMS, rate(at_most=0.5), hypotheses=DRAWN, instead="remark.right-exponent")(sums_over(1))


@REMARK.step("remark.own-picks", experiments.TANBR_LONG, probability(at_least=0.5), instead="remark.right-exponent")
def own_sum_grows_like_root(run) -> np.ndarray:
    terms = float(run.params.smoothness) * float(run.params.smoothness_ratio) ** experiments.recorded(run, "depth")
    return experiments.exponent_over_log(np.cumsum(terms, axis=0)[np.array(PICKING) - 1], PICKING) <= 0.6


REMARK.replacement("remark.right-exponent", SUMS, rate(at_most=EXPONENT, margin=0.05), hypotheses=DRAWN)(
    sums_over(1 - EXPONENT)
)


@REMARK.replacement(
    "remark.finite-sum", experiments.GROWTH.over("smoothness_ratio"), identity(within=1e-5), labels=experiments.BY_RATIO
)
def relative_excess(run) -> np.ndarray:
    bounds = np.array([corrected.discretization_bound(horizon, run.params) for horizon in GROWING])[:, None]
    return excess(sums_over(0)(run) / bounds, 1.0).max(axis=0)


def parts() -> list[tuple[float, theory.RegretBound]]:
    """T and (6) for an effective dimension of 10, at N of Lemma 1. -2 log delta is under the root as in (10): where it
    stands does not change the order."""
    params = Params(smoothness_ratio=LARGEST_RATIO)
    bounds = [theory.theorem_1(size, 10.0, float(theory.leaf_bound(size, params)), form="appendix") for size in SIZES]
    return list(zip(SIZES, bounds, strict=True))


REMARK.charitable("remark.bound", BOUNDS, rate(at_most=0.5), instead="remark.neural-part")(
    lambda run: alike(run, [(it.confidence + it.norm + it.remainder) / np.log(size) for size, it in parts()])
)
REMARK.replacement("remark.neural-part", BOUNDS, rate(at_most=0.5))(
    lambda run: alike(run, [(it.confidence + it.norm) / np.log(size) for size, it in parts()])
)
