"""The runs that claims on lemmas and on steps of proofs share: systems of one round, small enough for many draws.

Only networks are trained. Nothing here depends on what d_N is the dimension of: every cell sets `whole_router`, so that
readings which differ in that alone run once.
"""

from moe_theory.core.system import System, observe_info
from moe_theory.generalization.experiments import FREE, LEARNED, Settings, drawn_once
from moe_theory.generalization.finite import function_classes, labelings, lone_points
from moe_theory.generalization.instances import cells, coin
from moe_theory.generalization.linear_router import linear_router
from moe_theory.generalization.params import Dims
from moe_theory.generalization.system import system
from moe_theory.verify import Experiment


def _free(name: str, dims: Dims, drawn: System, settings: Settings, replicates: int) -> Experiment:
    return drawn_once(name, dims, drawn, {cell: {**part, **FREE} for cell, part in settings.items()}, replicates)


def experts_name(num_experts: int) -> str:
    """The name of a cell that differs in its number of experts."""
    return f"T = {num_experts}"


def samples_name(num_samples: int) -> str:
    """The name of a cell that differs in its number of samples."""
    return f"m = {num_samples}"


def sizes_name(num_experts: int, num_active: int) -> str:
    """The name of a cell that differs in T and k."""
    return f"T = {num_experts}, k = {num_active}"


def router_name(num_experts: int, num_active: int, router_norm: float) -> str:
    """The name of a cell of `LINEAR_ROUTER`; at k = 1 all gates are 1 whatever the norm."""
    name = sizes_name(num_experts, num_active)
    return name if num_active == 1 else f"{name}, W = {router_norm:g}"


CELL_SAMPLES = 256
CELL_EXPERTS = (4, 16, 64)
CELL_DIMS = Dims(max_experts=CELL_EXPERTS[-1], num_features=1, max_samples=CELL_SAMPLES)

FIXED_CELLS = _free(
    "cells",
    CELL_DIMS,
    cells(CELL_DIMS),
    {
        experts_name(number): {"num_experts": number, "num_active": 1, "num_samples": CELL_SAMPLES}
        for number in CELL_EXPERTS
    },
    1024,
)

COIN_SAMPLES = (25, 100)
COIN_DIMS = Dims(max_experts=1, num_features=1, max_samples=COIN_SAMPLES[-1])

COIN = _free(
    "coin",
    COIN_DIMS,
    coin(COIN_DIMS),
    {samples_name(count): {"num_experts": 1, "num_active": 1, "num_samples": count} for count in COIN_SAMPLES},
    32768,
)

# T masks of k functions each at m samples.
CLASS_SIZES = ((2, 1, 8), (8, 1, 8), (8, 8, 8), (4, 2, 5))
CLASS_DIMS = Dims(max_experts=8, num_features=1, max_samples=8)

CLASSES = _free(
    "finite-classes",
    CLASS_DIMS,
    function_classes(CLASS_DIMS),
    {
        f"{sizes_name(experts, active)}, m = {samples}": {
            "num_experts": experts,
            "num_active": active,
            "num_samples": samples,
        }
        for experts, active, samples in CLASS_SIZES
    },
    256,
)

LABELING_SIZES = ((2, 1), (3, 1), (3, 2))  # T and k: T labels, and masks of k of T experts
LABELING_DIMS = Dims(max_experts=3, num_features=2, max_samples=4)

LABELINGS = _free(
    "labelings",
    LABELING_DIMS,
    labelings(LABELING_DIMS),
    {
        sizes_name(experts, active): {
            "num_experts": experts,
            "num_active": active,
            "num_samples": LABELING_DIMS.max_samples,
        }
        for experts, active in LABELING_SIZES
    },
    512,
)

LONE_SAMPLES = 16
LONE_DIMS = Dims(max_experts=2, num_features=1, max_samples=LONE_SAMPLES)
LONE_CELL = samples_name(LONE_SAMPLES)

LONE_POINT = _free(
    "lone-points",
    LONE_DIMS,
    lone_points(LONE_DIMS),
    {LONE_CELL: {"num_experts": 2, "num_active": 1, "num_samples": LONE_SAMPLES}},
    64,
)

# Over T at k = 1, and over k at T = 8 with gates that are nearly even (W = 1) and far from it (W = 8).
ROUTER_SAMPLES = 128
ROUTER_FEATURES = 8
ROUTER_EXPERTS = (2, 4, 8, 16, 32)
SPARSE_EXPERTS = 8
ROUTER_ACTIVE = (1, 2, 4, 8)
ROUTER_NORMS = (1.0, 8.0)
ROUTER_DIMS = Dims(max_experts=ROUTER_EXPERTS[-1], num_features=ROUTER_FEATURES, max_samples=ROUTER_SAMPLES)
ROUTER_SIZES = (
    *((experts, 1, ROUTER_NORMS[0]) for experts in ROUTER_EXPERTS),
    *((SPARSE_EXPERTS, active, norm) for norm in ROUTER_NORMS for active in ROUTER_ACTIVE if active > 1),
)

LINEAR_ROUTER = _free(
    "linear-router",
    ROUTER_DIMS,
    linear_router(ROUTER_DIMS),
    {
        router_name(*sizes): {
            "num_experts": sizes[0],
            "num_active": sizes[1],
            "router_norm": sizes[2],
            "num_samples": ROUTER_SAMPLES,
        }
        for sizes in ROUTER_SIZES
    },
    512,
)

# Experts of one hidden layer, fitted to fair coins: a lower estimate of the complexity of networks.
NETWORK_SAMPLES = (32, 128)
NETWORK_WIDTH = 4
NETWORK_DIMS = Dims(max_experts=1, num_features=8, max_samples=NETWORK_SAMPLES[-1], expert_width=NETWORK_WIDTH)

NETWORKS = Experiment(
    name="networks",
    dims=NETWORK_DIMS,
    system=system(NETWORK_DIMS),
    cells={
        samples_name(count): {"num_experts": 1, "num_active": 1, "num_samples": count} | FREE
        for count in NETWORK_SAMPLES
    },
    num_rounds=200,
    record_every=20,
    observe=observe_info,
    replicates=128,
    tier=LEARNED,
)
