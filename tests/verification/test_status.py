"""The rule that gives a statement its status, on made-up verdicts of every role and mix, and what proofs rest on."""

import dataclasses
import graphlib
from collections.abc import Sequence

import pytest

from moe_theory.core.papers import paper_names
from moe_theory.verification import status as statuses
from moe_theory.verification.challenged import Challenge, Clause, ClauseBound, Flip, Looked
from moe_theory.verification.recorded import judged_statements
from moe_theory.verification.status import Finding, Judged, StatementStatus, failing_premises, find, judged
from moe_theory.verification.texts import PaperTexts
from moe_theory.verification.verdict import Proof, Role, Statement, Status, Verdict

WORDS = {
    "s": Status.SUPPORTED,
    "r": Status.REFUTED,
    "i": Status.INCONCLUSIVE,
    "v": Status.VACUOUS,
    "n": Status.INAPPLICABLE,
    "e": Status.ERROR,
}


def verdict(claim: str, status: Status, kind: str = "rate", reading: str = "loud", **about) -> Verdict:
    return Verdict(claim, "a", "Lemma 1", "Something.", kind, reading, status, "", 64, "", **about)


def made_up(text: str, **about) -> tuple[Statement, list]:
    """A statement and its verdicts, of "charitable:s literal:r"; an x is a claim that was not judged."""
    parts = [part.split(":") for part in text.split()]
    ids = [f"a.b-{place}" for place in range(len(parts))]
    roles = {id: Role(role) for id, (role, _) in zip(ids, parts, strict=True)}
    verdicts = [verdict(id, WORDS[word], **about) for id, (_, word) in zip(ids, parts, strict=True) if word != "x"]
    return Statement("b", "a", "Lemma 1", "Something.", roles=roles), verdicts


STATUSES = {
    "holds": (
        "charitable:s",
        "charitable:v charitable:s",
        "charitable:n charitable:s",
        "charitable:s step:r ours:r corrected:r",
        "charitable:s literal:i",
        "charitable:s competitor:r competitor:s",
        "charitable:s competitor:i",
        "charitable:s competitor:s competitor:x",
        "charitable:s intervention:r suspect:r",
        "literal:s",
    ),
    "vacuous": (
        "charitable:v literal:r",
        "charitable:v",
        "literal:v",
    ),
    "false": (
        "charitable:r competitor:s",
        "charitable:r intervention:s suspect:r",
        "charitable:r",
        "figure:r",
        "charitable:r charitable:s corrected:s",
        "charitable:r charitable:i",
        "charitable:r charitable:x",
        "literal:r",
    ),
    "open": (
        "charitable:s competitor:s competitor:v",
        "charitable:s literal:r competitor:s",
        "charitable:i competitor:s",
        "charitable:i",
        "charitable:s charitable:i",
        "charitable:v charitable:i",
        "literal:r literal:s",
    ),
    "holds amended": ("charitable:s literal:r",),
    "not judged": (
        "charitable:e",
        "charitable:s charitable:x",
        "charitable:i charitable:x",
        "step:r",
        "ours:s corrected:s",
        "",
    ),
    None: (
        "charitable:n",
        "charitable:n literal:r",
    ),
}


def test_the_status_follows_from_roles_and_verdicts():
    for status, texts in STATUSES.items():
        for text in texts:
            about, verdicts = made_up(text)
            found = find(about, {verdict.claim: verdict for verdict in verdicts})
            assert (found.status if found else None) == status, text


PROOF = Proof("a:proofs/b.py", "A title", ["An argument."], "Everything.", "None.", "")


@pytest.mark.parametrize(
    ("text", "proved", "words"),
    [
        ("charitable:r", {"disproof": PROOF}, "false (proved)"),
        ("charitable:r", {"disproof": PROOF, "amendment": "x < 1"}, "false (proved)"),
        ("charitable:s", {"disproof": PROOF}, "false (proved)"),
        ("charitable:s literal:r", {"disproof": PROOF}, "false (proved)"),
        ("charitable:s", {"disproof": PROOF, "amendment": "x < 1"}, "holds amended (simulated)"),
        ("charitable:s", {"disproof": PROOF, "amendment": "x < 1", "proof": PROOF}, "holds amended (proved)"),
        ("charitable:i", {"disproof": PROOF}, "false (proved)"),
        ("charitable:i", {"disproof": PROOF, "amendment": "x < 1"}, "holds amended"),
        ("charitable:i", {"disproof": PROOF, "amendment": "x < 1", "proof": PROOF}, "holds amended (proved)"),
        ("charitable:v", {"disproof": PROOF}, "vacuous (simulated)"),
        ("charitable:n", {"disproof": PROOF}, "false (proved)"),
        ("charitable:n", {"disproof": PROOF, "amendment": "x < 1"}, "not applicable under loud"),
        ("charitable:s", {"proof": PROOF}, "holds (proved)"),
        ("charitable:v", {"proof": PROOF}, "vacuous (proved)"),
        ("charitable:s literal:r", {"proof": PROOF}, "holds amended (proved)"),
        ("charitable:r", {"proof": PROOF}, "false (simulated)"),
        ("charitable:i", {"proof": PROOF}, "open"),
        ("charitable:s", {"derivation": PROOF}, "holds (simulated)"),
        ("charitable:r", {"disproof": dataclasses.replace(PROOF, caveat="x.")}, "false (proved, with a caveat)"),
    ],
)
def test_a_proof_says_how_a_status_is_known_and_a_disproof_that_the_sentence_is_not_true_as_printed(
    text, proved, words
):
    about, verdicts = made_up(text)
    assert judged(dataclasses.replace(about, **proved), verdicts).words == words


CAUSES = {
    "not isolated": (
        "charitable:r",
        "charitable:r intervention:s suspect:s",
        "charitable:r intervention:s intervention:i",
        "charitable:r intervention:v",
        "charitable:r intervention:n suspect:r",
        "charitable:r suspect:r",
    ),
    None: ("charitable:s", "charitable:i intervention:s"),
    "isolated": ("charitable:r intervention:s", "charitable:r intervention:s suspect:r suspect:i"),
    "not the cause": ("charitable:r intervention:s intervention:r",),
}


def test_a_cause_is_isolated_by_taking_it_away_and_by_leaving_it_when_others_go():
    for cause, texts in CAUSES.items():
        for text in texts:
            about, verdicts = made_up(text)
            assert judged(about, verdicts).cause == cause, text
            shown = {"not isolated": "exhibited by the disproof"}.get(cause, cause)
            assert cause is None or judged(dataclasses.replace(about, disproof=PROOF), verdicts).cause == shown, text


def test_of_several_readings_the_one_that_says_most_says_what_is_known_of_the_cause():
    about, verdicts = made_up("charitable:r intervention:x", reading="weak")
    _, others = made_up("charitable:r intervention:s", reading="strong")
    assert judged(about, [*verdicts, *others]).cause == "isolated"


def test_a_counterexample_that_does_not_refute_is_passed_over():
    about, verdicts = made_up("charitable:i", kind="counterexample")
    assert find(about, {each.claim: each for each in verdicts}).status == "open"
    roles = about.roles | {"a.c": Role.CHARITABLE}
    known = {each.claim: each for each in [*verdicts, verdict("a.c", Status.SUPPORTED)]}
    found = find(dataclasses.replace(about, roles=roles), known)
    assert (found.status, found.known, found.decided_by) == ("holds", "simulated", ("a.c",))


@pytest.mark.parametrize(
    ("text", "about", "known"),
    [
        ("charitable:r", {"kind": "identity"}, "exact"),
        ("charitable:r", {"kind": "counterexample"}, "exact"),
        ("charitable:s", {"kind": "identity"}, "simulated"),
        ("charitable:s", {"is_computed": True}, "exact"),
        ("charitable:r", {"kind": "equality"}, "simulated"),
    ],
)
def test_how_it_is_known(text, about, known):
    made, verdicts = made_up(text, **about)
    assert judged(made, verdicts).finding.known == known


def test_readings_that_differ_are_shown_as_such():
    about, verdicts = made_up("charitable:r", reading="weak")
    _, others = made_up("charitable:s", reading="strong")
    found = judged(about, [*verdicts, *others])
    assert found.finding is None
    assert found.words == "holds under strong, false under weak"
    assert judged(about, verdicts).words == "false (simulated)"


def test_a_reading_that_breaks_the_hypotheses_is_told():
    about, verdicts = made_up("charitable:r")
    _, broken = made_up("charitable:n", reading="alike")
    assert judged(about, [*verdicts, *broken]).words == "false (simulated), not applicable under alike"
    assert judged(about, broken).words == "not applicable under alike"


def test_a_statement_that_cannot_be_tested_needs_no_verdict():
    about = Statement("b", "a", "Lemma 1", "Something.", untestable="It is a definition.")
    assert judged(about, []).finding == Finding(StatementStatus.NOT_TESTABLE)
    assert judged(dataclasses.replace(about, untestable=""), []).words == "not judged"


def test_a_statement_that_other_data_would_decide_is_open():
    about, verdicts = made_up("ours:s")
    assert judged(dataclasses.replace(about, undecided="MNIST decides it."), verdicts).finding.status == "open"


def test_what_was_not_judged_is_told():
    about, verdicts = made_up("charitable:s charitable:x literal:s")
    assert judged(about, verdicts).missing == ["a.b-1"]
    assert judged(about, []).missing == ["a.b-0", "a.b-1"]


def test_claims_of_another_paper_have_readings_of_their_own():
    about, verdicts = made_up("charitable:s")
    about.roles["other.b"] = Role.CHARITABLE
    found = judged(about, [*verdicts, verdict("other.b", Status.SUPPORTED, reading="balanced")])
    assert found.words == "holds (simulated)"
    assert set(found.by_reading) == {"loud", "balanced"}


def search(sought: str, has_clause: bool = True, reading: str = "loud", stands: Sequence[str] = ()) -> Challenge:
    """A search that has flipped a statement at x = 2 under a reading."""
    flipped = Status.REFUTED if sought == "break" else Status.SUPPORTED
    looked = Looked({"x": 2}, 1.0, 64)
    clause = Clause([ClauseBound("x", "≤", 1)], 9, looked, [*(stands or [reading])]) if has_clause else None
    flip = Flip({"x": 2}, [verdict("a.b-0", flipped, reading=f"{reading}, x=2")], {"x": [1, 2]})
    about = {"recorded": looked, "nearest": looked, "settings": 9, "inadmissible": 0, "shapes": 1, "idle": []}
    about |= {"seconds": 1.0, "seed": 0, "error": 0.01, "command": ""}
    return Challenge("a.b", "Lemma 1", sought, reading, [reading], [], [flip], clause, **about)


AMENDED = {"amendment": "x < 1"}


@pytest.mark.parametrize(
    ("text", "found", "about", "words"),
    [
        ("charitable:s", search("break"), {}, "holds amended (simulated)"),
        ("charitable:s", search("break", False), {}, "false (simulated)"),
        ("charitable:s", search("break", False), AMENDED, "holds amended (simulated)"),
        ("charitable:s", search("break", reading="quiet"), {}, "holds (simulated)"),
        ("charitable:s", search("break", False), {"proof": PROOF}, "false (simulated)"),
        ("charitable:i", search("break"), {}, "open"),
        ("charitable:v", search("break"), {}, "vacuous (simulated)"),
        ("charitable:r", search("rescue"), {}, "holds amended (simulated)"),
        ("charitable:r", search("rescue", False), {}, "false (simulated)"),
        ("charitable:r", search("rescue"), {"disproof": PROOF}, "false (proved)"),
        ("charitable:r", search("rescue"), {"disproof": PROOF, **AMENDED}, "holds amended (simulated)"),
        ("charitable:s literal:r", search("break", False), {}, "false (simulated)"),
        ("charitable:s", search("break", stands=["quiet"]), {}, "false (simulated)"),
    ],
)
def test_the_status_is_of_the_region_where_that_was_searched(text, found, about, words):
    made, verdicts = made_up(text)
    assert judged(dataclasses.replace(made, **about), verdicts, found).words == words


def known(**statuses: str) -> list[Judged]:
    about = {id: Statement(id, "p", "", "") for id in statuses}
    return [Judged(about[id], {"a": Finding(StatementStatus(status))}) for id, status in statuses.items()]


def test_a_proof_is_shown_with_its_failing_premises(monkeypatch):
    texts = PaperTexts(premises={"b": ["a"], "c": ["b"], "e": ["a", "b"], "f": ["e", "c"]})
    monkeypatch.setattr(statuses, "texts_of", {"p": texts}.__getitem__)
    failing = failing_premises(known(a="false", b="false", c="holds", e="vacuous", f="holds amended"))
    assert failing == {"p.a": (), "p.b": ("p.a",), "p.c": ("p.b",), "p.e": ("p.a", "p.b"), "p.f": ("p.e",)}


def test_the_premises_of_proofs_are_statements():
    names = {each.statement.name for each in judged_statements()}
    for paper in paper_names():
        texts = statuses.texts_of(paper)
        ids = {*texts.premises, *(id for premise_ids in texts.premises.values() for id in premise_ids)}
        assert {f"{paper}.{id}" for id in ids} <= names
        graphlib.TopologicalSorter(texts.premises).prepare()  # no proof rests on itself


@pytest.mark.parametrize("paper", ["continual", "edge"])
def test_of_what_contradicts_one_another_something_is_not_as_printed(paper):
    """Would catch statuses that cannot all be right, and a contradiction of what is no statement."""
    as_printed = {each.statement.name for each in judged_statements(paper) if each.words.startswith("holds (")}
    names = {each.statement.name for each in judged_statements(paper)}
    conflicts = statuses.texts_of(paper).conflicts
    assert conflicts
    for each in conflicts:
        ids = {f"{paper}.{id}" for id in (*each["one"], *each["other"])}
        assert ids <= names
        assert not ids <= as_printed, each
