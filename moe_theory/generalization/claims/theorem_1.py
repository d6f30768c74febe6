"""Theorem 1 and Corollary 4: instances whose gap, exact or found, exceeds the bound more often than delta."""

import math

import numpy as np

from moe_theory.generalization import complexity, instances, theory
from moe_theory.generalization.claims.values import (
    Values,
    alike,
    all_allowed,
    allowed,
    exceeds,
    named,
    seldom_above,
    theorem_1,
    unless_impossible,
)
from moe_theory.generalization.experiments import (
    CELLS,
    DENSE,
    DENSE_CELL,
    DENSE_SAMPLES,
    FIXED_EXPERTS,
    FIXED_SAMPLES,
    GROWING_SAMPLES,
    LEARNED_CELL,
    LEARNED_CELLS,
    LEARNED_DIMS,
    LEARNED_EXPERTS,
    NATURAL,
    NATURAL_CELL,
    NATURAL_FEATURES,
    NATURAL_SAMPLES,
    PER_SAMPLE,
    TRAINED,
    TRAINED_FEATURES,
    cell_name,
    gaps_of,
)
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, claim

_BOUND = (
    r"4 C \mathcal{R}_m(\mathcal{H}) + 2 \sqrt{\frac{2 k d_N \left( 1 + \log \frac{T}{k} \right) + d_N \log(2m) + "
    r"\log(4/\delta)}{2m}}"
)
_EQUATION_8 = seldom_above(_BOUND)
FIXED_CELL = cell_name(FIXED_EXPERTS, FIXED_SAMPLES)
_GRANTED = 1  # d_N of one mask function is 0; Theorem 1 is granted more
_COROLLARY_SAMPLES = 10**10  # at which Lemma 2's p^2 outputs no longer make the bound vacuous


def _grows(samples: int) -> str:
    return cell_name(PER_SAMPLE * samples, samples)


def _fixed_bound(runs: Runs, name: str) -> float:
    run = runs[name]
    return theorem_1(run, complexity.constants(int(run.params.num_samples)), "fixed", 1, _GRANTED)


def _exceeds_fixed(runs: Runs) -> np.ndarray:
    return runs[FIXED_CELL].records.gap[-1] > _fixed_bound(runs, FIXED_CELL)


def _ratios(runs: Runs) -> np.ndarray:
    columns = [runs[_grows(size)].records.gap[-1] / _fixed_bound(runs, _grows(size)) for size in GROWING_SAMPLES]
    return np.stack(columns, axis=1)


def _exceeds_learned(runs: Runs) -> np.ndarray:
    run = runs[LEARNED_CELL]
    bound = theorem_1(run, 1 / math.sqrt(LEARNED_EXPERTS), "linear", LEARNED_DIMS.num_features)
    return run.records.gap[-1] > bound


def _exceeds_dense(runs: Runs) -> np.ndarray:
    return runs[DENSE_CELL].records.gap[-1] > theorem_1(
        runs[DENSE_CELL], complexity.constants(DENSE_SAMPLES), "free", 1
    )


def _has_dimension(dims, runs: Runs) -> list[tuple[str, bool]]:
    del dims
    return [("free routers have a finite d_N", not runs[DENSE_CELL].params.whole_router)]


def _exceeds_natural(runs: Runs) -> np.ndarray:
    run = runs[NATURAL_CELL]
    bound = theorem_1(run, float(run.params.expert_norm) / math.sqrt(NATURAL_SAMPLES), "linear", NATURAL_FEATURES)
    return gaps_of(runs, [NATURAL_CELL])[:, 0] > bound


def _excess_over_corollary(runs: Runs) -> np.ndarray:
    """By how much the gap of `instances.learned_cells`, the same for every sample of this size, exceeds (9).

    An input has a coordinate and a constant, as small as one likes, which the router reads with 128 weights as large as
    it takes, and beside them a unit vector of its own, which the experts read: m^2 dimensions are enough, since two of
    m inputs then hardly ever have the same. Whatever the constant in Lemma 2, its term vanishes as m grows and leaves
    4 C R_m(H) = 2 / sqrt(T), which is below 1/2.
    """
    radius = math.sqrt(_COROLLARY_SAMPLES / LEARNED_EXPERTS)
    counts = np.full(LEARNED_EXPERTS, _COROLLARY_SAMPLES / LEARNED_EXPERTS)
    gap = float(instances.ball_gap(counts, radius**2, float(_COROLLARY_SAMPLES)))
    bound = theory.corollary_4(
        LEARNED_EXPERTS,
        1,
        _COROLLARY_SAMPLES,
        feature_norm=1.0,
        operator_norms=[radius],
        row_norms=[radius],
        num_parameters=LEARNED_EXPERTS * LEARNED_DIMS.num_features,
        lipschitz=LIPSCHITZ,
        delta=float(runs[LEARNED_CELL].params.delta),
    )
    return alike(runs[LEARNED_CELL], max(gap - bound, 0))


@claim(
    "generalization.theorem-1.fixed-router",
    paper="generalization",
    where="Theorem 1, Eqs. (8) and (23)",
    kind="counterexample",
    replaced_by="generalization.repaired.symmetrization",
)
class FixedRouter:
    """With 5000 fixed cells, k = 1 and experts +1 or -1, the gap exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = CELLS
    labels = named(FIXED_CELL)
    observe = _exceeds_fixed
    predict = allowed(FIXED_CELL)


@claim(
    "generalization.theorem-1.any-constant",
    paper="generalization",
    where="Theorem 1, Eq. (8), whatever the constant in its O(), with T = 10 m",
    kind="rate",
    margin=0.1,
    replaced_by="generalization.repaired.symmetrization",
)
class AnyConstant:
    """With ten fixed cells for each sample, the ratio of the gap to (23) stays bounded as m grows."""

    formula = (
        r"\frac{\mathbb{E} \sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert}{"
        + _BOUND
        + r"} = \mathcal{O}(1), \quad T = 10 m"
    )
    experiment = CELLS
    side = "at_most"
    abscissa = GROWING_SAMPLES
    observe = _ratios
    predict = staticmethod(lambda runs: 0.0)


@claim(
    "generalization.theorem-1.learned-router",
    paper="generalization",
    where="Theorem 1, Eqs. (8) and (23)",
    kind="counterexample",
    replaced_by="generalization.repaired.learned-router",
)
class LearnedRouter:
    """With 64 experts in balls, k = 1 and a learned linear router, the gap exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = LEARNED_CELLS
    labels = named(LEARNED_CELL)
    observe = _exceeds_learned
    predict = allowed(LEARNED_CELL)


@claim(
    "generalization.theorem-1.dense",
    paper="generalization",
    where="Theorem 1, Eqs. (8) and (23), d_N of masks",
    kind="counterexample",
    replaced_by="generalization.repaired.dense",
)
class Dense:
    """With both of two constant experts active and any router, the gap exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = DENSE
    labels = named(DENSE_CELL)
    observe = _exceeds_dense
    predict = allowed(DENSE_CELL)
    hypotheses = _has_dimension


@claim(
    "generalization.theorem-1.natural",
    paper="generalization",
    where="Theorem 1, Eqs. (8) and (23)",
    kind="counterexample",
    replaced_by="generalization.repaired.natural",
)
class Natural:
    """Fitted to random labels, k = T = 32 linear experts have a gap that exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = NATURAL
    labels = named(NATURAL_CELL)
    observe = _exceeds_natural
    predict = allowed(NATURAL_CELL)


def _trained_bounds(source: str) -> Values:
    def bound(run: Run) -> float:
        radius = float(run.params.expert_norm) / math.sqrt(int(run.params.num_samples))
        return theorem_1(run, radius, "linear", TRAINED_FEATURES[source])

    return lambda runs: np.array([bound(run) for run in runs.values()])


@claim(
    "generalization.theorem-1.trained-teacher",
    paper="generalization",
    where="Theorem 1, Eqs. (8) and (23), for what training finds",
    kind="probability",
)
class TrainedTeacher:
    """The gap of classifiers trained on a teacher's labels exceeds (23), d_N of masks, no more often than delta."""

    formula = _EQUATION_8
    experiment = TRAINED["teacher"]
    side = "at_most"
    labels = staticmethod(list)
    observe = exceeds(_trained_bounds("teacher"))
    predict = all_allowed
    trivial = unless_impossible(1.0, _trained_bounds("teacher"))


@claim(
    "generalization.theorem-1.trained-digits",
    paper="generalization",
    where="Theorem 1, Eqs. (8) and (23), for what training finds",
    kind="probability",
)
class TrainedDigits:
    """The gap of classifiers trained on images of digits exceeds (23), d_N of masks, no more often than delta."""

    formula = _EQUATION_8
    experiment = TRAINED["digits"]
    side = "at_most"
    labels = staticmethod(list)
    observe = exceeds(_trained_bounds("digits"))
    predict = all_allowed
    trivial = unless_impossible(1.0, _trained_bounds("digits"))


@claim(
    "generalization.corollary-4",
    paper="generalization",
    where="Corollary 4, Eq. (9), with the constant 1 in Lemma 2",
    kind="identity",
    margin=0.0,
    replaced_by="generalization.repaired.learned-router",
)
class Corollary4:
    """With one-layer networks as experts and a router of p = 128, the gap at 10^10 samples is at most (9)."""

    formula = (
        r"\sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert \le 4 C \frac{c}{\sqrt{m}} "
        r"\prod_{i=1}^{r} K_i \left( \sum_{i=1}^{r} \frac{b_i^{2/3}}{K_i^{2/3}} \right)^{3/2} + "
        r"2 \sqrt{\frac{2 k d p^2 \left( 1 + \log \frac{T}{k} \right) + d p^2 \log(2m) + \log(4/\delta)}{2m}}"
    )
    experiment = LEARNED_CELLS
    labels = named("m = 1e10")
    observe = _excess_over_corollary
