"""Fig. 2's eight cells as one program: catches a parameter that is not traced, and a second compilation."""

import dataclasses

import chex
import numpy as np

from moe_theory import System
from moe_theory.continual import READINGS
from moe_theory.continual.experiments import FIGURE_2
from moe_theory.runs import run_cells


def test_eight_cells_under_every_reading_are_traced_once():
    system = System(FIGURE_2.system.init, chex.assert_max_traces(FIGURE_2.system.step, n=1))
    experiment = dataclasses.replace(FIGURE_2, system=system, num_rounds=30, record_every=10)
    ends = set()
    for reading in READINGS.values():
        cells = experiment.cells_under(reading)
        assert len(cells) == 8
        for run in run_cells(cells, 5, width=5).values():
            ends.add(float(np.mean(run.records.generalization_error[-1])))
    # The cells do differ: of 48, those of M = 1 coincide where only the gates' setting changes.
    assert len(ends) > 12
