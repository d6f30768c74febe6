"""The runs that claims and figures share, and what is measured on them."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.core.errors import InvalidRunError
from moe_theory.core.tasks import Pool
from moe_theory.edge import corrected, policies, theory
from moe_theory.edge.algorithm import Info, State, generalization_error, generalization_error_flushed, system
from moe_theory.edge.params import CLUSTER_SPREAD, FIGURE_3_FEATURES, PROPORTIONAL, SIGMA_0, Dims, Params
from moe_theory.runs import Run
from moe_theory.verify.claim import Experiment
from moe_theory.verify.statement import Hypothesis

FAILURE = 0.05  # delta of Propositions 1 and 2, which the paper leaves at o(1)
FIGURE_3_EXPERTS = (10, 30, 50, 70)
FIGURE_3_ROUNDS = 3000
ENOUGH = (30, 50, 70)  # the M of Fig. 3 that the paper calls sufficient
PAST_EXPLORATION = (30, 50)  # those of them whose T1 lies within the run
MAX_DELAY = 10  # d_u


def figure_3_dims(max_experts: int) -> Dims:
    """Section VI: N = 10, p = 15, s = 10, d_u = 10."""
    return Dims(max_experts, num_tasks=10, num_features=FIGURE_3_FEATURES, num_samples=10, max_delay=MAX_DELAY)


FIGURE_3_DIMS = figure_3_dims(FIGURE_3_EXPERTS[-1])  # padded: all cells of a policy are one program


def cell_name(num_experts: int) -> str:
    """The name of a cell with so many servers."""
    return f"M = {num_experts}"


class Records(NamedTuple):
    """What the closed forms and the sentences about Fig. 3 need."""

    generalization_error: Float[Array, ""]
    flushed: Float[Array, ""]  # the same once pending tasks are completed
    loads: Int[Array, " M"]
    misrouted: Int[Array, ""]


class Models(NamedTuple):
    """`Records`, and everything learned."""

    generalization_error: Float[Array, ""]
    flushed: Float[Array, ""]
    loads: Int[Array, " M"]
    misrouted: Int[Array, ""]
    experts: Float[Array, "M p"]
    gates: Float[Array, "M p"]
    task: Int[Array, ""]
    gate_outputs: Float[Array, " M"]
    gate_probabilities: Float[Array, " M"]


class GateSteps(NamedTuple):
    """What one round did to the gates, and their sizes."""

    own_change: Float[Array, ""]  # of <theta, v_n> / eta, at the expert that completed a task of kind n; NaN if not one
    others_change: Float[Array, ""]  # the largest of it over the other experts
    gate_size: Float[Array, ""]  # max |theta|_inf
    gate_gap: Float[Array, ""]  # max |theta_m - theta_m'|_inf
    gate_norm: Float[Array, ""]  # root mean square of |theta_m|
    signal_drive: Float[Array, ""]  # root mean square of <theta_m, v_n> over experts and kinds
    gate_drift: Float[Array, ""]  # max over entries of |sum_m theta_m|, relative to the gates' size
    load_gap: Float[Array, ""]  # max_m |f_t(m) - 1/M|


class Assignments(NamedTuple):
    """Which expert got which task, for sums over a whole history."""

    task: Int[Array, ""]
    truth: Float[Array, " p"]
    expert: Int[Array, ""]
    flushed: Float[Array, ""]


class Availability(NamedTuple):
    """Specialists of the arriving kind (15)."""

    specialist_idle: Array
    num_specialists: Int[Array, ""]


def observe_errors(state: State, info: Info) -> Records:
    """Errors, loads and misrouting."""
    del info
    return Records(generalization_error(state), generalization_error_flushed(state), state.visits, state.misrouted)


def observe_models(state: State, info: Info) -> Models:
    """Errors, loads, and everything learned."""
    return Models(
        *observe_errors(state, info),
        experts=state.experts,
        gates=state.gates,
        task=info.task,
        gate_outputs=info.gate_outputs,
        gate_probabilities=info.gate_probabilities,
    )


def observe_steps(state: State, info: Info) -> GateSteps:
    """The gate step of a round in which one task was completed, and the gates' sizes; for a gate lag of 1."""
    kind = jnp.max(info.completed_task)  # the only one
    is_kind = (jnp.arange(state.pool.signals.shape[0]) == kind)[:, None]
    signal = jnp.sum(jnp.where(is_kind, state.pool.signals, 0), axis=0)
    drives = jnp.sum(state.gate_step * signal[None, :], axis=1)
    # The expert's row is opposite in sign to all others' and, as rows sum to 0, as large as their sum. These are
    # gradients, so changes have the opposite sign.
    own = jnp.sum(jnp.where(jnp.abs(drives) == jnp.max(jnp.abs(drives)), drives, 0))
    num_experts = info.num_busy + info.num_idle
    is_clear = info.num_completed == 1
    exists = jnp.arange(state.gates.shape[0]) < num_experts
    highest = jnp.max(jnp.where(exists[:, None], state.gates, -jnp.inf), axis=0)
    lowest = jnp.min(jnp.where(exists[:, None], state.gates, jnp.inf), axis=0)
    fractions = state.visits / jnp.maximum(jnp.sum(state.visits), 1)
    size = jnp.max(jnp.abs(state.gates))
    all_drives = jnp.sum(state.gates[:, None, :] * state.pool.signals[None, :, :], axis=2)
    return GateSteps(
        own_change=jnp.where(is_clear, -own, jnp.nan),
        others_change=jnp.where(
            is_clear, jnp.max(jnp.where(jnp.sign(drives) == jnp.sign(own), -jnp.inf, jnp.abs(drives))), jnp.nan
        ),
        gate_size=size,
        gate_gap=jnp.max(highest - lowest),
        gate_norm=jnp.sqrt(jnp.sum(jnp.square(state.gates)) / num_experts),
        signal_drive=jnp.sqrt(jnp.sum(jnp.square(all_drives)) / (num_experts * all_drives.shape[1])),
        gate_drift=jnp.max(jnp.abs(jnp.sum(state.gates, axis=0))) / jnp.maximum(size, 1e-30),
        load_gap=jnp.max(jnp.where(exists, jnp.abs(fractions - 1 / num_experts), 0)),
    )


def observe_assignments(state: State, info: Info) -> Assignments:
    """Which expert got which task."""
    return Assignments(info.task, info.truth, info.expert, generalization_error_flushed(state))


def observe_availability(state: State, info: Info) -> Availability:
    """Specialists of the arriving kind, and whether one was idle."""
    del state
    return Availability(info.specialist_idle, info.num_specialists)


def _experiment(name, dims, cells, num_rounds, observe, replicates, record_every=1, policy=policies.adaptive):
    return Experiment(name, dims, system(dims, policy), cells, num_rounds, record_every, observe, replicates)


def _servers(*numbers: int, **params: float) -> dict[str, dict[str, float]]:
    """Cells that differ in their number of servers."""
    return {cell_name(number): {"num_experts": number, **params} for number in numbers}


def exploration_rounds(params: Params) -> int:
    """T1 of a cell."""
    rate, scale = float(params.learning_rate), float(params.truth_scale)
    return int(theory.exploration_rounds(int(params.num_experts), rate, scale, FAILURE, MAX_DELAY))


# What the paper supposes, of every run and of those in which Algorithm 1 is to converge.
SETTING = (
    Hypothesis("fewer samples than features, s < p", lambda dims, run: dims.num_samples < dims.num_features),
    Hypothesis("0 < sigma_0 < 1", lambda dims, run: 0 < run.params.truth_scale < 1),
    Hypothesis(
        "truths of a cluster are O(sigma_0^2) apart, and their signal is the cluster's or along them",
        lambda dims, run: run.params.cluster_spread <= run.params.truth_scale**2,
    ),
)
EXPLORES = (Hypothesis("T_1 rounds are run", lambda dims, run: run.rounds[-1] >= exploration_rounds(run.params)),)
CONVERGES = (
    *EXPLORES,
    Hypothesis("more servers than clusters, M > N", lambda dims, run: run.params.num_experts > dims.num_tasks),
)

_FIGURE_3 = FIGURE_3_DIMS, _servers(*FIGURE_3_EXPERTS), FIGURE_3_ROUNDS
ADAPTIVE = _experiment("figure-3-adaptive", *_FIGURE_3, observe_models, 256, 100)
NEAREST = _experiment("figure-3-nearest", *_FIGURE_3, observe_errors, 128, 100, policies.nearest)
FASTEST = _experiment("figure-3-fastest", *_FIGURE_3, observe_errors, 128, 100, policies.fastest)
BY_ENOUGH = ADAPTIVE.over("num_experts", *ENOUGH)
BY_EXPLORED = ADAPTIVE.over("num_experts", *PAST_EXPLORATION)

# Grids for the O() statements, small enough for many replicates; runs reach T1.
SCALES = (0.3, 0.42, 0.6, 0.85)
RATES = (0.2, 0.4, 0.8)  # from that of Fig. 3 on
SCALE_EXPERTS = 20
SCALE_DIMS = Dims(SCALE_EXPERTS, 5, 8, 5, max_delay=MAX_DELAY)
SERVERS = (12, 24, 48)
SERVER_RATE = 0.5
SERVER_DIMS = Dims(SERVERS[-1], 3, 6, 4, max_delay=MAX_DELAY)


def scale_name(scale: float) -> str:
    """The name of a cell of the grid of scales."""
    return f"sigma_0 = {scale}"


def rate_name(rate: float) -> str:
    """The name of a cell of the grid of learning rates; Fig. 3's own rate is in the grid of scales."""
    return scale_name(SIGMA_0) if rate == RATES[0] else f"eta = {rate}"


_SPREADS = {scale: CLUSTER_SPREAD * (scale / SIGMA_0) ** 2 for scale in SCALES}
_BY_SCALE = {scale_name(scale): {"truth_scale": scale, "cluster_spread": _SPREADS[scale]} for scale in SCALES}
_BY_RATE = {rate_name(rate): {"learning_rate": rate} for rate in RATES[1:]}
SCALING = _experiment(
    "scales",
    SCALE_DIMS,
    {name: {"num_experts": SCALE_EXPERTS, **params} for name, params in (_BY_SCALE | _BY_RATE).items()},
    exploration_rounds(Params(num_experts=SCALE_EXPERTS, truth_scale=SCALES[0])),
    observe_steps,
    1024,
)
_SERVER_ROUNDS = exploration_rounds(Params(num_experts=SERVERS[-1], learning_rate=SERVER_RATE))
_SERVER_CELLS = _servers(*SERVERS, learning_rate=SERVER_RATE)
SERVER_GRID = _experiment("servers", SERVER_DIMS, _SERVER_CELLS, _SERVER_ROUNDS, observe_steps, 512)
BY_SCALE = SCALING.over({scale_name(scale): scale for scale in SCALES})
BY_RATE = dataclasses.replace(
    SCALING.over({rate_name(rate): rate for rate in RATES}), labels=tuple(f"eta = {rate}" for rate in RATES)
)
BY_SERVERS = SERVER_GRID.over("num_experts")

# Proposition 1 at Fig. 3's N and d_u: as many servers as it asks for, observed in one round past T1.
SUFFICIENT = theory.experts_needed(MAX_DELAY, FIGURE_3_DIMS.num_tasks, FAILURE)
_PAST_T1 = exploration_rounds(Params(num_experts=SUFFICIENT)) + 100
AVAILABILITY = _experiment(
    "availability", figure_3_dims(SUFFICIENT), _servers(SUFFICIENT), _PAST_T1, observe_availability, 1024, _PAST_T1
)

HISTORY_EXPERTS = 10
HISTORY_DIMS = figure_3_dims(HISTORY_EXPERTS)
HISTORY = _experiment(
    "history", HISTORY_DIMS, _servers(HISTORY_EXPERTS), 60, observe_assignments, 8192, policy=policies.uniform
)
FIRST_TASKS = HISTORY.at(cell_name(HISTORY_EXPERTS))


def explored_record(run: Run) -> int:
    """Index of the first recorded round from T1 on.

    Raises: InvalidRunError if the run ends before.
    """
    rounds = exploration_rounds(run.params)
    index = int(np.searchsorted(run.rounds, rounds))
    if index == len(run.rounds):
        raise InvalidRunError(f"T1 = {rounds} is past the run's last round, {run.rounds[-1]}. Run for longer.")
    return index


def pools_of(run: Run) -> list[Pool]:
    """The pools of a run's replicates, in float64."""
    truths, signals = (np.asarray(leaf, np.float64) for leaf in (run.state.pool.truths, run.state.pool.signals))
    return [Pool(truths[..., i], signals[..., i], run.state.pool.clusters[..., i]) for i in range(truths.shape[-1])]


def gaps_of(run: Run) -> theory.Gaps:
    """The gaps of each replicate's pool, own truths included, as arrays (B,)."""
    spread = float(run.params.cluster_spread)
    return theory.Gaps(*np.transpose([theory.gaps(pool, spread) for pool in pools_of(run)]))


def loads_of(run: Run) -> Float[np.ndarray, "R B M"]:
    """Loads L_t(m) at the recorded rounds, experts last, as the closed forms take them."""
    return np.moveaxis(run.records.loads, 1, -1).astype(np.float64)


def proposition_4(run: Run, dims: Dims, formula: Callable = theory.proposition_4) -> Float[np.ndarray, "R B"]:
    """(22), or its correction, from each replicate's pool and realised loads."""
    loads, ratio = loads_of(run), theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    return np.asarray(formula(gaps_of(run), ratio, loads, loads.sum(axis=-1)))


def exact_errors(run: Run, dims: Dims) -> Float[np.ndarray, "R B"]:
    """The exact E[G_t | loads] of each replicate's pool, for routing that ignores the content of tasks."""
    loads = loads_of(run)
    follows_truth = int(run.params.signal_law) == PROPORTIONAL
    errors = np.empty(loads.shape[:2])
    for index, pool in enumerate(pools_of(run)):
        own = loads[:, index]
        by_load = corrected.generalization_error(
            pool, dims.num_samples, int(own.max()), float(run.params.cluster_spread), follows_truth
        )
        errors[:, index] = corrected.by_loads(by_load, own)
    return errors


def error_at(time: int) -> Callable[[Run], np.ndarray]:
    """G once pending tasks are completed, at round `time` (B,)."""
    return lambda run: run.records.flushed[np.searchsorted(run.rounds, time)].astype(np.float64)


final_error = error_at(FIGURE_3_ROUNDS)


def explored(run: Run, name: str) -> np.ndarray:
    """A recorded number in the rounds up to T1 (R, B)."""
    return getattr(run.records, name)[: explored_record(run) + 1].astype(np.float64)


def misrouted_share(run: Run) -> np.ndarray:
    """The share of the tasks past T1 that go to an expert that specialises in another kind, or in none (B,)."""
    first = explored_record(run)
    counts = run.records.misrouted.astype(np.float64)
    return (counts[-1] - counts[first]) / (run.rounds[-1] - run.rounds[first])


def specialists(run: Run) -> np.ndarray:
    """Whether each existing expert specialises in the kind that arrives in the last round (15), as bools (M, B)."""
    gates = run.records.gates[-1][: int(run.params.num_experts)].astype(np.float64)
    drives = np.einsum("mdb,ndb->mnb", gates, run.state.pool.signals.astype(np.float64))
    is_own = np.arange(drives.shape[1])[:, None] == run.records.task[-1]
    own = np.sum(np.where(is_own, drives, 0), axis=1)
    return own > np.max(np.where(is_own, -np.inf, drives), axis=1)
