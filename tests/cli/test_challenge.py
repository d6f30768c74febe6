"""`moe-theory challenge` and `explore` as a user meets them: catches tracebacks, work before a refusal, what is not
written, and a flip without its command.
"""


def test_of_several_statements_those_that_leave_nothing_free_are_left_out(ran):
    assert "None of these statements declares free parameters" in ran("challenge", "generalization.remark").out


def test_what_leaves_nothing_free_is_refused_with_the_way_out(refused, no_work):
    assert "free=(Order(...)" in refused("challenge", "continual.figure-2-rise")
    assert "seconds=0.0 must be above 0" in refused("challenge", "continual.lemma-8", "--seconds", "0")
    assert "unknown reading" in refused("challenge", "continual.lemma-8", "--reading", "nothing")


EXPLORE = ["explore", "continual.lemma-4", "--over", "noise_scale=0.05,0.2", "--replicates", "32"]
FILE = "continual.lemma-4.json"


def test_a_file_in_the_way_is_refused_before_any_work(refused, no_work, tmp_path):
    (tmp_path / "file").write_text("in the way")
    assert "cannot be written" in refused(*EXPLORE, "--out", str(tmp_path / "file" / "below"))
    (tmp_path / FILE).mkdir()
    assert f"{FILE} must be a file, but is a folder" in refused(*EXPLORE, "--out", str(tmp_path))


def test_a_map_is_written_and_summed_up(ran, tmp_path):
    lines = ran(*EXPLORE, "--out", tmp_path).out.splitlines()
    assert "SUPPORTED at 2 of 2 points: noise_scale = 0.05, 0.2" in lines
    assert any(line.startswith("The probability that any status is wrong is at most 0.01") for line in lines)
    assert lines[-1] == f"{tmp_path}/{FILE}"
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
