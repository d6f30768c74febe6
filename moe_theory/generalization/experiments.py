"""The runs that claims on Theorem 1, on its remark and on the bounds that hold share.

Tier `exact`: instances whose gap is known in closed form, drawn by the thousand. Tier `learned`: classifiers trained
for the gap, which bounds it from below. Where a claim does not depend on what d_N is the dimension of, its experiment
sets `whole_router` in every cell, so that readings run once.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from moe_theory.core.system import Observe, System, observe_info
from moe_theory.generalization.data import DIGITS, TEACHER
from moe_theory.generalization.instances import cells, coin, dense, learned_cells
from moe_theory.generalization.params import Dims
from moe_theory.generalization.system import best_experts, gap, system
from moe_theory.verify import Experiment

EXACT, LEARNED = "exact", "learned"
Settings = Mapping[str, Mapping[str, Any]]  # overrides of the parameters, by the cells' names
FREE = {"whole_router": False}  # for what holds under either reading


def drawn_once(name: str, dims: Dims, drawn: System, settings: Settings, replicates: int) -> Experiment:
    """An experiment on a system whose one round draws an instance."""
    return _experiment(name, dims, drawn, settings, replicates, 1, observe_info, EXACT)


def _experiment(
    name: str,
    dims: Dims,
    run: System,
    settings: Settings,
    replicates: int,
    num_rounds: int,
    observe: Observe,
    tier: str,
) -> Experiment:
    return Experiment(
        name=name,
        dims=dims,
        system=run,
        cells=settings,
        num_rounds=num_rounds,
        record_every=num_rounds,
        observe=observe,
        replicates=replicates,
        tier=tier,
    )


# Fixed cells on [0, 1], k = 1, experts +1 or -1 (counterexample A, and what it becomes as m or T grows).
FIXED_SAMPLES, FIXED_EXPERTS = 500, 5000
PER_SAMPLE = 10  # experts for each sample along the grid of m
GROWING_SAMPLES = (128, 256, 512, 1024)
GROWING_EXPERTS = (4, 8, 16, 32, 64)  # at the most samples
MEMORISED_SAMPLES, MEMORISED_PER_SAMPLE = 1000, 4  # where 2 C rho is nearest to what it bounds and below 1
CELL_DIMS = Dims(PER_SAMPLE * GROWING_SAMPLES[-1], 1, GROWING_SAMPLES[-1])


def cell_name(num_experts: int, num_samples: int) -> str:
    """The name of a cell of `CELLS`."""
    return f"T = {num_experts}, m = {num_samples}"


def _sizes(num_experts: int, num_samples: int, num_active: int = 1) -> dict[str, Any]:
    return {"num_experts": num_experts, "num_active": num_active, "num_samples": num_samples}


CELL_SIZES = (
    (FIXED_EXPERTS, FIXED_SAMPLES),
    *((PER_SAMPLE * samples, samples) for samples in GROWING_SAMPLES),
    *((experts, GROWING_SAMPLES[-1]) for experts in GROWING_EXPERTS),
    (MEMORISED_PER_SAMPLE * MEMORISED_SAMPLES, MEMORISED_SAMPLES),
)
CELLS = drawn_once(
    "fixed-cells",
    CELL_DIMS,
    cells(CELL_DIMS),
    {cell_name(*sizes): _sizes(*sizes) | FREE for sizes in CELL_SIZES},
    2048,
)

# A learned router on one coordinate, k = 1, experts in a ball (counterexample B, with fewer samples: they cost time).
LEARNED_EXPERTS, LEARNED_SAMPLES = 64, 100_000
LEARNED_DIMS = Dims(LEARNED_EXPERTS, 2, LEARNED_SAMPLES)
LEARNED_CELL = cell_name(LEARNED_EXPERTS, LEARNED_SAMPLES)
LEARNED_CELLS = drawn_once(
    "learned-cells",
    LEARNED_DIMS,
    learned_cells(LEARNED_DIMS),
    {LEARNED_CELL: _sizes(LEARNED_EXPERTS, LEARNED_SAMPLES) | FREE},
    64,
)
FEWER_SAMPLES = 6400  # at which the bound that holds says no less than at more, and draws cost little
FEWER_DIMS = Dims(LEARNED_EXPERTS, 2, FEWER_SAMPLES)
FEWER_CELL = cell_name(LEARNED_EXPERTS, FEWER_SAMPLES)
FEWER_LEARNED_CELLS = drawn_once(
    "learned-cells-of-fewer",
    FEWER_DIMS,
    learned_cells(FEWER_DIMS),
    {FEWER_CELL: _sizes(LEARNED_EXPERTS, FEWER_SAMPLES) | FREE},
    512,
)

# A dense mixture of two with a free router (counterexample C).
DENSE_SAMPLES = 1000
DENSE_DIMS = Dims(2, 1, DENSE_SAMPLES)
DENSE_CELL = cell_name(2, DENSE_SAMPLES)
DENSE = drawn_once("dense", DENSE_DIMS, dense(DENSE_DIMS), {DENSE_CELL: _sizes(2, DENSE_SAMPLES, 2)}, 2048)

# One function with a fair coin for its loss.
COIN_SAMPLES = 1000
SINGLE_DIMS = Dims(1, 1, COIN_SAMPLES)
COIN_CELL = cell_name(1, COIN_SAMPLES)
SINGLE = drawn_once("single", SINGLE_DIMS, coin(SINGLE_DIMS), {COIN_CELL: _sizes(1, COIN_SAMPLES) | FREE}, 4096)

# Random labels learned by linear experts and routers: the configurations that the bounds must hold in together.
FIT_FEATURES = 2
FIT_ACTIVE = {1: (1,), 2: (1, 2), 4: (1, 2, 4), 8: (1, 2, 4, 8)}  # k by T
FIT_SAMPLES = (64, 128, 256, 512, 1024)
FIT_NORMS = (1.0, 8.0, 64.0)  # W
FIT_ROUNDS = 60
FIT_DIMS = Dims(max(FIT_ACTIVE), FIT_FEATURES, FIT_SAMPLES[-1])


def fit_name(num_experts: int, num_active: int, num_samples: int, router_norm: float) -> str:
    """The name of a cell of `FITS`."""
    return f"T = {num_experts}, k = {num_active}, m = {num_samples}, W = {router_norm:g}"


FIT_SIZES = tuple(
    (experts, active, samples, norm)
    for experts, actives in FIT_ACTIVE.items()
    for active in actives
    for samples in FIT_SAMPLES
    for norm in FIT_NORMS
)


def _fit_settings(all_sizes: Sequence[tuple[int, int, int, float]]) -> Settings:
    return {
        fit_name(*sizes): _sizes(sizes[0], sizes[2], sizes[1]) | {"router_norm": sizes[3], "learning_rate": 0.1} | FREE
        for sizes in all_sizes
    }


FITS = _experiment(
    "random-labels",
    FIT_DIMS,
    system(FIT_DIMS, optimizer=best_experts),
    _fit_settings(FIT_SIZES),
    256,
    FIT_ROUNDS,
    gap,
    LEARNED,
)

# Some of many experts active, 1 < k < T, with samples enough for the bounds to say something of random labels.
MANY_SIZES = ((3, 2, 8192, 1.0), (4, 2, 8192, 1.0), (4, 3, 8192, 1.0), (8, 4, 8192, 1.0))  # T, k, m and W
MANY_DIMS = Dims(8, FIT_FEATURES, 8192)
MANY_FITS = _experiment(
    "random-labels-many",
    MANY_DIMS,
    system(MANY_DIMS, optimizer=best_experts),
    _fit_settings(MANY_SIZES),
    256,
    30,
    gap,
    LEARNED,
)

# The natural counterexample D: dense, k = T = 32 linear experts, router rows of norm 100.
NATURAL_EXPERTS, NATURAL_FEATURES, NATURAL_SAMPLES, NATURAL_NORM = 32, 10, 1000, 100.0
NATURAL_DIMS = Dims(NATURAL_EXPERTS, NATURAL_FEATURES, NATURAL_SAMPLES)
NATURAL_CELL = cell_name(NATURAL_EXPERTS, NATURAL_SAMPLES)
NATURAL = _experiment(
    "natural",
    NATURAL_DIMS,
    system(NATURAL_DIMS, optimizer=best_experts),
    {
        NATURAL_CELL: _sizes(NATURAL_EXPERTS, NATURAL_SAMPLES, NATURAL_EXPERTS)
        | {"router_norm": NATURAL_NORM, "learning_rate": 0.1}
    },
    256,
    150,
    gap,
    LEARNED,
)

# Classifiers trained as one would: a teacher's labels, one in ten of them wrong, and digits, odd or even. The masks'
# d_N is the smaller one, so that what holds with it holds under either reading.
TRAINED_SIZES = ((2, 1, 1024), (2, 2, 1024))  # T, k and m at which the bounds that hold inform
TRAINED_FEATURES = {TEACHER: 8, DIGITS: 64}  # pixels of the bundled digits


def _trained(source: str) -> Experiment:
    dims = Dims(2, TRAINED_FEATURES[source], TRAINED_SIZES[-1][-1])
    norms = {"router_norm": 1.0, "expert_norm": 1.0, "label_noise": 0.1 if source == TEACHER else 0.0}
    settings = {
        fit_name(*sizes, norms["router_norm"]): _sizes(sizes[0], sizes[2], sizes[1]) | norms | FREE
        for sizes in TRAINED_SIZES
    }
    return _experiment(f"trained-{source}", dims, system(dims, source), settings, 256, 40, gap, LEARNED)


TRAINED = {source: _trained(source) for source in (TEACHER, DIGITS)}


def gaps_of(runs: Mapping[str, Any], names: Any) -> Float[np.ndarray, "B V"]:
    """The last recorded gaps of the named cells, one column each."""
    return np.stack([np.asarray(runs[name].records[-1], np.float64) for name in names], axis=1)
