"""`verify`, `claims` and `figures` as a user meets them: catches tracebacks, wrong exit codes, half-written folders,
invalid JSON."""

import json
import os

import pytest

from moe_theory import cli
from moe_theory.cli import verify
from moe_theory.core.papers import all_papers
from moe_theory.report import plots
from moe_theory.verification import session
from moe_theory.verification.catalog import all_figure_titles

pytestmark = pytest.mark.usefixtures("forgotten")

VERIFY = ["verify", "continual.lemma-4", "--reading", "unit-signal", "--replicates", "32"]


OWN_CLAIMS = """
from moe_theory import statement
from moe_theory.continual.experiments import HISTORY
from moe_theory.verification.statement import bound, identity

SMALL_STEPS = statement("small-steps", paper="continual", where="my notes", claim="Experts move in small steps.")


@SMALL_STEPS.claim("mine.moves", HISTORY.at("M = 5"), bound(at_most=10.0), role="charitable",
    says="An expert moves by less than 10 a round.")
def last_move(run):
    return run.records.update_norm[-1]


@SMALL_STEPS.claim("mine.broken", HISTORY, identity(within=0.0), role="ours", says="Its code does not work.")
def broken(runs):
    return runs["no such cell"]
"""


OF_LEMMA_4 = ["verify", "continual.lemma-4", "--reading", "unit-signal", "--set"]
MISTAKES = [
    (["verify", "continual.lemma-44"], ["unknown claim 'continual.lemma-44'", "Did you mean 'continual.lemma-4'"]),
    (["verify", "--reading", "unit-sigal"], ["unknown reading", "Did you mean 'unit-signal'"]),
    (["statements", "continual.lemma-44"], ["unknown"]),
    (["figures", "contnual"], ["unknown paper", "Did you mean 'continual'"]),
    (["figures"], ["name a paper to draw: continual, ", "--list"]),
    (["figures", "continual", "figure-2", "--experts", "2;4"], ["--experts '2;4'", "must be a whole number"]),
    ([*OF_LEMMA_4, "noise_scale"], ["--set noise_scale has no value"]),
    (["verify", "continual.lemma-4", "--dask", "host"], ["dask='host' is not an address of a cluster"]),
    (["explore", "continual.lemma-4", "--over", "noise_scale=0,1", "--module", "no.py"], ["--module no.py"]),
    (
        ["explore", "continual.figure-2.moe-forgetting", "--over", "num_experts=1,5"],
        ["'M = 20, no termination' sets 20"],
    ),
]


def test_a_mistake_is_one_line_and_nothing_is_made(refused, no_work, inside):
    for arguments, parts in MISTAKES:
        line = refused(*arguments)
        assert [part for part in parts if part not in line] == [], arguments
    assert list(inside.iterdir()) == []


@pytest.mark.parametrize("command", [["verify", "continual.lemma-4"], ["figures", "continual", "figure-8"]])
def test_an_out_that_cannot_be_written_is_refused_before_any_work(command, refused, no_work, tmp_path):
    (tmp_path / "file").write_text("in the way")
    line = refused(*command, "--out", str(tmp_path / "file" / "below"))
    assert "cannot be written" in line
    if os.geteuid() != 0:  # root may write anywhere
        folder = tmp_path / "locked"
        folder.mkdir(mode=0o500)
        assert "cannot be written" in refused(*command, "--out", str(folder))


def test_verify_writes_its_report_and_ends_with_its_path(ran, tmp_path):
    printed = ran(*VERIFY, "--out", tmp_path).out
    assert "SUPPORTED" in printed
    assert printed.rstrip().endswith(f"report: {tmp_path}/report.html")
    assert "at most 0.01" in printed
    made = sorted(path.name for path in tmp_path.iterdir())
    assert made == ["report.html", "samples", "verdicts.json"]
    document = json.loads((tmp_path / "verdicts.json").read_text())
    assert document["schema"] == "moe-theory/verdicts/6"
    assert document["summary"] == {"SUPPORTED": 1}
    (verdict,) = document["verdicts"]
    assert verdict["claim"] == "continual.lemma-4"
    assert verdict["replicates"] == 32
    assert verdict["command"] in (tmp_path / "report.html").read_text()


def test_verify_resumes_from_its_samples(ran, tmp_path):
    assert "samples: 1 computed, 0 reused" in ran(*VERIFY, "--out", tmp_path).out
    first = (tmp_path / "verdicts.json").read_text()
    assert "samples: 0 computed, 1 reused" in ran(*VERIFY, "--out", tmp_path).out
    again, before = json.loads((tmp_path / "verdicts.json").read_text()), json.loads(first)
    assert again["verdicts"] == before["verdicts"]


def test_it_ends_with_statuses_what_is_false_and_how_to_repeat_it(ran, tmp_path):
    id = "generalization.equation-15.sample-dependent-masks"
    printed = ran("verify", id, "--reading", "mask-dimension", "--replicates", "64", "--out", tmp_path).out
    command = f"moe-theory verify {id} --reading mask-dimension --seed 0 --error 1e-05 --replicates 64"
    assert "statements, at the settings tested: 1 FALSE\n" in printed
    assert "  generalization.equation-15 is false: " in printed
    assert f"repeat a verdict: {command}\n" in printed
    (known,) = json.loads((tmp_path / "verdicts.json").read_text())["statements"]
    assert known["status"].startswith("false")
    assert known["status_by_reading"] == {"mask-dimension": "false"}
    assert known["roles"][id] == "charitable"


def test_a_budget_is_a_time_and_its_end_is_told(refused, ran, tmp_path):
    printed = ran(*VERIFY, "--out", tmp_path, "--budget", "0.000001s").out
    assert "ran out with 1 undecided" in printed
    assert "1 of them not begun. The same command resumes them: continual.lemma-4" in printed
    assert [verify.seconds_of(text) for text in ("90s", "10m", "1.5h", "7")] == [90, 600, 5400, 7]
    assert "Write it as 90s, 10m or 1h" in refused(*VERIFY, "--budget", "soon")


def test_a_user_s_own_claims_are_in_table_json_and_report(ran, tmp_path):
    module = tmp_path / "my_claims.py"
    module.write_text(OWN_CLAIMS)
    out = tmp_path / "out"
    printed = ran("verify", "--module", module, "--reading", "unit-signal", "--replicates", "512", "--out", out).out
    assert "mine.moves" in printed
    assert "ERROR in mine.broken under unit-signal: UnknownNameError" in printed
    statuses = {each["claim"]: each["status"] for each in json.loads((out / "verdicts.json").read_text())["verdicts"]}
    assert statuses == {"mine.moves": "SUPPORTED", "mine.broken": "ERROR"}
    page = (out / "report.html").read_text()
    assert "mine.moves" in page
    assert "no such cell" in page


def test_json_is_the_only_thing_on_standard_output(ran, tmp_path):
    assert ran(*VERIFY, "--out", tmp_path, "--json").out == (tmp_path / "verdicts.json").read_text()


def test_lists(ran):
    ids = [
        claim["id"].split("-", 1)[1]
        for claim in json.loads(ran("statements", "--claims", "continual.lemma-[34]*", "--json").out)
    ]
    assert [id for id in ids if id in ("3", "3.contraction", "4")] == ["3", "3.contraction", "4"]
    assert len(ids) == len(set(ids))
    assert set(json.loads(ran("figures", "continual", "--list", "--json").out)) == set(plots.figures_of("continual"))
    assert json.loads(ran("figures", "--list", "--json").out) == all_figure_titles()
    assert "edge figure-3: Generalization error" in ran("figures", "--list").out


def test_an_interrupt_is_one_line(refused, monkeypatch, tmp_path):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "CellBatch", interrupt)
    assert "the same command resumes" in refused(*VERIFY, "--out", tmp_path, code=130)
    assert list(tmp_path.glob("*.*")) == []


def test_without_a_pattern_it_takes_a_first_look(monkeypatch):
    requests = []
    monkeypatch.setattr(verify, "_judge", lambda request, *given, **options: requests.append(request) or 1 / 0)
    with pytest.raises(ZeroDivisionError):
        cli.main(["verify"])
    blanks = [(blank.claim, max(study.looks)) for study in requests[0].studies for blank in study.blanks]
    assert {claim for claim, _ in blanks} == {id for paper in all_papers().values() for id in paper.first_look}
    assert max(replicates for _, replicates in blanks) == 512
