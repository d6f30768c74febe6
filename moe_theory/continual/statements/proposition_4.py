"""Proposition 4: the expected metrics of a single expert, and exact ones."""

from collections.abc import Callable

import numpy as np

from moe_theory.continual import experiments, theory
from moe_theory.continual.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.statement import equality

# The texts in `proposition_4.toml` use g_t, the error of a task independent of w_t, u_n = v_n / |v_n|, and S, the mean
# projector of a round.
ALONE = experiments.SINGLE_EXPERT.at(experiments.SINGLE)

FORGETTING = statement("proposition-4-forgetting", module=__name__)
GENERALIZATION_ERROR = statement("proposition-4-generalization-error", module=__name__)


def single_expert_gaps(run) -> theory.Gaps:
    pools, places = experiments.shared_pools_of(run)
    gaps = np.transpose([theory.gaps(pool) for pool in pools])  # a row for each kind of gap
    return theory.Gaps(*gaps[:, places])


def task_gap(run) -> np.ndarray:
    return np.asarray(single_expert_gaps(run).task_gap)[None]


def printed_metric(name: str) -> Callable[[Run], np.ndarray]:
    """Return the right side of (17) or (18) at the recorded rounds (V, B)."""
    dims = experiments.SINGLE_EXPERT.dims
    ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    return lambda run: getattr(theory.proposition_4(single_expert_gaps(run), ratio, run.rounds[:, None]), name)


def exact_metric(name: str) -> Callable[[Run], np.ndarray]:
    return lambda run: getattr(experiments.exact_of(run), name)


FORGETTING.charitable(
    "proposition-4.forgetting",
    ALONE,
    equality(printed_metric("forgetting"), margin=0.02, scale=task_gap),
    instead="exact.forgetting",
)(experiments.metric("forgetting"))
FORGETTING.replacement("exact.forgetting", ALONE, equality(exact_metric("forgetting"), margin=0.02, scale=task_gap))(
    experiments.metric("forgetting")
)
GENERALIZATION_ERROR.charitable(
    "proposition-4.generalization-error",
    ALONE,
    equality(printed_metric("generalization_error"), margin=0.02),
    instead="exact.generalization-error",
)(experiments.metric("generalization_error"))
GENERALIZATION_ERROR.replacement(
    "exact.generalization-error", ALONE, equality(exact_metric("generalization_error"), margin=0.02)
)(experiments.metric("generalization_error"))
