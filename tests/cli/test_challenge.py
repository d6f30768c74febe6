"""`moe-theory challenge` and `explore` as a user meets them: catches tracebacks, work before a refusal, what is not
written, and a flip without its command.
"""

import json

import pytest

CLAIMS = """
import moe_theory as mt
from moe_theory import continual
from moe_theory.verification.region import Scale
from moe_theory.verification.statement import bound

dims = continual.Dims(max_experts=1, num_tasks=2, num_features=4, num_samples=2)
runs = mt.Experiment(
    name="mine", dims=dims, system=continual.system(dims), cells={"one": {"num_experts": 1}}, num_rounds=2,
    observe=lambda state, info: info.generalization_error,
)
mine = mt.statement(
    "error", paper="continual", where="my notes", claim="Errors are small.", free=[Scale("truth_scale", 0.01, 4)]
)
@mine.claim("mine.error", runs.at("one"), bound(at_most=3), role="charitable",
    says="The error after two rounds is at most 3.")
def error(run):
    return run.records[-1]
"""
COMMAND = ["challenge", "continual.error", "--reading", "weak-signal", "--seconds", "200", "--module"]


@pytest.fixture
def module(tmp_path, forgotten):
    (tmp_path / "mine.py").write_text(CLAIMS)
    return str(tmp_path / "mine.py")


@pytest.mark.thorough
def test_a_statement_of_ones_own_is_challenged(ran, module):
    lines = ran(*COMMAND, module).out.splitlines()
    assert any("(continual.error), reading weak-signal: breaks at truth_scale = " in line for line in lines)
    assert any(
        line.startswith("  repeat: moe-theory verify mine.error --reading weak-signal --set truth_scale=")
        for line in lines
    )
    assert any("settings and 1 shape of programs" in line for line in lines)


@pytest.mark.thorough
def test_json_is_one_document(ran, module):
    (document,) = json.loads(ran(*COMMAND, module, "--json").out)
    assert document["schema"] == "moe-theory/challenge/3"
    assert document["flips"][0]["verdicts"][0]["status"] == "REFUTED"
    (axis,) = document["free"]
    assert (axis["name"], axis["region"], axis["recorded"]) == ("truth_scale", "0.01 to 4", "0.4")
    assert document["clause"]["bounds"][0]["name"] == "truth_scale"


def test_of_several_statements_those_that_leave_nothing_free_are_left_out(ran):
    assert "None of these statements declares what it leaves free" in ran("challenge", "generalization.remark").out


def test_what_leaves_nothing_free_is_refused_with_the_way_out(refused, no_work):
    assert "free=(Order(...)" in refused("challenge", "continual.figure-2-rise")
    assert "seconds=0.0 must be above 0" in refused("challenge", "continual.lemma-8", "--seconds", "0")
    assert "unknown reading" in refused("challenge", "continual.lemma-8", "--reading", "nothing")


def test_a_statement_has_to_be_named(refused):
    assert "name a STATEMENT" in refused("challenge")


EXPLORE = ["explore", "continual.lemma-4", "--over", "noise_scale=0.05..0.2", "--replicates", "32", "--points", "2"]
FILES = ["continual.lemma-4.json", "continual.lemma-4.svg"]


def test_a_file_in_the_way_is_refused_before_any_work(refused, no_work, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "cannot be written" in refused(*EXPLORE, "--out", str(tmp_path / "file" / "below"))
    (tmp_path / FILES[1]).mkdir()
    assert f"{FILES[1]} is a folder" in refused(*EXPLORE, "--out", str(tmp_path))


def test_a_map_is_written_and_summed_up(ran, tmp_path):
    lines = ran(*EXPLORE, "--out", tmp_path).out.splitlines()
    assert "SUPPORTED at 2 of 2 points: noise_scale = 0.05, 0.2" in lines
    assert any(line.startswith("Probability that any status is wrong: at most 0.01") for line in lines)
    assert lines[-2:] == [f"{tmp_path}/{FILES[1]}", f"{tmp_path}/{FILES[0]}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


@pytest.mark.thorough
def test_json_is_the_only_thing_on_standard_output(ran, tmp_path):
    printed = ran(*EXPLORE, "--out", tmp_path, "--json").out
    assert printed == (tmp_path / FILES[0]).read_text()
    document = json.loads(printed)
    assert document["schema"] == "moe-theory/exploration/2"
    assert [point["at"] for point in document["points"]] == [{"noise_scale": 0.05}, {"noise_scale": 0.2}]
