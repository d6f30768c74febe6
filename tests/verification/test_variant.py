"""Claims judged for an algorithm of one's own: catches one that is judged with the printed algorithm and not told, one
that enters a record or a status of the paper, and numbers that are not those of its runs.
"""

import textwrap

import pytest
from refusals import refusal

import moe_theory as mt
from moe_theory import continual, edge
from moe_theory.continual import interventions
from moe_theory.core.errors import DamagedError, DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.report import comparison, pages, record
from moe_theory.report.standing import standing
from moe_theory.verification import Status
from moe_theory.verification.registry import load_claims
from moe_theory.verification.request import check_request
from moe_theory.verification.variant import variant_of
from moe_theory.verification.verdict import Role

QUICK = {"readings": "quick", "replicates": 64}
OWN = """
    import jax.numpy as jnp
    from moe_theory import continual

    def first(outputs, perturbation, state, arrival, params):
        return -jnp.arange(perturbation.shape[0], dtype=perturbation.dtype)

    worse = {"router": first}
    printed = {"router": continual.perturbed}
    misspelled, of_no_kind, empty = {"ruter": first}, {"router": 3}, {}
"""


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(OWN))
    return path


def numbers(verdicts):
    return [(each.claim, each.status, each.observed, each.predicted, each.interval, each.looks) for each in verdicts]


@pytest.mark.parametrize(
    "parts",
    [{"router": continual.perturbed}, pytest.param({"fit": continual.minimum_norm}, marks=pytest.mark.thorough)],
)
def test_the_printed_algorithm_is_judged_alike_to_the_bit(parts):
    asked = ["continual.lemma-4", "continual.lemma-3"]
    printed, own = mt.verify(asked, **QUICK), mt.verify(asked, **QUICK, system=parts)
    assert numbers(own) == numbers(printed)
    assert [each.own_system for each in own] == [*parts] * len(own)
    assert not any(each.own_system for each in printed)


def test_what_is_proved_of_the_printed_algorithm_is_not_said_of_ones_own():
    found = mt.verify("continual.lemma-3", **QUICK, system={"router": continual.perturbed}).source
    (of,) = [each for each in mt.statements("continual.lemma-3") if each.disproof]
    (kept,) = [each for each in found.statements if each.name == of.name]
    assert not kept.proofs
    assert [kept.why, kept.corrected, kept.witness] == ["", "", ""]
    assert kept.says == of.says
    (pair,) = [pair for pair in comparison.compared(found) if pair.name == "continual.lemma-3"]
    assert pair.printed.startswith("holds amended (proved)")


@pytest.mark.parametrize(
    ("parts", "reasons"),
    [
        (
            {"router": interventions.by_kind},
            {
                "continual.proposition-4.forgetting": "start from states that the printed",
                "continual.theorem-1.error-reduced": "contains more than the paper's algorithm",
                "continual.lemma-8.small-alpha": "as intervention it removes a part",
                "edge.lemma-6.order": "its algorithm has no router",
            },
        ),
        ({"stream": interventions.without_signal}, {"continual.lemma-8.experts": "are only for the printed stream"}),
        (
            {"policy": edge.policies.fastest},
            {
                "edge.figure-3.nearest-increases": "already replaces the policy",
                "edge.lemma-1.least-change": "contains more than the paper's algorithm",
                "merging.abstract.sublinear": "contains more than the paper's algorithm",
            },
        ),
    ],
    ids=["router", "stream", "policy"],
)
def test_what_does_not_apply_is_said(parts, reasons):
    """Would catch a claim that is judged with the printed algorithm, or left out."""
    request = check_request(sorted({claim.partition(".")[0] for claim in reasons}), "quick", system=parts)
    judged = {each.claim for study in request.studies for each in study.blanks}
    apart = {each.claim: each for each in request.inapplicable}
    assert judged | apart.keys() == set(request.claims)
    assert not judged & apart.keys()
    assert len(apart) == len(request.inapplicable)
    for claim, reason in reasons.items():
        assert apart[claim].status is Status.INAPPLICABLE
        assert reason in apart[claim].reason


def test_a_competitor_stays_as_recorded():
    """Would catch a statement that one's own is said to meet where what lacks all it credits meets it as well."""
    request = check_request("continual.figure-2*", "quick", system={"router": interventions.by_kind})
    roles = {id: role for each in mt.statements("continual") for id, role in each.roles.items()}
    competitors = [each for each in request.inapplicable if roles[each.claim] is Role.COMPETITOR]
    assert competitors
    assert all(each.replicates and each.reason.endswith("as recorded") for each in competitors)
    assert all(each.own_system == "router" and "--system" not in each.command for each in competitors)
    assert request.error > 0.01


def test_it_enters_no_record_and_no_status(own, tmp_path):
    folder = tmp_path / "run"
    mt.verify("continual.lemma-4", **QUICK, system=f"{own}:worse").report(folder)
    for read in (record.updated_record, lambda where: standing(folder=where)):
        assert "your own algorithm worse" in str(refusal(DamagedError, read, folder))
    assert pages.read_reports([folder]).own_system == "worse"
    mt.verify("continual.lemma-4", **QUICK).report(tmp_path / "printed")
    refusal(DamagedError, pages.read_reports, [folder, tmp_path / "printed"])


def test_a_refusal_names_what_is_wrong(own):
    for place, kind, argument in (
        ("mine.py", InvalidValueError, ""),
        ("other.py:worse", DeclarationError, ""),
        ("mine.py:wors", InvalidValueError, ""),
        ("mine.py:first", InvalidValueError, ""),
        ("mine.py:empty", InvalidValueError, ""),
        ("mine.py:misspelled", UnknownNameError, "part"),
        ("mine.py:of_no_kind", InvalidValueError, "router"),
    ):
        refused = refusal(kind, check_request, "continual.lemma-4", "quick", system=str(own.parent / place))
        assert refused.argument == argument, place


def test_parts_and_claims_of_one_file_are_read_together(forgotten, own):
    """Would catch a file that is run twice, whose statements are then declared twice."""
    claims = """
    from moe_theory.continual.experiments import HISTORY
    from moe_theory.verification.statement import bound, statement

    M = statement("m", paper="continual", where="here", claim="Small.")

    @M.ours("mine.m", HISTORY.at("M = 5"), bound(at_most=9), says="Moves are small.")
    def moved(run):
        return run.records.update_norm[-1]
    """
    own.write_text(own.read_text() + textwrap.dedent(claims))
    load_claims(own)
    assert list(variant_of(f"{own}:worse").parts) == ["router"]
