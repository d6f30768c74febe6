"""The command that a card prints gives the verdict that the card shows: of verdicts spread over each paper's record."""

import numpy as np
import pytest

import moe_theory as mt
from moe_theory.verification import recorded
from moe_theory.verification.registry import declared_claims
from moe_theory.verification.verdict import Status, Verdict

MOST_ROUNDS, NUMBER = 3e6, 8  # replicate-rounds of a verdict, which take seconds, and verdicts of a paper
PAPERS = ["continual", "edge", "generalization", "merging"]


def spread_over(paper: str) -> list[Verdict]:
    """Decided verdicts on runs that are simulated, and not too long."""

    def is_short(verdict: Verdict) -> bool:
        runs = declared_claims()[verdict.claim].experiment
        return runs.source is None and runs.num_rounds * len(runs.cells) * verdict.replicates <= MOST_ROUNDS

    decided = [each for each in recorded.read()[paper].whole() if each.status in {Status.SUPPORTED, Status.REFUTED}]
    short = [each for each in decided if is_short(each)]
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
