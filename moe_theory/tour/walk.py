"""A step of the tour, run: what it prints, draws and leaves in numbers."""

import ast
import contextlib
import io
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import MoeTheoryError
from moe_theory.tour.steps import Step
from moe_theory.verify import Verdict

VERDICT_FIELDS = ("claim", "status", "replicates", "at", "predicted", "observed", "interval", "margin", "error")


class Shown(NamedTuple):
    """What a step showed."""

    step: Step
    output: str
    pictures: tuple[Path, ...]
    numbers: dict[str, Any]  # and verdicts: what the step's own assignments named
    seconds: float

    def to_json(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return {
            "step": self.step.number,
            "title": self.step.title,
            "seconds": round(self.seconds, 2),
            "pictures": [str(path) for path in self.pictures],
            "numbers": self.numbers,
            "output": self.output,
        }


def take(step: Step, namespace: dict[str, Any], script: Path, folder: Path) -> Shown:
    """Run the cells of a step in `namespace`, which earlier steps have filled.

    Args:
        script: the file that tracebacks name.
        folder: where the step's pictures appear, as SVG.
    Raises: what the step raises, with the step named: in a note, or within the line of a MoeTheoryError.
    """
    import matplotlib.pyplot as plt

    before, open_figures = _written(folder), set(plt.get_fignums())
    began, printed, numbers = time.perf_counter(), io.StringIO(), {}
    try:
        with contextlib.redirect_stdout(printed):
            for cell in step.cells:
                tree = ast.parse("\n" * (cell.line - 1) + cell.code, str(script))
                exec(compile(tree, str(script), "exec"), namespace)
                numbers |= _numbers(tree, namespace)
    except MoeTheoryError as failure:
        raise type(failure)(f"step {step.number} of the tour, {step.title!r}: {failure}") from None
    except Exception as failure:
        failure.add_note(f"in step {step.number} of the tour, {step.title!r}, of {script}")
        raise
    finally:
        for number in set(plt.get_fignums()) - open_figures:
            plt.close(number)
    after = _written(folder)
    pictures = tuple(path for path in sorted(after) if after[path] != before.get(path))
    return Shown(step, printed.getvalue(), pictures, numbers, time.perf_counter() - began)


def _written(folder: Path) -> dict[Path, int]:
    """The pictures in a folder, and when each was written."""
    return {path: path.stat().st_mtime_ns for path in folder.glob("*.svg")}


def _numbers(tree: ast.Module, namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Numbers and verdicts under the names that a cell assigns outside of loops and functions."""
    assigned = [target for node in tree.body if isinstance(node, ast.Assign) for target in node.targets]
    names = [node.id for target in assigned for node in ast.walk(target) if isinstance(node, ast.Name)]
    values = {name: _plain(namespace[name]) for name in names if name in namespace}
    return {name: value for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    """A number, names with numbers, a verdict or verdicts, as JSON takes them; None for anything else."""
    if isinstance(value, Verdict):
        verdict = value.to_json()
        return {field: verdict[field] for field in VERDICT_FIELDS}
    if isinstance(value, list) and value and all(isinstance(part, Verdict) for part in value):
        return [_plain(part) for part in value]
    if isinstance(value, dict):
        return value if value and all(isinstance(part, float) for part in value.values()) else None
    value = value.item() if isinstance(value, np.generic) else value
    return value if isinstance(value, (bool, int, float)) and np.isfinite(value) else None
