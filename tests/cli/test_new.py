"""`moe-theory new`: catches a name that cannot be a paper's, files that are overwritten, and a first paper that grows.

That what it writes runs is tested in `tests/contract/test_papers.py`.
"""

import re

import pytest

from moe_theory import cli
from moe_theory.cli import new


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        cli.main(["new", *arguments])
    return ended.value.code, capsys.readouterr().err


def test_a_name_that_is_no_paper_s_is_refused_in_a_line(inside, capsys):
    for name, way_out in (
        ("Queues", "39 lower-case letters"),
        ("my-paper", "39 lower-case letters"),
        ("class", "Choose another"),
        ("", "Choose another"),
        ("continual", "Try mycontinual"),
        ("queue", "Try myqueue"),
        ("verify", "Try myverify"),
    ):
        code, said = run(capsys, "paper", name)
        assert code == 2
        assert way_out in said
        assert said.count("\n") == 1
    assert not list(inside.iterdir())


def test_nothing_is_overwritten(tmp_path, inside, capsys):
    cli.main(["new", "paper", "queues"])
    printed = capsys.readouterr().out
    made = (tmp_path / "queues").rglob("*.*")
    assert {file.relative_to(tmp_path / "queues").as_posix() for file in made} == set(new.template("queues"))
    for line in re.findall(r"^  (moe-theory .*?)(?::|$)", printed, re.MULTILINE):
        words = line.split()[1:]
        cli.command(words[0]).make_context(words[0], words[1:])  # it parses
    assert "allocations" not in "".join(new.template("queues").values())
    module = tmp_path / "queues" / "queues" / "__init__.py"
    module.write_text("mine")
    code, said = run(capsys, "paper", "queues")
    assert code == 2
    assert "already exists, and is not overwritten" in said
    assert module.read_text() == "mine"
