"""Claims judged for an algorithm of one's own: catches one that is judged with the printed algorithm and not told, one
that enters a record or a status of the paper, and numbers that are not those of its runs.
"""

import json
import shlex
import textwrap

import pytest
from refusals import refusal

import moe_theory as mt
from moe_theory import cli, continual, edge
from moe_theory.continual import interventions
from moe_theory.core.errors import DamagedError, DeclarationError, InvalidValueError, UnknownNameError
from moe_theory.core.parts import rebuilt
from moe_theory.core.system import fields
from moe_theory.report import comparison, pages, record
from moe_theory.report.standing import standing
from moe_theory.verification import Experiment, Status
from moe_theory.verification.archive import Archive
from moe_theory.verification.registry import load_claims
from moe_theory.verification.request import check_request
from moe_theory.verification.statement import probability, statement
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
DIMS = continual.Dims(max_experts=3, num_tasks=4, num_features=6, num_samples=2)


@pytest.fixture
def own(tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(textwrap.dedent(OWN))
    return path


@pytest.fixture
def declared(forgotten):
    """A statement of two claims: one that any router meets, and one that needs several experts; and a competitor."""
    runs = Experiment(
        name="small", dims=DIMS, system=continual.system(DIMS), cells={"M = 3": {"num_experts": 3}}, num_rounds=20,
        record_every=20, observe=fields("info.expert"), replicates=256,
    )  # fmt: skip
    blind = Experiment(
        **{**vars(runs), "name": "blind", "system": continual.system(DIMS, router=interventions.by_habit)}
    )
    of = statement("shared-work", paper="continual", where="my notes", claim="All experts have some work.")

    @of.charitable("mine.work", runs.at("M = 3"), probability(at_least=0.9), says="All experts have some work.")
    def is_shared(run):
        return (run.state.visits > 0).all(axis=0)

    @of.charitable("mine.all", runs.at("M = 3"), probability(at_least=0.9), says="Every task goes to an expert.")
    def is_done(run):
        return run.state.visits.sum(axis=0) == 20

    of.competitor("mine.blind", blind.at("M = 3"), probability(at_least=0.9), says="The same of the first.")(is_shared)
    return of


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


@pytest.mark.thorough
def test_a_worse_algorithm_is_told_where(declared, own, monkeypatch):
    """Would catch a table that does not say which statement is lost, and numbers of the printed runs beside it."""
    del declared
    asked = {"readings": "quick", "error": 0.01}
    printed = mt.verify("continual.shared-work", **asked)
    assert [each.status for each in printed] == [Status.SUPPORTED, Status.SUPPORTED, Status.REFUTED]
    monkeypatch.setattr(comparison, "recorded_verdicts", lambda of: [*printed])
    found = mt.verify("continual.shared-work", **asked, system=f"{own}:worse")
    (pair,) = comparison.compared(found.source)
    assert pair.differs
    assert (pair.printed, pair.own) == ("holds (simulated)", "false (simulated)")
    assert [each.observed for each in pair.verdicts] == [printed[0].observed, 0.0]
    assert list(pair.inapplicable) == ["mine.blind"]
    document = comparison.comparison(found.source)
    told = document.text(160).strip().splitlines()
    assert told[-1].startswith("1 of 1 statements differ from the printed algorithm's (continual.shared-work)")
    body = json.loads(json.dumps(document.to_json(), allow_nan=False))
    assert body["schema"] == comparison.SCHEMA
    assert body["differ"] == ["continual.shared-work"]
    assert body["statements"][0]["own"]["verdict"]["reading"] == "unit-signal, system=worse"

    alike = mt.verify("continual.shared-work", **asked, system=f"{own}:printed")
    (same,) = comparison.compared(alike.source)
    assert not same.differs
    assert [each.observed for each in same.verdicts] == [printed[0].observed] * 2


def test_what_is_proved_of_the_printed_algorithm_is_not_said_of_ones_own():
    found = mt.verify("continual.lemma-3", **QUICK, system={"router": continual.perturbed}).source
    (of,) = [each for each in mt.statements("continual.lemma-3") if each.disproof]
    (kept,) = [each for each in found.statements if each.name == of.name]
    assert not kept.proofs
    assert [kept.why, kept.corrected, kept.witness] == ["", "", ""]
    assert kept.says == of.says
    (pair,) = [pair for pair in comparison.compared(found) if pair.name == "continual.lemma-3"]
    assert pair.printed.startswith("false (proved)")


@pytest.mark.parametrize(
    ("parts", "reasons"),
    [
        (
            {"router": interventions.by_kind},
            {
                "continual.proposition-4.forgetting": "begin at states of the printed",
                "continual.theorem-1.error-reduced": "is not the paper's algorithm alone",
                "continual.lemma-8.small-alpha": "as intervention it takes something away",
                "edge.lemma-6.order": "its algorithm has no router",
            },
        ),
        ({"stream": interventions.without_signal}, {"continual.lemma-8.experts": "are of the printed stream"}),
        (
            {"policy": edge.policies.fastest},
            {
                "edge.figure-3.nearest-increases": "has a policy of its own",
                "edge.lemma-1.least-change": "is not the paper's algorithm alone",
                "merging.abstract.sublinear": "is not the paper's algorithm alone",
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


@pytest.mark.thorough
def test_every_study_runs_the_own_parts():
    """Would catch a system of a paper that is rebuilt without them."""
    request = check_request(["continual", "edge"], "quick", system={"fit": interventions.whole_truth})
    names = {study.experiment.name for study in request.studies}
    assert names >= {"limit-scale", "figure-3-adaptive", "router-grid", "specialization", "limit", "endless-limit"}
    for study in request.studies:
        for cell in study.cells:
            refusal(DeclarationError, rebuilt, cell.system, {"fit": continual.minimum_norm})


def test_a_competitor_stays_as_recorded():
    """Would catch a statement that one's own is said to meet where what lacks all it credits meets it as well."""
    request = check_request("continual.figure-2*", "quick", system={"router": interventions.by_kind})
    roles = {id: role for each in mt.statements("continual") for id, role in each.roles.items()}
    competitors = [each for each in request.inapplicable if roles[each.claim] is Role.COMPETITOR]
    assert competitors
    assert all(each.replicates and each.reason.endswith("as recorded") for each in competitors)
    assert all(each.own_system == "router" and "--system" not in each.command for each in competitors)
    assert request.error > 0.01


@pytest.mark.thorough
def test_its_command_repeats_a_verdict(own, tmp_path, capsys):
    (verdict,) = mt.verify("continual.lemma-4", **QUICK, system=f"{own}:worse")
    words = shlex.split(verdict.command)
    assert words[:3] == ["moe-theory", "verify", "continual.lemma-4"]
    cli.main([*words[1:], "--out", str(tmp_path / "run"), "--json"])
    document = json.loads(capsys.readouterr().out)
    (found,) = document["statements"]
    assert found["own"]["verdict"]["observed"] == verdict.observed
    assert found["own"]["verdict"]["command"] == verdict.command


def test_it_enters_no_record_and_no_status(own, tmp_path):
    folder = tmp_path / "run"
    mt.verify("continual.lemma-4", **QUICK, system=f"{own}:worse").report(folder)
    for read in (record.own, record.of_other_data, lambda where: standing(folder=where)):
        argument = [folder] if read is record.of_other_data else folder
        assert "worse, an algorithm of your own" in str(refusal(DamagedError, read, argument))
    assert pages.read_reports([folder]).own_system == "worse"
    mt.verify("continual.lemma-4", **QUICK).report(tmp_path / "printed")
    refusal(DamagedError, pages.read_reports, [folder, tmp_path / "printed"])


@pytest.mark.thorough
def test_samples_are_kept_apart(own, tmp_path):
    """Would catch samples of one algorithm that another one goes on from, or replaces."""
    for system in (None, f"{own}:worse", f"{own}:printed"):
        mt.verify("continual.lemma-4", **QUICK, system=system, folder=tmp_path)
    assert len(Archive(tmp_path / "samples").store.keys()) == 2  # the printed one's are the paper's

    def saved(system):
        (study,) = check_request("continual.lemma-4", "quick", 64, system=system).studies
        return Archive(tmp_path / "samples").load(study.claims[0], study.reading, 0)

    assert saved(f"{own}:worse") is not None
    own.write_text(own.read_text().replace("-jnp.arange", "-2 * jnp.arange"))
    assert saved(f"{own}:worse") is None


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
