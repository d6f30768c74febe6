"""What a policy's place among those that are recorded looks like: tables, numbers, a picture."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import RenderableType

from moe_theory.merging.benchmark.scoring import ERROR, Comparison, Difference
from moe_theory.merging.benchmark.streams import LAWS, MIXES, NUM_STREAMS, Condition
from moe_theory.report.document import Document, Picture, ruled, to_csv
from moe_theory.runs.files import write_together

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

NAMES = ("places.csv", "places.svg")
AHEAD, BEHIND, LEVEL = "ahead", "behind", "open"
HEIGHT = 7.2  # inches


def verdict(of: Difference) -> str:
    """Whether the policy is ahead of a rival, behind it, or neither as far as the interval tells."""
    return AHEAD if of.low > 0 else BEHIND if of.high < 0 else LEVEL


def document(of: Comparison, paths: Sequence[Path]) -> Document:
    """A comparison, which was written to these paths."""
    written = [str(path) for path in paths]

    def parts(width: int) -> Iterable[RenderableType]:
        del width
        for mix in MIXES:
            if own := [at for at in of.accuracies if at.mix == mix]:
                yield _table(of, mix, own)
        first, last = of.phase
        yield (
            f"{of.name}, slots {first} to {last}: place {places(of)}. Differences in points, paired over {NUM_STREAMS} "
            f"streams; all intervals together err with probability {ERROR:g} at most."
        )
        yield from (f"wrote {path}" for path in written)

    return Document(lambda: _body(of) | {"files": written}, parts)


def places(of: Comparison) -> str:
    """Its place under each condition, in words."""
    found = {at: of.place(at) for at in of.accuracies}
    parts = []
    for mix in MIXES:
        if own := {at: place for at, place in found.items() if at.mix == mix}:
            one = ", ".join(f"{place} of {number} ({_short(at)})" for at, (place, number) in own.items())
            parts.append(f"{one} where the mix is {mix}")
    return "; ".join(parts)


def _short(at: Condition) -> str:
    return f"{at.tasks}, {at.law}"


def _table(of: Comparison, mix: str, conditions: Sequence[Condition]) -> RenderableType:
    """A row for each way to merge, the best on the mean of the conditions first, with the policy's own among them."""
    by_rival: dict[str, dict[Condition, Difference]] = {}
    for each in of.differences:
        if each.condition in conditions:
            by_rival.setdefault(each.rival, {})[each.condition] = each
    means = {rival: float(np.mean([each.accuracy for each in own.values()])) for rival, own in by_rival.items()}
    own_mean = float(np.mean([of.accuracies[at] for at in conditions]))
    order = sorted([*means.items(), (None, own_mean)], key=lambda pair: -pair[1])
    rows = [
        (of.name, *(f"{100 * of.accuracies[at]:.1f} %" for at in conditions))
        if rival is None
        else (rival, *(cell(by_rival[rival][at]) for at in conditions))
        for rival, _ in order
    ]
    columns = ("accuracy less that of", *(f"{at.tasks}\n{at.law}" for at in conditions))
    styles = ["bold" if rival is None else None for rival, _ in order]
    title = f"{of.name} where the mix is {mix}: its accuracy, and by how much it is ahead of every other way to merge"
    return ruled(columns, rows, columns[1:], whole=columns[1:], styles=styles, title=title)


def cell(of: Difference) -> str:
    """A difference in points, with half of the width of its interval."""
    if of.low == of.high == of.mean == 0:
        return "equal"
    return f"{100 * of.mean:+.1f} ± {50 * (of.high - of.low):.1f}"


def _body(of: Comparison) -> dict[str, Any]:
    return {
        "policy": of.name,
        "slots": list(of.phase),
        "conditions": [
            {**at._asdict(), "accuracy": of.accuracies[at], "whole": of.whole[at], "place": of.place(at)[0]}
            for at in of.accuracies
        ],
        "differences": _rows(of),
    }


def _rows(of: Comparison) -> list[dict[str, Any]]:
    return [
        {**each.condition._asdict(), "rival": each.rival, "accuracy": each.accuracy, "difference": each.mean}
        | {"low": each.low, "high": each.high, "verdict": verdict(each)}
        for each in of.differences
    ]


def write(of: Comparison, folder: Path) -> list[Path]:
    """Write differences and their picture into the folder; returns the paths. Raises: OutputError."""
    title = f"{of.name} among ways to merge, on recorded streams"
    first, last = of.phase
    caption = f"How far it is ahead in accuracy over slots {first} to {last}, with simultaneous intervals."
    picture = Picture(title, HEIGHT, lambda figure: _draw(figure, of), caption)
    return write_together(folder, dict(zip(NAMES, (to_csv(_rows(of)), picture.rendered()), strict=True)))


def _draw(figure: "FigureBase", of: Comparison) -> None:
    mixes = [mix for mix in MIXES if any(at.mix == mix for at in of.accuracies)]
    families = list(dict.fromkeys(at.tasks for at in of.accuracies))
    grid = figure.subplots(len(LAWS), len(families), sharex=True, sharey=True, squeeze=False)
    rivals = sorted(
        {each.rival for each in of.differences},
        key=lambda rival: np.mean([each.mean for each in of.differences if each.rival == rival]),
    )
    for row, law in zip(grid, LAWS, strict=True):
        for axes, tasks in zip(row, families, strict=True):
            for number, mix in enumerate(mixes):
                own = {e.rival: e for e in of.differences if e.condition == Condition(tasks, law, mix)}
                heights = [rivals.index(rival) + 0.2 * (0.5 - number) for rival in own]
                means, ends = [100 * e.mean for e in own.values()], [50 * (e.high - e.low) for e in own.values()]
                axes.errorbar(means, heights, xerr=ends, fmt="o", ms=3, color=f"C{number}", label=f"mix {mix}")
            axes.axvline(0, color="0.6", linewidth=0.8)
            axes.set_title(f"{tasks}, {law}", fontsize="medium")
            axes.set_yticks(range(len(rivals)), rivals)
    for axes in grid[-1]:
        axes.set_xlabel("points ahead")
    grid[0][0].legend(loc="upper left", fontsize="small")
