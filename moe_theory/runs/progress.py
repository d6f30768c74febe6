"""Progress of a long run: whether it compiles or runs, how much is done and what is left."""

import contextlib
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, ProgressColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

SECONDS_BETWEEN_LINES = 10
UNIT_UP_TO = 90  # of a unit of time, from which on the next one is used
WIDE = 130  # columns of a terminal with room for a bar and a rate


class Progress(Protocol):
    """Listener that a runner reports to.

    Examples:
        >>> from moe_theory import sweep
        >>> progress: sweep.Progress = sweep.quiet
        >>> progress.advance(64)
    """

    def add_work(self, replicate_rounds: int) -> None:
        """Add to the work that is planned."""

    def compiling(self, what: str) -> None:
        """A program is being compiled."""

    def running(self, what: str) -> None:
        """Compiled programs are running."""

    def advance(self, replicate_rounds: int) -> None:
        """Add to the work that is done."""

    def at(self, place: str) -> None:
        """Show the position in words: "3 of 64 cells, 40 of 1,024 chunks"."""


class _Silent(Progress):
    pass


quiet: Progress = _Silent()  # reports nothing
# Stands for a line in a notebook, a bar on a terminal; elsewhere lines, if it takes long.
automatic: Progress = _Silent()
SECONDS_BETWEEN_CHANGES = 0.3  # of that line


def duration(seconds: float) -> str:
    """A time to two digits, in the unit that suits it: 3.2 s, 45 s, 12 min, 32 h, 4 days."""
    for size, unit in ((1, "s"), (60, "min"), (3600, "h"), (86_400, "days")):
        if seconds < UNIT_UP_TO * size or unit == "days":
            break
    return f"{seconds / size:.{1 if seconds < 9.95 * size else 0}f} {unit}"


class _Timed(Progress):
    """Counts work and times it; compiling does not count."""

    def __init__(self) -> None:
        self.planned = self.done = 0
        self._timed = 0  # work done while the clock ran
        self._spent = 0.0  # seconds
        self._mark: float | None = None

    def show(self, activity: str) -> None:
        """Show what is going on."""

    def add_work(self, replicate_rounds: int) -> None:
        self.planned += replicate_rounds

    def compiling(self, what: str) -> None:
        self._mark = None
        self.show(f"compiling {what}")

    def running(self, what: str) -> None:
        self._mark = time.monotonic()
        self.show(f"running {what}")

    def advance(self, replicate_rounds: int) -> None:
        self.done += replicate_rounds
        if self._mark is not None:
            now = time.monotonic()
            self._timed += replicate_rounds
            self._spent += now - self._mark
            self._mark = now

    @property
    def rate(self) -> float:
        """Replicate-rounds a second; 0 as long as it is unknown."""
        return self._timed / self._spent if self._spent > 0 else 0.0

    @property
    def shown_rate(self) -> str:
        number = f"{self.rate / 1e6:.2f} M" if self.rate > 1e5 else f"{self.rate:,.0f}"
        return f"{number} replicate-rounds/s" if self.rate else ""


class _Lines(_Timed):
    """Plain lines for logs and pipes: each change of activity, and the share done at most every ten seconds; of an
    occasional one these alone.
    """

    def __init__(self, console: Console, is_timed: bool, is_occasional: bool = False) -> None:
        super().__init__()
        self._console, self._is_timed, self._is_occasional = console, is_timed, is_occasional
        self._activity = self._place = ""
        self._printed = time.monotonic()

    def show(self, activity: str) -> None:
        if activity != self._activity:
            self._activity = activity
            if not self._is_occasional:
                self._console.print(activity, highlight=False, markup=False)

    def advance(self, replicate_rounds: int) -> None:
        super().advance(replicate_rounds)
        if time.monotonic() - self._printed > SECONDS_BETWEEN_LINES:
            self._printed = time.monotonic()
            facts = [self._place, self.shown_rate]
            if self._is_timed:
                facts.insert(0, f"{self.done / max(self.planned, 1):.0%} of the replicate-rounds of this run done")
            if self._is_timed and self.rate:
                facts.append(f"{duration((self.planned - self.done) / self.rate)} left")
            told = ", ".join(filter(None, facts))
            self._console.print(f"{self._activity}: {told}" if told else self._activity, highlight=False, markup=False)

    def at(self, place: str) -> None:
        self._place = place


class _Bar(_Timed):
    def __init__(self, bar: RichProgress) -> None:
        super().__init__()
        self._bar = bar
        self._task = bar.add_task("starting", total=0, rate="", place="")

    def show(self, activity: str) -> None:
        self._bar.update(self._task, description=activity)

    def add_work(self, replicate_rounds: int) -> None:
        super().add_work(replicate_rounds)
        self._bar.update(self._task, total=self.planned)

    def advance(self, replicate_rounds: int) -> None:
        super().advance(replicate_rounds)
        self._bar.update(self._task, advance=replicate_rounds, rate=self.shown_rate)

    def at(self, place: str) -> None:
        self._bar.update(self._task, place=place)


@contextlib.contextmanager
def terminal_progress(
    console: Console, header: Callable[[Console], RenderableType] | None = None, *, is_timed: bool = True
) -> Iterator[Progress]:
    """A progress bar on `console`, or plain lines where it is no terminal.

    Args:
        header: draws what stands above the bar, for a console of this size.
        is_timed: whether all work is known beforehand, so that the share done and the time left mean something.

    Examples:
        >>> from rich.console import Console
        >>> from moe_theory import sweep
        >>> with sweep.terminal_progress(Console(quiet=True, force_terminal=False)) as progress:
        ...     progress.running("my own work")
    """
    if not console.is_terminal:
        yield _Lines(console, is_timed)
        return
    is_wide = console.width >= WIDE
    share: list[ProgressColumn] = [TextColumn("{task.percentage:>3.0f}%")] if is_timed else []
    left: list[ProgressColumn] = [TimeRemainingColumn(), TextColumn("left")] if is_timed else []
    rate: list[ProgressColumn] = [TextColumn("{task.fields[rate]}"), TimeElapsedColumn()] if is_wide else []
    if is_wide and is_timed:
        share.insert(0, BarColumn(bar_width=24))
    what, place = TextColumn("{task.description}", markup=False), TextColumn("{task.fields[place]}", markup=False)
    bar = RichProgress(what, *share, place, *rate, *left, console=console)

    def view() -> RenderableType:
        return bar if header is None else Group(header(console), bar)

    with Live(get_renderable=view, console=console, transient=True, refresh_per_second=4):
        yield _Bar(bar)


class _Cell(_Timed):
    """A line below a notebook's cell, which changes in place."""

    def __init__(self, display: Callable[..., Any]) -> None:
        super().__init__()
        self._line = display({"text/plain": "starting"}, raw=True, display_id=True)
        self._activity, self._changed = "starting", 0.0

    def show(self, activity: str) -> None:
        self._activity = activity
        self._change()

    def advance(self, replicate_rounds: int) -> None:
        super().advance(replicate_rounds)
        if time.monotonic() - self._changed > SECONDS_BETWEEN_CHANGES:
            self._change()

    def end(self) -> None:
        self._line.update({"text/plain": ""}, raw=True)

    def _change(self) -> None:
        self._changed = time.monotonic()
        share = f"{self.done / self.planned:.0%}" if self.planned else ""
        words = ", ".join(filter(None, (self._activity, share, self.shown_rate)))
        self._line.update({"text/plain": words}, raw=True)


@contextlib.contextmanager
def shown(progress: Progress) -> Iterator[Progress]:
    """The progress that was asked for; for `automatic` a line in a notebook, which is gone at the end, or a bar on the
    terminal of standard error. Where that is none a line comes every ten seconds, so that a short run prints nothing.
    """
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    if progress is not automatic:
        yield progress
        return
    if shell is None or not hasattr(shell, "kernel"):
        console = Console(stderr=True)
        if console.is_terminal:
            with terminal_progress(console, is_timed=False) as bar:
                yield bar
        else:
            yield _Lines(console, is_timed=False, is_occasional=True)
        return
    cell = _Cell(sys.modules["IPython"].display.display)
    try:
        yield cell
    finally:
        cell.end()
