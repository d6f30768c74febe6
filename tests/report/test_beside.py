"""What a card says beside a status: catches a cause that is called isolated and is not, and a competitor left out."""

import dataclasses

import pytest

from moe_theory.report.wording import beside
from moe_theory.verification.status import judged
from moe_theory.verification.verdict import Proof, Role, Statement, Status, Verdict


def verdict(id: str, status: Status, says: str) -> Verdict:
    return Verdict(id, "a", "", says, "probability", "loud", status, "", 64, "", observed=0.5, predicted=0.9)


@pytest.mark.parametrize(
    ("without", "other", "begins"),
    [
        (
            Status.SUPPORTED,
            Status.REFUTED,
            "Without x it is so: holds (32 of 64). Without y it is so: fails (32 of 64).",
        ),
        (Status.SUPPORTED, Status.SUPPORTED, "Not isolated. Without x"),
        (Status.REFUTED, Status.REFUTED, "Not the cause. Without x it is so: fails"),
        (Status.INCONCLUSIVE, Status.REFUTED, "Not isolated. Without x it is so: open"),
        (Status.INAPPLICABLE, Status.REFUTED, "Not isolated. Without y"),
    ],
)
def test_a_card_says_what_happens_without_the_cause_and_without_others(without, other, begins):
    roles = {"a.b": Role.CHARITABLE, "a.x": Role.INTERVENTION, "a.y": Role.SUSPECT, "a.z": Role.COMPETITOR}
    found = [
        verdict("a.b", Status.REFUTED, "It is so."),
        verdict("a.x", without, "Without x it is so."),
        verdict("a.y", other, "Without y it is so."),
        verdict("a.z", Status.REFUTED, "Blindly it is so."),
    ]
    about = Statement("b", "a", "Lemma 1", "It is so.", roles=roles)
    said = dict(beside(judged(about, found), found))
    assert said["isolated"].startswith(begins)
    assert said["competitor"] == "Blindly it is so: fails (32 of 64)."
    proved = dataclasses.replace(about, disproof=Proof("a:proofs/b.py", "It is not so.", ["As is seen."], "", "", ""))
    said = dict(beside(judged(proved, found), found))
    assert said["isolated"].startswith(begins.replace("Not isolated.", "Exhibited by the disproof."))
    assert dict(beside(judged(proved, found[:1]), found[:1])) == {}
