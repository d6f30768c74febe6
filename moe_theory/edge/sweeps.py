"""Names for sweeps of mobile edge computing."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Int

from moe_theory.core.baseline import LOCALITIES
from moe_theory.core.linear import Numbers
from moe_theory.edge import delays, theory
from moe_theory.edge.algorithm import Info, State, system
from moe_theory.edge.params import READINGS, Dims, Params, check_params
from moe_theory.edge.policies import POLICIES
from moe_theory.sweep.systems import ClosedForm, Observable, Sweepable, observables

TRANSFERS = {"uniform": delays.uniform, "geometric": delays.geometric, "by_distance": delays.by_distance}
EXECUTIONS = {"uniform": delays.uniform, "geometric": delays.geometric}
LOSSES = LOCALITIES | {"printed": None}  # "printed" is replaced: the paper's own loss, Eq. (11)
PER_EXPERT = ("expert_index",)  # the axis of experts, where padded ones have zeros


class PropositionInputs(NamedTuple):
    """Quantities of a replicate that enter Proposition 4 after a round."""

    centres: theory.Gaps  # gaps between the pool's centres
    loads: Int[Numbers, " M"]


def proposition_inputs(state: State, info: Info) -> PropositionInputs:
    del info
    return PropositionInputs(theory.gaps(state.pool, cluster_spread=0.0), state.visits)


def proposition_4(dims: Dims, params: Params, rounds: Int[np.ndarray, "R 1"], records: PropositionInputs) -> Numbers:
    """Return (22) for the routed tasks, in each recorded round of each replicate."""
    del rounds
    centre_gaps = theory.Gaps(*(np.asarray(gap, np.float64) for gap in records.centres))
    # Records hold the gaps of the centres, because observables do not get the parameters.
    gaps = theory._with_spread(centre_gaps, dims.num_features, float(params.cluster_spread))
    ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    loads = np.moveaxis(np.asarray(records.loads), 1, -1)  # (R, M, B) to (R, B, M)
    return theory.proposition_4(gaps, ratio, loads, loads.sum(axis=-1))


SWEEPABLE = Sweepable(
    about="mobile edge computing with busy servers: Algorithm 1 of `edge` under a routing policy",
    dims=Dims,
    default_dims={"num_tasks": 10, "num_features": 15, "num_samples": 10},
    readings=READINGS,
    choices={"policy": POLICIES, "transfer": TRANSFERS, "execution": EXECUTIONS, "locality": LOSSES},
    build=system,
    check=check_params,
    observables=observables(
        Observable(
            "generalization_error",
            "G_t of the tasks routed so far, squared model distance (20)",
            lambda state, info: info.generalization_error,
        ),
        Observable(
            "generalization_error_flushed",
            "G_t once the pending tasks are completed, squared model distance",
            lambda state, info: info.generalization_error_flushed,
        ),
        Observable("delay", "d_t of the task routed, in rounds (1)", lambda state, info: info.delay),
        Observable("wait", "rounds before the server starts on it", lambda state, info: info.wait),
        Observable("num_busy", "servers that the router found busy", lambda state, info: info.num_busy),
        Observable("dropped", "tasks lost so far because no server was idle", lambda state, info: state.dropped),
        Observable(
            "misrouted", "tasks so far at a specialist of another task type (15)", lambda state, info: state.misrouted
        ),
        Observable("num_specialists", "servers specialised in this type", lambda state, info: info.num_specialists),
        Observable("task", "n_t, the type of the task that arrived", lambda state, info: info.task),
        Observable("expert", "m_t, the server, below 0 if none took the task", lambda state, info: info.expert),
        Observable("loads", "L_t(m), tasks routed to a server", lambda state, info: state.visits, PER_EXPERT),
        Observable("gate_outputs", "h_m without the perturbation", lambda state, info: info.gate_outputs, PER_EXPERT),
    ),
    default_observables=("generalization_error", "dropped"),
    closed_forms=(
        ClosedForm(
            "proposition_4",
            "E[G_t] of routing that ignores the task (22), for the pool and the routed tasks of each replicate",
            proposition_4,
            proposition_inputs,
            beside="generalization_error",
        ),
    ),
)
