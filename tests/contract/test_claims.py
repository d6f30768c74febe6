"""Every registered claim from end to end, with few replicates: catches one that raises, or cannot be written down.

Those of `continual`, and the exact ones of `generalization`, are judged by tests/statistical/test_seeds.py, with more
replicates.
"""

import dataclasses

import pytest
from written_down import check_written_down

from moe_theory.core.papers import find_paper
from moe_theory.runs import Cell, run_cells
from moe_theory.verify import registry
from moe_theory.verify.request import check_request
from moe_theory.verify.session import judge

FEW = 4


def shortened(cell: Cell) -> Cell:
    """A classifier whose training has hardly begun: its claims look at the last round alone."""
    return dataclasses.replace(cell, num_rounds=2, record_every=2)


@pytest.mark.parametrize("asked", ["edge", "generalization:learned"])
def test_every_claim_is_judged_and_written_down(asked):
    claims = registry.select_claims([asked])
    paper = claims[0].paper
    reading = find_paper(paper).reading_names("quick")[0]
    judged = []
    for study in check_request(asked, reading).studies:
        cells = [shortened(cell) if study.experiment.tier == "learned" else cell for cell in study.cells]
        runs = run_cells(cells, FEW, seed=0, width=FEW)
        judged += [judge(claim, reading, runs, 0, 1e-4) for claim in study.claims]
    check_written_down(judged, claims)
