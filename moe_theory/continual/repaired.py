"""Algorithm 1 against a baseline (`baseline.repaired`) beside the printed one, over sigma_0, M, N and laws of signals.

`print(repaired.table())` runs both and shows them. In `endless` the printed locality loss is alone: without auxiliary
loss and end of the gate updates, as in `repaired`, so that these two differ in the baseline only.

With orthogonal signals and M >= N each task gets an expert of its own, and all other experts are left idle. Where it
helps less: `docs/pages/derivations/repaired.md`.
"""

import functools
import itertools
import math
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from moe_theory.continual.algorithm import Info, State, system
from moe_theory.continual.experiments import LAST_ROUND, observe_error, task_gap
from moe_theory.continual.params import READINGS, Dims, Params, in_order
from moe_theory.core import baseline
from moe_theory.core.locality import Locality, distance_moved
from moe_theory.core.system import System
from moe_theory.core.tasks import INDEPENDENT, ORTHOGONAL, PROPORTIONAL, select_row
from moe_theory.runs import Run, run_cells
from moe_theory.verify import Experiment

TIER = "repaired"  # which a first look leaves out
HORIZON = 64  # rounds of a run, in units of N M sigma_0^-0.25
LATE = 0.75  # the share of a run after which its tasks are counted
SCALES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)  # sigma_0
EXPERTS, TASKS = (5, 12, 20), (3, 6)
NUM_FEATURES, NUM_SAMPLES = 7, 2
LAWS = {"orthogonal": ORTHOGONAL, "along truths": PROPORTIONAL, "independent": INDEPENDENT}
ALONE = {"balance_weight": 0.0, "terminate": False}
VARIANTS: dict[str, tuple[Locality, dict[str, Any]]] = {
    "printed": (distance_moved, {}),
    "endless": (distance_moved, ALONE),
    "repaired": (baseline.repaired, ALONE),
}
SPREAD = (0.1, 0.5, 0.9)  # the quantiles over replicates that a table has


class Sorting(NamedTuple):
    """The algorithm's state, and how its experts have shared the tasks so far."""

    state: State
    last: Int[Array, " M"]  # the task that each expert met last, -1 for none
    changed: Int[Array, ""]  # the last round in which an expert met another task than before
    late_repeats: Int[Array, ""]  # rounds past `LATE` in which it met the same
    late_loads: Int[Array, " M"]  # tasks of each expert past `LATE`

    pool, round = property(lambda self: self.state.pool), property(lambda self: self.state.round)


@functools.lru_cache
def system_with_sorting(dims: Dims, locality: Locality) -> System:
    """Algorithm 1 with a locality loss as a `System` that counts repeats."""
    plain = system(dims, locality=locality)

    def init(key: Key[Array, ""], params: Params) -> Sorting:
        zero, zeros = jnp.zeros((), jnp.int32), jnp.zeros(dims.max_experts, jnp.int32)
        return Sorting(plain.init(key, params), zeros - 1, zero, zero, zeros)

    def step(key: Key[Array, ""], before: Sorting, params: Params) -> tuple[Sorting, Info]:
        state, info = plain.step(key, before.state, params)
        is_repeat = select_row(before.last[:, None], info.expert)[0] == info.task
        is_late = state.round > LATE * horizon(params, dims.num_tasks)
        after = Sorting(
            state=state,
            last=jnp.where(info.chosen, info.task, before.last),
            changed=jnp.where(is_repeat, before.changed, state.round),
            late_repeats=before.late_repeats + (is_late & is_repeat),
            late_loads=before.late_loads + (is_late & info.chosen),
        )
        return after, info

    return System(init, step)


def horizon(params: Params, num_tasks: int) -> Any:
    """Rounds of a run: a multiple of N M lambda / (eta sigma_0), in sigma_0 the order in which outputs get apart."""
    return HORIZON * num_tasks * params.num_experts * params.truth_scale**-0.25


def params_of(scale: float, num_experts: int, num_tasks: int, law: int, **changes: Any) -> dict[str, Any]:
    """Algorithm 1's orders in sigma_0 with constants of 1; signals are of length 1, in the mean of its square."""
    return {
        "num_experts": num_experts,
        "num_clusters": num_tasks,
        **in_order(scale),
        "truth_scale": scale,
        "noise_scale": scale,
        "signal_scale": 1 / (scale * math.sqrt(NUM_FEATURES)),
        "signal_law": law,
        "cluster_spread": 0.0,
    } | changes


def cell_name(variant: str, law: str, num_experts: int, scale: float) -> str:
    return f"{variant}, {law}, M = {num_experts}, sigma_0 = {scale:g}"


def experiment(num_tasks: int) -> Experiment:
    """The runs with N tasks, of all variants and laws, M and sigma_0."""
    dims = Dims(max(EXPERTS), num_tasks, NUM_FEATURES, NUM_SAMPLES)
    systems = {variant: system_with_sorting(dims, locality) for variant, (locality, _) in VARIANTS.items()}
    cells, systems_of = {}, {}
    for law, num_experts, scale, variant in itertools.product(LAWS, EXPERTS, SCALES, VARIANTS):
        name = cell_name(variant, law, num_experts, scale)
        cells[name] = params_of(scale, num_experts, num_tasks, LAWS[law], **VARIANTS[variant][1])
        systems_of[name] = systems[variant]
    lengths = {name: math.ceil(horizon(Params()._replace(**own), num_tasks)) for name, own in cells.items()}
    return Experiment(
        name=f"repaired-{num_tasks}",
        dims=dims,
        system=systems["printed"],
        systems=systems_of,
        cells=cells,
        num_rounds=max(lengths.values()),
        lengths=lengths,
        record_every=LAST_ROUND,
        observe=observe_error,
        replicates=64,
        tier=TIER,
        is_double=True,
    )


def relative_error(run: Run) -> Float[np.ndarray, " B"]:
    """G_T / Delta."""
    return run.records.generalization_error[-1] / task_gap(run)


def own_share(run: Run) -> Float[np.ndarray, " B"]:
    """Of the tasks past `LATE`, the share whose expert had met the same task last."""
    return run.state.late_repeats / np.maximum(run.state.late_loads.sum(axis=0), 1)


def idle_experts(run: Run) -> Int[np.ndarray, " B"]:
    """Experts without a task past `LATE`."""
    return (run.state.late_loads[: int(run.params.num_experts)] == 0).sum(axis=0)


def settling_time(run: Run) -> Float[np.ndarray, " B"]:
    """The last round in which an expert met another task than before; infinite where that is past `LATE`."""
    return np.where(run.state.changed > LATE * run.rounds[-1], np.inf, run.state.changed)


REPAIRED = {num_tasks: experiment(num_tasks) for num_tasks in TASKS}


def table(replicates: int = 64, seed: int = 0) -> str:
    """The cells of `REPAIRED` as lines of Markdown.

    Of G_T / Delta and `own_share` the quantiles `SPREAD` over replicates, of idle experts the mean; then the share of
    runs that have settled, the median of their settling times, and the rounds of a run.
    """
    lines = [
        "| N | cell | G/Delta, 10, 50, 90 % | own share | idle | settled | after | rounds |",
        "| ---: | --- |" + " ---: |" * 6,
    ]
    for num_tasks, runs in REPAIRED.items():
        for name, run in run_cells(runs.cells_under(READINGS["unit-signal"]), replicates, seed=seed).items():
            error, own = (
                ", ".join(f"{value:.3f}" for value in np.quantile(measure(run), SPREAD))
                for measure in (relative_error, own_share)
            )
            times = settling_time(run)
            settled, median = np.isfinite(times).mean(), np.quantile(times, 0.5, method="higher")
            lines.append(
                f"| {num_tasks} | {name} | {error} | {own} | {idle_experts(run).mean():.1f} | {settled:.2f} | "
                f"{median:.0f} | {run.rounds[-1]} |"
            )
    return "\n".join(lines)
