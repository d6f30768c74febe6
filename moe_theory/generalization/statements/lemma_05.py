"""Lemma 5, by which T experts cost no more than one, and (31), the wrong step of its proof."""

import itertools

import numpy as np

from moe_theory.generalization import corrected, experiments
from moe_theory.generalization.experiments import LINEAR_ROUTER, SPARSE_EXPERTS, all_cells, measure_of, shown
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.statement import bound, equality

BY_CELLS = experiments.FEW_CELLS.over("num_experts")
# T = 8 with these k, at every norm of the router for which gates differ.
SIZES = list(itertools.product(experiments.ROUTER_NORMS, experiments.ROUTER_ACTIVE))
ALL_NAMES = tuple(dict.fromkeys(experiments.router_name(SPARSE_EXPERTS, k, norm) for norm, k in SIZES))  # k = 1 once
SPARSE_NAMES = tuple(name for name in ALL_NAMES if LINEAR_ROUTER.cells[name]["num_active"] < SPARSE_EXPERTS)

LEMMA_5 = statement("lemma-5", module=__name__)
BY_ONE_EXPERT = bound(at_most=lambda run: 2 * LIPSCHITZ * shown(run, "lone"))
BY_MASKED_CLASS = bound(at_most=lambda run: 2 * LIPSCHITZ * shown(run, "masked"))


@LEMMA_5.replacement("lemma-5.masked-class", BY_CELLS, BY_MASKED_CLASS)
@LEMMA_5.charitable("lemma-5.lone-expert", BY_CELLS, BY_ONE_EXPERT, instead="lemma-5.masked-class")
def paired_gap(run) -> np.ndarray:
    return shown(run, "paired_gap")


EQUATION_31 = statement("equation-31", module=__name__)


def product_bound(run) -> float:
    experts, _, samples = experiments.sizes_of(run.params)
    return float(corrected.product_complexity(experts, samples))


def fixed_router_bound(run) -> np.ndarray:
    experts, _, samples = experiments.sizes_of(run.params)
    gate = shown(run, "mean_square_gate")
    norm = float(run.params.expert_norm)
    return np.asarray(corrected.fixed_router_complexity(experts, samples, gate, norm))


def scaled_complexity(run) -> np.ndarray:
    """Return sqrt(T A) times one expert's complexity. Loads are unequal and the router selects inputs, so the product
    is too large, to second order in how far the T sums are from equal size and isotropy.
    """
    return np.sqrt(int(run.params.num_experts) * shown(run, "mean_square_gate")) * shown(run, "lone")


@EQUATION_31.replacement("equation-31.product-class", BY_CELLS, bound(at_most=product_bound, trivial=1.0))
@EQUATION_31.charitable(
    "equation-31.constant-experts", BY_CELLS, bound(at_most=measure_of("lone")), instead="equation-31.product-class"
)
def complexity_of_cells(run) -> np.ndarray:
    return shown(run, "masked")


@EQUATION_31.replacement("equation-31.ratio", LINEAR_ROUTER.over(ALL_NAMES), equality(scaled_complexity, margin=0.1))
@EQUATION_31.replacement(
    "equation-31.fixed-router", all_cells(LINEAR_ROUTER), bound(at_most=fixed_router_bound, trivial=1.0)
)
@EQUATION_31.charitable(
    "equation-31.linear-experts",
    LINEAR_ROUTER.over(SPARSE_NAMES),
    bound(at_most=measure_of("lone")),
    instead="equation-31.fixed-router",
)
def complexity_of_routed(run) -> np.ndarray:
    return shown(run, "routed")
