"""The continual-learning system as sweeps name it: sizes, readings, choices and observables."""

import jax.numpy as jnp
import optax

from moe_theory.continual.algorithm import system
from moe_theory.continual.params import READINGS, Dims, check_params
from moe_theory.core.baseline import LOCALITIES
from moe_theory.sweep.systems import Observable, Sweepable, observables

OPTIMIZERS = {"sgd": optax.sgd, "adam": optax.adam}  # of the gates; sgd is (9)
EXPERTS = ("expert_index",)  # padded ones included, which are zero

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
        Observable("loads", "L_t(m), rounds in which an expert was chosen", lambda state, info: state.visits, EXPERTS),
        Observable("gate_outputs", "h_m without the perturbation", lambda state, info: info.gate_outputs, EXPERTS),
        Observable("gate_probabilities", "softmax pi_m", lambda state, info: info.gate_probabilities, EXPERTS),
    ),
    default_observables=("forgetting", "generalization_error"),
)
