"""Runs of Algorithm 1 that lack a cause: one that we suppose for a statement's failure, or one that it credits.

Signals are along the ground truths unless a cell sets others.
"""

import dataclasses
from collections.abc import Callable, Collection
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Int, Key

from moe_theory.continual import diagnostics, experiments, theory
from moe_theory.continual.algorithm import State, balance_cost, draw, perturbed, system
from moe_theory.continual.params import SIGMA_0, Dims, Params
from moe_theory.core.random import normals
from moe_theory.core.system import System, fields
from moe_theory.core.tasks import ORTHOGONAL, PROPORTIONAL, Arrival, Pool
from moe_theory.verification import Experiment
from moe_theory.verification.claim import Overrides, Selection

TIER = "interventions"  # a quick check skips this tier
ALONG_TRUTHS = {"signal_law": PROPORTIONAL}
AS_DEFAULT = ALONG_TRUTHS | {"signal_scale": 1 / SIGMA_0, "cluster_spread": SIGMA_0**1.5}  # the default reading
ROUNDS_WITHOUT_BALANCE = 20  # the first rounds, in which `later_balance_cost` is 0
BLIND = {"perturbation_scale": experiments.UNIFORM_PERTURBATION}  # too large for any output to decide the routing


def by_kind(
    outputs: Float[Array, " M"], perturbation: Float[Array, " M"], state: Any, arrival: Arrival, params: Params
) -> Float[Array, " M"]:
    """Return scores that send the tasks of cluster k of K to the experts with m mod K = k."""
    del outputs, params
    clusters = state.pool.clusters
    cluster = jnp.sum(jnp.where(jnp.arange(clusters.shape[0]) == arrival.task, clusters, 0))
    is_own = jnp.arange(perturbation.shape[0]) % (jnp.max(clusters) + 1) == cluster
    return jnp.where(is_own, perturbation, -1)  # perturbations are at least 0


def by_kind_past_exploration(
    outputs: Float[Array, " M"], perturbation: Float[Array, " M"], state: Any, arrival: Arrival, params: Params
) -> Float[Array, " M"]:
    """Return the paper's scores up to T1, and those of `by_kind` after it."""
    routing = outputs, perturbation, state, arrival, params
    is_past = state.round >= theory.exploration_rounds(params.num_experts, params.learning_rate)
    return jnp.where(is_past, by_kind(*routing), perturbed(*routing))


def by_habit(
    outputs: Float[Array, " M"], perturbation: Float[Array, " M"], state: Any, arrival: Arrival, params: Params
) -> Float[Array, " M"]:
    """Return scores by which the first expert learns every task."""
    del outputs, state, arrival, params
    return -jnp.arange(perturbation.shape[0], dtype=perturbation.dtype)


def whole_truth(models: Float[Array, "k d"], arrival: Any, params: Any) -> Float[Array, "k d"]:
    """Return the change of an expert that fits an arrival's whole ground truth in one update (Lemma 3)."""
    del params
    return arrival.truth[None, :] - models


def without_signal(
    key: Key[Array, ""], dims: Dims, state: State, params: Params
) -> tuple[Pool, Arrival, Float[Array, " M"]]:
    """Draw a round in which all columns of the features are noise."""
    arrival, perturbation = draw(key, dims, state.pool, params)
    shape = (dims.num_features, dims.num_samples)
    dtype = arrival.features.dtype
    samples = normals(jax.random.fold_in(key, 1), dims.num_features * dims.num_samples, dtype).reshape(shape)
    return state.pool, arrival._replace(features=params.noise_scale * samples), perturbation


def later_balance_cost(visits: Int[Array, " M"], time: Int[Array, ""], params: Params) -> Float[Array, " M"]:
    """Return the auxiliary loss's cost (7), or 0 in the first rounds."""
    return jnp.where(time > ROUNDS_WITHOUT_BALANCE, balance_cost(visits, time, params), 0)


def with_gates_apart(base: System) -> System:
    """Return the system that starts after exploration with gates as far apart as in (35).

    An expert's output is sigma_0^0.5 for the mean signal of its own cluster, and 0 for others.
    """

    def gates_apart(key: Key[Array, ""], state: State, params: Params) -> Float[Array, "M d"]:
        del key
        clusters = state.pool.clusters
        signals = state.pool.signals
        is_member = (clusters[None, :] == jnp.arange(clusters.shape[0])[:, None]).astype(signals.dtype)
        mean_signals = is_member @ signals / jnp.maximum(jnp.sum(is_member, axis=1, keepdims=True), 1)
        own_clusters = jnp.arange(state.gates.shape[0]) % (jnp.max(clusters) + 1)
        return params.truth_scale**0.5 * jnp.linalg.pinv(mean_signals).T[own_clusters]

    return _with_start(base, gates_apart)


def without_exploration(base: System) -> System:
    """Return the system that starts at T1 with experts at 0, and with random gates of size sigma_0^2 that sum to 0."""

    def random_gates(key: Key[Array, ""], state: State, params: Params) -> Float[Array, "M d"]:
        exists = (jnp.arange(state.gates.shape[0]) < params.num_experts)[:, None]
        draws = normals(jax.random.fold_in(key, 1), state.gates.size, state.gates.dtype).reshape(state.gates.shape)
        mean = jnp.sum(jnp.where(exists, draws, 0), axis=0) / params.num_experts
        return jnp.where(exists, params.truth_scale**2 * (draws - mean), 0)

    def t1(params: Params) -> Any:
        return theory.exploration_rounds(params.num_experts, params.learning_rate)

    return _with_start(base, random_gates, t1)


def _with_start(
    base: System, make_gates: Callable[..., Array], rounds_done: Callable[[Params], Any] = lambda params: 0
) -> System:
    def init(key: Key[Array, ""], params: Params) -> Any:
        tally = base.init(key, params)
        gates = make_gates(key, tally.state, params).astype(tally.state.gates.dtype)
        time = jnp.asarray(rounds_done(params), tally.state.round.dtype)
        return tally._replace(state=tally.state._replace(gates=gates, round=time))

    return System(init, base.step)


def variant(
    experiment: Experiment,
    name: str,
    changes: Callable[[float], Overrides] = lambda scale: {},
    cells: Collection[str] = (),
    **replacements: Any,
) -> Experiment:
    """Return an experiment, or some of its cells, with parameters that depend on sigma_0 and other fields changed."""
    overrides_of = {cell: experiment.cells[cell] for cell in cells or experiment.cells}
    changed = {
        cell: {**overrides, **ALONG_TRUTHS, **changes(overrides.get("truth_scale", SIGMA_0))}
        for cell, overrides in overrides_of.items()
    }
    return dataclasses.replace(experiment, name=name, cells=changed, tier=TIER, of=None, **replacements)


def small_alpha(scale: float) -> dict[str, float]:
    """Return alpha = sigma_0, at which the first auxiliary steps move outputs by at most lambda."""
    return {"balance_weight": scale}


def over_limit(experiment: Experiment) -> tuple[Selection, Selection]:
    return experiments.over_scales(experiment, experiments.LIMIT_SCALES)


EXPECTED_COSTS = dataclasses.replace(
    experiments.FEW_SAMPLES,
    name="few-samples-expected-costs",
    tier=TIER,
    system=diagnostics.system_with_expected_costs(experiments.FEW_SAMPLES_DIMS),
)

# Experiments have cells with M > N and with M < N, so that their selections are pairs.
LIMIT = experiments.LIMIT_MANY.experiment
ENDLESS = experiments.ENDLESS_MANY.experiment
ALL_APART = with_gates_apart(diagnostics.system_with_tally(LIMIT.dims))
QUIET_MANY, QUIET_FEW = over_limit(variant(LIMIT, "limit-quiet", small_alpha))
APART_MANY, APART_FEW = over_limit(variant(LIMIT, "limit-apart", system=ALL_APART))
QUIET_APART_MANY, QUIET_APART_FEW = over_limit(variant(LIMIT, "limit-quiet-apart", small_alpha, system=ALL_APART))
AT_ONCE_MANY, AT_ONCE_FEW = over_limit(
    variant(LIMIT, "limit-at-once", system=diagnostics.system_with_tally(LIMIT.dims, fit=whole_truth))
)
UNEXPLORED = over_limit(
    variant(LIMIT, "limit-unexplored", system=without_exploration(diagnostics.system_with_tally(LIMIT.dims)))
)
OPEN = over_limit(variant(LIMIT, "limit-open", experiments.endless))
TINY = over_limit(variant(LIMIT, "limit-tiny", lambda scale: {"termination_threshold": scale**6}))
HABIT = over_limit(variant(LIMIT, "limit-habit", system=diagnostics.system_with_tally(LIMIT.dims, router=by_habit)))
ENDLESS_APART_MANY, ENDLESS_APART_FEW = experiments.over_scales(
    variant(ENDLESS, "endless-apart", system=with_gates_apart(diagnostics.system_with_endless_tally(ENDLESS.dims))),
    experiments.T1_LIMIT_SCALES,
)
STILL_MANY, STILL_FEW = experiments.over_scales(
    variant(ENDLESS, "endless-still", lambda scale: {"perturbation_scale": 0.0}), experiments.T1_LIMIT_SCALES
)
SLOW_BLIND = experiments.over_scales(
    variant(experiments.SLOW_RETURN_MANY.experiment, "return-slow-blind", lambda scale: BLIND),
    experiments.SLOW_RETURN_SCALES,
)

# Interventions on the grid that Lemmas 12 and 16 are tested on.
LEARNING = experiments.SPECIALIZATION
LEARNING_DIMS = experiments.SPECIALIZATION_DIMS
LEARNING_CELLS = (*experiments.MANY_SMALLEST, *experiments.FEW_CELLS)
LEARNED_APART = variant(
    LEARNING,
    "learning-apart",
    cells=LEARNING_CELLS,
    system=with_gates_apart(diagnostics.system_with_diagnostics(LEARNING_DIMS)),
)
LEARNED_AT_ONCE = variant(
    LEARNING,
    "learning-at-once",
    cells=LEARNING_CELLS,
    system=diagnostics.system_with_diagnostics(LEARNING_DIMS, fit=whole_truth),
)

# Runs that last up to T1, as (42) requires.
EXPLORED = variant(
    experiments.NO_TERMINATION,
    "explored",
    cells=experiments.MANY_LARGEST + experiments.FEW_LARGEST,
    num_rounds=100,
    system=system(LEARNING_DIMS, stream=without_signal),
    observe=fields(experiments.observe_route, "info.generalization_error"),
)
EXPLORED_BLINDLY = dataclasses.replace(
    variant(EXPLORED, "explored-blindly", lambda scale: BLIND), system=system(LEARNING_DIMS)
)

# Lemma 11 with twice the experts that its proof requires.
LATER_EXPERTS = 2 * experiments.COVERAGE.dims.max_experts
LATER_SCALE = 0.001
LATER_STRIDE = 40  # divides T1


def _later(experiment: Experiment, members: int) -> Experiment:
    sets = experiments.COVERAGE_SETS
    dims = dataclasses.replace(experiment.dims, max_experts=LATER_EXPERTS, num_tasks=members * sets)
    overrides = experiments.limit_params(LATER_EXPERTS, LATER_SCALE) | {"num_clusters": sets, "signal_law": ORTHOGONAL}
    return dataclasses.replace(
        experiment,
        name=f"{experiment.name}-later",
        tier=TIER,
        of=None,
        dims=dims,
        system=system(dims, auxiliary=later_balance_cost),
        cells={experiments.COVERAGE_CELL: overrides},
        num_rounds=experiments.stage_rounds(Params()._replace(**overrides)),
        record_every=LATER_STRIDE,
    )


LATER = _later(experiments.COVERAGE, members=1)
LATER_CLUSTERS = _later(experiments.COVERAGE_CLUSTERS, members=2 * experiments.MEMBERS)

FIGURE_2 = experiments.FIGURE_2
TERMINATED = tuple(map(experiments.cell_name, experiments.FIGURE_2_EXPERTS))
FIGURE_2_BLIND = variant(FIGURE_2, "figure-2-blind", lambda scale: AS_DEFAULT | BLIND, TERMINATED, replicates=4096)
JUST_EXPLORED_BLIND = variant(
    experiments.JUST_EXPLORED, "just-explored-blind", lambda scale: AS_DEFAULT | BLIND, cells=(experiments.MANY,)
)
FIGURE_2_LONG = variant(
    FIGURE_2,
    "figure-2-long",
    lambda scale: AS_DEFAULT | {"signal_scale": 6.0},
    cells=(experiments.cell_name(10), experiments.cell_name(20)),
)
# Fewer experts than tasks.
FIGURE_2_BELOW = variant(FIGURE_2, "figure-2-below", lambda scale: AS_DEFAULT, (experiments.SINGLE, experiments.FEW))
JUST_ABOVE = (7, 14)  # experts: the first number above N = 6, and twice as many
FIGURE_2_ABOVE = dataclasses.replace(
    FIGURE_2,
    name="figure-2-above",
    tier=TIER,
    cells={experiments.cell_name(number): {"num_experts": number} for number in JUST_ABOVE},
    replicates=16384,
)
FIGURE_9_BLIND = variant(
    experiments.FIGURE_9,
    "figure-9-blind",
    lambda scale: AS_DEFAULT | BLIND,
    cells=(experiments.threshold_name(experiments.PERTURBATION_POWER), experiments.SINGLE),
    replicates=4096,
)
FIGURE_9_SHORT = variant(
    experiments.FIGURE_9,
    "figure-9-short",
    lambda scale: AS_DEFAULT | {"signal_scale": 1.0},
    cells=experiments.THRESHOLDS,
    replicates=131072,
)


def _figure_2_with(name: str, **parts: Any) -> Experiment:
    """Return Fig. 2's experiment with M = 5 experts and other parts of the algorithm."""
    return variant(FIGURE_2, name, lambda scale: AS_DEFAULT, (experiments.FEW,), system=system(FIGURE_2.dims, **parts))


GAUSSIAN = _figure_2_with("figure-2-gaussian", stream=without_signal)
SORTED_LATER = _figure_2_with("figure-2-sorted-later", router=by_kind_past_exploration)
SORTED_LATER_GAUSSIAN = _figure_2_with(
    "figure-2-sorted-gaussian", router=by_kind_past_exploration, stream=without_signal
)
ROUTER_CELLS = {experiments.router_cell(scale): scale for scale in experiments.ROUTER_SCALES}
QUIET_BY_SCALE = variant(experiments.ROUTER_GRID, "router-grid-quiet", small_alpha, cells=ROUTER_CELLS).over(
    ROUTER_CELLS
)
