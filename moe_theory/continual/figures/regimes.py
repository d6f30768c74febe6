"""Specialisation over the gate drive and the perturbation."""

import math

import xarray as xr

from moe_theory import plot
from moe_theory.continual import reduced
from moe_theory.continual.algorithm import system
from moe_theory.continual.experiments import FIGURE_2_DIMS, LIMIT_SCALES, drive_of, limit_params, task_gap, with_drive
from moe_theory.continual.params import SIGMA_0, Dims, Params, gate_drive
from moe_theory.core.system import fields
from moe_theory.plot import drives

ENDS = {"without": {"terminate": False}, "with": {"terminate": True}}
MAPS = {"without": "(a) own arrivals, gates never fixed", "with": r"(b) own arrivals, gates fixed after $T_1$"}
SYSTEMS = {"": system, "_reduced": reduced.system}
observe = fields("info.task", "info.expert", "state.terminated", "info.generalization_error")
LIMIT = (SIGMA_0, min(LIMIT_SCALES))  # sigma_0 at two points of the paper's limit, a line on the map


def at_drive(params: Params, drive: float, ratio: float, dims: Dims) -> Params:
    """Set the gate drive and its ratio to lambda. Noise over signal and Gamma / lambda stay unchanged."""
    noise_over_signal = float(params.noise_scale) / float(params.signal_scale)
    gamma_over_lambda = float(params.termination_threshold) / float(params.perturbation_scale)
    moved = with_drive(params._replace(perturbation_scale=drive / ratio), ratio, dims)
    noise_scale = noise_over_signal * moved.signal_scale
    return moved._replace(noise_scale=noise_scale, termination_threshold=gamma_over_lambda * drive / ratio)


KINDS = drives.Kinds("gates", ENDS, SYSTEMS, observe=observe, at_drive=at_drive, task_gap=task_gap)


def compute(setup: plot.Setup) -> xr.Dataset:
    dims = setup.dims
    ends_of_path = [setup.params(**limit_params(setup.experts[-1], scale)) for scale in LIMIT]
    return drives.compute(setup, KINDS).assign_attrs(
        limit_drives=[gate_drive(params, dims.num_features, dims.num_tasks) for params in ends_of_path],
        limit_ratios=[drive_of(params, dims) for params in ends_of_path],
        num_tasks=dims.num_tasks,
        num_clusters=min(int(setup.params().num_clusters), dims.num_tasks),
    )


@plot.figure(
    "continual.regimes",
    compute,
    title="Where experts specialise: gate drive and perturbation",
    summary="Own arrivals over the gate drive and its ratio to the perturbation, with the critical drive.",
    replicates=32,
    size=(7.4, 3.2),
    rounds=1500,
    experts=drives.EXPERTS,
    dims=FIGURE_2_DIMS,
    claims=("continual.proposition-1.*", "continual.proposition-3.*", "continual.equation-35"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """The share of the last quarter's arrivals whose expert met the same cluster last, for N = {num_tasks} and K =
    {num_clusters}; by chance 1/K. (a), (b): M = {mapped} over κ, how far a step of the gates moves an output, and
    its ratio to the perturbation λ; signals, noise and Γ move with them. White: the critical drive at which a leader
    that has paid for its task is still ahead by λ (continual.corrected.critical_drive). The arrow: the paper's own
    limit, Algorithm 1's orders, from σ₀ = {SIGMA_0:g} on, out of the map. (c): at κ/λ = {drives.FAR:g}, gates never
    fixed; markers, with 95 % intervals: Algorithm 1; lines: its gates alone (continual.reduced); dotted: critical
    drives.
    """
    chance = 1 / data.attrs["num_clusters"]
    for panel in drives.draw(data, canvas, MAPS, axis="gates", compared="without", chance=chance):
        _draw_limit(panel, data)


def _draw_limit(panel: plot.Axes, data: xr.Dataset) -> None:
    limits = panel.axis()
    drive, next_drive = data.attrs["limit_drives"]
    ratio, next_ratio = data.attrs["limit_ratios"]
    slope = math.log(ratio / next_ratio) / math.log(drive / next_drive)
    left = limits[0] * 1.1  # just inside the map
    end = ratio * (left / drive) ** slope
    panel.annotate("", xy=(left, end), xytext=(drive, ratio), arrowprops={"arrowstyle": "->", **drives.LINE})
    plot.note(panel, r"$\sigma_0 \to 0$", at=(left, end), shift=(8, 9), color="white")
    panel.axis(limits)
