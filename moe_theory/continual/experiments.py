"""The runs that claims and figures share: Fig. 2's eight cells, a single expert on shared pools, short histories."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.continual import exact, theory
from moe_theory.continual.params import Dims, Params
from moe_theory.continual.system import Info, State, begin, system
from moe_theory.core.batching import trailing_vmap
from moe_theory.core.random import replicate_keys
from moe_theory.core.tasks import Pool, draw_pool
from moe_theory.runs import Run
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
    update_norm: Float[Array, ""]


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
        update_norm=info.update_norm,
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
    replicates=2048,
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

JUST_EXPLORED_BY_FEW = Experiment(
    name="just-explored-by-few",
    dims=FIGURE_2_DIMS,
    system=system(FIGURE_2_DIMS),
    cells={cell_name(5, True): {"num_experts": 5}},
    num_rounds=10,
    record_every=5,
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


def shared_pools_of(run: Run) -> tuple[list[Pool], Int[np.ndarray, " B"]]:
    """The pools that the replicates of a run share, and which of them each replicate has."""
    _, first, places = np.unique(run.replicates % NUM_POOLS, return_index=True, return_inverse=True)
    pools = pools_of(run, int(first.max()) + 1)
    return [pools[place] for place in first], places


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
    pools, places = shared_pools_of(run)
    moments = [exact.single_expert(pool, dims.num_samples, int(run.rounds[-1])) for pool in pools]
    by_pool = exact.Exact(*(np.stack(leaves, axis=-1)[run.rounds - 1] for leaves in zip(*moments, strict=True)))
    return exact.Exact(*(leaf[:, places] for leaf in by_pool))
