"""`moe-theory record`: catches a record with holes, one that mixes seeds, an error that is too small for what is kept,
and a statement that cannot be recorded without its whole paper.
"""

import dataclasses
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from refusals import refusal

from moe_theory import cli
from moe_theory.core.errors import DamagedError, DeclarationError, InvalidValueError
from moe_theory.report import pages, record
from moe_theory.runs.store import Store
from moe_theory.verification import Status, Verdict, challenge, proofs, recorded, registry
from moe_theory.verification.challenged import Challenge, Looked
from moe_theory.verification.verdict import Proof, Report, Statement

CLAIMS = registry.select_claims(["deep"])


def verdict(claim: str, status: Status = Status.SUPPORTED, **about) -> Verdict:
    made = Verdict(claim, "deep", "", "", "ordering", "balanced", status, "", 8, f"verify {claim}", error=1e-5)
    return dataclasses.replace(made, **{"data": "digits", **about})


def folder_of(tmp_path: Path, *verdicts: Verdict, name: str = "run", **about) -> Path:
    report = Report(list(verdicts), "moe-theory verify deep --out 'a place' --seed 1", 1, 0.01, {}, False, {})
    report.readings["deep.balanced"] = "halves"
    folder = tmp_path / name
    folder.mkdir()
    (folder / pages.NUMBERS).write_text(pages.to_json(dataclasses.replace(report, **{"finished": "2026", **about})))
    return folder


@pytest.fixture(autouse=True)
def records(tmp_path, monkeypatch) -> Iterator[Path]:
    """Where papers have their records, in place of the package. There are none yet."""
    for paper in ("deep", "edge"):
        (tmp_path / "records" / paper).mkdir(parents=True)
    monkeypatch.setattr(recorded, "paper_folder", lambda paper: tmp_path / "records" / paper)
    recorded.searches_of.cache_clear()
    yield tmp_path / "records"
    recorded.searches_of.cache_clear()


@pytest.fixture
def whole(tmp_path) -> recorded.Recorded:
    """The record of a paper, of a whole run."""
    kept = record.updated_record(folder_of(tmp_path, *[verdict(each.id) for each in CLAIMS[::-1]], name="whole"))
    record.write(record.paper_record(kept))
    return kept


def test_a_run_with_holes_is_not_recorded(tmp_path):
    refusal(DamagedError, record.updated_record, folder_of(tmp_path, verdict(CLAIMS[0].id)))


def test_a_whole_run_is_recorded_as_it_was_but_for_its_place(whole, tmp_path):
    assert whole.command == "moe-theory verify deep --seed 1"
    assert [each["claim"] for each in whole.verdicts] == [each.id for each in CLAIMS]
    text = recorded.record_text(whole)
    assert json.loads(text)["schema"] == recorded.SCHEMA
    (tmp_path / "recorded.json").write_text(text)
    assert recorded.record_at(tmp_path / "recorded.json") == whole


def test_runs_of_parts_of_a_paper_are_recorded_together(tmp_path):
    first, *rest = [verdict(each.id) for each in CLAIMS]
    parts = [folder_of(tmp_path, first, name="first"), folder_of(tmp_path, *rest, name="rest")]
    (kept,) = record.paper_records(parts)
    assert kept.counts == {"verdicts": len(CLAIMS)}


def test_a_statement_is_recorded_alone_and_no_other_number_moves(tmp_path, whole):
    """Guards a statement's life: adding or changing one re-runs it and nothing else."""
    changed = folder_of(tmp_path, verdict(CLAIMS[1].id, Status.REFUTED, replicates=16), finished="2027")
    kept = record.updated_record(changed)
    assert kept.verdicts[1]["status"] == "REFUTED"
    assert [kept.verdicts[0], *kept.verdicts[2:]] == [whole.verdicts[0], *whole.verdicts[2:]]
    assert (kept.error, kept.finished) == (0.01, "2027")
    record.write(record.paper_record(kept))
    assert recorded.read()["deep"] == kept
    assert record.updated_record(changed) == kept  # what is recorded already changes nothing


def test_the_command_writes_what_it_says(tmp_path, records, whole, capsys):
    file = records / "deep" / recorded.NAME
    run = folder_of(tmp_path, verdict(CLAIMS[1].id, Status.REFUTED))
    cli.main(["record", str(run)])
    assert capsys.readouterr().out == f"{file}: {len(CLAIMS)} verdicts\n"
    assert recorded.record_at(file).verdicts[1]["status"] == "REFUTED"
    cli.main(["record", str(run), "--json"])
    (told,) = json.loads(capsys.readouterr().out)
    assert (told["path"], told["paper"], told["verdicts"]) == (str(file), "deep", len(CLAIMS))


def test_the_error_of_a_record_is_at_least_that_of_its_verdicts(tmp_path, whole):
    assert record.updated_record(folder_of(tmp_path, verdict(CLAIMS[1].id, error=0.5))).error > 0.5


def test_what_cannot_stand_beside_the_record_is_refused(tmp_path, whole):
    for name, about, changes in (
        ("another seed", {}, {"seed": 2}),
        ("another paper", {"paper": "queues"}, {}),
        ("no claim", {"claim": "mine.fairness"}, {}),
        ("holes", {"reading": "skewed"}, {"readings": {"deep.skewed": "most"}}),
    ):
        run = folder_of(tmp_path, dataclasses.replace(verdict(CLAIMS[0].id), **about), name=name, **changes)
        refusal(DamagedError, record.updated_record, run)


def test_a_proof_that_fails_is_not_recorded(tmp_path, monkeypatch):
    proof = Proof("mine:proofs/x.py", "", [], "", "", "")
    monkeypatch.setattr(record, "own_or_tested_statements", lambda paper: [Statement("x", paper, "", "", proof=proof)])
    run = folder_of(tmp_path, *[verdict(each.id) for each in CLAIMS])
    monkeypatch.setattr(proofs, "source_of", lambda path: "print(1)")
    refusal(DeclarationError, record.updated_record, run)


def test_runs_on_other_data_are_kept_beside_the_record(tmp_path):
    runs = [verdict(each.id, data="Fashion-MNIST") for each in CLAIMS]
    kept = record.other_data_record([folder_of(tmp_path, *runs)])
    assert kept.path.name == "recorded-fashion-mnist.json"
    assert kept.counts == {"verdicts": len(CLAIMS)}
    refusal(DamagedError, record.other_data_record, [folder_of(tmp_path, runs[0], name="part")])
    assert refusal(InvalidValueError, record.other_data_record, []).argument == "folders"


def kept_search(folder: Path, statement: str, settings: int) -> Challenge:
    """A search that found nothing, as `moe-theory challenge --out FOLDER` keeps it."""
    looked = Looked({}, -1.0, 64)
    about = {"settings": settings, "inadmissible": 0, "shapes": 1, "idle": [], "seconds": 1.0, "seed": 0}
    about |= {"error": 0.01, "command": "moe-theory challenge", "recorded": looked, "nearest": looked}
    search = Challenge(statement, "Lemma 6", "break", "sibling", ["sibling"], [], [], None, **about)
    store = Store(folder / challenge.FOLDER)
    store.put({f"{statement} at {settings}": json.dumps(search.to_json()).encode()}, label=statement)
    return search


def test_searches_replace_those_of_the_same_statements_and_the_others_stay(tmp_path, records):
    before = [kept_search(tmp_path / "old", f"edge.lemma-{number}", 50) for number in (6, 7)]
    record.write(*record.search_records([tmp_path / "old"]))
    recorded.searches_of.cache_clear()
    own = kept_search(tmp_path / "new", "edge.lemma-7", 90)
    (found,) = record.search_records([tmp_path / "new"])
    assert found.paper == "edge"
    assert found.path == records / "edge" / recorded.SEARCHES
    assert found.text == recorded.searches_text([before[0], own])
    record.write(found)
    (first, second) = json.loads(found.path.read_text())
    assert (first["settings"], second["settings"]) == (50, 90)
