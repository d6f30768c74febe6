"""Fig. 2's eight cells as one program: catches a parameter that is not traced, and a second compilation."""

import dataclasses

import numpy as np

from moe_theory import System
from moe_theory.continual import READINGS
from moe_theory.continual.experiments import FIGURE_2
from moe_theory.runs import run_cells


def counting(system: System) -> tuple[System, list[int]]:
    traced: list[int] = []

    def step(key, state, params):
        traced.append(1)
        return system.step(key, state, params)

    return System(system.init, step), traced


def test_eight_cells_under_every_reading_are_traced_once():
    system, traced = counting(FIGURE_2.system)
    experiment = dataclasses.replace(FIGURE_2, system=system, num_rounds=30, record_every=10)
    ends = set()
    for reading in READINGS.values():
        cells = experiment.cells_under(reading)
        assert len(cells) == 8
        for run in run_cells(cells, 5, width=5).values():
            ends.add(float(np.mean(run.records.generalization_error[-1])))
    assert len(traced) == 1
    assert (
        len(ends) > 12
    )  # and the cells do differ: of 48, those of M = 1 coincide where only the gates' setting changes
