"""Names for sweeps of online expert merging."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from moe_theory.merging import theory
from moe_theory.merging.monitor import MONITORS
from moe_theory.merging.params import READINGS, Dims, Params, check_params
from moe_theory.merging.policies import POLICIES, UNCERTAINTIES
from moe_theory.merging.rewards import REWARDS
from moe_theory.merging.system import system
from moe_theory.sweep.systems import ClosedForm, Observable, Sweepable, observables

EXPERT_AXES = ("expert_index",)  # axes of an observable with one number per expert, which is 0 for padded experts


def monitor_error(state: Any, info: Any) -> Array:
    del state
    return jnp.sum(jnp.abs(info.estimated_mix - info.mix)) / 2


def leaf_bound(dims: Dims, params: Params, rounds: Int[np.ndarray, "R 1"], records: Any) -> theory.Amounts:
    """Return Lemma 1's bound (5) on the candidates of all slots up to this one."""
    del dims, records
    return theory.leaf_bound(rounds, params)


def depth_bound(dims: Dims, params: Params, rounds: Int[np.ndarray, "R 1"], records: Any) -> theory.Amounts:
    """Return Lemma 2's bound (7) on the tree's depth up to this slot."""
    del dims, records
    return theory.depth_bound(rounds, params)


SWEEPABLE = Sweepable(
    about="online expert merging: Tanbr, Algorithm 1 of `merging`, or a rival, on rewards whose best weights are known",
    dims=Dims,
    default_dims={"num_tasks": 8},
    readings=READINGS,
    choices={
        "reward": {name: name for name in REWARDS},
        "policy": {name: name for name in POLICIES},
        "monitor": {name: name for name in MONITORS},
        "uncertainty": {name: name for name in UNCERTAINTIES},
    },
    build=system,
    check=check_params,
    observables=observables(
        Observable("regret", "R_t, cumulative, against the best weights", lambda state, info: info.cumulative_regret),
        Observable("slot_regret", "regret of the slot alone, in [0, 1]", lambda state, info: info.regret),
        Observable("mean_value", "mean of psi' f*(x) over the slots so far", lambda state, info: info.mean_value),
        Observable("value", "psi' f*(x) of the slot", lambda state, info: info.value),
        Observable("leaves", "N_t, candidates of the slot", lambda state, info: info.pick.num_candidates),
        Observable("depth", "h_t of the leaf picked", lambda state, info: info.pick.depth),
        Observable("max_depth", "H(t), depth of the tree", lambda state, info: info.pick.max_depth),
        Observable("bonus", "last term of (4) for the weights picked", lambda state, info: info.pick.bonus),
        Observable("prediction", "psi' f(x, theta) for these weights", lambda state, info: info.pick.prediction),
        Observable("left_out", "splits that the tree had no room for, so far", lambda state, info: info.pick.left_out),
        Observable("monitor_error", "total variation of estimated and true task mix", monitor_error),
        Observable("weights", "x_t", lambda state, info: info.pick.weights, EXPERT_AXES),
    ),
    default_observables=("regret", "mean_value"),
    closed_forms=(
        ClosedForm("leaf_bound", "bound N of Lemma 1 on N_t, (5) with T = t", leaf_bound, beside="leaves"),
        ClosedForm("depth_bound", "bound of Lemma 2 on H(t), (7) with T = t", depth_bound, beside="max_depth"),
    ),
)
