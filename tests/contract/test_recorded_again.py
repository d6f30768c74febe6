"""The command that a card prints gives the verdict that the card shows: of verdicts spread over each paper's record."""

import numpy as np
import pytest

import moe_theory as mt
from moe_theory.verify import recorded
from moe_theory.verify.verdict import Status

MOST_REPLICATES, NUMBER = 128, 8  # what a minute or two of a core can run again, of each paper


def spread_over(paper: str) -> list:
    small = [
        verdict
        for verdict in recorded.read()[paper].whole()
        if verdict.replicates <= MOST_REPLICATES and verdict.status in {Status.SUPPORTED, Status.REFUTED}
    ]
    return small[:: -(-len(small) // NUMBER)]


@pytest.mark.thorough
@pytest.mark.parametrize("paper", recorded.read())
def test_a_recorded_verdict_is_found_again(paper):
    for known in spread_over(paper):
        (again,) = mt.verify(
            known.claim, readings=known.reading, seed=1, error=known.error, replicates=known.replicates
        )
        assert again.status is known.status, (known.claim, known.reason, again.reason)
        np.testing.assert_allclose(again.observed, known.observed, rtol=1e-4, atol=1e-9, err_msg=known.claim)
