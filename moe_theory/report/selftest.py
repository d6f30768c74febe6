"""The engine's own test as a table, a picture and a file of numbers."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from rich.text import Text

from moe_theory.report.document import Document, Picture, ruled, to_csv
from moe_theory.runs.files import write_together
from moe_theory.verify.claim import KINDS, Kind
from moe_theory.verify.planted import REPLICATES
from moe_theory.verify.selftest import CONFIDENCE, PlantedRow, SelfTest

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

PICTURE, NUMBERS = "self-test.svg", "self-test.csv"
HEIGHT = 3.4  # inches of the picture
MARKERS: dict[Kind, str] = {kind: "os^vDPX*<>h"[place] for place, kind in enumerate(KINDS)}  # told apart in grey
MOST_NAMES = 8  # in a line of the legend
COLORS = ("C0", "C2", "C3")  # C1 is the prediction's


COLUMNS = ("kind", "law", "condition", "error", "decision", "claims", "measured", "interval", "expected", "")


def document(result: SelfTest, paths: Sequence[Path] = ()) -> Document:
    """The result, and the paths that it was written to."""
    return Document(result.to_json, lambda _: (table(result.rows), closing_line(result), *map(str, paths)))


def table(rows: Sequence[PlantedRow]) -> Table:
    return ruled(COLUMNS, map(_cells, rows), numbers=("error", "claims", "measured", "expected"))


def _cells(row: PlantedRow) -> tuple[str | Text, ...]:
    return (
        f"{row.kind} {row.side or ''}".replace("_", " ").strip(),
        row.law if row.num_components == 1 else f"{row.law}, {row.num_components} components",
        row.condition,
        f"{row.error:g}",
        f"{'false' if row.measure == 'size' else 'right'} {row.decision}",
        str(row.num_claims),
        f"{row.measured:.4f}",
        f"{row.low:.4f} to {row.high:.4f}",
        f"{'≤' if row.measure == 'size' else '='} {row.expected:.4g}",
        Text("ok", "green") if row.is_ok else Text("FAILS", "bold red"),
    )


def closing_line(result: SelfTest) -> str:
    failed = sum(not row.is_ok for row in result.rows)
    about = f"{result.num_claims} planted claims, {len(result.rows)} shares, seed {result.seed}"
    return f"self-test failed: {failed} of {about}" if failed else f"self-test passed: {about}"


def write_picture(result: SelfTest, folder: Path) -> list[Path]:
    """Write the picture and the numbers behind it. Raises: OutputError if the folder cannot take them."""
    picture = Picture("The engine's own test", HEIGHT, lambda canvas: _draw(result, canvas), _caption(result))
    rows = [dataclasses.asdict(row) for row in result.rows]
    return write_together(folder, {PICTURE: picture.rendered(), NUMBERS: to_csv(rows, "{:.6g}")})


def _draw(result: SelfTest, canvas: "FigureBase") -> None:
    from matplotlib.lines import Line2D

    power, size = canvas.subplots(1, 2, width_ratios=(1, 1.25))
    kinds: list[Kind] = [kind for kind in KINDS if any(row.kind == kind for row in result.rows)]
    _draw_power(power, [row for row in result.rows if row.measure == "power"], result.tolerance)
    _draw_size(size, [row for row in result.rows if row.measure == "size" and row.measured > 0], kinds)
    handles = [Line2D([], [], **_mark(kind), label=kind.replace("_", " ")) for kind in kinds]
    lines = 1 + len(kinds) // (MOST_NAMES + 1)
    spacing = {"handlelength": 1.0, "handletextpad": 0.2, "columnspacing": 1.0}
    canvas.legend(handles=handles, loc="outside upper center", ncols=-(-len(kinds) // lines), **spacing)


def _draw_power(panel: "Axes", rows: Sequence[PlantedRow], tolerance: float) -> None:
    ends = np.array([0.0, 1.0])
    panel.fill_between(ends, ends - tolerance, ends + tolerance, color="C1", alpha=0.15, linewidth=0)
    panel.plot(ends, ends, color="C1", linewidth=0.8, linestyle=(0, (4, 1.6)))
    for row in rows:
        _point(panel, row.expected, row)
    panel.set(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), xlabel="predicted power", ylabel="measured power")
    panel.set_title("Right decisions: 5 points around the prediction", loc="left")
    panel.set_aspect("equal")


def _draw_size(panel: "Axes", rows: Sequence[PlantedRow], kinds: Sequence[Kind]) -> None:
    """False decisions over what the verdict's error allows them, kind after kind and law after law."""
    places: dict[str, int] = {}
    for row in sorted(rows, key=lambda row: (row.law != "normal", row.law, kinds.index(row.kind))):
        places.setdefault(_group(row), len(places))
    members = {name: [row for row in rows if _group(row) == name] for name in places}
    for name, place in places.items():
        spread = np.linspace(-0.3, 0.3, len(members[name])) if len(members[name]) > 1 else [0.0]
        for row, shift in zip(members[name], spread, strict=True):
            _point(panel, place + shift, row, 1 / row.expected if row.expected else np.inf)
    panel.axhline(1, color="C1", linewidth=0.8, linestyle=(0, (4, 1.6)))
    panel.set(xlim=(-0.6, len(places) - 0.4), ylim=(0, None), ylabel="measured size / nominal")
    panel.set_xticks(list(places.values()), list(places), rotation=55, ha="right", rotation_mode="anchor")
    panel.set_title("False decisions: at most the nominal error", loc="left")


def _point(panel: "Axes", place: float, row: PlantedRow, scale: float = 1.0) -> None:
    middle = row.measured * scale
    bars = np.array([[middle - row.low * scale], [row.high * scale - middle]])
    panel.errorbar(place, middle, bars, **_mark(row.kind), elinewidth=0.5, zorder=3 if row.is_ok else 4)
    if not row.is_ok:
        panel.plot(place, middle, "o", markersize=9, markerfacecolor="none", markeredgecolor="C1", markeredgewidth=1.2)


def _mark(kind: Kind) -> dict[str, Any]:
    color = COLORS[list(KINDS).index(kind) % len(COLORS)]
    return {
        "color": color,
        "marker": MARKERS[kind],
        "markersize": 6 if kind == "counterexample" else 4,  # a star is mostly points
        "markeredgecolor": "white",
        "markeredgewidth": 0.4,
        "linestyle": "none",
    }


def _group(row: PlantedRow) -> str:
    return row.kind.replace("_", " ") if row.law == "normal" else row.law


def _caption(result: SelfTest) -> str:
    unseen = sum(row.measure == "size" and row.measured == 0 for row in result.rows)
    return (
        f"{result.num_claims} planted claims went the engine's way, look by look up to {REPLICATES} replicates, with "
        "seeded samples of known laws in place of a simulation. Left: shares of right decisions over what the laws "
        "predict, with the band that they have to lie in. Right: shares of false decisions over what the error of a "
        f"verdict allows; {unseen} conditions without a single false decision are not drawn. Bars are exact intervals "
        f"at {CONFIDENCE:.1%}; a size fails if its whole interval is above 1.\n"
        f"moe-theory verify --self-test --seed {result.seed}"
    )
