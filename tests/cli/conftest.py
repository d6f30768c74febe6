"""Fixtures of the tests of commands."""

import contextlib
import re

import pytest

from moe_theory import cli
from moe_theory.verification import session

# An option that a message asks for, as if it were not there: "needs a folder (--data DIR)".
ASKED_FOR = re.compile(
    r"(?:needs|[Gg]ive|[Nn]ame|[Aa]dd|[Ss]et) (?:it |them |a |the |also )*(?:(?!another|others)\w+ )?"
    r"(?:with |by |\()?(--[a-z-]+)"
)


@pytest.fixture
def inside(tmp_path):
    """An empty folder, in which a test runs."""
    with contextlib.chdir(tmp_path):
        yield tmp_path


@pytest.fixture
def ran(capsys):
    """Run a command: what it and those before it printed since somebody looked, as `out` and `err`."""

    def run(*arguments):
        cli.main([*map(str, arguments)])
        return capsys.readouterr()

    return run


@pytest.fixture
def refused(capsys):
    """Run a command that ends early, with an exit code: its single line on standard error."""

    def run(*arguments, code=2, may_print=False) -> str:
        with pytest.raises(SystemExit) as stop:
            cli.main([*map(str, arguments)])
        assert stop.value.code == code
        streams = capsys.readouterr()
        assert may_print or not streams.out
        (line,) = streams.err.splitlines()
        assert line.startswith("moe-theory: ")
        asked = ASKED_FOR.findall(line)  # a way out that has been taken already is none
        assert not set(asked) & {str(each).partition("=")[0] for each in arguments}, line
        return line

    return run


@pytest.fixture
def no_work(monkeypatch):
    """Fails a test in which an experiment runs."""
    monkeypatch.setattr(session, "CellBatch", lambda *given, **options: pytest.fail("ran before the refusal"))
