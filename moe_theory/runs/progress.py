"""Progress of a long run."""

import contextlib
import dataclasses
import time
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress

SECONDS_BETWEEN_LINES = 10


class Progress:
    """Listener of a runner, which shows nothing.

    Examples:
        >>> from moe_theory import sweep
        >>> progress: sweep.Progress = sweep.quiet
        >>> progress.advance(64)
    """

    def add_work(self, replicate_rounds: int) -> None:
        """Add to the planned work, without saved results."""

    def running(self, what: str) -> None:
        """Show what is running."""

    def advance(self, replicate_rounds: int) -> None:
        """Add to the finished work."""

    def at(self, place: str) -> None:
        """Show the position in words: "3 of 64 cells, 40 of 1,024 chunks"."""


quiet = Progress()  # reports nothing
automatic = Progress()  # stands for a bar on a terminal, elsewhere lines if it takes long


@dataclasses.dataclass
class Meter(Progress):
    """Progress that counts work, drawn once in `interval` seconds."""

    draw: "Callable[[Meter], None]"
    interval: float
    is_timed: bool = False  # whether all work is known beforehand
    activity: str = "starting"
    place: str = ""
    planned: int = 0  # replicate-rounds
    done: int = 0  # replicate-rounds

    def __post_init__(self) -> None:
        self.last_draw = time.monotonic()

    def add_work(self, replicate_rounds: int) -> None:
        self.planned += replicate_rounds

    def running(self, what: str) -> None:
        self.activity = f"running {what}"
        self._refresh()

    def advance(self, replicate_rounds: int) -> None:
        self.done += replicate_rounds
        self._refresh()

    def at(self, place: str) -> None:
        self.place = place
        self._refresh()

    @property
    def line(self) -> str:
        """Activity, share done and position, cut for narrow terminals."""
        facts = [f"{self.done / max(self.planned, 1):.0%} of this run"] if self.is_timed else []
        if self.place:
            facts.append(self.place)
        if facts:
            return f"{self.activity}: {', '.join(facts)}"
        return self.activity

    def _refresh(self) -> None:
        if time.monotonic() - self.last_draw >= self.interval:
            self.last_draw = time.monotonic()
            self.draw(self)


@contextlib.contextmanager
def terminal_progress(
    console: Console,
    *,
    is_timed: bool = True,
) -> Iterator[Progress]:
    """Yield a progress bar on `console`, or a line every ten seconds if it is no terminal.

    Args:
        is_timed: whether all work is known, for the share done and the time left.

    Examples:
        >>> from rich.console import Console
        >>> from moe_theory import sweep
        >>> with sweep.terminal_progress(Console(quiet=True, force_terminal=False)) as progress:
        ...     progress.running("my own work")
    """

    def print_line(meter: Meter) -> None:
        console.print(meter.line, highlight=False, markup=False)

    def draw_bar(meter: Meter) -> None:
        bar.update(task, description=meter.line, total=meter.planned if is_timed else None, completed=meter.done)

    if not console.is_terminal:
        yield Meter(print_line, SECONDS_BETWEEN_LINES, is_timed=is_timed)
        return
    line = TextColumn("{task.description}", markup=False)
    times = [TimeElapsedColumn(), TimeRemainingColumn()] if is_timed else [TimeElapsedColumn()]
    bar = RichProgress(BarColumn(bar_width=24), *times, line, console=console, transient=True, refresh_per_second=4)
    task = bar.add_task("starting", total=None)
    with bar:
        yield Meter(draw_bar, 0.0, is_timed=is_timed)


@contextlib.contextmanager
def shown(progress: Progress) -> Iterator[Progress]:
    """Yield the given progress, where `automatic` is a bar in a terminal, else a line every ten seconds."""
    if progress is not automatic:
        yield progress
        return
    with terminal_progress(Console(stderr=True), is_timed=False) as listener:
        yield listener
