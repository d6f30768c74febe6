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
SIZES = (1e6, 1e8, 1e10, 1e12)  # T at which the right side of (6) is evaluated
DIMENSION = 10.0  # effective dimension, where it does not grow with T
SUMS = dataclasses.replace(experiments.GROWTH.at(experiments.tree_cell("in-turn", LARGEST_RATIO)), abscissa=GROWING)
BOUNDS = experiments.computed(abscissa=SIZES)

REMARK = statement("remark", module=__name__)
DESCENT = statement("remark-descent", module=__name__)
# Under effective splits these trees are not random, because leaves are picked in turn.
DRAWN = ["random-splits"]


def sums_over(log_power: float) -> Callable[[Run], np.ndarray]:
    """Return a function: the sum of nu_1 rho^(h_t) at `GROWING`, divided by this power of log T (V, B)."""

    def values(run) -> np.ndarray:
        sums = experiments.recorded(run, "cumulative_discretization")[np.searchsorted(run.rounds, GROWING)]
        return sums / (np.log(GROWING) ** log_power)[:, None]

    return values


REMARK.step("remark.boxes", SUMS, rate(at_most=0.5), hypotheses=DRAWN, instead="remark.right-exponent")(
    sums_over(log_power=1)
)


@REMARK.step("remark.own-picks", experiments.TANBR_LONG, probability(at_least=0.5), instead="remark.right-exponent")
def own_sum_grows_like_root(run) -> np.ndarray:
    terms = float(run.params.smoothness) * float(run.params.smoothness_ratio) ** experiments.recorded(run, "depth")
    return experiments.exponent_over_log(np.cumsum(terms, axis=0)[np.array(PICKING) - 1], PICKING) <= 0.6


REMARK.replacement("remark.right-exponent", SUMS, rate(at_most=EXPONENT, margin=0.05), hypotheses=DRAWN)(
    sums_over(log_power=1 - EXPONENT)
)


@REMARK.replacement(
    "remark.finite-sum", experiments.GROWTH.over("smoothness_ratio"), identity(within=1e-5), labels=experiments.BY_RATIO
)
def relative_excess(run) -> np.ndarray:
    bounds = np.array([corrected.discretization_bound(horizon, run.params) for horizon in GROWING])[:, None]
    sums = sums_over(log_power=0)(run)
    return excess(sums / bounds, 1.0).max(axis=0)


def parts_at(size: float, dimension: float) -> tuple[float, float]:
    """Return (6) without and with T + 1, for T and N of Lemma 1, after enough steps of gradient descent.

    As in (10), -2 log delta is inside the square root, which does not change the order.
    """
    num_candidates = float(theory.leaf_bound(size, Params(smoothness_ratio=LARGEST_RATIO)))
    bound = theory.theorem_1(size, dimension, num_candidates, form="appendix")
    neural_part = bound.confidence + bound.norm
    return neural_part, neural_part + bound.remainder


@REMARK.literal("remark.bound", BOUNDS, rate(at_most=0.5), instead="remark.neural-part")
def bound_over_logarithm(run) -> np.ndarray:
    bounds = np.array([parts_at(size, DIMENSION)[1] for size in SIZES])
    return alike(run, bounds / np.log(SIZES))


@REMARK.charitable("remark.bound-large-dimension", BOUNDS, rate(at_most=0.0))
def bound_over_order(run) -> np.ndarray:
    dimensions = np.sqrt(SIZES) / np.log(SIZES)
    bounds = np.array([parts_at(size, dimension)[1] for size, dimension in zip(SIZES, dimensions, strict=True)])
    return alike(run, bounds / (dimensions * np.sqrt(SIZES) * np.log(SIZES)))


@REMARK.replacement("remark.neural-part", BOUNDS, rate(at_most=0.5))
def neural_part_over_logarithm(run) -> np.ndarray:
    neural_parts = np.array([parts_at(size, DIMENSION)[0] for size in SIZES])
    return alike(run, neural_parts / np.log(SIZES))


def descent_terms(run: Run, steps_over_size: Callable[[float], float]) -> np.ndarray:
    """Return gradient descent's term over sqrt(lambda S) at `SIZES` (V, B), at the largest eta that C_1 = 1 allows.

    `steps_over_size` returns J / (T L + lambda).
    """
    ratios = []
    for size in SIZES:
        length = 2 * size + 1  # T L + lambda
        bound = theory.theorem_1(
            size, DIMENSION, 1e6, learning_rate=1 / (64 * length), num_steps=length * steps_over_size(size)
        )
        ratios.append(2 * bound.optimization / bound.norm)
    return alike(run, np.array(ratios))


@DESCENT.literal("remark.descent", BOUNDS, rate(at_most=0.0), instead="remark.descent-logarithm")
def short_descent(run) -> np.ndarray:
    return descent_terms(run, lambda size: 2.0)


@DESCENT.charitable("remark.descent-logarithm", BOUNDS, rate(at_most=0.0))
def long_descent(run) -> np.ndarray:
    return descent_terms(run, lambda size: 2 * np.log((2 * size + 1) * np.sqrt(size)))
