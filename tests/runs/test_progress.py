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
def clock():
    return Clock()


@pytest.fixture
def meter(clock):
    return Meter(lambda meter: None, interval=0.0, is_timed=True, clock=clock)


def test_the_time_left_does_not_count_compilation(clock, meter):
    """Would catch a sweep of seconds that announces minutes, since it compiles a program between its chunks."""
    meter.add_work(1000)
    meter.compiling("a")
    clock.seconds = 100
    meter.advance(100)
    meter.running("a")
    clock.seconds = 102
    meter.advance(20)
    meter.compiling("b")
    clock.seconds = 400
    meter.advance(400)
    meter.running("b")
    clock.seconds = 408
    meter.advance(80)
    # 100 in 10 s of running, and 400 are left.
    assert meter.line == "running b: 60% of this run, 40 s left, 10 replicate-rounds/s"


def test_the_time_left_does_not_count_a_wait_for_others(clock, meter):
    meter.add_work(100)
    meter.running("it")
    clock.seconds = 5
    meter.advance(10)
    meter.running("nothing: another process has 2 chunks")
    clock.seconds = 500
    meter.running("it")
    clock.seconds = 505
    meter.advance(10)
    assert meter.line.endswith("20% of this run, 40 s left, 2 replicate-rounds/s")


def test_work_that_is_saved_is_neither_planned_nor_done(clock, meter):
    meter.add_work(100)
    meter.add_work(-60)  # what another process has saved meanwhile
    meter.running("it")
    clock.seconds = 10
    meter.advance(20)
    assert meter.line == "running it: 50% of this run, 10 s left, 2 replicate-rounds/s"


def test_the_first_moments_of_running_give_no_rate(clock, meter):
    """Would catch a time left of .2 s, from tasks that were sent while the program was compiled."""
    meter.add_work(1_000_000)
    meter.compiling("it")
    meter.running("it")
    clock.seconds = 1e-3
    meter.advance(10_000)
    assert meter.line == "running it: 1% of this run"


def test_a_meter_is_drawn_once_an_interval(clock):
    drawn = []
    meter = Meter(lambda meter: drawn.append(clock.seconds), interval=10.0, clock=clock)
    meter.running("it")
    for clock.seconds in (4, 8, 12, 16):
        meter.running("it")
        meter.advance(1)
    meter.compiling("it")
    for clock.seconds in (20, 24):
        meter.at("here")
    assert drawn == [12, 24]


@pytest.mark.parametrize(("is_timed", "share"), [(True, "25%"), (False, "")])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_terminal_has_a_bar_and_a_pipe_has_lines(is_terminal, is_timed, share):
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=is_terminal, width=160)
    with progress.terminal_progress(console, is_timed=is_timed) as told:
        told.add_work(100)
        told.running("it")
        told.advance(25)
        told.at("3 of 12")
    text = stream.getvalue()
    assert ("running it" in text) == is_terminal
    assert ("\x1b" in text) == is_terminal
    assert ("3 of 12" in text and share in text) == is_terminal  # lines come every ten seconds


@pytest.mark.parametrize(
    ("is_terminal", "seconds", "words"), [(False, 9, ""), (False, 11, "running it"), (True, 0, "\x1b")]
)
def test_automatic_is_a_bar_on_a_terminal_and_lines_of_what_takes_long(
    monkeypatch, capsys, clock, is_terminal, seconds, words
):
    """Catches a minute of silence, and words on standard output or of a run of seconds."""
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("sys.stderr.isatty", lambda: is_terminal, raising=False)
    with progress.shown(progress.automatic, clock) as told:
        told.add_work(100)
        told.running("it")
        clock.seconds = seconds
        told.advance(50)
    streams = capsys.readouterr()
    assert streams.out == ""
    assert words in streams.err if words else streams.err == ""


def test_automatic_is_a_line_in_a_kernel(monkeypatch):
    lines = []

    class Line:
        def update(self, data, raw):
            lines.append(data["text/plain"])

    class IPython:
        @staticmethod
        def get_ipython():
            return type("Shell", (), {"kernel": None})()

        class display:  # noqa: N801 - as IPython has it
            @staticmethod
            def display(data, raw, display_id):
                return Line()

    monkeypatch.setitem(progress.sys.modules, "IPython", IPython)
    with progress.shown(progress.quiet) as told:
        assert told is progress.quiet  # what was asked for stays
    with progress.shown(progress.automatic) as told:
        told.add_work(100)
        told.running("it")
        told.advance(50)
    assert lines[0] == "running it, 0%"
    assert lines[-1] == ""


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.04, "0.0 s"),
        (9.94, "9.9 s"),
        (9.96, "10 s"),
        (89, "89 s"),
        (600, "10 min"),
        (116_811, "32 h"),
        (1e6, "12 days"),
    ],
)
def test_times_have_two_digits(seconds, words):
    assert progress.duration(seconds) == words
