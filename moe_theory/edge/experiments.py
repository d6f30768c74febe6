"""Runs that claims and figures share, and measurements on them."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.system import Observe, fields
from moe_theory.core.tasks import Pool, truth_deviation
from moe_theory.edge import corrected, delays, policies, theory
from moe_theory.edge.algorithm import Info, State, generalization_error, generalization_error_flushed, system
from moe_theory.edge.params import CLUSTER_SPREAD, FIGURE_3_FEATURES, ORTHOGONAL, PROPORTIONAL, SIGMA_0, Dims, Params
from moe_theory.edge.policies import Policy
from moe_theory.runs import Cell, Run, run_cells
from moe_theory.verification.claim import Experiment, Measured, Overrides, SettingValues
from moe_theory.verification.ranges import ranged
from moe_theory.verification.region import Choice, Order, Scale

FAILURE = 0.05  # delta of Propositions 1 and 2, which the paper leaves at o(1)
FIGURE_3_EXPERTS = (10, 30, 50, 70)
FIGURE_3_ROUNDS = 3000
ENOUGH = (30, 50, 70)  # the numbers of servers in Fig. 3 that the paper calls sufficient
PAST_EXPLORATION = (30, 50)  # the sufficient numbers whose T1 lies within the run
MAX_DELAY = 10  # d_u


def figure_3_dims(max_experts: int) -> Dims:
    """Return the dims of Section VI: N = 10, p = 15, s = 10, d_u = 10."""
    return Dims(max_experts, num_tasks=10, num_features=FIGURE_3_FEATURES, num_samples=10, max_delay=MAX_DELAY)


FIGURE_3_DIMS = figure_3_dims(FIGURE_3_EXPERTS[-1])  # padded, so that one program serves all cells of a policy


def cell_name(num_experts: int) -> str:
    return f"M = {num_experts}"


class GateObservables(NamedTuple):
    own_change: Float[Array, ""]  # change of <theta, v_n> / eta at the expert that completed type n, NaN if none
    others_change: Float[Array, ""]  # the largest such change over the other experts
    gate_size: Float[Array, ""]  # max |theta|_inf
    gate_gap: Float[Array, ""]  # max |theta_m - theta_m'|_inf
    gate_norm: Float[Array, ""]  # root mean square of |theta_m|
    signal_drive: Float[Array, ""]  # root mean square of <theta_m, v_n> over experts and task types
    load_gap: Float[Array, ""]  # max_m |f_t(m) - 1/M|


def flushed_error(state: State, info: Info) -> Float[Array, ""]:
    """Return G_t once the pending tasks are completed."""
    del info
    return generalization_error_flushed(state)


observe_errors = fields(
    "state.misrouted",
    generalization_error=lambda state, info: generalization_error(state),
    flushed=flushed_error,
    loads="state.visits",
)
observe_models = fields(
    observe_errors, "state.experts", "state.gates", "info.task", "info.gate_outputs", "info.gate_probabilities"
)
observe_assignments = fields("info.task", "info.truth", "info.expert", flushed=flushed_error)
observe_availability = fields("info.specialist_idle", "info.num_specialists")


def observe_steps(state: State, info: Info) -> GateObservables:
    """Return the gate step of a round with one completed task, and the gates' sizes (gate lag 1)."""
    kind = jnp.max(info.completed_task)  # all slots but that of the completed task have `NONE`, which is -1
    is_kind = (jnp.arange(state.pool.signals.shape[0]) == kind)[:, None]
    signal = jnp.sum(jnp.where(is_kind, state.pool.signals, 0), axis=0)
    drives = jnp.sum(state.gate_step * signal[None, :], axis=1)
    # The task's expert has the largest entry, because all others have the opposite sign and the sum is 0. A change has
    # the opposite sign of its gradient.
    own_drive = jnp.sum(jnp.where(jnp.abs(drives) == jnp.max(jnp.abs(drives)), drives, 0))
    num_experts = info.num_busy + info.num_idle
    has_one_completion = info.num_completed == 1
    exists = jnp.arange(state.gates.shape[0]) < num_experts
    highest = jnp.max(jnp.where(exists[:, None], state.gates, -jnp.inf), axis=0)
    lowest = jnp.min(jnp.where(exists[:, None], state.gates, jnp.inf), axis=0)
    fractions = state.visits / jnp.maximum(jnp.sum(state.visits), 1)
    all_drives = jnp.sum(state.gates[:, None, :] * state.pool.signals[None, :, :], axis=2)
    others_drive = jnp.max(jnp.where(jnp.sign(drives) == jnp.sign(own_drive), -jnp.inf, jnp.abs(drives)))
    return GateObservables(
        own_change=jnp.where(has_one_completion, -own_drive, jnp.nan),
        others_change=jnp.where(has_one_completion, others_drive, jnp.nan),
        gate_size=jnp.max(jnp.abs(state.gates)),
        gate_gap=jnp.max(highest - lowest),
        gate_norm=jnp.sqrt(jnp.sum(jnp.square(state.gates)) / num_experts),
        signal_drive=jnp.sqrt(jnp.sum(jnp.square(all_drives)) / (num_experts * all_drives.shape[1])),
        load_gap=jnp.max(jnp.where(exists, jnp.abs(fractions - 1 / num_experts), 0)),
    )


observe_limit = fields(
    observe_steps,
    "state.gates",
    "state.experts",
    "state.residuals",  # sums over a server's tasks i of w^(m) - w_i, (M, p)
    "state.squared_error",  # sum over all tasks i of |w^(m_i) - w_i|^2
    "state.misrouted",
    loads="state.visits",
)


def _server_cells(*numbers: int) -> dict[str, dict[str, float]]:
    return {cell_name(number): {"num_experts": number} for number in numbers}


def exploration_rounds(params: Params, failure: float = FAILURE, max_delay: int = MAX_DELAY) -> int:
    rate = float(params.learning_rate)
    scale = float(params.truth_scale)
    return int(theory.exploration_rounds(int(params.num_experts), rate, scale, failure=failure, max_delay=max_delay))


ADAPTIVE = Experiment(
    name="figure-3-adaptive",
    dims=FIGURE_3_DIMS,
    system=system(FIGURE_3_DIMS),
    cells=_server_cells(*FIGURE_3_EXPERTS),
    num_rounds=FIGURE_3_ROUNDS,
    observe=observe_models,
    replicates=512,
    record_every=100,
)


def _figure_3_with(name: str, policy: Policy) -> Experiment:
    return dataclasses.replace(ADAPTIVE, name=name, system=system(FIGURE_3_DIMS, policy), observe=observe_errors)


NEAREST = _figure_3_with("figure-3-nearest", policies.nearest)
FASTEST = _figure_3_with("figure-3-fastest", policies.fastest)
BLIND = _figure_3_with("figure-3-blind", policies.uniform)  # a router that ignores its input
LONG = Experiment(
    name="figure-3-long",
    dims=figure_3_dims(50),
    system=system(figure_3_dims(50)),
    cells=_server_cells(50),
    num_rounds=30_000,
    observe=observe_limit,
    replicates=64,
    record_every=2500,
).at(cell_name(50))
# More servers than needed, with enough runs for a difference of 1 %.
MORE_SERVERS = dataclasses.replace(
    ADAPTIVE,
    name="figure-3-more-servers",
    cells=_server_cells(*FIGURE_3_EXPERTS[-2:]),
    observe=observe_errors,
    record_every=FIGURE_3_ROUNDS,
    replicates=8192,
    tier="limit",
)
# Strengths sqrt(2) double the gate drive of strength 1.
STRONGER_SIGNALS = dataclasses.replace(
    MORE_SERVERS,
    name="figure-3-stronger-signals",
    cells={
        name: {**cell, "min_strength": math.sqrt(2), "max_strength": math.sqrt(2)}
        for name, cell in MORE_SERVERS.cells.items()
    },
)
BY_ENOUGH = ADAPTIVE.over("num_experts", *ENOUGH)
BY_EXPLORED = ADAPTIVE.over("num_experts", *PAST_EXPLORATION)

# Proposition 1 as delta falls, with the servers that it requires at each delta, observed in one round past T1.
FEW_TASKS = 3
FEW_DELAYS = 3  # d_u
FAILURES = (0.4, 0.1, 0.03, 0.004)  # delta
SUFFICIENT = {failure: theory.experts_needed(FEW_DELAYS, FEW_TASKS, failure) for failure in FAILURES}  # servers
_MOST_SERVERS = SUFFICIENT[FAILURES[-1]]
_PAST_T1 = exploration_rounds(Params(num_experts=_MOST_SERVERS), failure=FAILURES[-1]) + 100
_AVAILABILITY_DIMS = dataclasses.replace(figure_3_dims(_MOST_SERVERS), num_tasks=FEW_TASKS, max_delay=FEW_DELAYS)
AVAILABILITY = Experiment(
    name="availability",
    dims=_AVAILABILITY_DIMS,
    system=system(_AVAILABILITY_DIMS),
    cells={
        f"delta = {failure:g}": {"num_experts": number, "max_transfer_delay": FEW_DELAYS - 1, "max_execution_delay": 1}
        for failure, number in SUFFICIENT.items()
    },
    num_rounds=_PAST_T1,
    observe=observe_availability,
    replicates=256,
    record_every=_PAST_T1,
)
BY_FAILURE = AVAILABILITY.over({f"delta = {failure:g}": failure for failure in FAILURES})

# The limits that the O() statements are about: sigma_0 -> 0 with eta = sigma_0^0.5, as the proof of Proposition 2
# requires, eta -> 0, and M -> infinity. Runs are in float64, and each cell lasts a quarter longer than its T1. r = o(1)
# of (4) keeps its ratio to one gate step from Fig. 3. All signals keep a length of O(1), even those along the truths,
# because longer ones reach the limit at smaller sigma_0. M is the number that Proposition 1 requires for d_u and delta.
SMALL_DELAY = 2
SMALL_TASKS = 2
SMALL_EXPERTS = theory.experts_needed(SMALL_DELAY, SMALL_TASKS, FAILURE)
SCALES = tuple(10**-power for power in (1.0, 1.5, 2.0, 2.5, 3.0))
SMALL_SCALE = 0.01  # sigma_0 of the grid in eta
SERVER_SCALE = 0.1  # sigma_0 of the grid in M
RATES = (1.0, 0.3, 0.1, 0.03, 0.01)
SERVERS = (3, 10, 30, 100, 300)
RECORDS = 64  # records up to T1
MARGIN = 0.25  # of exponents: half of the least difference between a claimed exponent and its alternative


def small_dims(max_experts: int, num_features: int, num_samples: int) -> Dims:
    """Return dims for two task types whose signals are not nearly opposite."""
    return Dims(max_experts, SMALL_TASKS, num_features, num_samples=num_samples, max_delay=SMALL_DELAY)


def _limit_params(num_experts: int, scale: float, rate: float) -> Overrides:
    relative_step = rate * scale / (Params().learning_rate * SIGMA_0)  # one gate step over that of Fig. 3
    return {
        "num_experts": num_experts,
        "truth_scale": scale,
        "learning_rate": rate,
        "cluster_spread": CLUSTER_SPREAD * (scale / SIGMA_0) ** 2,
        "signal_scale": 1.0,
        "perturbation_scale": Params().perturbation_scale * relative_step,
        "max_transfer_delay": SMALL_DELAY - 1,
        "max_execution_delay": 1,
    }


def past_exploration(cells: Sequence[Cell], first: int, count: int, seed: int) -> Mapping[str, Run]:
    """Run each cell a quarter longer than its T1, in float64."""
    long_cells = []
    for cell in cells:
        params = cell.params
        stride = math.ceil(exploration_rounds(cell.params) / RECORDS)
        if int(params.signal_law) == PROPORTIONAL:
            params = params._replace(signal_scale=params.signal_scale / params.truth_scale)  # a length of O(1)
        length = stride * RECORDS * 5 // 4
        long_cells.append(dataclasses.replace(cell, params=params, num_rounds=length, record_every=stride))
    return run_cells(long_cells, count, first=first, seed=seed, width=32)


def _limit(name: str, dims: Dims, cells: Mapping[str, Overrides], observe: Observe) -> Experiment:
    return Experiment(
        name=name,
        dims=dims,
        system=system(dims),
        cells=cells,
        num_rounds=1,  # `past_exploration` sets the number of rounds
        observe=observe,
        replicates=2048,
        measured=Measured(past_exploration, runs_systems=True),
        is_double=True,
    )


QUIET = 1e-3  # `noise_scale` in `quiet_limit`, for signals of length 1
QUIET_SCALES = tuple(10**-power for power in (0.25, 0.9, 1.6, 2.25))
SLOWEST = 3  # rounds that an execution takes at a server slower than all others


def one_slow(trip: delays.Trip, params: Params) -> Int[Array, " M"]:
    """Return executions that take the most rounds at the first server, and the fewest at all others."""
    del params
    return jnp.where(jnp.arange(trip.uniform.shape[0]) == 0, trip.most, trip.least)


def limit(setting: SettingValues) -> Experiment:
    """Return the limit of small sigma_0, with a setting's number of servers."""
    return _over_scales("limit-scale", SCALES, setting, limit)


def quiet_limit(setting: SettingValues) -> Experiment:
    """Return the limit of small sigma_0 with little noise in features, equal strengths and a shorter range."""
    return _over_scales("limit-quiet", QUIET_SCALES, setting, quiet_limit, noise_scale=QUIET, min_strength=1.0)


def _over_scales(name, scales, setting, build, **changes) -> Experiment:
    number = setting.get("servers", SMALL_EXPERTS)
    dims = small_dims(number, num_features=10, num_samples=7)
    cells = {f"sigma_0 = {scale:.2g}": _limit_params(number, scale, rate=scale**0.5) | changes for scale in scales}
    return _with_servers(_limit(name, dims, cells, observe_limit), number, build)


def rate_limit(setting: SettingValues) -> Experiment:
    """Return the limit of small eta, with a setting's number of servers."""
    number = setting.get("servers", SMALL_EXPERTS)
    dims = small_dims(number, num_features=10, num_samples=7)
    cells = {f"eta = {rate:g}": _limit_params(number, SMALL_SCALE, rate) for rate in RATES}
    return _with_servers(_limit("limit-rate", dims, cells, observe_steps), number, rate_limit)


def _with_servers(experiment: Experiment, number: int, build: Callable[..., Experiment]) -> Experiment:
    """Return the runs with their builder, and with one slow server if the number is not the recorded one."""
    experiment = dataclasses.replace(experiment, of=build)
    if number == SMALL_EXPERTS:
        return experiment
    dims = dataclasses.replace(experiment.dims, max_delay=SMALL_DELAY - 1 + SLOWEST)
    cells = {name: {**overrides, "max_execution_delay": SLOWEST} for name, overrides in experiment.cells.items()}
    return dataclasses.replace(experiment, dims=dims, system=system(dims, execution=one_slow), cells=cells)


LIMIT = limit({})
QUIET_LIMIT = quiet_limit({})
RATE_LIMIT = rate_limit({})
# The paper leaves these open: r = o(1), noise, strengths, and the servers, of which there are more than tasks.
FREE_NOISE = Scale("noise_scale", low=0.01, high=0.5)
FREE_STRENGTH = Scale("min_strength", low=0.0, high=1.0)
FREE = (Order("perturbation_scale", recorded=1.5, least=0.25, most=2.5), FREE_NOISE, FREE_STRENGTH)
FREE_SERVERS = Choice("servers", {f"{SMALL_EXPERTS} alike": SMALL_EXPERTS, "3 with a slow one": 3})
SERVER_LIMIT = dataclasses.replace(
    _limit(
        "limit-servers",
        small_dims(SERVERS[-1], num_features=8, num_samples=5),
        {cell_name(number): _limit_params(number, SERVER_SCALE, RATES[0]) for number in SERVERS},
        observe_steps,
    ),
    systems={
        cell_name(number): system(small_dims(number, num_features=8, num_samples=5)) for number in SERVERS
    },  # without padding
)
BY_SCALE = LIMIT.over({name: cell["truth_scale"] for name, cell in LIMIT.cells.items()})
BY_SCALE_QUIET = QUIET_LIMIT.over({name: cell["truth_scale"] for name, cell in QUIET_LIMIT.cells.items()})
BY_RATE = RATE_LIMIT.over({name: cell["learning_rate"] for name, cell in RATE_LIMIT.cells.items()})
BY_SERVERS = SERVER_LIMIT.over("num_experts")

# Fig. 3's settings with the fewest servers that the paper calls enough, with a record of every task, truth and server.
ROUTED_EXPERTS = ENOUGH[0]
ROUTED_ROUNDS = (300, FIGURE_3_ROUNDS)
ROUTED = Experiment(
    name="routed",
    dims=figure_3_dims(ROUTED_EXPERTS),
    system=system(figure_3_dims(ROUTED_EXPERTS)),
    cells=_server_cells(ROUTED_EXPERTS),
    num_rounds=FIGURE_3_ROUNDS,
    observe=observe_assignments,
    replicates=1024,
).at(cell_name(ROUTED_EXPERTS))

HISTORY_EXPERTS = 10
HISTORY_DIMS = figure_3_dims(HISTORY_EXPERTS)


class Expected(NamedTuple):
    """Arrivals as in `observe_assignments`, with the expected error given their routes."""

    truth: Float[np.ndarray, "T p B"]
    expert: Int[np.ndarray, "T B"]
    flushed: Float[np.ndarray, "T B"]


def expected_history(cells: Sequence[Cell], first: int, count: int, seed: int) -> Mapping[str, Run]:
    """Run uniform routing, with expected errors over features in place of errors."""
    runs = {}
    for cell in cells:
        random = np.random.default_rng([seed, first])
        params = cell.params
        dims = cell.dims
        shape = (count, dims.num_tasks, dims.num_features)
        centres = truth_deviation(params) * random.standard_normal(shape)
        signals = random.standard_normal(shape)
        if int(params.signal_law) == ORTHOGONAL:
            signals = np.linalg.qr(signals.swapaxes(1, 2))[0].swapaxes(1, 2)  # orthonormal rows
        tasks = random.integers(dims.num_tasks, size=(cell.num_rounds, count))
        experts = random.integers(int(params.num_experts), size=tasks.shape)
        cluster_noise = float(params.cluster_spread) * random.standard_normal((*tasks.shape, dims.num_features))
        truths = np.moveaxis(centres[np.arange(count), tasks] + cluster_noise, 1, 2)
        errors = corrected.given_routes(
            truths,
            np.moveaxis(signals, 0, 2),
            dims.num_samples,
            tasks=tasks,
            experts=experts,
            follows_truth=int(params.signal_law) == PROPORTIONAL,
        )
        records = Expected(truths, experts, flushed=errors)
        replicates = np.arange(first, first + count)
        runs[cell.name] = Run(params, cell.rounds, replicates, state=None, records=records, dims=dims)
    return runs


def history(setting: SettingValues) -> Experiment:
    """Return the first arrivals under uniform routing, simulated or, in a setting, with expected errors."""
    dims = dataclasses.replace(HISTORY_DIMS, **setting)
    return Experiment(
        name="history",
        dims=dims,
        system=system(dims, policies.uniform),
        cells=_server_cells(HISTORY_EXPERTS),
        num_rounds=60,
        observe=observe_assignments,
        replicates=8192,
        measured=Measured(expected_history) if setting else None,
        of=history,
    )


HISTORY = history({})
FIRST_TASKS = HISTORY.at(cell_name(HISTORY_EXPERTS))


def explored_record(run: Run) -> int:
    """Return the index of the first record from T1 on. Raises: InvalidValueError if the run ends before T1."""
    t1 = exploration_rounds(run.params)
    index = int(np.searchsorted(run.rounds, t1))
    if index == len(run.rounds):
        raise InvalidValueError(
            f"T1 = {t1} must be within the run, which ends at round {run.rounds[-1]}. Use a longer run."
        )
    return index


def pools_of(run: Run) -> list[Pool]:
    pool = run.state.pool
    truths = np.asarray(pool.truths, np.float64)
    signals = np.asarray(pool.signals, np.float64)
    return [Pool(truths[..., i], signals[..., i], pool.clusters[..., i]) for i in range(truths.shape[-1])]


def gaps_of(run: Run) -> theory.Gaps:
    """Return the gaps of replicates' pools, including the spread of arrivals' ground truths (B,)."""
    spread = float(run.params.cluster_spread)
    return theory.Gaps(*np.transpose([theory.gaps(pool, spread) for pool in pools_of(run)]))


def task_gap(run: Run) -> Float[np.ndarray, " B"]:
    """Return the mean squared distance of two tasks, the limit of one expert's error."""
    return np.asarray(gaps_of(run).task_gap)


def loads_of(run: Run) -> Float[np.ndarray, "R B M"]:
    return np.moveaxis(run.records.loads, 1, -1).astype(np.float64)


def proposition_4(run: Run, dims: Dims, formula: Callable = theory.proposition_4) -> Float[np.ndarray, "R B"]:
    """Return (22), or its correction, for realised loads."""
    loads = loads_of(run)
    ratio = theory.overparameterization_ratio(dims.num_features, dims.num_samples)
    return np.asarray(formula(gaps_of(run), ratio, loads, loads.sum(axis=-1)))


def exact_errors(run: Run) -> Float[np.ndarray, "R B"]:
    """Return the exact E[G_t | loads] under task-independent routing."""
    loads = loads_of(run)
    follows_truth = int(run.params.signal_law) == PROPORTIONAL
    errors = np.empty(loads.shape[:2])
    for index, pool in enumerate(pools_of(run)):
        replicate_loads = loads[:, index]
        by_load = corrected.generalization_error(
            pool,
            run.dims.num_samples,
            max_load=int(replicate_loads.max()),
            cluster_spread=float(run.params.cluster_spread),
            follows_truth=follows_truth,
        )
        errors[:, index] = corrected.by_loads(by_load, replicate_loads)
    return errors


def exact_error_at(time: int) -> Callable[[Run], np.ndarray]:
    """Return the measure `exact_errors` at one recorded round."""

    def error(run: Run) -> np.ndarray:
        row = np.searchsorted(run.rounds, time)
        records = run.records._replace(loads=run.records.loads[row : row + 1])
        return exact_errors(run._replace(records=records))[0]

    return error


def error_given_routes(run: Run, num_samples: int = FIGURE_3_DIMS.num_samples) -> Float[np.ndarray, "T B"]:
    """Return E[G_t] with pending tasks completed, given the tasks and routes of every round."""
    assert len(run.records.task) == run.rounds[-1], "a run that records every round"
    return corrected.given_routes(
        np.asarray(run.records.truth),
        np.asarray(run.state.pool.signals),
        num_samples,
        tasks=np.asarray(run.records.task),
        experts=np.asarray(run.records.expert),
        follows_truth=int(run.params.signal_law) == PROPORTIONAL,
    )


def error_at(time: int) -> Callable[[Run], np.ndarray]:
    @ranged(low=0)
    def error(run: Run) -> np.ndarray:
        return run.records.flushed[np.searchsorted(run.rounds, time)].astype(np.float64)

    return error


final_error = error_at(FIGURE_3_ROUNDS)


def up_to_t1(run: Run, name: str) -> np.ndarray:
    return getattr(run.records, name)[: explored_record(run) + 1].astype(np.float64)  # up to the first from T1 on


def misrouted_share(run: Run) -> np.ndarray:
    """Return the share of tasks past T1 whose expert specialises in another task type, or none (B,)."""
    first = explored_record(run)
    counts = run.records.misrouted.astype(np.float64)
    return (counts[-1] - counts[first]) / (run.rounds[-1] - run.rounds[first])


def signal_outputs(run: Run) -> Float[np.ndarray, "M N B"]:
    return outputs_at_t1(run, run.state.pool.signals.astype(np.float64))


def outputs_at_t1(run: Run, inputs: Float[np.ndarray, "N d B"]) -> Float[np.ndarray, "M N B"]:
    gates = run.records.gates[explored_record(run)][: int(run.params.num_experts)].astype(np.float64)
    return np.einsum("mdb,ndb->mnb", gates, inputs)


def log_probabilities(outputs: Float[np.ndarray, "M N B"]) -> Float[np.ndarray, "M N B"]:
    return outputs - np.logaddexp.reduce(outputs, axis=0, keepdims=True)


def is_specialist(outputs: Float[np.ndarray, "M N B"]) -> np.ndarray:
    """Return which experts specialise in which task types (15), as bools (M, N, B)."""
    second_largest = np.sort(outputs, axis=1)[:, -2:-1]
    return (outputs == np.max(outputs, axis=1, keepdims=True)) & (outputs > second_largest)
