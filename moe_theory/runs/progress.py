"""Progress of a long run."""

import contextlib
import time
from collections.abc import Iterator

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

from moe_theory.core.errors import enclosed

SECONDS_BETWEEN_LINES = 10


class Progress:
    """A listener to a runner that shows nothing.

    Examples:
        >>> from moe_theory import sweep
        >>> progress: sweep.Progress = sweep.quiet
        >>> progress.advance(64)
    """

    def add_work(self, replicate_rounds: int) -> None:
        """Add to the planned work, which does not count saved results."""

    def running(self, what: str) -> None:
        """Show what is running."""

    def advance(self, replicate_rounds: int) -> None:
        """Add to the finished work."""

    def at(self, place: str) -> None:
        """Show the position in words, such as "3 of 64 cells, 40 of 1,024 chunks"."""


quiet = Progress()  # reports nothing
automatic = Progress()  # a bar in a terminal, and elsewhere lines if the run takes long


class Meter(Progress):
    """Progress on a console. A terminal shows a bar, and other consoles print a line every ten seconds."""

    def __init__(self, console: Console, is_timed: bool = True) -> None:
        times = [TimeElapsedColumn(), TimeRemainingColumn()] if is_timed else [TimeElapsedColumn()]
        words = TextColumn("{task.description}", markup=False)
        bar = BarColumn(bar_width=24)
        self.bar = RichProgress(bar, *times, words, console=console, transient=True, refresh_per_second=4)
        self._console = console
        self._is_timed = is_timed
        self._activity = "starting"
        self._place = ""
        self._planned = 0  # replicate-rounds
        self._done = 0  # replicate-rounds
        self._last_line = time.monotonic()
        self._task = self.bar.add_task(self._activity, total=None)

    def add_work(self, replicate_rounds: int) -> None:
        self._planned += replicate_rounds

    def running(self, what: str) -> None:
        self._activity = f"running {what}"
        self._refresh()

    def advance(self, replicate_rounds: int) -> None:
        self._done += replicate_rounds
        self._refresh()

    def at(self, place: str) -> None:
        self._place = place
        self._refresh()

    def _refresh(self) -> None:
        share = f"{self._done / max(self._planned, 1):.0%} of this run" if self._is_timed else ""
        facts = ", ".join(filter(None, [share, self._place]))
        line = f"{self._activity}{enclosed(': ', facts)}"
        if self._console.is_terminal:
            total = self._planned if self._is_timed else None
            self.bar.update(self._task, description=line, total=total, completed=self._done)
        elif time.monotonic() - self._last_line >= SECONDS_BETWEEN_LINES:
            self._last_line = time.monotonic()
            self._console.print(line, highlight=False, markup=False)


@contextlib.contextmanager
def terminal_progress(console: Console, *, is_timed: bool = True) -> Iterator[Progress]:
    """Yield a progress bar on `console`. If this is not a terminal, it prints a line every ten seconds.

    If `is_timed`, all work is known, and the bar shows the finished share and the time left.

    Examples:
        >>> from rich.console import Console
        >>> from moe_theory import sweep
        >>> with sweep.terminal_progress(Console(quiet=True, force_terminal=False)) as progress:
        ...     progress.running("my own work")
    """
    meter = Meter(console, is_timed)
    with meter.bar if console.is_terminal else contextlib.nullcontext():
        yield meter


@contextlib.contextmanager
def shown(progress: Progress) -> Iterator[Progress]:
    """Yield the given progress, or for `automatic` a progress on standard error."""
    if progress is not automatic:
        yield progress
        return
    with terminal_progress(Console(stderr=True), is_timed=False) as listener:
        yield listener
