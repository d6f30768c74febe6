"""What a long run tells: whether it compiles or runs, how much is done and what is left."""

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Protocol

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as RichProgress


class Progress(Protocol):
    """What a runner reports to."""

    def add_work(self, replicate_rounds: int) -> None:
        """So much more work is planned."""

    def compiling(self, what: str) -> None:
        """A program is being compiled."""

    def running(self, what: str) -> None:
        """Compiled programs are running."""

    def advance(self, replicate_rounds: int) -> None:
        """So much work is done."""


class _Quiet:
    def add_work(self, replicate_rounds: int) -> None:
        pass

    def compiling(self, what: str) -> None:
        pass

    def running(self, what: str) -> None:
        pass

    def advance(self, replicate_rounds: int) -> None:
        pass


quiet: Progress = _Quiet()


class _Lines:
    """Plain lines for logs and pipes: each change of what is done, and the share done at most every ten seconds."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._planned = self._done = 0
        self._what = ""
        self._said = time.monotonic()

    def add_work(self, replicate_rounds: int) -> None:
        self._planned += replicate_rounds

    def compiling(self, what: str) -> None:
        self._say(f"compiling {what}")

    def running(self, what: str) -> None:
        self._say(f"running {what}")

    def advance(self, replicate_rounds: int) -> None:
        self._done += replicate_rounds
        if time.monotonic() - self._said > 10:
            self._said = time.monotonic()
            self._console.print(f"{self._what}: {self._done / max(self._planned, 1):.0%} of the replicate-rounds done")

    def _say(self, what: str) -> None:
        if what != self._what:
            self._what = what
            self._console.print(what)


class _Bar:
    def __init__(self, bar: RichProgress) -> None:
        self._bar = bar
        self._task = bar.add_task("starting", total=0, rate="")
        self._planned = self._done = 0
        self._spent = 0.0  # seconds running, so that compiling does not spoil the rate
        self._mark: float | None = None

    def add_work(self, replicate_rounds: int) -> None:
        self._planned += replicate_rounds
        self._bar.update(self._task, total=self._planned)

    def compiling(self, what: str) -> None:
        self._mark = None
        self._bar.update(self._task, description=f"compiling {what}")

    def running(self, what: str) -> None:
        self._mark = time.monotonic()
        self._bar.update(self._task, description=f"running {what}")

    def advance(self, replicate_rounds: int) -> None:
        now = time.monotonic()
        if self._mark is not None:
            self._spent += now - self._mark
            self._mark = now
            self._done += replicate_rounds
        rate = f"{self._done / self._spent / 1e6:.2f} M replicate-rounds/s" if self._spent > 0 else ""
        self._bar.update(self._task, advance=replicate_rounds, rate=rate)


@contextlib.contextmanager
def terminal_progress(
    console: Console, header: Callable[[Console], RenderableType] | None = None
) -> Iterator[Progress]:
    """A progress bar on `console`, or plain lines where it is no terminal.

    Args:
        header: what stands above the bar, drawn anew with every change, from the console, which knows its size.
    """
    if not console.is_terminal:
        yield _Lines(console)
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    bar = RichProgress(*columns, console=console)

    def view() -> RenderableType:
        return bar if header is None else Group(header(console), bar)

    with Live(get_renderable=view, console=console, transient=True, refresh_per_second=4):
        yield _Bar(bar)
