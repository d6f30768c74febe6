"""The continual-learning system for sweeps: sizes, readings, choices and observables."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import optax
from jaxtyping import Int

from moe_theory.continual import theory
from moe_theory.continual.algorithm import Info, State, system
from moe_theory.continual.params import READINGS, Dims, check_params
from moe_theory.core.baseline import LOCALITIES
from moe_theory.core.linear import Numbers
from moe_theory.sweep.systems import ClosedForm, Observable, Sweepable, observables

OPTIMIZERS = {"sgd": optax.sgd, "adam": optax.adam}  # optimizers of the gates. sgd is (9)
PER_EXPERT = ("expert_index",)  # the axis of experts, where padded ones have zeros


class TheoremInputs(NamedTuple):
    """Quantities of a replicate that enter the theorems after a round."""

    gaps: theory.Gaps
    loads: Int[Numbers, " M"]
    explored_loads: Int[Numbers, " M"]


def theorem_inputs(state: State, info: Info) -> TheoremInputs:
    del info
    return TheoremInputs(theory.gaps(state.pool), state.visits, state.explored_visits)


def closed_form(name: str, theorem: Callable[..., theory.Bound], metric: str, source: str) -> ClosedForm:
    """Return a theorem's bound on a metric, from each replicate's own pool and loads."""

    def bound(dims: Dims, params: Any, rounds: Int[np.ndarray, "R 1"], records: TheoremInputs) -> Numbers:
        del params
        gaps = theory.Gaps(*(np.asarray(gap, np.float64) for gap in records.gaps))
        # Records have replicates last, (R, M, B), and theorems take experts last, (R, B, M).
        loads = np.moveaxis(np.asarray(records.loads), 1, -1)
        explored_loads = np.moveaxis(np.asarray(records.explored_loads), 1, -1)
        ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
        return getattr(theorem(gaps, ratio, loads, explored_loads, round=rounds), metric)

    return ClosedForm(
        name, f"{source}, for the pool and the loads of each replicate", bound, theorem_inputs, beside=metric
    )


CLOSED_FORMS = (
    closed_form("theorem_1_forgetting", theory.theorem_1, "forgetting", "bound (19) of Theorem 1 on E[F_t]"),
    closed_form("theorem_1_error", theory.theorem_1, "generalization_error", "bound (20) of Theorem 1 on E[G_t]"),
    closed_form("theorem_2_forgetting", theory.theorem_2, "forgetting", "bound (21) of Theorem 2 on E[F_t]"),
    closed_form("theorem_2_error", theory.theorem_2, "generalization_error", "bound (22) of Theorem 2 on E[G_t]"),
)
SWEEPABLE = Sweepable(
    about="continual learning with early termination: Algorithm 1 of `continual`",
    dims=Dims,
    default_dims={"num_tasks": 6, "num_features": 10, "num_samples": 6, "max_active": 1},
    readings=READINGS,
    choices={"optimizer": OPTIMIZERS, "locality": LOCALITIES},
    build=system,
    check=check_params,
    observables=observables(
        Observable("forgetting", "F_t, squared model distance (15)", lambda state, info: info.forgetting),
        Observable(
            "generalization_error", "G_t, squared model distance (16)", lambda state, info: info.generalization_error
        ),
        Observable("error", "E_t(w_t), squared model distance (14)", lambda state, info: info.error),
        Observable("update_norm", "|w_t - w_{t-1}| of the experts that learned", lambda state, info: info.update_norm),
        Observable("task", "n_t, the task that arrived", lambda state, info: info.task),
        Observable("expert", "m_t, the expert chosen", lambda state, info: info.expert),
        Observable("terminated", "whether gate updates have ended", lambda state, info: state.terminated),
        Observable(
            "busiest_share",
            "largest load L_t(m) / t",
            lambda state, info: jnp.max(state.visits).astype(state.experts.dtype) / state.round,
        ),
        Observable(
            "loads", "L_t(m), rounds in which an expert was chosen", lambda state, info: state.visits, PER_EXPERT
        ),
        Observable("gate_outputs", "h_m without the perturbation", lambda state, info: info.gate_outputs, PER_EXPERT),
        Observable("gate_probabilities", "softmax pi_m", lambda state, info: info.gate_probabilities, PER_EXPERT),
    ),
    default_observables=("forgetting", "generalization_error"),
    closed_forms=CLOSED_FORMS,
)
