"""Lemma 3: the Rademacher complexity of networks."""

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import NETWORKS, ROUTER_SAMPLES, all_cells, cell_name, shown
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.statement import bound, constant, equality, ranged

LONE_EXPERT = experiments.LINEAR_ROUTER.at(experiments.router_name(2, 1, 1.0))
LABELS = [cell_name({"m": ROUTER_SAMPLES})]

LEMMA_3 = statement("lemma-3", module=__name__)


@constant
def ball_bound(run) -> float:
    norm = float(run.params.expert_norm)
    return float(theory.lemma_3(ROUTER_SAMPLES, feature_norm=1.0, operator_norms=[norm], row_norms=[norm]))


@LEMMA_3.ours("lemma-3.one-layer-is-tight", LONE_EXPERT, equality(ball_bound, margin=0.05), labels=LABELS)
@LEMMA_3.charitable("lemma-3.one-layer", LONE_EXPERT, bound(at_most=ball_bound), labels=LABELS)
def complexity_of_one_expert(run) -> np.ndarray:
    return shown(run, "lone")


@constant
def network_bound(run) -> float:
    """Return Lemma 3 for two layers with Frobenius norms up to B. Row norms of the first sum to up to sqrt(width) B."""
    norm = float(run.params.expert_norm)
    row_norms = [experiments.NETWORK_WIDTH**0.5 * norm, norm]
    return float(theory.lemma_3(int(run.params.num_samples), 1.0, operator_norms=[norm, norm], row_norms=row_norms))


@LEMMA_3.charitable("lemma-3.two-layers", all_cells(NETWORKS), bound(at_most=network_bound))
@ranged(low=-1, high=1)
def reached_complexity(run) -> np.ndarray:
    return -2 * run.records.loss.min(axis=0).astype(np.float64)
