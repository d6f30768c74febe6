"""Runs that statements and figures share, and measurements on them.

We read "with probability 1 - o(1)" as at least 1 - delta with delta = 0.05, at the smallest sigma_0 of a grid.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Sequence

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.continual import corrected, diagnostics, theory
from moe_theory.continual.algorithm import Info, State, begin, system
from moe_theory.continual.params import ORDERS, SIGMA_0, Dims, Params, gate_drive, in_order
from moe_theory.core import programs
from moe_theory.core.batching import trailing_vmap
from moe_theory.core.errors import enclosed
from moe_theory.core.linear import ceil_to_rounds
from moe_theory.core.random import normals, replicate_keys
from moe_theory.core.routes import last_tasks
from moe_theory.core.system import Observe, System, fields, observe_info
from moe_theory.core.tasks import PROPORTIONAL, Pool, draw_pool
from moe_theory.runs import Run
from moe_theory.runs.draws import draws_of
from moe_theory.verification import Experiment
from moe_theory.verification.claim import Overrides, Selection, SettingValues
from moe_theory.verification.region import Choice, Order, Scale
from moe_theory.verification.statement import limit_probability, probability

FAILURE = 0.05  # delta: the largest value allowed for a probability that the paper calls delta or o(1)
LIKELY = limit_probability(to=1, margin=FAILURE)
UNLIKELY = limit_probability(to=0, margin=FAILURE)
RARELY = probability(at_most=FAILURE)  # must hold in every cell, not only in a limit


def gate_span(state: State, info: Info) -> Float[Array, ""]:
    del state
    exists = info.gate_probabilities > 0
    highest = jnp.max(jnp.where(exists, info.gate_outputs, -jnp.inf))
    lowest = jnp.min(jnp.where(exists, info.gate_outputs, jnp.inf))
    return highest - lowest


observe_route = fields("info.task", "info.expert")
observe_moves = fields(observe_route, "info.error", "info.update_norm")
observe_metrics = fields(
    observe_route,
    "info.forgetting",
    "info.generalization_error",
    "info.update_norm",
    "state.terminated",
    loads="state.visits",
    explored_loads="state.explored_visits",
)
observe_error = fields("info.generalization_error")
observe_sets = fields(sets=lambda state, info: diagnostics.expert_sets(state))
observe_gate_span = fields(any_gap=gate_span)

# Appendix A.2: N = 6 tasks, d = 10, s = 6. Experts are padded to an experiment's largest M, so that one program serves
# all cells.
FIGURE_2_DIMS = Dims(max_experts=20, num_tasks=6, num_features=10, num_samples=6)
FIGURE_2_EXPERTS = (1, 5, 10, 20)
FEW_DIMS = dataclasses.replace(FIGURE_2_DIMS, max_experts=5)
SINGLE_DIMS = dataclasses.replace(FIGURE_2_DIMS, max_experts=1)
# Number of pools of a single expert. Most claims are decided by at most this many replicates, which must be
# independent. Later replicates share pools, so the exact theory is computed once per pool. Deviations from this theory
# are still uncorrelated.
NUM_POOLS = 4096


def cell_name(num_experts: int, terminate: bool = True) -> str:
    if terminate:
        return f"M = {num_experts}"
    return f"M = {num_experts}, no termination"


SINGLE = cell_name(1)
FEW = cell_name(5)
MANY = cell_name(20)


def figure_2(setting: SettingValues) -> Experiment:
    """Return Fig. 2's runs, with d and s of a setting or of the paper."""
    dims = dataclasses.replace(FIGURE_2_DIMS, **setting)
    return Experiment(
        name="figure-2",
        dims=dims,
        system=system(dims),
        cells={
            cell_name(num_experts, terminate): {"num_experts": num_experts, "terminate": terminate}
            for num_experts, terminate in itertools.product(FIGURE_2_EXPERTS, (True, False))
        },
        num_rounds=2000,
        record_every=20,
        observe=observe_metrics,
        replicates=16384,
        of=figure_2,
    )


FIGURE_2 = figure_2({})


@programs.jit
def start_on_shared_pools(seed_key: Key[Array, ""], replicates: Int[Array, " B"], params: Params) -> State:
    """Return initial states, where replicate i has the pool of replicate (i mod `NUM_POOLS`) + 2^31."""

    def start(key: Key[Array, ""], params: Params) -> State:
        pool = draw_pool(key, SINGLE_DIMS.num_tasks, SINGLE_DIMS.num_features, params)
        return begin(SINGLE_DIMS, params, pool)

    owners = replicates.astype(jnp.uint32) % NUM_POOLS + np.uint32(2**31)  # integers that no run uses as a replicate
    return trailing_vmap(start, is_batched=(True, False))(replicate_keys(seed_key, owners), params)


SINGLE_EXPERT = Experiment(
    name="single-expert",
    dims=SINGLE_DIMS,
    system=system(SINGLE_DIMS),
    cells={SINGLE: {"num_experts": 1}},
    num_rounds=200,
    record_every=20,
    observe=observe_metrics,
    replicates=32768,
    start=start_on_shared_pools,
)

JUST_EXPLORED = dataclasses.replace(
    FIGURE_2,
    name="just-explored",
    cells={MANY: {"num_experts": 20}, FEW: {"num_experts": 5}},
    num_rounds=100,
    record_every=1,
    replicates=32768,
)

HISTORY = Experiment(
    name="history",
    dims=FEW_DIMS,
    system=system(FEW_DIMS),
    cells={SINGLE: {"num_experts": 1}, FEW: {"num_experts": 5}},
    num_rounds=100,
    record_every=1,
    observe=observe_moves,
    replicates=4096,
)
ONE_SAMPLE_DIMS = dataclasses.replace(FEW_DIMS, num_samples=1)
HISTORY_ONE_SAMPLE = dataclasses.replace(
    HISTORY, name="history-one-sample", dims=ONE_SAMPLE_DIMS, system=system(ONE_SAMPLE_DIMS)
)

# Here a move's cost reveals most about the features: there is one sample besides the signal, and gates are large.
FEW_SAMPLES_DIMS = Dims(12, num_tasks=6, num_features=10, num_samples=2)
FEW_SAMPLES = Experiment(
    name="few-samples",
    dims=FEW_SAMPLES_DIMS,
    system=system(FEW_SAMPLES_DIMS),
    cells={
        "M = 12": {
            "num_experts": 12,
            "num_clusters": 6,
            "terminate": False,
            "signal_law": PROPORTIONAL,
            "signal_scale": 4.0,
            "cluster_spread": 0.0,
        }
    },
    num_rounds=150,
    record_every=1,
    observe=fields(observe_route, "info.forgetting"),
    replicates=32768,
)

T2_POWER = 0.25  # power of sigma_0^-1 in T2 and t_1, for `stage_rounds`
RETURN_POWER = 0.75  # power of sigma_0^-1 in t_2


def stage_rounds(params: Params, power: float = 0.0) -> int:
    """Return ceil(M / eta sigma_0^-power) rounds: T1 at power 0, T2 and t_1 at `T2_POWER`, t_2 at `RETURN_POWER`."""
    quotient = float(params.num_experts) / float(params.learning_rate) * float(params.truth_scale) ** -power
    return int(ceil_to_rounds(quotient))


# Algorithm 1 leaves these parameters and its sizes open. alpha and Gamma are O() of powers of sigma_0, and strengths
# are bounded. The noise is arbitrary, in units of sigma_0, or of signals' entries if it is the same for all sigma_0.
def _free_order(name: str, most: float) -> Order:
    _, power = ORDERS[name]
    return Order(name, recorded=power, least=power, most=most)


FREE_ALPHA = _free_order("balance_weight", most=1.5)
FREE_GAMMA = _free_order("termination_threshold", most=3.0)
# The step size eta is also O(), and decides T1. It is a free parameter where runs can be long enough.
FREE_ETA = _free_order("learning_rate", most=0.75)
FREE_NOISE = Scale("noise_scale", low=0.01, high=1.0, of="truth_scale")
FREE_BETA = Scale("min_strength", low=0.0, high=1.0)
FREE_LEVEL = Scale("noise_scale", low=0.001, high=0.3)  # in units of signals' entries
FREE = (FREE_ALPHA, FREE_GAMMA, FREE_NOISE, FREE_BETA)
FREE_AT_LEVEL = (FREE_ALPHA, FREE_GAMMA, FREE_LEVEL, FREE_BETA)  # free in cells whose noise is the same for all sigma_0

# Grids for the O() and Omega() statements about router and gates. On the grid of scales all parameters shrink as
# Algorithm 1 requires, with constants of 1: alpha and eta as sigma_0^0.5, lambda and Gamma as sigma_0^1.25. With c =
# 1/sigma_0 signals keep entries of order 1 in every reading, |v_n|_inf = O(1). On this grid the noise exceeds the
# differences inside a cluster, which shrink with sigma_0. Runs last at least `ROUNDS_PAST_EXPLORATION` beyond T1.
ROUTER_SCALES = (0.000625, 0.0025, 0.01, 0.04)
ROUTER_SCALE = 0.04  # sigma_0 on the grids of learning rates and of experts
ROUTER_RATES = (0.05, 0.1, 0.2, 0.4)  # they include ROUTER_SCALE^0.5 = 0.2, the rate in the grid of scales
ROUNDS_PAST_EXPLORATION = 100
ROUTER_EXPERTS = (8, 16, 32, 64)
ROUTER_MANY = 10
ROUTER_FEW = 5
ROUTER_DIMS = dataclasses.replace(FIGURE_2_DIMS, max_experts=ROUTER_MANY)
ROUTER_EXPERT_DIMS = dataclasses.replace(FIGURE_2_DIMS, max_experts=ROUTER_EXPERTS[-1])
NOISE_SHARE = 0.25  # sigma_t / sigma_0 where the noise is small, as in Fig. 2


def router_cell(scale: float, variant: str = "") -> str:
    return f"sigma_0 = {scale}{enclosed(', ', variant)}"  # no comma without a variant


def router_rate_cell(rate: float) -> str:
    if rate == ROUTER_SCALE**0.5:
        return router_cell(ROUTER_SCALE)
    return f"eta = {rate}"


def router_experts_cell(number: int, variant: str = "") -> str:
    return f"M = {number}{enclosed(', ', variant)}"


def router_params(scale: float, **changes: float) -> dict[str, float]:
    return {
        "num_experts": ROUTER_MANY,
        "num_clusters": ROUTER_DIMS.num_tasks,
        "truth_scale": scale,
        "signal_scale": 1 / scale,
        **in_order(scale),
        **changes,
    }


# Variants of a cell. M < N: the truths of a cluster are within O(sigma_0^1.5). Small noise: noise is within O(sigma_0).
# Near signals: both hold, and the signals of a cluster are within O(sigma_0^1.5), as the proof of Lemma 1 supposes.
# Large lambda: the perturbation is far above every gate output, so that routing is all but independent and uniform.
UNIFORM = "large lambda"
UNIFORM_PERTURBATION = 1e3
_BELOW_N = {"num_experts": ROUTER_FEW, "num_clusters": 3}
_ROUTER_VARIANTS = {
    "": lambda scale: {},
    "M < N": lambda scale: _BELOW_N,
    "small noise": lambda scale: {"noise_scale": NOISE_SHARE * scale},
    "near signals": lambda scale: _BELOW_N | {"noise_scale": NOISE_SHARE * scale, "cluster_spread": scale**2.5},
}
ROUTER_GRID = Experiment(
    name="router-grid",
    dims=ROUTER_DIMS,
    system=diagnostics.system_with_gate_steps(ROUTER_DIMS),
    cells={
        router_cell(scale, variant): router_params(scale, **_ROUTER_VARIANTS[variant](scale))
        for variant, scale in itertools.product(_ROUTER_VARIANTS, ROUTER_SCALES)
    }
    | {
        router_rate_cell(rate): router_params(ROUTER_SCALE, learning_rate=rate)
        for rate in ROUTER_RATES
        if rate != ROUTER_SCALE**0.5
    },
    num_rounds=int(theory.exploration_rounds(ROUTER_MANY, ROUTER_SCALES[0] ** 0.5)) + ROUNDS_PAST_EXPLORATION,
    length_of=lambda params: stage_rounds(params) + ROUNDS_PAST_EXPLORATION,
    record_every=1,
    observe=observe_info,
    replicates=8192,
)


def _by_scale(variant: str) -> Selection:
    return ROUTER_GRID.over({router_cell(scale, variant): scale for scale in ROUTER_SCALES})


BY_SCALE = _by_scale("")
BY_SCALE_FEWER = _by_scale("M < N")
BY_SCALE_QUIET = _by_scale("small noise")
BY_SCALE_NEAR = _by_scale("near signals")
BY_RATE = ROUTER_GRID.over({router_rate_cell(rate): rate for rate in ROUTER_RATES})

_EXPERT_VARIANTS = {"": {}, UNIFORM: {"perturbation_scale": UNIFORM_PERTURBATION}}
ROUTER_EXPERT_GRID = Experiment(
    name="router-expert-grid",
    dims=ROUTER_EXPERT_DIMS,
    system=diagnostics.system_with_gate_steps(ROUTER_EXPERT_DIMS),
    cells={
        router_experts_cell(number, variant): router_params(ROUTER_SCALE, num_experts=number, **changes)
        for (variant, changes), number in itertools.product(_EXPERT_VARIANTS.items(), ROUTER_EXPERTS)
    },
    num_rounds=int(theory.exploration_rounds(ROUTER_EXPERTS[-1], ROUTER_SCALE**0.5)),
    record_every=1,
    observe=observe_info,
    replicates=8192,
)


def _by_experts(variant: str) -> Selection:
    return ROUTER_EXPERT_GRID.over({router_experts_cell(number, variant): number for number in ROUTER_EXPERTS})


BY_EXPERTS = _by_experts("")
BY_EXPERTS_BLIND = _by_experts(UNIFORM)

# A grid towards small sigma_0 for the O() statements of Lemma 12 to Proposition 3, with step sizes as in Algorithm 1.
# At Fig. 2's sigma_0 they are Fig. 2's. In every reading signals keep entries of order 1, and the ratio of noise to
# truths is as in Fig. 2. Runs last beyond t_1.
SPECIALIZATION_SCALES = (0.003125, 0.00625, 0.0125, 0.025)
# M > N, where each task is a cluster of its own, and M < N, with K = 3.
MANY_EXPERTS = 12
FEW_EXPERTS = 5
SPECIALIZATION_DIMS = dataclasses.replace(FIGURE_2_DIMS, max_experts=MANY_EXPERTS)


def specialization_cell(num_experts: int, scale: float) -> str:
    return f"M = {num_experts}, sigma_0 = {scale}"


def _num_clusters(num_experts: int) -> int:
    if num_experts == MANY_EXPERTS:
        return FIGURE_2_DIMS.num_tasks
    return int(Params().num_clusters)


def specialization_params(num_experts: int, scale: float) -> Overrides:
    """Return overrides with sigma_0 = `scale` and the orders of Algorithm 1's input line."""
    ratio = scale / SIGMA_0
    defaults = Params()  # parameters of Fig. 2
    return {
        "num_experts": num_experts,
        "num_clusters": _num_clusters(num_experts),
        "truth_scale": scale,
        "signal_scale": 1 / scale,
        "cluster_spread": scale**1.5,
        "noise_scale": defaults.noise_scale * ratio,
        "learning_rate": defaults.learning_rate * ratio**0.5,
        "balance_weight": defaults.balance_weight * ratio**0.5,
        "perturbation_scale": defaults.perturbation_scale * ratio**1.25,
        "termination_threshold": scale**1.25,
    }


def _specialization_cells(*scales: float, terminate: bool) -> dict[str, Overrides]:
    return {
        specialization_cell(number, scale): specialization_params(number, scale) | {"terminate": terminate}
        for number, scale in itertools.product((MANY_EXPERTS, FEW_EXPERTS), scales)
    }


# sigma_0 by cell, and the cells at the smallest and largest sigma_0.
MANY_CELLS = {specialization_cell(MANY_EXPERTS, scale): scale for scale in SPECIALIZATION_SCALES}
FEW_CELLS = {specialization_cell(FEW_EXPERTS, scale): scale for scale in SPECIALIZATION_SCALES}
MANY_SMALLEST = tuple(MANY_CELLS)[:1]
FEW_SMALLEST = tuple(FEW_CELLS)[:1]
MANY_LARGEST = tuple(MANY_CELLS)[-1:]
FEW_LARGEST = tuple(FEW_CELLS)[-1:]
# At Fig. 2's sigma_0.
MANY_FIGURE_2 = (specialization_cell(MANY_EXPERTS, SIGMA_0),)
FEW_FIGURE_2 = (specialization_cell(FEW_EXPERTS, SIGMA_0),)

SPECIALIZATION = Experiment(
    name="specialization",
    dims=SPECIALIZATION_DIMS,
    system=diagnostics.system_with_diagnostics(SPECIALIZATION_DIMS),
    cells=_specialization_cells(*SPECIALIZATION_SCALES, SIGMA_0, terminate=True),
    num_rounds=1200,
    record_every=1,
    observe=observe_info,
    replicates=2048,
)


def without_termination(setting: SettingValues) -> Experiment:
    dims = dataclasses.replace(SPECIALIZATION_DIMS, **setting)
    return dataclasses.replace(
        SPECIALIZATION,
        name="no-termination",
        dims=dims,
        system=diagnostics.system_with_diagnostics(dims),
        cells=_specialization_cells(*SPECIALIZATION_SCALES, terminate=False),
        of=without_termination,
    )


NO_TERMINATION = without_termination({})

# The limit itself. Below sigma_0 = 1e-4 probabilities of two tasks differ by less than float32 resolves, so runs that
# compare them are in float64. Signals of a cluster are within O(sigma_0^1.5), as the proof of Lemma 1 supposes. The
# gates of nearly all runs are fixed within a few rounds of T1, and nothing that is measured changes after that. So runs
# end at 1.25 T1 or soon after. Runs whose gates learn forever end at t_1 or at t_2.
LIMIT_SCALES = (1e-6, 1e-5, 1e-4, 1e-3)  # sigma_0 of runs that end soon after T1
T1_LIMIT_SCALES = (1e-5, 1e-4, 1e-3, 1e-2)  # sigma_0 of runs up to t_1
T2_LIMIT_SCALES = (2e-4, 1e-3, 5e-3, 2e-2)  # sigma_0 of runs up to t_2
PAST_T1_SHARE = 0.25
LAST_ROUND = 10**7  # a stride beyond the longest run, of which only the last round is recorded
SPAN_STRIDE = 20  # rounds between records of a gap
LIMIT_TIER = "limit"  # its runs are long


def limit_params(num_experts: int, scale: float) -> Overrides:
    return specialization_params(num_experts, scale) | {"cluster_spread": scale**2.5}


def as_drawn(base: System) -> System:
    """Return the system itself, with the signals of the reading."""
    return base


# Statements about the limit leave the signals open: orthogonal or nearly so, as in the readings, or at acute angles.
FREE_SIGNALS = Choice("signals", {"of the reading": as_drawn, "with a part in common": diagnostics.with_common_part})


def _limit(
    name: str,
    scales: Sequence[float],
    *,
    system: System,
    length: Callable[[Params], float],
    record_every: int,
    observe: Observe,
    replicates: int,
    is_double: bool = False,
    changes: Callable[[float], Overrides] = lambda scale: {},
) -> tuple[Selection, Selection]:
    """Return runs of many and of few experts over `scales`, each with the number of rounds that `length` returns."""
    cells = {
        specialization_cell(number, scale): {**limit_params(number, scale), **changes(scale)}
        for number, scale in itertools.product((MANY_EXPERTS, FEW_EXPERTS), scales)
    }
    needed = {cell: math.ceil(length(Params()._replace(**overrides))) for cell, overrides in cells.items()}
    few_lengths = [needed[specialization_cell(FEW_EXPERTS, scale)] for scale in scales[:-1]]
    # Cells share programs, because each has the shortest of these lengths that is long enough.
    shared_lengths = sorted({max(needed.values()), *few_lengths})
    lengths = {cell: next(shared for shared in shared_lengths if shared >= least) for cell, least in needed.items()}

    def build(setting: SettingValues) -> Experiment:
        change_signals = setting.get("signals", as_drawn)
        return Experiment(
            name=name,
            dims=SPECIALIZATION_DIMS,
            system=change_signals(system),
            cells=cells,
            num_rounds=shared_lengths[-1],
            record_every=record_every,
            observe=observe,
            replicates=replicates,
            tier=LIMIT_TIER,
            lengths=lengths,
            is_double=is_double,
            of=build,
            length_of=length,
        )

    return over_scales(build({}), scales)


def over_scales(experiment: Experiment, scales: Sequence[float]) -> tuple[Selection, Selection]:
    """Return the cells with many experts (M > N) and those with few (M < N)."""
    many = experiment.over({specialization_cell(MANY_EXPERTS, scale): scale for scale in scales})
    few = experiment.over({specialization_cell(FEW_EXPERTS, scale): scale for scale in scales})
    return many, few


LIMIT_MANY, LIMIT_FEW = _limit(
    "limit",
    LIMIT_SCALES,
    system=diagnostics.system_with_tally(SPECIALIZATION_DIMS),
    length=lambda params: (1 + PAST_T1_SHARE) * stage_rounds(params),
    record_every=LAST_ROUND,
    observe=observe_error,
    replicates=4096,
    is_double=True,
)
# Runs whose gates learn forever last up to t_1 = T2, with a tally in place of records, or up to t_2.
to_first_stage = functools.partial(
    _limit,
    system=diagnostics.system_with_endless_tally(SPECIALIZATION_DIMS),
    length=lambda params: stage_rounds(params, T2_POWER),
    record_every=LAST_ROUND,
    observe=observe_gate_span,
)
to_second_stage = functools.partial(
    _limit,
    system=system(SPECIALIZATION_DIMS),
    length=lambda params: stage_rounds(params, RETURN_POWER),
    record_every=SPAN_STRIDE,
    observe=observe_gate_span,
)


def endless(scale: float) -> Overrides:
    del scale
    return {"terminate": False}


ENDLESS_MANY, ENDLESS_FEW = to_first_stage("endless-limit", T1_LIMIT_SCALES, replicates=8192, changes=endless)
RETURN_MANY, RETURN_FEW = to_second_stage("return-limit", T2_LIMIT_SCALES, replicates=1024, changes=endless)

# The same runs with smaller gate steps eta = Theta(sigma_0^1.25), which eta = O(sigma_0^0.5) allows. t_2 is then a
# million rounds at the least sigma_0. Signals are along the truths in every reading, so one run serves all readings.
SLOW_SCALES = tuple(0.001 * 100 ** (exponent / 3) for exponent in range(4))  # 0.001 to 0.1 in equal ratios
SLOW_RETURN_SCALES = (0.0015, 0.005, 0.015, 0.05)


def slow_gates(factor: float) -> Callable[[float], Overrides]:
    """Return the function of sigma_0 whose overrides set eta = factor sigma_0^1.25, with gaps well below lambda."""
    return lambda scale: {"terminate": False, "learning_rate": factor * scale**1.25, "signal_law": PROPORTIONAL}


SLOW_MANY, SLOW_FEW = to_first_stage("endless-slow", SLOW_SCALES, replicates=2048, changes=slow_gates(factor=2))
SLOW_RETURN_MANY, SLOW_RETURN_FEW = to_second_stage(
    "return-slow", SLOW_RETURN_SCALES, replicates=1024, changes=slow_gates(factor=6)
)

# Lemma 11 at the end of exploration, with as many experts as its proof requires: N ln(N / delta), or K ln(K / delta),
# which is below the number of tasks if a cluster has six. If there are two sets, both have an expert by Lemma 4 alone.
COVERAGE_SETS = 15
COVERAGE_SCALE = 0.01
MEMBERS = 6  # tasks of a cluster
COVERAGE_CELL = f"{COVERAGE_SETS} sets"
AMPLE_SETS = 6
AMPLE_FACTOR = 16  # a multiple of the number of experts that the proof requires
AMPLE_MEMBERS = 80  # tasks of a cluster, so many that experts are still fewer than tasks


def _coverage(
    name: str, members: int, setting: SettingValues, build: Callable[..., Experiment], factor: int = 1
) -> Experiment:
    num_tasks = setting.get("num_tasks", members * COVERAGE_SETS)
    scale = setting.get("sigma_0", COVERAGE_SCALE)
    num_sets = num_tasks // members
    num_experts = int(np.ceil(factor * num_sets * np.log(num_sets / FAILURE)))
    dims = Dims(num_experts, num_tasks=num_tasks, num_features=num_sets + 1, num_samples=6)
    params = limit_params(num_experts, scale) | {"num_clusters": num_sets}
    return Experiment(
        name=name,
        dims=dims,
        system=system(dims),
        cells={COVERAGE_CELL: params},
        num_rounds=stage_rounds(Params()._replace(**params)),
        record_every=2,
        observe=observe_sets,
        replicates=1024,
        of=build,
        length_of=stage_rounds,
    )


def coverage(setting: SettingValues) -> Experiment:
    """Return exploration runs with a setting's sigma_0 and number of tasks, where each task is a set."""
    return _coverage("coverage", members=1, setting=setting, build=coverage)


def coverage_of_clusters(setting: SettingValues) -> Experiment:
    """Return exploration runs with M < N, where every six tasks are a cluster and a set."""
    return _coverage("coverage-clusters", members=MEMBERS, setting=setting, build=coverage_of_clusters)


def _ample(name: str, members: int, setting: SettingValues, build: Callable[..., Experiment]) -> Experiment:
    setting = {"num_tasks": AMPLE_SETS * members, **setting}
    experiment = _coverage(name, members=members, setting=setting, build=build, factor=AMPLE_FACTOR)
    params = experiment.cells[COVERAGE_CELL]
    cells = {f"{AMPLE_SETS} sets": {**params, "balance_weight": params["truth_scale"]}}
    return dataclasses.replace(experiment, cells=cells, record_every=LAST_ROUND, replicates=4096)


def ample_coverage(setting: SettingValues) -> Experiment:
    """Return exploration runs as `coverage` does, with alpha = sigma_0 and more experts."""
    return _ample("coverage-ample", members=1, setting=setting, build=ample_coverage)


def ample_coverage_of_clusters(setting: SettingValues) -> Experiment:
    """Return exploration runs as `coverage_of_clusters` does, with alpha = sigma_0, more experts and more tasks."""
    return _ample("coverage-clusters-ample", AMPLE_MEMBERS, setting, build=ample_coverage_of_clusters)


COVERAGE = coverage({})
COVERAGE_CLUSTERS = coverage_of_clusters({})
AMPLE_COVERAGE = ample_coverage({})
AMPLE_COVERAGE_CLUSTERS = ample_coverage_of_clusters({})
# `_ample` sets alpha = sigma_0, to the power that is recorded here.
FREE_ALPHA_BELOW = Order("balance_weight", recorded=1.0, least=FREE_ALPHA.least, most=FREE_ALPHA.most)
FREE_SIGMA_0 = Choice("sigma_0", {"0.01": COVERAGE_SCALE, "0.001": 0.001})
FREE_COVERAGE = (FREE_ETA, FREE_ALPHA_BELOW, FREE_GAMMA, FREE_NOISE, FREE_BETA, FREE_SIGMA_0)

# Runs that show where experts specialise at all. The gate drive kappa grows with the square of the signals' scale.
DRIVES = (0.01, 0.1, 1.0, 10.0, 100.0)  # kappa / lambda, on Fig. 2's pools


def with_drive(params: Params, ratio: float, dims: Dims = FIGURE_2_DIMS) -> Params:
    drive_at_one = gate_drive(params._replace(signal_scale=1.0), dims.num_features, dims.num_tasks)
    return params._replace(signal_scale=float(np.sqrt(ratio * float(params.perturbation_scale) / drive_at_one)))


def drive_of(params: Params, dims: Dims = FIGURE_2_DIMS) -> float:
    return gate_drive(params, dims.num_features, dims.num_tasks) / float(params.perturbation_scale)


def _drive_cells(num_experts: int) -> dict[str, Overrides]:
    overrides = {"num_experts": num_experts, "num_clusters": _num_clusters(num_experts)}
    return {
        f"M = {num_experts}, kappa / lambda = {ratio:g}": overrides
        | {"signal_scale": with_drive(Params()._replace(**overrides), ratio).signal_scale}
        for ratio in DRIVES
    }


DRIVES_MANY = tuple(_drive_cells(MANY_EXPERTS))  # names of cells
DRIVES_FEW = tuple(_drive_cells(FEW_EXPERTS))
DRIVE_GRID = Experiment(
    name="drive-grid",
    dims=SPECIALIZATION_DIMS,
    system=diagnostics.system_beside_reduced(SPECIALIZATION_DIMS),
    cells=_drive_cells(MANY_EXPERTS) | _drive_cells(FEW_EXPERTS),
    num_rounds=1000,
    record_every=1,
    observe=observe_info,
    replicates=4096,
)

# Appendix A.7 has four thresholds of termination, and the perturbation lambda equals the third.
THRESHOLD_POWERS = (0.75, 1.0, 1.25, 1.5)  # Gamma = sigma_0^power
PERTURBATION_POWER = 1.25  # lambda = sigma_0^1.25


def threshold_name(power: float) -> str:
    return f"Gamma = sigma_0^{power:g}"


THRESHOLDS = {  # cells with their overrides
    threshold_name(power): {
        "num_experts": 5,
        "perturbation_scale": SIGMA_0**PERTURBATION_POWER,
        "termination_threshold": SIGMA_0**power,
    }
    for power in THRESHOLD_POWERS
}
FIGURE_9_DIMS = dataclasses.replace(FEW_DIMS, num_tasks=30)

FIGURE_8 = dataclasses.replace(SPECIALIZATION, name="figure-8", cells=THRESHOLDS, replicates=8192)

FIGURE_9 = Experiment(
    name="figure-9",
    dims=FIGURE_9_DIMS,
    system=system(FIGURE_9_DIMS),
    cells=THRESHOLDS | {SINGLE: {**THRESHOLDS[threshold_name(PERTURBATION_POWER)], "num_experts": 1}},
    num_rounds=2000,
    record_every=2000,
    observe=observe_metrics,
    replicates=32768,
)


def pools_of(run: Run, count: int | None = None) -> list[Pool]:
    pool = run.state.pool
    truths = np.asarray(pool.truths, np.float64)
    signals = np.asarray(pool.signals, np.float64)
    return [Pool(truths[..., i], signals[..., i], pool.clusters[..., i]) for i in range(truths.shape[-1])[:count]]


def shared_pools_of(run: Run) -> tuple[list[Pool], Int[np.ndarray, " B"]]:
    """Return the pools of `start_on_shared_pools` without repetition, and the place of each replicate's pool."""
    _, owners, places = np.unique(run.replicates % NUM_POOLS, return_index=True, return_inverse=True)
    pools = pools_of(run, count=int(owners.max()) + 1)
    return [pools[owner] for owner in owners], places


def gaps_of(run: Run) -> theory.Gaps:
    return theory.Gaps(*np.transpose([theory.gaps(pool) for pool in pools_of(run)]))


def task_gap(run: Run) -> Float[np.ndarray, " B"]:
    return np.asarray(gaps_of(run).task_gap)


def loads_of(run: Run) -> tuple[Float[np.ndarray, "R B M"], Float[np.ndarray, "R B M"]]:
    """Return the loads L_t(m) and the explored loads at recorded rounds, with experts last, as theorems take them."""
    loads = np.moveaxis(run.records.loads, 1, -1)
    explored_loads = np.moveaxis(run.records.explored_loads, 1, -1)
    return loads.astype(np.float64), explored_loads.astype(np.float64)


def bounds_of(run: Run, dims: Dims, theorem: Callable[..., theory.Bound] = theory.theorem_1) -> theory.Bound:
    """Return a theorem's bounds from each replicate's pool and loads (R, B)."""
    ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    loads, explored_loads = loads_of(run)
    return theorem(gaps_of(run), ratio, loads, explored_loads, round=run.rounds[:, None])


def printed_metric(
    name: str, *rounds: int, theorem: Callable[..., theory.Bound] = theory.theorem_1
) -> Callable[[Run], np.ndarray]:
    """Return a theorem's values of a metric at recorded rounds, for Fig. 2's sizes (V, B)."""

    def values(run: Run) -> np.ndarray:
        bound_value = getattr(bounds_of(run, run.dims, theorem), name)
        return bound_value[np.searchsorted(run.rounds, rounds)].astype(np.float64)

    return values


@functools.lru_cache(maxsize=2 * NUM_POOLS)  # pools of two readings, because every analysis of a claim uses them again
def exact_of_pool(truths: bytes, signals: bytes, num_tasks: int, num_samples: int, num_rounds: int) -> corrected.Exact:
    """Return exact single-expert metrics by round, for a pool's float64 arrays (N, d) as bytes, which can be hashed."""
    truth_rows = np.frombuffer(truths).reshape(num_tasks, -1)
    signal_rows = np.frombuffer(signals).reshape(num_tasks, -1)
    return corrected.single_expert(Pool(truth_rows, signal_rows, np.arange(num_tasks)), num_samples, num_rounds)


def exact_of(run: Run) -> corrected.Exact:
    pools, places = shared_pools_of(run)
    sizes = len(pools[0].truths), run.dims.num_samples, int(run.rounds[-1])
    moments = [exact_of_pool(pool.truths.tobytes(), pool.signals.tobytes(), *sizes) for pool in pools]
    # Each field of `corrected.Exact` is (T,) for a pool, then (R, pools), then (R, B).
    by_pool = [np.stack(values, axis=-1)[run.rounds - 1] for values in zip(*moments, strict=True)]
    return corrected.Exact(*(values[:, places] for values in by_pool))


def given_routes_of(run: Run) -> corrected.Exact:
    """Return expected metrics by round, given all tasks and routes (T, B)."""
    assert len(run.records.task) == run.rounds[-1], "a run that records every round"
    return corrected.given_routes(run.state.pool, run.dims.num_samples, run.records.task, run.records.expert)


def expected_metric(name: str, *rounds: int) -> Callable[[Run], np.ndarray]:
    """Return a metric's expectation after some rounds, given tasks and routes (V, B)."""
    return lambda run: getattr(given_routes_of(run), name)[np.array(rounds) - 1]


def effective_experts(loads: Float[np.ndarray, "R M B"]) -> Float[np.ndarray, "R B"]:
    """Return exp of the entropy of the loads' shares: M for even loads, 1 for a single expert."""
    shares = loads / np.maximum(loads.sum(axis=1, keepdims=True), 1)
    return np.exp(-np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1))


def from_to(run: Run, name: str, first: int, last: int) -> np.ndarray:
    """Return a field in the rounds first, ..., last of a run that records every round."""
    return getattr(run.records, name)[first - 1 : last].astype(np.float64)


def up_to_t1(run: Run, name: str) -> np.ndarray:
    return from_to(run, name, first=1, last=stage_rounds(run.params))


def metric(name: str, *rounds: int) -> Callable[[Run], np.ndarray]:
    """Return the measure of a field at these recorded rounds, or at all of them."""

    def values(run: Run) -> np.ndarray:
        rows = np.searchsorted(run.rounds, rounds) if rounds else slice(None)
        return getattr(run.records, name)[rows].astype(np.float64)

    return values


def final(name: str) -> Callable[[Run], np.ndarray]:
    """Return the measure of a field in the last recorded round."""
    return lambda run: getattr(run.records, name)[-1].astype(np.float64)


def at_rounds(*rounds: int) -> list[str]:
    return [f"t = {time}" for time in rounds]


def by_rounds(experiment: Experiment, cell: str, *rounds: int) -> Selection:
    return Selection(experiment, cells=(cell,), labels=tuple(at_rounds(*rounds)))


def router_learning(run: Run) -> slice:
    """Return rows of the rounds T1 + 1, ..., t_1, the router's learning stage."""
    return slice(stage_rounds(run.params), stage_rounds(run.params, T2_POWER))


def past_exploration(run: Run) -> slice:
    """Return rows of the rounds T1 + 2, ..., T."""
    return slice(stage_rounds(run.params) + 1, None)


def truth_length(run: Run) -> np.ndarray:
    """Return the root mean square of the norms |w_n| of each pool (B,)."""
    return np.sqrt(np.asarray(gaps_of(run).truth_norm))


def previous_tasks(run: Run) -> np.ndarray:
    """Return the previous task of each arrival's expert, -1 for none (T, B)."""
    return last_tasks(run.records.task, run.records.expert)


def repeats_of(run: Run) -> np.ndarray:
    """Return where a task goes to an expert whose last task was the same (T, B)."""
    return previous_tasks(run) == run.records.task


def noise_sums(run: Run) -> Float[np.ndarray, "B 2 d"]:
    """Return sums over the s - 1 noise columns of two feature matrices."""
    shape = (2, ROUTER_DIMS.num_features, ROUTER_DIMS.num_samples - 1)
    columns = draws_of(run, math.prod(shape), stream=5, law=normals)
    return float(run.params.noise_scale) * columns.reshape(-1, *shape).sum(axis=-1)


def gates_of(run: Run) -> Float[np.ndarray, "M d B"]:
    return run.state.gates[: int(run.params.num_experts)].astype(np.float64)


def gate_output_pairs(run: Run) -> Float[np.ndarray, "B 2 M"]:
    """Return the gate outputs of two arrivals of one cluster, or of one task, by round T's gates."""
    params = run.params
    num_tasks = ROUTER_DIMS.num_tasks
    units = draws_of(run, 3, stream=6)  # uniform numbers for the first task and two strengths
    first = np.minimum((units[:, 0] * num_tasks).astype(int), num_tasks - 1)  # rounding may make the product N
    second = (first + int(params.num_clusters)) % num_tasks  # task n is in cluster n mod K
    pool_signals = np.moveaxis(run.state.pool.signals, -1, 0).astype(np.float64)
    signals = pool_signals[np.arange(len(first))[:, None], np.stack([first, second], axis=1)]
    most = float(params.max_strength)
    least = float(params.min_strength)
    strengths = most - (most - least) * units[:, 1:]
    inputs = strengths[:, :, None] * signals + noise_sums(run)
    return np.einsum("mdb,bxd->bxm", gates_of(run), inputs)
