"""Registered claims from end to end: catches one that raises, is not written down, compiles twice or is not found."""

import dataclasses

import numpy as np
import pytest
from judging import judge
from samples import check_written_down

import moe_theory as mt
from moe_theory.core.papers import find_paper
from moe_theory.runs import Cell, run_cells
from moe_theory.verification import recorded
from moe_theory.verification.registry import select_claims
from moe_theory.verification.request import check_request
from moe_theory.verification.verdict import Status, Verdict

FEW = 6  # as in tests/continual/test_continual_claims.py, which has the same programs
SHARED = {
    "generalization": {"fixed-cells", "natural"},
}


def shortened(cell: Cell) -> Cell:
    """A classifier whose training has hardly begun: its claims look at the last round alone."""
    return dataclasses.replace(cell, num_rounds=2, record_every=2)


@pytest.mark.parametrize(
    ("paper", "is_shared"),
    [
        pytest.param(paper, flag, marks=[pytest.mark.thorough] * (not flag or paper != "generalization"))
        for paper in SHARED
        for flag in (True, False)
    ],
)
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


MOST_ROUNDS, NUMBER = 1e6, 5  # replicate-rounds of a verdict, which take seconds, and verdicts of a paper
PAPERS = ["continual", "edge", "generalization"]  # a run of merging takes minutes


def spread_over(paper: str) -> list[Verdict]:
    def is_short(verdict: Verdict) -> bool:
        runs = claims[verdict.claim].experiment
        return runs.measured is None and runs.num_rounds * len(runs.cells) * verdict.replicates <= MOST_ROUNDS

    claims = {claim.id: claim for claim in select_claims([paper])}
    verdicts = recorded.read()[paper].whole()
    decided = [verdict for verdict in verdicts if verdict.status in {Status.SUPPORTED, Status.REFUTED}]
    short = [verdict for verdict in decided if verdict.claim in claims and is_short(verdict)]
    assert short
    return short[:: -(-len(short) // NUMBER)]


@pytest.mark.thorough
@pytest.mark.parametrize("paper", PAPERS)
def test_a_recorded_verdict_is_found_again(paper):
    """Catches rules of judging, draws or systems that changed after the record was made."""
    for known in spread_over(paper):
        (again,) = mt.verify(
            known.claim, readings=known.reading, seed=1, error=known.error, replicates=known.replicates
        )
        assert again.status is known.status, (known.claim, known.reason, again.reason)
        rounding = 1e-9 + np.nan_to_num(known.standard_error)  # of long runs in float32, whose routes may part
        np.testing.assert_allclose(again.observed, known.observed, rtol=1e-4, atol=rounding, err_msg=known.claim)
