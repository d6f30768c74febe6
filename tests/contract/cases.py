"""Systems at small sizes, for the tests of every system: those that a sweep can name, and what other folders bring.

A folder of tests brings systems by a file `systems.py` with a list `CASES`.
"""

import importlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import moe_theory as mt
from moe_theory.sweep.systems import sweepable, system_names


class Case(NamedTuple):
    """A registered system at small sizes, its parameters, and other settings that must need no new program."""

    name: str
    build: Callable[[], mt.System]
    params: Any
    changes: Sequence[dict[str, Any]]
    batched: tuple[bool, ...] = (False, True)  # with x64 or without, where a batch is compiled; fewer if that is dear


class Small(NamedTuple):
    """Sizes, parameters and choices that a system is quick at, and other settings."""

    sizes: dict[str, int]
    params: dict[str, Any]
    changes: Sequence[dict[str, Any]]
    choices: dict[str, str]


SMALL = {
    "continual": Small(
        {"max_experts": 3, "num_tasks": 3, "num_features": 4, "num_samples": 2},
        {"num_experts": 2},
        (
            {"num_experts": 3, "learning_rate": 0.1},
            {"num_experts": 1, "num_clusters": 1, "terminate": False, "noise_scale": 0.0},
            {"truth_scale": 2.0, "scale_is_variance": True, "signal_law": 2, "locality_power": 2.0},
        ),
        {},
    ),
    "edge": Small(
        {"max_experts": 3, "num_tasks": 3, "num_features": 4, "num_samples": 2, "max_capacity": 2},
        {"num_experts": 2},
        (
            {"num_experts": 3, "learning_rate": 0.1, "gate_lag": 0},
            {"num_experts": 1, "capacity": 2, "max_transfer_delay": 0, "min_execution_delay": 3},
            {"signal_law": 1, "truth_scale": 2.0, "signal_scale": 0.5, "noise_scale": 0.0},
        ),
        {},
    ),
    "generalization": Small(
        {"max_experts": 3, "num_features": 4, "max_samples": 8},
        {"num_experts": 2, "num_active": 2, "num_samples": 6},
        (
            {"num_experts": 3, "num_active": 1, "learning_rate": 0.1, "label_noise": 0.5},
            {"num_samples": 8, "num_active": 1, "expert_norm": 0.0, "router_norm": 9.0},
        ),
        {"data": "teacher"},
    ),
    "merging": Small(
        {"max_experts": 3, "num_tasks": 2, "max_rounds": 4, "max_leaves": 4, "width": 4, "num_steps": 1},
        {"num_experts": 2, "max_active": 2},
        (
            {"num_experts": 3, "max_active": 1, "learning_rate": 0.1, "mix_drift": 1.0, "slot_size": 300},
            {"split_rule": 1, "warm_start": True, "noise_scale": 0.0},
        ),
        {"monitor": "average"},
    ),
}


def case_of(name: str) -> Case:
    """A paper's system; at the sizes and under the readings that it brings, unless smaller ones stand above."""
    kind = sweepable(name)
    small = SMALL.get(name, Small({}, {}, [reading.choices for reading in kind.readings.values()], {}))
    params = kind.readings[kind.default_reading].params(**small.params)
    dims = kind.dims(**{"max_experts": params.num_experts, **kind.default_dims, **small.sizes})
    return Case(name, lambda: kind.system(dims, small.choices), params, small.changes)


def brought() -> list[Case]:
    """The systems that other folders of tests bring."""
    files = sorted(Path(__file__).parents[1].glob("*/systems.py"))
    return [
        case for file in files for case in importlib.import_module(f"..{file.parent.name}.systems", __package__).CASES
    ]


CASES = [*map(case_of, system_names()), *brought()]
# Systems of the papers, one of them in `make test`.
papers_own = pytest.mark.parametrize(
    "case",
    [pytest.param(case, id=case.name, marks=[pytest.mark.thorough] * (case.name != "continual")) for case in CASES[:4]],
)
