"""The experiments on what the paper's evaluation says: a trained MoE, clocks, and Tanbr's own parameters.

Tier `surfaces`: Fig. 7 on a reward whose best weights are known. Tier `testbed`: slots of the trained model, with Tanbr
as Algorithm 1 says, whatever the reading. Tier `clocks`: repetitions of timings on this machine, so that another run
gives other numbers.
"""

from collections.abc import Mapping
from typing import Any

from moe_theory.core.system import observe_info
from moe_theory.merging import adversary, evaluation, measured, policies, rewards, served, uncertainty
from moe_theory.merging.experiments import DIMS, EXACT, OWN, RATIOS, REPLICATES, SURFACES, UNIFORM, WARM, recorder
from moe_theory.merging.params import Dims
from moe_theory.merging.serving.methods import MERGED
from moe_theory.merging.system import system
from moe_theory.verify import Experiment

TESTBED, CLOCKS = "testbed", "clocks"

# Fig. 7: Tanbr's rho, and the step of its network.
LEARNING_RATES = (0.05, 0.5)  # eta w


def ratio_cell(ratio: float) -> str:
    """The name of a cell of `ABLATION`."""
    return f"rho = {ratio:g}"


def rate_cell(rate: float) -> str:
    """The name of a cell of `ABLATION`."""
    return f"learning rate {rate:g}"


ABLATION = Experiment(
    name="ablation",
    dims=DIMS,
    system=system(DIMS, rewards.PEAKED, policies.TANBR),
    cells={
        **{ratio_cell(ratio): {"smoothness_ratio": ratio} for ratio in RATIOS},
        **{rate_cell(rate): {"learning_rate": rate} for rate in LEARNING_RATES},
    },
    num_rounds=DIMS.max_rounds,
    record_every=64,
    observe=recorder(rewards.PEAKED),
    replicates=REPLICATES,
    tier=SURFACES,
    keeps_state=False,
)

# Fig. 6: slots until 20 feasible leaves, of the tree alone, whose leaves are picked at random.
STEP_EXPERTS = (4, 16, 64)
STEP_CONSTANT = 0.3  # C: with 1 a tree seldom has 20 leaves in so many slots
STEP_DIMS = Dims(max_experts=STEP_EXPERTS[-1], max_rounds=512, max_leaves=64)


def experts_cell(num_experts: int) -> str:
    """The name of a cell of `STEPS`."""
    return f"K = {num_experts}"


STEPS = Experiment(
    name="steps",
    dims=STEP_DIMS,
    system=adversary.one_rule(STEP_DIMS, UNIFORM),
    cells={
        experts_cell(number): {"num_experts": number, "max_active": number, "split_constant": STEP_CONSTANT}
        for number in STEP_EXPERTS
    },
    num_rounds=STEP_DIMS.max_rounds,
    record_every=1,
    observe=observe_info,
    replicates=REPLICATES,
    tier=EXACT,
)

# Slots of the trained model.
SLOT_SIZE = 64
LATE = 64  # slots, the last ones, that accuracies are over
STREAMS = 32
LEARNERS = {policies.TANBR: policies.TANBR, WARM: policies.TANBR, policies.NUCB: policies.NUCB}
PLAIN = (policies.UNIFORM, policies.MIX)
METHODS = (
    "average",
    "fisher",
    "regmean",
    "smear-example-linear",
    "smear-token-linear",
    "token-top-1-capacity",
    "token-top-2-capacity",
    "token-top-3-capacity",
    "rl-capacity",
    "task-top-1-dense",
)


def _testbed(name: str, mix: Mapping[str, Any]) -> Experiment:
    chosen = LEARNERS | {policy: policy for policy in PLAIN}
    fixed = {**OWN, **mix, "slot_size": SLOT_SIZE}
    cells: dict[str, Mapping[str, Any]] = dict.fromkeys((*chosen, *METHODS), fixed)
    cells[WARM] = fixed | {"warm_start": True}
    return Experiment(
        name=name,
        dims=DIMS,
        system=system(DIMS, rewards.PEAKED, policies.TANBR),
        cells=cells,
        num_rounds=DIMS.max_rounds,
        record_every=1,
        observe=evaluation.observe,
        replicates=STREAMS,
        tier=TESTBED,
        keeps_state=False,
        measure=served.accuracies(DIMS, chosen, SLOT_SIZE, LATE),
    )


TESTBEDS = {
    "fixed": _testbed("testbed", {"mix_drift": 0.0}),
    "dynamic": _testbed("testbed-drifting", {"mix_drift": 1.0}),
}

# Clocks.
TIMED = (
    *(f"token-top-{k}-{build}" for k in (1, 2, 3) for build in ("capacity", "dense", "ragged")),
    *(f"smear-{level}-{build}" for level in ("example", "token") for build in ("linear", "materialised")),
    *(f"rl-{build}" for build in ("capacity", "dense", "ragged")),
    "task-top-1-one-task",
    "task-top-1-capacity",
)
BATCH = "a batch of 128"
TIMES = Experiment(
    name="serving-times",
    dims=DIMS,
    system=system(DIMS, rewards.PEAKED, policies.AVERAGE),
    cells={BATCH: {**OWN, "slot_size": 128}},
    num_rounds=1,
    record_every=1,
    observe=observe_info,
    replicates=128,
    tier=CLOCKS,
    keeps_state=False,
    measure=measured.latencies([MERGED, *TIMED]),
)
ROUTED_EXPERTS = (4, 64, 192)
ROUTED_DIMS = Dims(max_experts=ROUTED_EXPERTS[-1])


def routed_cell(num_experts: int, form: str = uncertainty.DIAGONAL) -> str:
    """The name of a cell of `ROUTING`."""
    return f"K = {num_experts}, {form} Z"


ROUTED = {routed_cell(number): (number, uncertainty.DIAGONAL) for number in ROUTED_EXPERTS} | {
    routed_cell(ROUTED_EXPERTS[-1], uncertainty.EXACT): (ROUTED_EXPERTS[-1], uncertainty.EXACT)
}
ROUTING = Experiment(
    name="routing-times",
    dims=ROUTED_DIMS,
    system=system(ROUTED_DIMS, rewards.PEAKED, policies.AVERAGE),
    cells={
        cell: {**OWN, "num_experts": number, "max_active": 8 if number > 8 else number}
        for cell, (number, _) in ROUTED.items()
    },
    num_rounds=1,
    record_every=1,
    observe=observe_info,
    replicates=128,
    tier=CLOCKS,
    keeps_state=False,
    measure=measured.routing_times({cell: form for cell, (_, form) in ROUTED.items()}),
)
