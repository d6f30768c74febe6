"""The command line as a user meets it: catches tracebacks, wrong exit codes, half-written folders, invalid JSON."""

import json
import os

import pytest

from moe_theory import cli
from moe_theory.report import plots
from moe_theory.verify import session

VERIFY = ["verify", "continual.lemma-4", "--reading", "unit-signal", "--replicates", "32"]


def refused(arguments, capsys) -> str:
    """The single line on standard error of a request that is refused with exit code 2."""
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    streams = capsys.readouterr()
    assert "Traceback" not in streams.err
    lines = streams.err.strip().splitlines()
    assert len(lines) == 1, streams.err
    return lines[0]


@pytest.fixture
def no_work(monkeypatch):
    def ran(*arguments, **options):
        pytest.fail("work was done before the request was refused")

    monkeypatch.setattr(session, "run_cells", ran)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["verify", "continual.lemma-44"], ["unknown claim 'continual.lemma-44'", "Did you mean 'continual.lemma-4'"]),
        (["verify", "--reading", "unit-sigal"], ["unknown reading", "Did you mean 'unit-signal'"]),
        (["verify", "--replicates", "3"], ["replicates=3", "Raise replicates"]),
        (["verify", "--error", "2"], ["error=2", "(0, 1)"]),
        (["verify", "--seed", "-1"], ["seed=-1"]),
        (["claims", "contnual"], ["unknown claim 'contnual'", "Did you mean 'continual'"]),
        (["figures", "continual", "figure-22"], ["unknown figure", "Did you mean 'figure-2'"]),
        (["figures", "contnual"], ["unknown paper", "Did you mean 'continual'"]),
        (["figures", "continual", "figure-2", "--reading", "week-signal"], ["Did you mean 'weak-signal'"]),
    ],
)
def test_a_mistake_is_one_line_and_nothing_is_made(arguments, parts, capsys, no_work, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    line = refused(arguments, capsys)
    for part in parts:
        assert part in line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", [["verify", "continual.lemma-4"], ["figures", "continual", "figure-8"]])
def test_an_out_that_cannot_be_written_is_refused_before_any_work(command, capsys, no_work, tmp_path):
    (tmp_path / "file").write_text("in the way")
    line = refused([*command, "--out", str(tmp_path / "file" / "below")], capsys)
    assert "cannot be written" in line
    if os.geteuid() != 0:  # root may write anywhere
        folder = tmp_path / "locked"
        folder.mkdir(mode=0o500)
        assert "cannot be written" in refused([*command, "--out", str(folder)], capsys)


def test_verify_writes_its_report_and_ends_with_its_path(capsys, tmp_path):
    cli.main([*VERIFY, "--out", str(tmp_path)])
    printed = capsys.readouterr().out
    assert "SUPPORTED" in printed
    assert f"report: {tmp_path}/verdicts.md" in printed
    assert sorted(path.name for path in tmp_path.iterdir()) == ["verdicts.json", "verdicts.md", "verdicts.svg"]
    document = json.loads((tmp_path / "verdicts.json").read_text())
    assert document["schema"] == "moe-theory/verdicts/1"
    assert document["summary"] == {"SUPPORTED": 1}
    (verdict,) = document["verdicts"]
    assert verdict["claim"] == "continual.lemma-4"
    assert verdict["replicates"] == 32
    page = (tmp_path / "verdicts.md").read_text()
    assert verdict["command"] in page
    assert "| continual.lemma-4 | unit-signal |" in page


def test_json_is_the_only_thing_on_standard_output(capsys, tmp_path):
    cli.main([*VERIFY, "--out", str(tmp_path), "--json"])
    assert capsys.readouterr().out == (tmp_path / "verdicts.json").read_text()


def test_lists(capsys):
    cli.main(["claims", "continual.lemma-*", "--json"])
    assert [claim["id"] for claim in json.loads(capsys.readouterr().out)] == [
        "continual.lemma-3",
        "continual.lemma-3.contraction",
        "continual.lemma-4",
    ]
    cli.main(["verify", "continual.lemma-4", "--list"])
    assert "continual.lemma-4 under unit-signal: 1024 replicates" in capsys.readouterr().out
    cli.main(["figures", "continual", "--list", "--json"])
    assert set(json.loads(capsys.readouterr().out)) == set(plots.figures_of("continual"))


@pytest.mark.parametrize(
    "arguments",
    [[], ["--help"], ["verify", "--help"], ["figures", "--help"], ["report", "--help"], ["claims", "--help"]],
)
def test_help_answers_with_an_example(arguments, capsys):
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "moe-theory" in printed
    assert "Example" in printed


def test_an_interrupt_is_one_line(capsys, monkeypatch, tmp_path):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(session, "run_cells", interrupt)
    with pytest.raises(SystemExit) as stop:
        cli.main([*VERIFY, "--out", str(tmp_path)])
    assert stop.value.code == 130
    assert "interrupted" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
