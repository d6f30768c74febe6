"""`moe-theory explore` as a user meets it: catches tracebacks, work before a refusal, and what is not written."""

import json

import pytest

EXPLORE = ["explore", "continual.lemma-4", "--over", "noise_scale=0.05..0.2", "--replicates", "32", "--points", "2"]
FILES = ["continual.lemma-4.csv", "continual.lemma-4.json", "continual.lemma-4.svg"]


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["continual.lemma-44", "--over", "noise_scale=0..1"], ["unknown claim", "Did you mean 'continual.lemma-4'"]),
        (["continual.lemma-3*", "--over", "noise_scale=0..1"], ["2 claims", "continual.lemma-3.contraction"]),
        (["continual.lemma-4", "--over", "noise_scale=-1..1"], ["noise_scale=-1", "must not be negative"]),
        (["continual.lemma-4", "--over", "num_experts=1..5"], ["num_experts", "routing decides it in every cell"]),
        (["continual.lemma-4", "--over", "noise_scale=0..1", "--reading", "unit-sigal"], ["'unit-signal'"]),
        (["continual.lemma-4", "--over", "noise_scale=0..1", "--module", "nothing.py"], ["--module nothing.py"]),
        (["continual.figure-2.moe-forgetting", "--over", "num_experts=1..5"], ["'M = 20, no termination' sets 20"]),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_made(arguments, parts, refused, no_work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = refused("explore", *arguments)
    for part in parts:
        assert part in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("noise_scal=1", "Did you mean 'noise_scale'"),
        ("noise_scale", "--set noise_scale sets nothing"),
        ("noise_scale=-1", "must not be negative"),
        ("noise_scale=much", "must be a number"),
        ("num_experts=3", "decides it in every cell"),
        ("terminate=perhaps", "terminate"),
    ],
)
def test_a_setting_that_means_nothing_is_refused(setting, part, refused, no_work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert part in refused("verify", "continual.lemma-4", "--reading", "unit-signal", "--set", setting)
    assert list(tmp_path.iterdir()) == []


def test_a_parameter_is_set_once(refused, no_work):
    sets = ["--set", "noise_scale=1", "--set", "noise_scale=2"]
    assert "Set it once" in refused("verify", "continual.lemma-4", *sets)


def test_a_file_in_the_way_is_refused_before_any_work(refused, no_work, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "cannot be written" in refused(*EXPLORE, "--out", str(tmp_path / "file" / "below"))
    (tmp_path / FILES[2]).mkdir()
    assert f"{FILES[2]} is a folder" in refused(*EXPLORE, "--out", str(tmp_path))


def test_a_map_is_written_and_summed_up(ran, tmp_path):
    lines = ran(*EXPLORE, "--out", tmp_path).out.splitlines()
    assert "SUPPORTED at 2 of 2 points, for noise_scale from 0.05 to 0.2" in lines
    assert any(line.startswith("Probability that any status is wrong: at most 0.01") for line in lines)
    assert lines[-3:] == [f"{tmp_path}/{FILES[2]}", f"{tmp_path}/{FILES[0]}", f"{tmp_path}/{FILES[1]}"]
    assert sorted(path.name for path in tmp_path.iterdir()) == FILES


def test_json_is_the_only_thing_on_standard_output(ran, tmp_path):
    printed = ran(*EXPLORE, "--out", tmp_path, "--json").out
    assert printed == (tmp_path / FILES[1]).read_text()
    document = json.loads(printed)
    assert document["schema"] == "moe-theory/exploration/1"
    assert [point["at"] for point in document["points"]] == [{"noise_scale": 0.05}, {"noise_scale": 0.2}]
