"""`moe-theory explore` as a user meets it: catches tracebacks, work before a refusal, and what is not written."""

import json

EXPLORE = ["explore", "continual.lemma-4", "--over", "noise_scale=0.05..0.2", "--replicates", "32", "--points", "2"]
FILES = ["continual.lemma-4.csv", "continual.lemma-4.json", "continual.lemma-4.svg"]


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
