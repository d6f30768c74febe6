"""Final measures of each cell of a preset, their differences to a baseline, and diagnostics of the router."""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Float

from moe_theory.continual.theory import exploration_rounds
from moe_theory.deep import networks
from moe_theory.deep.evaluation import ROUTED, TASK_GIVEN
from moe_theory.deep.gate import FREEZING_DRIVES
from moe_theory.deep.params import Params
from moe_theory.deep.presets import CONTINUAL, EDGE, Preset, expert_cell, server_cell
from moe_theory.deep.runs import Plan
from moe_theory.edge.policies import POLICIES
from moe_theory.plot import across_replicates
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs

LEAST_CHANGE = 1e-3  # |w_t - w_{t-1}| below which an expert is dead
# Ranges of the median of kappa outside which runs warn: where a router hardly learns, or freezes by itself, which
# leaves nothing to terminate. Servers terminate nothing, and need more to specialise.
DRIVES = {CONTINUAL: (0.2, FREEZING_DRIVES[1]), EDGE: (FREEZING_DRIVES[0], math.inf)}


@dataclasses.dataclass(frozen=True)
class Estimate:
    mean: float
    standard_error: float  # nan of a single replicate


@dataclasses.dataclass(frozen=True)
class Transfer:
    """Means of an `AccuracyMatrix` over seeds."""

    matrix: list[list[float]]  # R_ij, of task j after task i
    average_accuracy: Estimate
    backward_transfer: Estimate
    forward_transfer: Estimate


@dataclasses.dataclass(frozen=True)
class CellSummary:
    name: str
    measures: dict[str, Estimate]  # by the keys of `measures_of`
    baseline: str | None  # the cell that it is compared with; None for that cell itself
    differences: dict[str, Estimate]  # paired, to the baseline's measures
    drive: float  # median of kappa
    num_learned: int  # tasks that reached an expert, in all replicates
    num_unmoved: int  # of these, tasks that changed their expert by less than `LEAST_CHANGE`
    unmoved_experts: list[int]  # these experts
    exploration_rounds: int | None  # T1; None where nothing is terminated
    transfer: dict[str, Transfer]  # by the setting of the test; empty unless classes arrive one after the other


@dataclasses.dataclass(frozen=True)
class Summary:
    cells: list[CellSummary]
    variance: float  # of an element of the normalised mean images across tasks, mean over elements
    drive: float  # kappa, median over the rounds of cells with a router
    drive_quantile: float  # its 95 % quantile
    drives: tuple[float, float]  # range of the median outside which runs warn
    num_rounds: int
    num_replicates: int

    @property
    def deviation(self) -> float:
        """Root of the variance; the papers call one or the other sigma_0."""
        return float(np.sqrt(self.variance))


class AccuracyMatrix(NamedTuple):
    """Test accuracy on each of K tasks after each, where they come one after the other, in B seeds.

    Source: Lopez-Paz & Ranzato, "Gradient Episodic Memory for Continual Learning" (2017), Section 2.
    """

    accuracies: Float[np.ndarray, "K K B"]  # R_ij, on task j after task i; NaN, task-given, before any expert served j
    initial: Float[np.ndarray, "K B"]  # b_j, of networks that have learned nothing

    @property
    def average_accuracy(self) -> Float[np.ndarray, " B"]:
        """The mean over tasks after the last."""
        return np.mean(self.accuracies[-1], axis=0)

    @property
    def backward_transfer(self) -> Float[np.ndarray, " B"]:
        """Accuracy after the last task less that just after the task itself, mean over all but the last."""
        learned = np.einsum("jjb->jb", self.accuracies)
        return np.mean((self.accuracies[-1] - learned)[:-1], axis=0)

    @property
    def forward_transfer(self) -> Float[np.ndarray, " B"]:
        """Accuracy just before a task is learned less b_j, mean over all but the first; NaN if task-given."""
        before = np.einsum("jjb->jb", self.accuracies[:-1, 1:])
        return np.mean(before - self.initial[1:], axis=0)


def accuracy_matrices(run: Run) -> dict[str, AccuracyMatrix]:
    """The matrices by the setting of the test, `task-given` and `routed`; none unless K > 1 classes arrive one after
    the other, and all do.
    """
    records: Any = run.records
    if not run.params.incremental:
        return {}
    found = {TASK_GIVEN: records.task_accuracies, ROUTED: records.task_accuracies_routed}
    num_tasks = records.task_accuracies.shape[1]
    ends = [np.flatnonzero(records.task[:, 0] == task)[-1:] for task in range(num_tasks)]
    if num_tasks == 1 or not all(map(len, ends)):
        return {}
    initial = records.initial_accuracies[0].astype(float)
    return {test: AccuracyMatrix(rates[np.concatenate(ends)].astype(float), initial) for test, rates in found.items()}


def summarize(plan: Plan, runs: Runs) -> Summary:
    preset = plan.preset
    routed = [run for run in runs.values() if has_router(preset, run.params)] or list(runs.values())
    drives = np.concatenate([run.records.drive[run.records.expert >= 0] for run in routed])
    return Summary(
        cells=[_cell(plan, name, runs) for name in preset.cells()],
        variance=float(np.mean(next(iter(runs.values())).records.variance[-1], dtype=float)),
        drive=float(np.median(drives)),
        drive_quantile=float(np.quantile(drives, 0.95)),
        drives=(0.0, math.inf) if preset.scales else DRIVES[preset.paper],
        num_rounds=preset.num_rounds,
        num_replicates=plan.replicates,
    )


def measures_of(preset: Preset, run: Run) -> dict[str, Float[np.ndarray, " B"]]:
    records: Any = run.records
    measures = {
        "generalization_error": records.generalization_error[-1],
        "generalization_error_routed": records.generalization_error_routed[-1],
        "accuracy": _mean(records.accuracy),
        "accuracy_routed": _mean(records.accuracy_routed),
    }
    if preset.paper == EDGE:
        flushed = {"generalization_error_flushed": records.generalization_error_flushed[-1]}
        return measures | flushed | {"dropped": records.dropped[-1].astype(float)}
    return measures | {"forgetting": records.forgetting[-1], "terminated": _mean(records.terminated)}


def has_router(preset: Preset, params: Params) -> bool:
    is_adaptive = list(POLICIES).index("adaptive") == int(params.policy)
    return int(params.num_experts) > 1 and (preset.paper != EDGE or is_adaptive)


def baseline_of(preset: Preset, cell: str) -> str | None:
    own = preset.cells()[cell]
    if preset.paper == EDGE:
        name = server_cell(own["num_experts"])
    else:
        name = expert_cell(preset.experts[0], gate_scale=own["gate_scale"] if preset.scales else None)
    return None if name == cell else name


def _cell(plan: Plan, name: str, runs: Runs) -> CellSummary:
    run, preset = runs[name], plan.preset
    own, baseline = measures_of(preset, run), baseline_of(preset, name)
    others = {} if baseline is None else measures_of(preset, runs[baseline])
    learned = run.records.expert >= 0
    unmoved = learned & (run.records.locality < _least_change(plan, run.params))
    terminates = preset.paper != EDGE and bool(run.params.terminate) and has_router(preset, run.params)
    return CellSummary(
        name=name,
        measures={measure: _estimate(values.astype(float)) for measure, values in own.items()},
        baseline=baseline,
        differences={measure: _estimate(own[measure].astype(float) - other) for measure, other in others.items()},
        drive=float(np.median(run.records.drive[learned])),
        num_learned=int(learned.sum()),
        num_unmoved=int(unmoved.sum()),
        unmoved_experts=np.unique(run.records.expert[unmoved]).tolist(),
        exploration_rounds=(
            int(exploration_rounds(run.params.num_experts, run.params.learning_rate)) if terminates else None
        ),
        transfer={
            test: Transfer(
                np.mean(matrix.accuracies, axis=2).tolist(),
                *map(_estimate, (matrix.average_accuracy, matrix.backward_transfer, matrix.forward_transfer)),
            )
            for test, matrix in accuracy_matrices(run).items()
        },
    )


def _least_change(plan: Plan, params: Params) -> float:
    if not params.per_parameter:
        return LEAST_CHANGE
    network, shape = networks.NETWORKS[plan.preset.dims.network], plan.data.train.pixels.shape[1:]
    expert = jax.eval_shape(lambda: network.init(jax.random.key(0), shape, plan.preset.dims.num_classes))
    return LEAST_CHANGE / float(np.sqrt(networks.num_parameters(expert)))


def _mean(values: np.ndarray) -> Float[np.ndarray, " B"]:
    return np.mean(values, axis=0, dtype=float)


def _estimate(values: np.ndarray) -> Estimate:
    found = across_replicates(values[None])
    return Estimate(float(found["mean"][0]), float(found["error"][0]))
