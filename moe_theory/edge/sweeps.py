"""Names that a sweep's specification may use for mobile edge computing."""

from moe_theory.core.baseline import LOCALITIES
from moe_theory.edge import delays
from moe_theory.edge.algorithm import system
from moe_theory.edge.params import READINGS, Dims, check_params
from moe_theory.edge.policies import POLICIES
from moe_theory.sweep.systems import Observable, Sweepable, observables

TRANSFERS = {"uniform": delays.uniform, "geometric": delays.geometric, "by_distance": delays.by_distance}
EXECUTIONS = {"uniform": delays.uniform, "geometric": delays.geometric}
LOSSES = LOCALITIES | {"printed": None}  # None is (11), without a memory of moves
EXPERTS = ("expert_index",)  # padded ones included, which are zero

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
            "G_t once the tasks under way are completed, squared model distance",
            lambda state, info: info.generalization_error_flushed,
        ),
        Observable("delay", "d_t of the task routed, in rounds (1)", lambda state, info: info.delay),
        Observable("wait", "rounds before the server starts on it", lambda state, info: info.wait),
        Observable("num_busy", "servers that the router found busy", lambda state, info: info.num_busy),
        Observable("dropped", "tasks lost so far because nobody was idle", lambda state, info: state.dropped),
        Observable(
            "misrouted", "tasks so far at a specialist of another kind (15)", lambda state, info: state.misrouted
        ),
        Observable("num_specialists", "servers that specialise in the kind", lambda state, info: info.num_specialists),
        Observable("task", "n_t, the kind of the task that arrived", lambda state, info: info.task),
        Observable("expert", "m_t, the server; below 0 if none took the task", lambda state, info: info.expert),
        Observable("loads", "L_t(m), tasks routed to a server", lambda state, info: state.visits, EXPERTS),
        Observable("gate_outputs", "h_m without the perturbation", lambda state, info: info.gate_outputs, EXPERTS),
    ),
    default_observables=("generalization_error", "dropped"),
)
