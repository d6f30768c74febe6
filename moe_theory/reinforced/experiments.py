"""Runs of Algorithm 1 with a baseline and noiseless experts that fit each task in one update, as in its theorems.

Other runs, with noise and slower learning, compare it with the printed algorithm.
"""

import functools
import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from moe_theory.continual.algorithm import Info, State, system
from moe_theory.continual.experiments import LAST_ROUND, observe_error, task_gap
from moe_theory.continual.interventions import whole_truth
from moe_theory.continual.params import Dims, Params, in_order
from moe_theory.core import baseline
from moe_theory.core.linear import minimum_norm
from moe_theory.core.locality import Locality, distance_moved
from moe_theory.core.system import System, fields
from moe_theory.core.tasks import INDEPENDENT, ORTHOGONAL, PROPORTIONAL
from moe_theory.runs import Run
from moe_theory.verification import Experiment
from moe_theory.verification.claim import Overrides, SettingValues
from moe_theory.verification.region import Choice, Size

HORIZON = 64  # rounds of a run, in units of N M sigma_0^-0.25 (`horizon`)
NUM_TASKS = 3
NUM_EXPERTS = 6
NUM_FEATURES = 7
NUM_SAMPLES = 2
SCALE = 1e-4  # sigma_0 where only one is used. Outputs are of order 1e-5, so that a softmax is 1/M
SCALES = (1e-6, 1e-5, 1e-4, 1e-3)
EXPERT_NUMBERS = (6, 12, 24, 48)  # M, for `NUM_TASKS` tasks
PRINTED_EXPERTS = 5
PRINTED_SCALES = (1e-1, 1e-2, 1e-3, 1e-4)
LAWS = {"orthogonal": ORTHOGONAL, "along-truths": PROPORTIONAL, "independent": INDEPENDENT}
ENDLESS = {"balance_weight": 0.0, "terminate": False}  # no auxiliary loss, and no end of the gate updates
VARIANTS: dict[str, tuple[Locality, Overrides]] = {
    "repaired": (baseline.repaired, ENDLESS),
    "printed": (distance_moved, {}),
}
TWICE = "M = 2 N"
AS_MANY = "M = N"
ONE_FEWER = "M = N - 1"
FREE_SCALE = Choice("sigma_0", {"0.0001": SCALE, "1e-06": 1e-6, "0.01": 0.01})  # all orders follow sigma_0
FREE_TASKS = Size("num_tasks", low=2, high=7)
FREE_FEATURES = Size("num_features", low=7, high=20)
FREE_SHARE = Choice(  # weight of an expert's own last move in the baseline, below 1, because at 1 few runs settle
    "own",
    {"0.7": baseline.repaired, "0.9": baseline.compared(0.9), "0.4": baseline.compared(0.4), "0": baseline.mean_move},
)
FREE_FIT = Choice("fit", {"at once": whole_truth, "nearest model": minimum_norm})
FREE_LAW = Choice("signals", {law: {"signal_law": number} for law, number in LAWS.items()})
observe_errors = fields("info.forgetting", "info.generalization_error")
observe_sums = fields(
    sums=lambda state, info: jnp.sum(state.gates * jnp.sum(state.pool.signals, axis=0), axis=-1),  # sum_n theta_m'v_n
    lasts=lambda state, info: state.memory.last,  # cost of each expert's last move
    square=lambda state, info: jnp.sum(jnp.square(state.pool.signals[0])),  # |v|^2, the same for all tasks
)


class Settling(NamedTuple):
    state: State
    last: Int[Array, " M"]  # the last task of each expert, -1 for none
    settled: Int[Array, ""]  # the first round after which routing was settled (`is_settled`), 0 for none
    moved: Float[Array, ""]  # the longest move after that round, over sigma_0
    forgetting: Float[Array, ""]  # F_t of the round in `settled`
    generalization_error: Float[Array, ""]  # G_t of the round in `settled`

    # Measures of a `State` and the engine read these.
    pool = property(lambda self: self.state.pool)
    round = property(lambda self: self.state.round)


def is_settled(state: State, last: Int[Array, " M"], params: Params) -> Bool[Array, ""]:
    """Return whether, for every task, all experts with outputs within lambda of the highest had this task last."""
    exists = jnp.arange(last.shape[0])[:, None] < params.num_experts  # False for padded experts
    outputs = jnp.sum(state.gates[:, None, :] * state.pool.signals[None, :, :], axis=-1)  # (M, N)
    highest = jnp.max(jnp.where(exists, outputs, -jnp.inf), axis=0)
    is_near = exists & (outputs >= highest - params.perturbation_scale)
    return jnp.all(~is_near | (last[:, None] == jnp.arange(outputs.shape[1])))


@functools.lru_cache
def system_with_settling(dims: Dims, locality: Locality) -> System:
    """Return Algorithm 1 with a locality loss and experts that fit each task in one update.

    Its state also records when routing settles.
    """
    algorithm = system(dims, fit=whole_truth, locality=locality)

    def init(key: Key[Array, ""], params: Params) -> Settling:
        zero = jnp.zeros((), jnp.result_type(float))
        return Settling(
            algorithm.init(key, params),
            last=jnp.full(dims.max_experts, -1),
            settled=jnp.zeros((), jnp.int32),
            moved=zero,
            forgetting=zero,
            generalization_error=zero,
        )

    def step(key: Key[Array, ""], before: Settling, params: Params) -> tuple[Settling, Info]:
        state, info = algorithm.step(key, before.state, params)
        last = jnp.where(info.chosen, info.task, before.last)
        was_settled = before.settled > 0
        moved = jnp.maximum(before.moved, info.update_norm / params.truth_scale)
        settles = ~was_settled & is_settled(state, last, params)
        after = Settling(
            state=state,
            last=last,
            settled=jnp.where(settles, state.round, before.settled),
            moved=jnp.where(was_settled, moved, before.moved),
            forgetting=jnp.where(settles, info.forgetting, before.forgetting),
            generalization_error=jnp.where(settles, info.generalization_error, before.generalization_error),
        )
        return after, info

    return System(init, step)


def horizon(params: Params, num_tasks: int) -> Any:
    """Return the length of a run in rounds, a multiple of N M lambda / (eta sigma_0), by which outputs are separate."""
    return HORIZON * num_tasks * params.num_experts * params.truth_scale**-0.25


def with_noise(scale: float, num_experts: int, num_tasks: int, num_features: int = NUM_FEATURES) -> Overrides:
    """Return Algorithm 1's orders in sigma_0 with constants of 1, and orthogonal signals of mean square length 1."""
    return {
        "num_experts": num_experts,
        "num_clusters": num_tasks,
        **in_order(scale),
        "truth_scale": scale,
        "noise_scale": scale,
        "signal_scale": 1 / (scale * math.sqrt(num_features)),
        "signal_law": ORTHOGONAL,
        "cluster_spread": 0.0,
    }


def without_noise(scale: float, num_experts: int, num_tasks: int, num_features: int) -> Overrides:
    return with_noise(scale, num_experts, num_tasks, num_features) | ENDLESS | {"noise_scale": 0.0}


def settling(
    name: str,
    sizes: Mapping[str, tuple[float, int, int]],
    num_features: int = NUM_FEATURES,
    locality: Locality = baseline.repaired,
    **about: Any,
) -> Experiment:
    """Return runs of `system_with_settling`, each as long as its `horizon`.

    Args:
        sizes: sigma_0, M and N of each cell.
        about: further fields of `Experiment`.
    """
    max_experts = max(num_experts for _, num_experts, _ in sizes.values())
    dims = {}
    cells = {}
    lengths = {}
    for cell, (scale, num_experts, num_tasks) in sizes.items():
        dims[cell] = Dims(max_experts, num_tasks, num_features, NUM_SAMPLES)
        cells[cell] = without_noise(scale, num_experts, num_tasks, num_features)
        lengths[cell] = math.ceil(horizon(Params()._replace(**cells[cell]), num_tasks))
    first = next(iter(sizes))
    return Experiment(
        name=name,
        dims=dims[first],
        system=system_with_settling(dims[first], locality),
        systems={cell: system_with_settling(dims_of_cell, locality) for cell, dims_of_cell in dims.items()},
        cells=cells,
        num_rounds=max(lengths.values()),
        lengths=lengths,
        record_every=LAST_ROUND,
        observe=observe_errors,
        is_double=True,
        **about,
    )


def once_settled(setting: SettingValues) -> Experiment:
    """Return runs with M = 2N, N and N - 1, for a setting's sigma_0, N, d and baseline."""
    num_tasks = setting.get("num_tasks", NUM_TASKS)
    scale = setting.get("sigma_0", SCALE)
    numbers = {TWICE: 2 * num_tasks, AS_MANY: num_tasks, ONE_FEWER: num_tasks - 1}
    return settling(
        "once-settled",
        {cell: (scale, number, num_tasks) for cell, number in numbers.items()},
        num_features=setting.get("num_features", NUM_FEATURES),
        locality=setting.get("own", baseline.repaired),
        replicates=4096,
        of=once_settled,
    )


def trading(setting: SettingValues) -> Experiment:
    """Return runs over sigma_0 where the baseline is each expert's last move."""
    num_tasks = setting.get("num_tasks", NUM_TASKS)
    num_features = setting.get("num_features", NUM_FEATURES)
    dims = Dims(NUM_EXPERTS, num_tasks, num_features, NUM_SAMPLES)
    return Experiment(
        name="trading",
        dims=dims,
        system=system(dims, fit=setting.get("fit", whole_truth), locality=baseline.last_move),
        cells={f"sigma_0 = {scale:g}": without_noise(scale, NUM_EXPERTS, num_tasks, num_features) for scale in SCALES},
        num_rounds=300,
        record_every=100,
        observe=observe_sums,
        replicates=1024,
        is_double=True,
        of=trading,
    )


def cell_name(variant: str, scale: float) -> str:
    return f"{variant}, sigma_0 = {scale:g}"


def beside_printed(setting: SettingValues) -> Experiment:
    """Return runs over sigma_0 with noise and slower learning, both with the baseline and as printed."""
    num_tasks = setting.get("num_tasks", NUM_TASKS)
    dims = Dims(PRINTED_EXPERTS, num_tasks, NUM_FEATURES, NUM_SAMPLES)
    cells = {}
    systems = {}
    for variant, scale in itertools.product(VARIANTS, PRINTED_SCALES):
        locality, changes = VARIANTS[variant]
        name = cell_name(variant, scale)
        cells[name] = with_noise(scale, PRINTED_EXPERTS, num_tasks) | changes
        systems[name] = system(dims, locality=locality)
    lengths = {name: math.ceil(horizon(Params()._replace(**values), num_tasks)) for name, values in cells.items()}
    return Experiment(
        name="beside-printed",
        dims=dims,
        system=system(dims),
        systems=systems,
        cells=cells,
        num_rounds=max(lengths.values()),
        lengths=lengths,
        record_every=LAST_ROUND,
        observe=observe_error,
        replicates=256,
        tier="repaired",  # a quick check skips this tier
        is_double=True,
        of=beside_printed,
    )


def relative_error(run: Run) -> Float[np.ndarray, " B"]:
    return run.records.generalization_error[-1] / task_gap(run)


ONCE_SETTLED = once_settled({})
TRADING = trading({})
BESIDE_PRINTED = beside_printed({})
SETTLES = settling(
    "settles",
    {cell_name(TWICE, scale): (scale, 2 * NUM_TASKS, NUM_TASKS) for scale in SCALES}
    | {cell_name(AS_MANY, scale): (scale, NUM_TASKS, NUM_TASKS) for scale in SCALES},
    replicates=4096,
)
SETTLES_MANY = settling("settles-many", {f"M = {number}": (SCALE, number, NUM_TASKS) for number in EXPERT_NUMBERS})


def settling_time(run: Run) -> Float[np.ndarray, " B"]:
    """Return the round in which routing settled, or the last round of a run that did not settle."""
    return np.where(run.state.settled > 0, run.state.settled, run.rounds[-1]).astype(float)
