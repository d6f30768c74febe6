"""Specialisation of servers over the gate drive and the perturbation."""

import xarray as xr

from moe_theory import plot
from moe_theory.core.system import fields
from moe_theory.edge import reduced
from moe_theory.edge.algorithm import system
from moe_theory.edge.experiments import figure_3_dims, task_gap
from moe_theory.edge.figures.phase import signal_scale_at
from moe_theory.edge.params import Dims, Params
from moe_theory.plot import drives

AT_ONCE = {"min_transfer_delay": 0, "max_transfer_delay": 0, "min_execution_delay": 1, "max_execution_delay": 1}
DELAYS: dict[str, dict[str, int]] = {"one round": AT_ONCE, "those of Fig. 3": {}}
MAPS = {"one round": "(a) own tasks, tasks of one round", "those of Fig. 3": "(b) own tasks, delays of Fig. 3"}
SYSTEMS = {"": system, "_reduced": reduced.system}
observe = fields("info.task", "info.expert", generalization_error="info.generalization_error_flushed")
DIMS = figure_3_dims(drives.EXPERTS[-1])


def at_drive(params: Params, drive: float, ratio: float, dims: Dims) -> Params:
    """Set the gate drive and its ratio to lambda. Noise over signal stays unchanged."""
    noise_over_signal = float(params.noise_scale) / float(params.signal_scale)
    scale = signal_scale_at(drive, params, dims)
    return params._replace(signal_scale=scale, noise_scale=noise_over_signal * scale, perturbation_scale=drive / ratio)


KINDS = drives.Kinds("delays", DELAYS, SYSTEMS, observe=observe, at_drive=at_drive, task_gap=task_gap)


def compute(setup: plot.Setup) -> xr.Dataset:
    return drives.compute(setup, KINDS).assign_attrs(num_tasks=setup.dims.num_tasks)


@plot.figure(
    "edge.regimes",
    compute,
    title="Where servers specialise: gate drive and perturbation",
    summary="Own tasks over the gate drive and its ratio to the perturbation, with the critical drive.",
    replicates=32,
    size=(7.4, 3.2),
    rounds=1500,
    experts=drives.EXPERTS,
    dims=DIMS,
    claims=("edge.proposition-2.*", "edge.proposition-3.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """The share of the last quarter's tasks whose server had the same kind last, of those that were not dropped, for
    N = {num_tasks}; by chance 1/N. (a), (b): M = {mapped} over κ, how far a step of the gates moves an output, and its
    ratio to λ, the perturbation being uniform on (0, λ); signals and noise move with them. White: the critical drive
    at which a leader that has paid for its task is still ahead by λ, for tasks of one round and without the spread
    inside a cluster (edge.corrected.critical_drive). (c): at κ/λ = {drives.FAR:g}, tasks of one round; markers, with
    95 % intervals: Algorithm 1; lines: its gates alone (edge.reduced); dotted: critical drives.
    """
    drives.draw(data, canvas, MAPS, axis="delays", compared="one round", chance=1 / data.attrs["num_tasks"])
