"""Progress: what counts as work and as time, and what is shown of it where."""

import io

import pytest
from rich.console import Console

from moe_theory.runs import progress
from moe_theory.runs.progress import Meter


class Clock:
    """A clock that stands until it is set."""

    def __init__(self):
        self.seconds = 0.0

    def __call__(self):
        return self.seconds


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("time.monotonic", clock)
    return clock


def test_lines_say_once_an_interval_what_is_planned_and_done(clock):
    """Would catch saved work that is planned or done, and a line for every step."""
    console = Console(file=io.StringIO(), width=80)
    meter = Meter(console)
    meter.add_work(100)
    meter.add_work(-60)  # what another process has saved meanwhile
    for clock.seconds in (4, 8, 12, 16):
        meter.running("it")
        meter.advance(5)
    for clock.seconds in (20, 24):
        meter.at("here")
    assert console.file.getvalue() == "running it: 25% of this run\nrunning it: 50% of this run, here\n"


@pytest.mark.parametrize(
    ("is_terminal", "seconds", "words"), [(False, 9, ""), (False, 11, "running it"), (True, 0, "\x1b")]
)
def test_automatic_is_a_bar_on_a_terminal_and_lines_of_what_takes_long(
    monkeypatch, capsys, clock, is_terminal, seconds, words
):
    """Catches a minute of silence, and words on standard output or of a run of seconds."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    with progress.shown(progress.automatic) as told:
        told.add_work(100)
        told.running("it")
        clock.seconds = seconds
        told.advance(50)
    streams = capsys.readouterr()
    assert streams.out == ""
    assert words in streams.err if words else streams.err == ""
