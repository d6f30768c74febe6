"""Theorem 1 and Corollary 4: instances whose gap, exact or found, exceeds the bound more often than delta."""

import math
from typing import Any

import numpy as np

from moe_theory.generalization import complexity, experiments, instances, theory
from moe_theory.generalization.claims.values import (
    all_allowed,
    allowed,
    claim,
    exceeds,
    exceeds_at,
    seldom_above,
    unless_impossible,
)
from moe_theory.generalization.experiments import cell_name, gaps_of, theorem_1_at
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, alike, named

_BOUND = (
    r"4 C \mathcal{R}_m(\mathcal{H}) + 2 \sqrt{\frac{2 k d_N \left( 1 + \log \frac{T}{k} \right) + d_N \log(2m) + "
    r"\log(4/\delta)}{2m}}"
)
_EQUATION_8 = seldom_above(_BOUND)
FIXED_CELL = cell_name(T=experiments.FIXED_EXPERTS, m=experiments.FIXED_SAMPLES)
_GROWING_CELLS = tuple(cell_name(T=experiments.PER_SAMPLE * m, m=m) for m in experiments.GROWING_SAMPLES)
_GRANTED = 1  # d_N of a single mask function is 0; Theorem 1 is granted more
_COROLLARY_SAMPLES = 10**10  # at which Lemma 2's p^2 outputs no longer make the bound vacuous


def _constants_bound(run: Run, router: str = "fixed", least_natarajan: float = _GRANTED) -> float:
    """(23) for the experts +1 and -1."""
    return theorem_1_at(run.params, complexity.constants(int(run.params.num_samples)), router, 1, least_natarajan)


def _ratios(runs: Runs) -> np.ndarray:
    cells = [runs[name] for name in _GROWING_CELLS]
    return np.stack([run.records.gap[-1] / _constants_bound(run) for run in cells], axis=1)


def _linear_bound(run: Run, num_features: int) -> float:
    """(23) for linear experts and routers, with R_m(H) at its upper bound B / sqrt(m)."""
    radius = float(run.params.expert_norm) / math.sqrt(int(run.params.num_samples))
    return theorem_1_at(run.params, radius, "linear", num_features)


def _has_dimension(dims: Any, runs: Runs) -> list[tuple[str, bool]]:
    del dims
    return [("free routers have a finite d_N", not runs[experiments.DENSE_CELL].params.whole_router)]


def _exceeds_natural(runs: Runs) -> np.ndarray:
    bound = _linear_bound(runs[experiments.NATURAL_CELL], experiments.NATURAL_FEATURES)
    return gaps_of(runs, [experiments.NATURAL_CELL])[:, 0] > bound


def _excess_over_corollary(runs: Runs) -> np.ndarray:
    """Excess over (9) of the gap of `instances.learned_cells`, the same for every sample of this size.

    An input has a coordinate and a constant, arbitrarily small, which the router reads with 128 arbitrarily large
    weights, and a random one of many unit vectors, which the experts read: m^2 dimensions are enough, as hardly any of
    m inputs then share one. Whatever the constant in Lemma 2, its term vanishes as m grows and leaves
    4 C R_m(H) = 2 / sqrt(T), which is below 1/2.
    """
    radius = math.sqrt(_COROLLARY_SAMPLES / experiments.LEARNED_EXPERTS)
    counts = np.full(experiments.LEARNED_EXPERTS, _COROLLARY_SAMPLES / experiments.LEARNED_EXPERTS)
    gap = float(instances.ball_gap(counts, radius**2, float(_COROLLARY_SAMPLES)))
    bound = theory.corollary_4(
        experiments.LEARNED_EXPERTS,
        1,
        _COROLLARY_SAMPLES,
        feature_norm=1.0,
        operator_norms=[radius],
        row_norms=[radius],
        num_parameters=experiments.LEARNED_EXPERTS * experiments.LEARNED_FEATURES,
        lipschitz=LIPSCHITZ,
        delta=float(runs[experiments.LEARNED_CELL].params.delta),
    )
    return alike(runs[experiments.LEARNED_CELL], max(gap - bound, 0))


@claim(
    "generalization.theorem-1.fixed-router",
    where="Theorem 1, Eqs. (8) and (23)",
    kind="counterexample",
    replaced_by="generalization.repaired.symmetrization",
)
class FixedRouter:
    """With 5000 fixed cells, k = 1 and experts +1 or -1, the gap exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = experiments.CELLS
    labels = named(FIXED_CELL)
    observe = exceeds_at(FIXED_CELL, _constants_bound)
    predict = allowed(FIXED_CELL)


@claim(
    "generalization.theorem-1.any-constant",
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
    experiment = experiments.CELLS
    side = "at_most"
    abscissa = experiments.GROWING_SAMPLES
    observe = _ratios
    predict = staticmethod(lambda runs: 0.0)


@claim(
    "generalization.theorem-1.learned-router",
    where="Theorem 1, Eqs. (8) and (23)",
    kind="counterexample",
    replaced_by="generalization.repaired.learned-router",
)
class LearnedRouter:
    """With 64 experts in balls, k = 1 and a learned linear router, the gap exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = experiments.LEARNED_CELLS
    labels = named(experiments.LEARNED_CELL)
    observe = exceeds_at(
        experiments.LEARNED_CELL,
        lambda run: theorem_1_at(
            run.params, 1 / math.sqrt(experiments.LEARNED_EXPERTS), "linear", experiments.LEARNED_FEATURES
        ),
    )
    predict = allowed(experiments.LEARNED_CELL)


@claim(
    "generalization.theorem-1.dense",
    where="Theorem 1, Eqs. (8) and (23), d_N of masks",
    kind="counterexample",
    replaced_by="generalization.repaired.dense",
)
class Dense:
    """With both of two constant experts active and any router, the gap exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = experiments.DENSE
    labels = named(experiments.DENSE_CELL)
    observe = exceeds_at(experiments.DENSE_CELL, lambda run: _constants_bound(run, "free", 0))
    predict = allowed(experiments.DENSE_CELL)
    hypotheses = _has_dimension


@claim(
    "generalization.theorem-1.natural",
    where="Theorem 1, Eqs. (8) and (23)",
    kind="counterexample",
    replaced_by="generalization.repaired.natural",
)
class Natural:
    """Fitted to random labels, k = T = 32 linear experts have a gap that exceeds (23) no more often than delta."""

    formula = _EQUATION_8
    experiment = experiments.NATURAL
    labels = named(experiments.NATURAL_CELL)
    observe = _exceeds_natural
    predict = allowed(experiments.NATURAL_CELL)


def _declare_trained(source: str, what: str) -> None:
    num_features = experiments.TRAINED_FEATURES[source]

    def bounds(runs: Runs) -> np.ndarray:
        return np.array([_linear_bound(run, num_features) for run in runs.values()])

    @claim(
        f"generalization.theorem-1.trained-{source}",
        where="Theorem 1, Eqs. (8) and (23), for what training finds",
        kind="probability",
    )
    class Trained:
        __doc__ = f"The gap of classifiers trained on {what} exceeds (23), d_N of masks, no more often than delta."
        formula = _EQUATION_8
        experiment = experiments.TRAINED[source]
        side = "at_most"
        labels = staticmethod(list)
        observe = exceeds(bounds)
        predict = all_allowed
        trivial = unless_impossible(1.0, bounds)


_declare_trained("teacher", "a teacher's labels")
_declare_trained("digits", "images of digits")


@claim(
    "generalization.corollary-4",
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
    experiment = experiments.LEARNED_CELLS
    labels = named("m = 1e10")
    observe = _excess_over_corollary
