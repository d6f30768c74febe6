"""Final measures of a preset's cells, differences to a baseline, and diagnostics of the router."""

import dataclasses
import math
from typing import Any

import jax
import numpy as np
from jaxtyping import Float

from moe_theory.continual.theory import exploration_rounds
from moe_theory.deep import networks
from moe_theory.deep.gate import FREEZING_DRIVES
from moe_theory.deep.params import Params
from moe_theory.deep.presets import CONTINUAL, EDGE, Preset, expert_cell, server_cell
from moe_theory.deep.runs import Plan
from moe_theory.edge.policies import POLICIES
from moe_theory.plot import across_replicates
from moe_theory.runs import Run
from moe_theory.verification.claim import Runs

LEAST_CHANGE = 1e-3  # an expert whose |w_t - w_{t-1}| is smaller counts as dead
# Runs warn if the median of kappa is outside these ranges. Below, a router hardly learns. Above, it freezes by itself
# and termination has no effect. Servers do not terminate, and need more to specialise.
DRIVES = {CONTINUAL: (0.2, FREEZING_DRIVES[1]), EDGE: (FREEZING_DRIVES[0], math.inf)}


@dataclasses.dataclass(frozen=True)
class Estimate:
    mean: float
    standard_error: float  # nan for a single replicate


@dataclasses.dataclass(frozen=True)
class CellSummary:
    name: str
    measures: dict[str, Estimate]  # the measures of `measures_of`
    baseline: str | None  # the cell in the comparison, or None for that cell itself
    differences: dict[str, Estimate]  # paired differences to the baseline's measures
    drive: float  # median of kappa
    num_learned: int  # tasks that reached an expert, in all replicates
    num_unmoved: int  # tasks among these that changed their expert by less than `LEAST_CHANGE`
    unmoved_experts: list[int]  # experts that such a task did not change
    exploration_rounds: int | None  # T1, or None without termination


@dataclasses.dataclass(frozen=True)
class Summary:
    cells: list[CellSummary]
    variance: float  # variance across tasks of an element of the normalised mean images, averaged
    drive: float  # median of kappa over rounds of cells with a router
    drive_quantile: float  # 95 % quantile of kappa
    drives: tuple[float, float]  # runs warn if the median is outside this range
    num_rounds: int
    num_replicates: int

    @property
    def deviation(self) -> float:
        """The root of the variance. Some papers write sigma_0 for the variance, some for its root."""
        return float(np.sqrt(self.variance))


def summarize(plan: Plan, runs: Runs) -> Summary:
    preset = plan.preset
    routed = [run for run in runs.values() if has_router(preset, run.params)] or list(runs.values())
    drives = np.concatenate([run.records.drive[run.records.expert >= 0] for run in routed])  # without dropped tasks
    return Summary(
        cells=[_cell(plan, name, runs) for name in preset.cells()],
        variance=float(np.mean(next(iter(runs.values())).records.variance[-1], dtype=float)),
        drive=float(np.median(drives)),
        drive_quantile=float(np.quantile(drives, 0.95)),
        drives=(0.0, math.inf) if preset.scales else DRIVES[preset.paper],  # scales are extreme on purpose
        num_rounds=preset.num_rounds,
        num_replicates=plan.replicates,
    )


def measures_of(preset: Preset, run: Run) -> dict[str, Float[np.ndarray, " B"]]:
    records: Any = run.records
    measures = {"generalization_error": records.generalization_error[-1], "accuracy": _mean(records.accuracy)}
    if preset.paper == EDGE:
        flushed = {"generalization_error_flushed": records.generalization_error_flushed[-1]}
        return measures | flushed | {"dropped": records.dropped[-1].astype(float)}
    return measures | {"forgetting": records.forgetting[-1], "terminated": _mean(records.terminated)}


def has_router(preset: Preset, params: Params) -> bool:
    is_adaptive = list(POLICIES).index("adaptive") == int(params.policy)
    return int(params.num_experts) > 1 and (preset.paper != EDGE or is_adaptive)


def baseline_of(preset: Preset, cell: str) -> str | None:
    params = preset.cells()[cell]
    if preset.paper == EDGE:
        name = server_cell(int(params["num_experts"]))
    else:
        name = expert_cell(preset.experts[0], gate_scale=params["gate_scale"] if preset.scales else None)
    if name == cell:
        return None
    return name


def _cell(plan: Plan, name: str, runs: Runs) -> CellSummary:
    run = runs[name]
    preset = plan.preset
    measures = measures_of(preset, run)
    baseline = baseline_of(preset, name)
    baselines = {} if baseline is None else measures_of(preset, runs[baseline])
    learned = run.records.expert >= 0  # the task was not dropped
    unmoved = learned & (run.records.locality < _least_change(plan, run.params))
    terminates = preset.paper != EDGE and bool(run.params.terminate) and has_router(preset, run.params)
    exploration = exploration_rounds(run.params.num_experts, run.params.learning_rate)
    return CellSummary(
        name=name,
        measures={measure: _estimate(values) for measure, values in measures.items()},
        baseline=baseline,
        differences={
            measure: _estimate(measures[measure].astype(float) - values) for measure, values in baselines.items()
        },
        drive=float(np.median(run.records.drive[learned])),
        num_learned=int(learned.sum()),
        num_unmoved=int(unmoved.sum()),
        unmoved_experts=np.unique(run.records.expert[unmoved]).tolist(),
        exploration_rounds=int(exploration) if terminates else None,
    )


def _least_change(plan: Plan, params: Params) -> float:
    """Return `LEAST_CHANGE` in the units of the run's locality norm."""
    if not params.per_parameter:
        return LEAST_CHANGE
    network = networks.NETWORKS[plan.preset.dims.network]
    shape = plan.data.train.pixels.shape[1:]
    expert = jax.eval_shape(lambda: network.init(jax.random.key(0), shape, plan.preset.dims.num_classes))
    return LEAST_CHANGE / float(np.sqrt(networks.num_parameters(expert)))


def _mean(values: np.ndarray) -> Float[np.ndarray, " B"]:
    return np.mean(values, axis=0, dtype=float)


def _estimate(values: np.ndarray) -> Estimate:
    estimate = across_replicates(values.astype(float)[None])
    return Estimate(float(estimate["mean"][0]), float(estimate["error"][0]))
