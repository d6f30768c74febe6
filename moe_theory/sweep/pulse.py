"""How a run goes, said now and then: in its record in the sweep's folder, and as lines of JSON in a log."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from moe_theory.core.errors import OutputError
from moe_theory.runs.files import local

BETWEEN = 10.0  # seconds from one beat to the next
WAY_OUT = "name another file for --log"

Facts = dict[str, Any]  # plain data


class Pulse:
    """Tells facts every ten seconds.

    Args:
        record: rewrites the run's record with the facts.
        log: file that gets a line of them each time, behind what it has.
    Raises: OutputError where the log cannot be written.
    """

    def __init__(self, record: Callable[[Facts], None], log: Path | None = None) -> None:
        self._record, self._log = record, None if log is None else local(log)
        self._last = time.monotonic()
        if self._log is not None:
            self._append("")

    @property
    def is_due(self) -> bool:
        return time.monotonic() - self._last > BETWEEN

    def beat(self, facts: Facts) -> None:
        self._last = time.monotonic()
        if self._log is not None:
            self._append(json.dumps(facts) + "\n")
        self._record(facts)

    def _append(self, line: str) -> None:
        assert self._log is not None, "asked before"
        try:
            self._log.parent.mkdir(parents=True, exist_ok=True)
            with self._log.open("a", encoding="utf-8") as file:
                file.write(line)
        except OSError as failure:
            raise OutputError(f"{self._log} cannot be written ({failure.strerror or failure}): {WAY_OUT}.") from None
