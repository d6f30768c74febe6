"""Every registered claim from end to end, with few replicates: catches one that raises, or cannot be written down."""

import json
from collections import Counter

from moe_theory import claims, verify
from moe_theory.report import verdicts
from moe_theory.verify import Status


def test_every_claim_is_judged_and_written_down():
    judged = verify("*", readings="weak-signal", replicates=32)
    assert Counter(verdict.claim for verdict in judged) == Counter(claim.id for claim in claims())
    for verdict in judged:
        assert verdict.status is not Status.ERROR, verdict.reason
        assert verdict.curve is not None
        assert verdict.at in verdict.curve.labels
    document = json.loads(verdicts.to_json(judged, "a command"))
    assert len(document["verdicts"]) == len(judged)
    page = verdicts.to_markdown(judged, "a command")
    assert all(f"## {claim.id}\n" in page for claim in claims())
