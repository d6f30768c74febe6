"""Runs that claims and figures share."""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from moe_theory.core.system import System
from moe_theory.generalization import complexity, corrected, instances, theory
from moe_theory.generalization.data import DIGITS, DIGITS_PIXELS, RANDOM_LABELS, TEACHER
from moe_theory.generalization.model import LIPSCHITZ, Dims
from moe_theory.generalization.training import best_experts, gap, system
from moe_theory.runs import Run
from moe_theory.verification import Experiment
from moe_theory.verification.claim import Overrides, Selection, SettingValues
from moe_theory.verification.region import Size
from moe_theory.verification.statement import identity

EXACT = "exact"  # name of a tier
LEARNED = "learned"  # name of a tier
TO_ROUNDING = identity(within=1e-5)  # rounding of float32 sums of numbers below 100
EXACTLY = identity(within=1e-9)  # rounding of float64 logarithms
SYMBOLS = {"T": "num_experts", "k": "num_active", "m": "num_samples", "W": "router_norm"}
Sizes = Mapping[str, float]  # values, named by the paper's symbols
Settings = Mapping[str, Overrides]  # cells' names -> overrides of the parameters


def cell_name(sizes: Sizes) -> str:
    return ", ".join(f"{symbol} = {value:g}" for symbol, value in sizes.items())


def _settings(sizes_of_cells: Iterable[Sizes], fixed: Sizes, *, needs_reading: bool = False) -> Settings:
    """Return each cell's parameters: its sizes, by which it is named, and the fixed ones."""
    settings = {}
    for sizes in sizes_of_cells:
        overrides: Overrides = {SYMBOLS.get(name, name): value for name, value in {**sizes, **fixed}.items()}
        if not needs_reading:
            overrides["whole_router"] = False  # both readings share these runs
        settings[cell_name(sizes)] = overrides
    return settings


def _drawn(
    name: str, instance: Callable[[Dims], System], dims: Dims, settings: Settings, replicates: int
) -> Experiment:
    return Experiment(name, dims, instance(dims), cells=settings, num_rounds=1, replicates=replicates, tier=EXACT)


def _trained(name: str, dims: Dims, settings: Settings, num_rounds: int, source: str = RANDOM_LABELS) -> Experiment:
    run = system(dims, source, best_experts if source == RANDOM_LABELS else None)
    return Experiment(
        name, dims, run, settings, num_rounds, record_every=num_rounds, observe=gap, replicates=256, tier=LEARNED
    )


# Fixed cells on [0, 1], with k = 1 and experts +1 or -1 (counterexample A, and its limits as m or T grows).
FIXED_SAMPLES = 500
FIXED_EXPERTS = 5000
PER_SAMPLE = 10  # experts per sample along the grid of m
GROWING_SAMPLES = (128, 256, 512, 1024)
GROWING_EXPERTS = (4, 8, 16, 32, 64)  # numbers of experts at the largest m
# Sizes at which 2 C rho is tightest while below 1.
MEMORISED_SAMPLES = 1000
MEMORISED_PER_SAMPLE = 4
CELL_SIZES = (  # T and m
    (FIXED_EXPERTS, FIXED_SAMPLES),
    *((PER_SAMPLE * samples, samples) for samples in GROWING_SAMPLES),
    *((experts, GROWING_SAMPLES[-1]) for experts in GROWING_EXPERTS),
    (MEMORISED_PER_SAMPLE * MEMORISED_SAMPLES, MEMORISED_SAMPLES),
)
CELL_DIMS = Dims(max_experts=PER_SAMPLE * GROWING_SAMPLES[-1], num_features=1, max_samples=GROWING_SAMPLES[-1])
_CELL_SETTINGS = _settings(({"T": T, "m": m} for T, m in CELL_SIZES), {"k": 1})
CELLS = _drawn("fixed-cells", instances.cells, CELL_DIMS, _CELL_SETTINGS, replicates=2048)
FEW_CELL_SAMPLES = 256
FEW_CELL_EXPERTS = (4, 16, 64)
FEW_CELLS = _drawn(
    "cells",
    instances.cells,
    Dims(FEW_CELL_EXPERTS[-1], 1, FEW_CELL_SAMPLES),
    _settings(({"T": T} for T in FEW_CELL_EXPERTS), {"k": 1, "m": FEW_CELL_SAMPLES}),
    replicates=1024,
)
# T -> gaps near the middle of their distribution, where neither side of ghost sampling is 0 or 1.
CELL_GAPS = {16: (0.1, 0.12), 64: (0.15, 0.2)}

# A learned router on one coordinate, with k = 1 and experts in a ball (counterexample B with fewer samples).
LEARNED_EXPERTS = 64
LEARNED_FEATURES = 2


def _learned_cells(name: str, num_samples: int, replicates: int) -> Experiment:
    dims = Dims(LEARNED_EXPERTS, LEARNED_FEATURES, num_samples)
    settings = _settings([{"T": LEARNED_EXPERTS, "m": num_samples}], {"k": 1})
    return _drawn(name, instances.learned_cells, dims, settings, replicates)


LEARNED_CELLS = _learned_cells("learned-cells", 100_000, 64)
FEWER_LEARNED_CELLS = _learned_cells("learned-cells-of-fewer", 6400, 512)  # the corrected bound is as informative here

# A dense mixture of two experts with a free router (counterexample C).
_DENSE_SETTINGS = _settings([{"T": 2, "m": 1000}], {"k": 2}, needs_reading=True)
DENSE = _drawn("dense", instances.dense, Dims(2, 1, 1000), _DENSE_SETTINGS, replicates=2048)

SINGLE = _drawn("single", instances.coin, Dims(1, 1, 1000), _settings([{"T": 1, "m": 1000}], {"k": 1}), replicates=4096)
(SINGLE_CELL,) = SINGLE.cells
COIN_SAMPLES = (25, 100)
_COIN_SETTINGS = _settings(({"m": m} for m in COIN_SAMPLES), {"T": 1, "k": 1})
COIN = _drawn("coin", instances.coin, Dims(1, 1, COIN_SAMPLES[-1]), _COIN_SETTINGS, replicates=32768)

CLASS_SIZES = ((2, 1, 8), (8, 1, 8), (8, 8, 8), (4, 2, 5))  # T, k and m
CLASS_DIMS = Dims(max_experts=8, num_features=1, max_samples=8)
_CLASS_SETTINGS = _settings(({"T": T, "k": k, "m": m} for T, k, m in CLASS_SIZES), {})
CLASSES = _drawn("finite-classes", instances.function_classes, CLASS_DIMS, _CLASS_SETTINGS, replicates=256)

FREE_SAMPLES = Size("num_samples", low=1, high=CLASS_DIMS.max_samples)  # samples of finite classes

LABELING_SIZES = ((2, 1), (3, 1), (3, 2))  # T and k
LABELING_DIMS = Dims(max_experts=3, num_features=2, max_samples=4)


def labelings_of(setting: SettingValues) -> Experiment:
    """Return the experiment on `labelings`, with a setting's sizes in place of `LABELING_DIMS`."""
    dims = dataclasses.replace(LABELING_DIMS, **setting)
    cells = _settings(({"T": T, "k": k} for T, k in LABELING_SIZES), {"m": LABELING_DIMS.max_samples})
    return dataclasses.replace(_drawn("labelings", instances.labelings, dims, cells, replicates=512), of=labelings_of)


LABELINGS = labelings_of({})

LONE_SAMPLES = 16
_LONE_SETTINGS = _settings([{"m": LONE_SAMPLES}], {"T": 2, "k": 1})
LONE_POINT = _drawn("lone-points", instances.lone_points, Dims(2, 1, LONE_SAMPLES), _LONE_SETTINGS, replicates=64)
(LONE_CELL,) = LONE_POINT.cells
FORMULA = Selection(LONE_POINT, (LONE_CELL,), is_computed=True)  # a cheap run, which claims on formulas ignore

# A given linear router, over T at k = 1, and over k at T = 8 with gates that are nearly even (W = 1) or far from even
# (W = 8). At k = 1 all gates are 1 for any W, so cells are not named after W.
ROUTER_SAMPLES = 128
ROUTER_EXPERTS = (2, 4, 8, 16, 32)
SPARSE_EXPERTS = 8
ROUTER_ACTIVE = (1, 2, 4, 8)
ROUTER_NORMS = (1.0, 8.0)
_SPARSE = ({"T": SPARSE_EXPERTS, "k": k, "W": W} for W, k in itertools.product(ROUTER_NORMS, ROUTER_ACTIVE) if k > 1)
LINEAR_ROUTER = _drawn(
    "linear-router",
    instances.linear_router,
    Dims(max_experts=ROUTER_EXPERTS[-1], num_features=8, max_samples=ROUTER_SAMPLES),
    {
        **_settings(({"T": T, "k": 1} for T in ROUTER_EXPERTS), {"W": ROUTER_NORMS[0], "m": ROUTER_SAMPLES}),
        **_settings(_SPARSE, {"m": ROUTER_SAMPLES}),
    },
    replicates=512,
)


def router_name(num_experts: int, num_active: int, router_norm: float) -> str:
    if num_active == 1:
        return cell_name({"T": num_experts, "k": 1})
    return cell_name({"T": num_experts, "k": num_active, "W": router_norm})


# Experts with one hidden layer, fitted to fair coins, give a lower estimate of the complexity of networks.
NETWORK_SAMPLES = (32, 128)
NETWORK_WIDTH = 4
NETWORK_DIMS = Dims(max_experts=1, num_features=8, max_samples=NETWORK_SAMPLES[-1], expert_width=NETWORK_WIDTH)
NETWORKS = Experiment(
    name="networks",
    dims=NETWORK_DIMS,
    system=system(NETWORK_DIMS),
    cells=_settings(({"m": m} for m in NETWORK_SAMPLES), {"T": 1, "k": 1}),
    num_rounds=200,
    record_every=20,
    replicates=128,
    tier=LEARNED,
)

# Random labels learned by linear experts and routers. The bounds must hold in all these configurations together. Some
# have 1 < k < T and enough samples for the bounds to be informative.
FIT_FEATURES = 2
FIT_ACTIVE = {1: (1,), 2: (1, 2), 4: (1, 2, 4), 8: (1, 2, 4, 8)}  # k by T
FIT_SAMPLES = (64, 128, 256, 512, 1024)
FIT_NORMS = (1.0, 8.0, 64.0)  # W
FIT_RATE = 0.1
_FIT_EXPERTS = [(T, k) for T, k in itertools.product(FIT_ACTIVE, FIT_ACTIVE) if k in FIT_ACTIVE[T]]
FIT_SIZES = tuple(
    {"T": T, "k": k, "m": m, "W": W} for (T, k), m, W in itertools.product(_FIT_EXPERTS, FIT_SAMPLES, FIT_NORMS)
)
FITS = _trained(
    "random-labels",
    Dims(max(FIT_ACTIVE), FIT_FEATURES, FIT_SAMPLES[-1]),
    _settings(FIT_SIZES, {"learning_rate": FIT_RATE}),
    num_rounds=60,
)
MANY_SIZES = tuple({"T": T, "k": k, "m": 8192, "W": 1.0} for T, k in ((3, 2), (4, 2), (4, 3), (8, 4)))
MANY_FITS = _trained(
    "random-labels-many", Dims(8, FIT_FEATURES, 8192), _settings(MANY_SIZES, {"learning_rate": FIT_RATE}), num_rounds=30
)

# An ordinary dense mixture of k = T = 32 linear experts with router rows of norm 100.
NATURAL_EXPERTS = 32
NATURAL_FEATURES = 10
NATURAL = _trained(
    "natural",
    Dims(NATURAL_EXPERTS, NATURAL_FEATURES, 1000),
    _settings(
        [{"T": NATURAL_EXPERTS, "m": 1000}],
        {"k": NATURAL_EXPERTS, "W": 100.0, "learning_rate": FIT_RATE},
        needs_reading=True,
    ),
    num_rounds=150,
)

# Classifiers trained on a teacher's labels, of which one in ten is flipped, or to tell odd from even digits. The
# corrected bounds are informative here. They use the masks' d_N, the smaller one, so that they hold in either reading.
TRAINED_SIZES = tuple({"T": 2, "k": k, "m": 1024, "W": 1.0} for k in (1, 2))
TRAINED_FEATURES = {TEACHER: 8, DIGITS: DIGITS_PIXELS}
FLIPPED = {TEACHER: 0.1, DIGITS: 0.0}  # share of labels that are flipped
TRAINED = {
    source: _trained(
        f"trained-{source}",
        Dims(2, num_features, 1024),
        _settings(TRAINED_SIZES, {"expert_norm": 1.0, "label_noise": FLIPPED[source]}),
        num_rounds=40,
        source=source,
    )
    for source, num_features in TRAINED_FEATURES.items()
}


def shown(run: Run, *names: str) -> Float[np.ndarray, "*rest B"]:
    """Return the field of these nested names in the only round of a run, in float64."""
    record: Any = run.records
    for name in names:
        record = getattr(record, name)
    return record[0].astype(np.float64)


def measure_of(*names: str) -> Callable[[Run], Float[np.ndarray, "*rest B"]]:
    return lambda run: shown(run, *names)


def delta_of(run: Run) -> float:
    return float(run.params.delta)


def risk_difference(run: Run) -> Float[np.ndarray, " B"]:
    """Return L_S - L_S'."""
    return shown(run, "risk") - shown(run, "ghost")


def is_beyond(run: Run, name: str, gaps: Iterable[float]) -> Float[np.ndarray, "V B"]:
    """Return 1 where a field is above each of these gaps, 0 elsewhere."""
    return (shown(run, name) > np.array(gaps)[:, None]).astype(np.float64)


def gap_of(run: Run) -> Float[np.ndarray, " B"]:
    records = run.records
    if isinstance(records, np.ndarray):  # trained classifiers record the gap alone, in float32
        return np.asarray(records[-1], np.float64)
    return records.gap[-1]


def all_cells(experiment: Experiment) -> Selection:
    return experiment.over(tuple(experiment.cells))


def learned_gap(num_experts: int, num_samples: float, share: float = 1.0) -> float:
    """Return the gap of every sample of `instances.learned_cells` with equal cells, where m is a multiple of T.

    The linear router sees an arbitrarily small coordinate and a constant, and has arbitrarily large weights. The
    experts, of norm `share` sqrt(m/T), see one of m^3 orthonormal vectors at random. Two of m inputs have the same one
    with probability at most 1 / (2m).
    """
    counts = np.array([num_samples / num_experts])  # samples in one cell, because all cells are equal
    return float(num_experts * instances.ball_gap(counts, share**2 * counts[0], np.float64(num_samples)))


def theorem_1_at(params: Any, rademacher: float, router: str, num_features: int, least_natarajan: float = 0.0) -> float:
    """Return (23) for a cell with routers of this class, with d_N at least `least_natarajan`."""
    num_experts, num_active, num_samples = sizes_of(params)
    reading = "router-dimension" if params.whole_router else "mask-dimension"
    dimension = max(complexity.natarajan(router, num_experts, num_active, num_features, reading), least_natarajan)
    bound = theory.theorem_1(
        num_experts, num_active, num_samples, rademacher, dimension, lipschitz=LIPSCHITZ, delta=float(params.delta)
    )
    return float(bound)


def corrected_bounds_at(params: Any, num_features: int, share: float = 1.0) -> corrected.LinearBounds:
    """Return the bounds that hold for linear experts and routers, which fail with probability `share` times delta."""
    norms = (float(params.expert_norm), 1.0, float(params.router_norm))  # B, c and W
    delta = share * float(params.delta)
    return corrected.bounds(*sizes_of(params), num_features, *norms, lipschitz=LIPSCHITZ, delta=delta)


def sizes_of(params: Any) -> tuple[int, int, int]:
    return int(params.num_experts), int(params.num_active), int(params.num_samples)
