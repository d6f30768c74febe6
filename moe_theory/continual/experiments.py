"""The runs that claims and figures share: Fig. 2's eight cells, a single expert on shared pools, short histories."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.continual import exact, theory
from moe_theory.continual.params import SIGMA_0, Dims, Params
from moe_theory.continual.system import Info, State, begin, system
from moe_theory.continual.tracking import expert_sets, observe_sight, tracked_system
from moe_theory.core.batching import trailing_vmap
from moe_theory.core.linear import ceil_to_rounds
from moe_theory.core.random import replicate_keys
from moe_theory.core.tasks import Pool, draw_pool
from moe_theory.sweep import Run
from moe_theory.verify import Experiment

# Appendix A.2: N = 6 tasks, d = 10, s = 6; experts padded to the largest M, so that all cells are one program.
FIGURE_2_DIMS = Dims(max_experts=20, num_tasks=6, num_features=10, num_samples=6)
FIGURE_2_ROUNDS = 2000
FIGURE_2_EXPERTS = (1, 5, 10, 20)
SINGLE_DIMS = Dims(max_experts=1, num_tasks=6, num_features=10, num_samples=6)
NUM_POOLS = 16  # pools that the replicates of a single expert share, so that exact theory is computed once a pool


class Records(NamedTuple):
    """What a recorded round keeps for the closed forms and the metrics they speak of."""

    forgetting: Float[Array, ""]
    generalization_error: Float[Array, ""]
    loads: Int[Array, " M"]
    explored_loads: Int[Array, " M"]
    terminated: Int[Array, ""]


class Moves(NamedTuple):
    """What a round did to the expert it trained."""

    task: Int[Array, ""]
    expert: Int[Array, ""]
    error: Float[Array, ""]
    update_norm: Float[Array, ""]


def observe_metrics(state: State, info: Info) -> Records:
    """Metrics and loads of a round."""
    return Records(
        forgetting=info.forgetting,
        generalization_error=info.generalization_error,
        loads=state.visits,
        explored_loads=state.explored_visits,
        terminated=state.terminated,
    )


def observe_moves(state: State, info: Info) -> Moves:
    """Who learned what, and how far it moved."""
    del state
    return Moves(info.task, info.expert, info.error, info.update_norm)


def cell_name(num_experts: int, terminate: bool) -> str:
    """The name of a cell of Fig. 2."""
    return f"M = {num_experts}" if terminate else f"M = {num_experts}, endless"


FIGURE_2 = Experiment(
    name="figure-2",
    dims=FIGURE_2_DIMS,
    system=system(FIGURE_2_DIMS),
    cells={
        cell_name(num_experts, terminate): {"num_experts": num_experts, "terminate": terminate}
        for num_experts in FIGURE_2_EXPERTS
        for terminate in (True, False)
    },
    num_rounds=FIGURE_2_ROUNDS,
    record_every=20,
    observe=observe_metrics,
    replicates=512,
)


@jax.jit
def start_on_shared_pools(seed_key: Key[Array, ""], replicates: Int[Array, " B"], params: Params) -> State:
    """Initial states in which replicate i has pool i mod `NUM_POOLS`, drawn by a replicate of that number + 2^31."""

    def start(key: Key[Array, ""], params: Params) -> State:
        pool = draw_pool(key, SINGLE_DIMS.num_tasks, SINGLE_DIMS.num_features, params.pool_scales)
        return begin(SINGLE_DIMS, params, pool)

    names = replicates.astype(jnp.uint32) % NUM_POOLS + np.uint32(2**31)
    return trailing_vmap(start, is_batched=(True, False))(replicate_keys(seed_key, names), params)


SINGLE_EXPERT = Experiment(
    name="single-expert",
    dims=SINGLE_DIMS,
    system=system(SINGLE_DIMS),
    cells={cell_name(1, True): {"num_experts": 1}},
    num_rounds=200,
    record_every=20,
    observe=observe_metrics,
    replicates=32768,
    start=start_on_shared_pools,
)

JUST_EXPLORED = Experiment(
    name="just-explored",
    dims=FIGURE_2_DIMS,
    system=system(FIGURE_2_DIMS),
    cells={cell_name(20, True): {"num_experts": 20}},
    num_rounds=100,
    record_every=10,
    observe=observe_metrics,
    replicates=16384,
)

HISTORY_DIMS = Dims(max_experts=5, num_tasks=6, num_features=10, num_samples=6)

HISTORY = Experiment(
    name="history",
    dims=HISTORY_DIMS,
    system=system(HISTORY_DIMS),
    cells={cell_name(1, True): {"num_experts": 1}, cell_name(5, True): {"num_experts": 5}},
    num_rounds=100,
    record_every=1,
    observe=observe_moves,
    replicates=4096,
)

ROUTING = Experiment(
    name="routing",
    dims=HISTORY_DIMS,
    system=system(HISTORY_DIMS),
    cells={cell_name(5, True): {"num_experts": 5, "terminate": False}},
    num_rounds=50,
    record_every=50,
    observe=observe_metrics,
    replicates=1024,
)


def pools_of(run: Run, count: int | None = None) -> list[Pool]:
    """The pools of the first `count` replicates of a run (None: of all), in float64."""
    pool = run.state.pool
    truths, signals = np.asarray(pool.truths, np.float64), np.asarray(pool.signals, np.float64)
    return [Pool(truths[..., i], signals[..., i], pool.clusters[..., i]) for i in range(truths.shape[-1])[:count]]


def gaps_of(run: Run) -> theory.Gaps:
    """The gaps of each replicate's pool, as arrays (B,)."""
    return theory.Gaps(*np.transpose([theory.gaps(pool) for pool in pools_of(run)]))


def loads_of(run: Run) -> tuple[Float[np.ndarray, "R B M"], Float[np.ndarray, "R B M"]]:
    """Loads L_t(m) and explored loads at the recorded rounds, experts last, as the closed forms take them."""
    loads, explored = (np.moveaxis(leaf, 1, -1) for leaf in (run.records.loads, run.records.explored_loads))
    return loads.astype(np.float64), explored.astype(np.float64)


def bounds_of(run: Run, dims: Dims, form: str | None = None) -> theory.Bound:
    """What the theorems say of each replicate, from its pool and realised loads alone: arrays (R, B).

    `form` names the form of Theorem 2; None is Theorem 1.
    """
    pool_gaps, ratio = gaps_of(run), theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    loads, explored = loads_of(run)
    rounds = run.rounds[:, None]
    if form is None:
        return theory.theorem_1(pool_gaps, ratio, loads, explored, rounds)
    return theory.theorem_2(pool_gaps, ratio, loads, explored, rounds, form)


def exact_of(run: Run, dims: Dims) -> exact.Exact:
    """Exact theory of a single expert for each replicate of a run on shared pools: arrays (R, B)."""
    moments = [exact.single_expert(pool, dims.num_samples, int(run.rounds[-1])) for pool in pools_of(run, NUM_POOLS)]
    by_pool = exact.Exact(*(np.stack(leaves, axis=-1)[run.rounds - 1] for leaves in zip(*moments, strict=True)))
    return exact.Exact(*(leaf[:, run.replicates % NUM_POOLS] for leaf in by_pool))


# A grid towards small sigma_0 for the O() statements of Lemma 12 to Proposition 3, with the sizes of steps that
# Algorithm 1 gives them, those of Fig. 2 at its sigma_0. Signals keep entries of order 1 whatever the reading, and the
# ratio of noise to truths is that of Fig. 2. t_1 lies well within the runs, t_2 within those of `RETURNING`.
SCALES = (0.025, 0.05, 0.1, 0.2)
MANY_EXPERTS, FEW_EXPERTS = 12, 5  # M > N, where each task is a cluster of its own, and M < N, with K = 3
SCALE_DIMS = Dims(max_experts=MANY_EXPERTS, num_tasks=6, num_features=10, num_samples=6)
SCALE_ROUNDS = 400


def scale_name(num_experts: int, scale: float) -> str:
    """The name of a cell of the grid of scales."""
    return f"M = {num_experts}, sigma_0 = {scale}"


def scaled(scale: float) -> dict[str, Any]:
    """Overrides that make sigma_0 `scale` and keep to the orders of Algorithm 1's input line."""
    ratio = scale / SIGMA_0
    return {
        "truth_scale": scale,
        "signal_scale": 1 / scale,
        "cluster_spread": scale**1.5,
        "noise_scale": Params().noise_scale * ratio,
        "learning_rate": Params().learning_rate * ratio**0.5,
        "balance_weight": Params().balance_weight * ratio**0.5,
        "perturbation_scale": Params().perturbation_scale * ratio**1.25,
        "termination_threshold": scale**1.25,
    }


def _scaled_cells(*scales: float, terminate: bool) -> dict[str, dict[str, Any]]:
    sizes = {MANY_EXPERTS: SCALE_DIMS.num_tasks, FEW_EXPERTS: Params().num_clusters}
    return {
        scale_name(num_experts, scale): {
            **scaled(scale),
            "num_experts": num_experts,
            "num_clusters": num_clusters,
            "terminate": terminate,
        }
        for num_experts, num_clusters in sizes.items()
        for scale in scales
    }


class Span(NamedTuple):
    """How far apart the gates are."""

    any_gap: Float[Array, ""]  # largest |h_m - h_m'| of all experts


def observe_span(state: State, info: Info) -> Span:
    """The span of the gate outputs."""
    del state
    exists = info.gate_probabilities > 0
    highest = jnp.max(jnp.where(exists, info.gate_outputs, -jnp.inf))
    return Span(highest - jnp.min(jnp.where(exists, info.gate_outputs, jnp.inf)))


SETTLING = Experiment(
    name="scales",
    dims=SCALE_DIMS,
    system=tracked_system(SCALE_DIMS),
    cells=_scaled_cells(*SCALES, SIGMA_0, terminate=True),
    num_rounds=SCALE_ROUNDS,
    record_every=1,
    observe=observe_sight,
    replicates=256,
)

LEARNING = Experiment(
    name="scales-endless",
    dims=SCALE_DIMS,
    system=tracked_system(SCALE_DIMS),
    cells=_scaled_cells(*SCALES, terminate=False),
    num_rounds=SCALE_ROUNDS,
    record_every=1,
    observe=observe_sight,
    replicates=256,
)

RETURNING = Experiment(
    name="scales-returning",
    dims=SCALE_DIMS,
    system=system(SCALE_DIMS),
    cells=_scaled_cells(*SCALES, terminate=False),
    num_rounds=1550,
    record_every=1,
    observe=observe_span,
    replicates=128,
)

# Lemma 11 at the end of exploration, with as many experts as its proof asks for: N ln(N / delta) and K ln(K / delta).
SET_FAILURE = 0.05  # delta, which the paper leaves at o(1)
SET_TASKS, SET_CLUSTERS = 10, 2
SET_EXPERTS = {count: int(np.ceil(count * np.log(count / SET_FAILURE))) for count in (SET_TASKS, SET_CLUSTERS)}
SET_DIMS = Dims(max_experts=SET_EXPERTS[SET_TASKS], num_tasks=SET_TASKS, num_features=10, num_samples=6)


class Sets(NamedTuple):
    """Which set each expert is in."""

    sets: Int[Array, " M"]


def observe_sets(state: State, info: Info) -> Sets:
    """The sets at the gates of the next round."""
    del info
    return Sets(expert_sets(state))


SPECIALISTS = Experiment(
    name="specialists",
    dims=SET_DIMS,
    system=system(SET_DIMS),
    cells={
        f"{count} sets": {"num_experts": num_experts, "num_clusters": count}
        for count, num_experts in SET_EXPERTS.items()
    },
    num_rounds=int(theory.exploration_rounds(SET_DIMS.max_experts, Params().learning_rate)),
    record_every=2,
    observe=observe_sets,
    replicates=512,
)

# Appendix A.7: four thresholds of termination, the perturbation lambda between the second and the last.
THRESHOLD_POWERS = (0.75, 1.0, 1.25, 1.5)  # Gamma = sigma_0^power
PERTURBATION_POWER = 1.25  # lambda = sigma_0^1.25


def threshold_name(power: float) -> str:
    """The name of a cell of Figs. 8 and 9."""
    return f"Gamma = sigma_0^{power:g}"


THRESHOLDS = {
    threshold_name(power): {
        "num_experts": 5,
        "perturbation_scale": SIGMA_0**PERTURBATION_POWER,
        "termination_threshold": SIGMA_0**power,
    }
    for power in THRESHOLD_POWERS
}
FIGURE_8_ROUNDS = SCALE_ROUNDS
FIGURE_9_DIMS = Dims(max_experts=5, num_tasks=30, num_features=10, num_samples=6)
FIGURE_9_ROUNDS = 2000

FIGURE_8 = Experiment(
    name="figure-8",
    dims=SCALE_DIMS,  # padded, so that the program is that of the grid of scales
    system=tracked_system(SCALE_DIMS),
    cells=THRESHOLDS,
    num_rounds=FIGURE_8_ROUNDS,
    record_every=1,
    observe=observe_sight,
    replicates=512,
)

FIGURE_9 = Experiment(
    name="figure-9",
    dims=FIGURE_9_DIMS,
    system=system(FIGURE_9_DIMS),
    cells=THRESHOLDS | {cell_name(1, True): {**THRESHOLDS[threshold_name(PERTURBATION_POWER)], "num_experts": 1}},
    num_rounds=FIGURE_9_ROUNDS,
    record_every=FIGURE_9_ROUNDS,
    observe=observe_metrics,
    replicates=128,
)


def effective_experts(loads: Float[np.ndarray, "R M B"]) -> Float[np.ndarray, "R B"]:
    """exp of the entropy of the loads' shares: M for even loads, 1 if one expert has them all."""
    shares = loads / np.maximum(loads.sum(axis=1, keepdims=True), 1)
    return np.exp(-np.sum(shares * np.log(np.where(shares > 0, shares, 1)), axis=1))


def stage_rounds(params: Params, power: float = 0.0) -> int:
    """ceil(M / eta sigma_0^-power): T1 at power 0, t_1 and T2 at 1/4, t_2 at 3/4."""
    quotient = float(params.num_experts) / float(params.learning_rate) * float(params.truth_scale) ** -power
    return int(ceil_to_rounds(quotient))
