"""The experiments that claims stand on: the presets' twins on digits, and a sweep over the scale of the gate's input.

A claim about a figure is judged on other data by putting that data's runs in the place of these: `claims_for`.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from moe_theory.core.system import observe_info
from moe_theory.deep.datasets import load_digits
from moe_theory.deep.presets import SMALL, Preset, expert_cell, incremental_accuracy, preset
from moe_theory.sweep import Run
from moe_theory.verify import Claim, Experiment
from moe_theory.verify.components import Values
from moe_theory.verify.components import named as named
from moe_theory.verify.registry import select_claims

# By network: as many as some minutes allow on two cores; 64 are the first of a verdict's looks, or fewer its only one.
REPLICATES = {"mlp": 128, "five-layer-small": 64, "resnet18-small": 32}


def _on_digits(name: str) -> Experiment:
    of = preset(name + SMALL)
    return Experiment(
        name=of.name,
        dims=of.dims,
        system=of.system(load_digits),
        cells=of.cells(),
        num_rounds=of.num_rounds,
        record_every=1,
        observe=observe_info,
        replicates=REPLICATES[of.dims.network],
        tier="digits",
        keeps_state=False,
        data="digits",
        width=None if of.dims.network == "mlp" else 1,  # convolutions gain nothing from company
    )


MNIST = _on_digits("continual-mnist")
CIFAR10 = _on_digits("continual-cifar10")
CIFAR100 = _on_digits("continual-cifar100")
TINY_IMAGENET = _on_digits("continual-tiny-imagenet")
EDGE_MNIST = _on_digits("edge-mnist")

# How far a gate step moves the router, by the scale of what the gate reads: below and above the drive that freezes it.
WEAK, STRONG = 20.0, 100.0
DRIVE_EXPERTS = 4


def drive_cell(gate_scale: float, terminate: bool = True) -> str:
    """The name of a cell of `DRIVE`."""
    return f"scale {gate_scale:g}, {expert_cell(DRIVE_EXPERTS, terminate)}"


def _drive() -> Experiment:
    of = preset("continual-mnist" + SMALL)
    dims = dataclasses.replace(of.dims, network="mlp")
    cells: dict[str, dict[str, Any]] = {
        drive_cell(scale, terminate): {
            "gate_scale": scale,
            "num_experts": DRIVE_EXPERTS,
            "num_rounds": of.num_rounds,
            "terminate": terminate,
        }
        for scale in (WEAK, STRONG)
        for terminate in (True, False)
    }
    system = dataclasses.replace(of, dims=dims).system(load_digits)
    return dataclasses.replace(
        MNIST, name="gate-drive", dims=dims, system=system, cells=cells, replicates=REPLICATES["mlp"], width=None
    )


DRIVE = _drive()


def claims_for(of: Preset, data: str) -> list[Claim]:
    """The claims about a preset's figure, to be judged on runs of the preset on this data set.

    Args:
        data: the data set's title, which the verdicts name.
    """
    twin = of.name.removesuffix(SMALL) + SMALL
    return [
        dataclasses.replace(claim, experiment=_of(claim.experiment, of, data))
        for claim in select_claims(["deep"])
        if claim.experiment.name == twin
    ]


def _of(experiment: Experiment, of: Preset, data: str) -> Experiment:
    """What a claim says of its experiment, of a preset's runs, which are made elsewhere."""
    return dataclasses.replace(
        experiment, name=of.name, dims=of.dims, cells=of.cells(), num_rounds=of.num_rounds, data=data
    )


Measured = Callable[[Run], np.ndarray]  # one number a replicate (B,)


def final(name: str) -> Measured:
    """A metric after the last round."""
    return lambda run: np.asarray(getattr(run.records, name)[-1], np.float64)


def average_accuracy(run: Run) -> np.ndarray:
    """The average incremental accuracy."""
    return incremental_accuracy(run.records.accuracy)


def of_cells(cells: Sequence[str], measure: Measured) -> Values:
    """A component a cell."""
    return lambda runs: np.stack([measure(runs[cell]) for cell in cells], axis=1)


def of_experts(measure: Measured, sizes: Sequence[int], terminate: bool = True) -> Values:
    """A component a number M of experts."""
    return of_cells([expert_cell(size, terminate) for size in sizes], measure)


def by_size(sizes: Sequence[int]) -> Callable:
    """Names of such components."""
    return named(*(f"M = {size}" for size in sizes))
