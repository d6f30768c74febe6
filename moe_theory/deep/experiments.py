"""Experiments for claims and figures, which are small presets on digits and a sweep over the gate's scale."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from moe_theory.core.errors import InvalidValueError
from moe_theory.core.system import observe_info
from moe_theory.deep.datasets import DATASETS, load, load_digits
from moe_theory.deep.params import ADAM, SGD
from moe_theory.deep.presets import (
    CONTINUAL,
    EDGE,
    PRESETS,
    SMALL,
    SMALL_PRESETS,
    Preset,
    expert_cell,
    incremental_accuracy,
    preset,
)
from moe_theory.plot import Setup
from moe_theory.runs import Cell, Run, run_cells
from moe_theory.verification import Claim, Experiment
from moe_theory.verification.claim import Runs
from moe_theory.verification.registry import select_claims
from moe_theory.verification.statement import probability

PAPERS = {CONTINUAL: "continual-learning", EDGE: "edge-computing"}  # names of the papers in captions
# Replicates by network, for some minutes on two cores. Interim analyses begin at 64. With fewer there is one analysis.
REPLICATES = {"mlp": 256, "five-layer-small": 64, "resnet18-small": 64}


def _on_digits(name: str) -> Experiment:
    small = preset(name + SMALL)
    return Experiment(
        name=small.name,
        dims=small.dims,
        system=small.system(load_digits),
        cells=small.cells(),
        num_rounds=small.num_rounds,
        record_every=1,
        observe=observe_info,
        replicates=REPLICATES[small.dims.network],
        tier="digits",
        keeps_state=False,
        data="digits",
        width=None if small.dims.network == "mlp" else 1,  # batches do not speed up convolutions
    )


MNIST = _on_digits("continual-mnist")
CIFAR10 = _on_digits("continual-cifar10")
CIFAR100 = _on_digits("continual-cifar100")
TINY_IMAGENET = _on_digits("continual-tiny-imagenet")
EDGE_MNIST = _on_digits("edge-mnist")
DRIVE = _on_digits("gate-drive")
BASELINE = _on_digits("continual-baseline")
EDGE_BASELINE = _on_digits("edge-baseline")


def claims_for(preset: Preset, data: str) -> list[Claim]:
    """Return the claims about a preset's figure. None exist for other numbers of experts or other gate scales."""
    small_names = [small.name for small in SMALL_PRESETS if figure_of(small) == figure_of(preset)]
    arguments = {"name": preset.name, "dims": preset.dims, "cells": preset.cells(), "num_rounds": preset.num_rounds}
    return [
        dataclasses.replace(claim, experiment=dataclasses.replace(claim.experiment, **arguments, data=data))
        for claim in select_claims(["deep"])
        if claim.experiment.name in small_names
    ]


def figure_of(preset: Preset) -> tuple[Any, ...]:
    return preset.paper, preset.where, preset.experts, preset.scales


def run_preset(preset: Preset, settings: Mapping[str, Mapping[str, float]], setup: Setup) -> Mapping[str, Run]:
    """Run a preset for a figure. The default number of rounds is the preset's."""
    length = setup.rounds or preset.num_rounds
    if length > preset.num_rounds:
        raise InvalidValueError(
            f"num_rounds={length} must be at most {preset.num_rounds}, the rounds of {preset.name}.",
            argument="num_rounds",
        )
    system = preset.system(load(preset.data))
    cells = [
        Cell(name, system, setup.params(**overrides), length, 1, keeps_state=False)
        for name, overrides in settings.items()
    ]
    return run_cells(cells, setup.replicates, seed=setup.seed, width=1, progress=setup.progress, what=setup.name)


def describe(preset: Preset) -> str:
    original = PRESETS[preset.name.removesuffix(SMALL)]
    return (
        f"A small version of {preset.where} of the {PAPERS[preset.paper]} paper: {_sizes(preset)}. The paper: "
        f"{_sizes(original)}."
    )


def _sizes(preset: Preset) -> str:
    dims = preset.dims
    classes = ", ".join(map(str, preset.classes))
    method = {ADAM: "Adam", SGD: "SGD"}[dims.optimizer]
    batches = ""
    if dims.batch_size < dims.num_samples:
        batches = f" in batches of {dims.batch_size}"
    return (
        f"{DATASETS[preset.data].title} (classes {classes}), T = {dims.max_rounds} rounds, {dims.num_samples} training "
        f"and {dims.num_tests} test images a task, network {dims.network}, {dims.num_epochs} epochs of {method}"
        f"{batches}"
    )


Metric = Callable[[Run], np.ndarray]  # of one cell, one number per replicate (B,)
Measure = Callable[[Runs], np.ndarray]  # of several cells, one number per size and replicate (V, B)
MOSTLY = probability(at_least=0.5)  # of runs of several cells on the same tasks


def final(name: str) -> Metric:
    return lambda run: np.asarray(getattr(run.records, name)[-1], np.float64)


def average_accuracy(run: Run) -> np.ndarray:
    return incremental_accuracy(run.records.accuracy)


def of_experts(metric: Metric, sizes: Sequence[int], terminate: bool = True) -> Measure:
    return lambda runs: np.stack([metric(runs[expert_cell(size, terminate)]) for size in sizes])


def by_size(sizes: Sequence[int]) -> list[str]:
    return [f"M = {size}" for size in sizes]
