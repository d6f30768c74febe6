"""Documents of files that were written."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from moe_theory.plot.document import Document


def written(path: Path) -> Any:
    """The document in a file that was written just now."""
    return json.loads(path.read_text(encoding="utf-8"))


def of_paths(paths: Iterable[Path], lines: Iterable[str] | None = None) -> Document:
    """Paths that were written, with these lines in place of theirs in a terminal."""
    written = [*map(str, paths)]
    return Document(lambda: written, lambda _: written if lines is None else lines)
