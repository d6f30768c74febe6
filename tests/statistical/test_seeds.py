"""Some claims at a seed of their own: catches luck."""

import pytest
from samples import check_written_down

from moe_theory.verification import Status, recorded, registry, verify

SEED = 2  # the published verdicts are of other seeds
ERROR = 1e-5
DECIDED = {str(status) for status in (Status.SUPPORTED, Status.REFUTED, Status.VACUOUS, Status.INAPPLICABLE)}


@pytest.mark.thorough
@pytest.mark.usefixtures("compiled_to_run")
@pytest.mark.parametrize(
    ("asked", "reading", "replicates"),
    [
        ("generalization.lemma-6.*", "mask-dimension", 256),
        pytest.param("continual.lemma-[1-5].*", "unit-signal", 2048, marks=pytest.mark.thorough),
        pytest.param("generalization:exact", "mask-dimension", None, marks=pytest.mark.thorough),
        pytest.param("merging:exact", "random-split", None, marks=pytest.mark.thorough),
    ],
)
def test_no_decided_verdict_is_contradicted_by_another_seed(asked, reading, replicates):
    verdicts = [verdict for record in recorded.read().values() for verdict in record.verdicts]
    known = {(verdict["claim"], verdict["reading"]): verdict["status"] for verdict in verdicts}
    again = verify(asked.split(), readings=reading, replicates=replicates, seed=SEED, error=ERROR)
    compared = [verdict for verdict in again if verdict.status in DECIDED]
    contradicted = {
        verdict.claim: f"{known[verdict.claim, verdict.reading]}, now {verdict.status}: {verdict.reason}"
        for verdict in compared
        if known[verdict.claim, verdict.reading] in DECIDED - {verdict.status}
    }
    assert not contradicted
    assert len(compared) > 0.6 * len(again)  # few enough are left open for this to mean something
    check_written_down(again, registry.select_claims(asked.split()))
