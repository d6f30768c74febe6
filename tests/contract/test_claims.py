"""Registered claims from end to end, with few replicates: catches one that raises, or cannot be written down.

In `make test` those on the runs that many claims share, in `make thorough` all others; see also
tests/statistical/test_seeds.py.
"""

import dataclasses

import pytest
from written_down import check_written_down

from moe_theory.core.papers import find_paper
from moe_theory.runs import Cell, run_cells
from moe_theory.verification.request import check_request
from moe_theory.verification.session import judge

FEW = 6  # as in tests/continual/test_continual_claims.py, which has the same programs
SHARED = {
    "continual": {"router-grid", "specialization", "no-termination", "figure-2"},
    "edge": {"updates"},
    "generalization": {"fixed-cells", "natural"},
}


def shortened(cell: Cell) -> Cell:
    """A classifier whose training has hardly begun: its claims look at the last round alone."""
    return dataclasses.replace(cell, num_rounds=2, record_every=2)


@pytest.mark.parametrize("is_shared", [True, pytest.param(False, marks=pytest.mark.thorough)])
@pytest.mark.parametrize("paper", SHARED)
def test_claims_are_judged_and_written_down(paper, is_shared):
    reading = find_paper(paper).reading_names("quick")[0]
    studies = check_request(paper, reading).studies
    studies = [study for study in studies if (study.experiment.name in SHARED[paper]) == is_shared]
    judged = []
    for study in studies:
        cells = [shortened(cell) if study.experiment.tier == "learned" else cell for cell in study.cells]
        measured = study.experiment.measured
        runs = run_cells(cells, FEW, seed=0, width=FEW) if measured is None else measured.make(cells, 0, FEW, 0)
        judged += [judge(claim, reading, runs, 0, 1e-4) for claim in study.claims]
    check_written_down(judged, [claim for study in studies for claim in study.claims])
    assert len({study.experiment.name for study in studies} & SHARED[paper]) == is_shared * len(SHARED[paper])
