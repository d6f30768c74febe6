"""How the tree refines the simplex of three experts' weights where the reward is large.

A leaf is drawn as the exact part of the simplex in its box, which has up to six corners. A slot pulls the leaf with the
largest sum of the known reward at its candidate and nu_1 rho^h.
"""

import itertools
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np
import xarray as xr
from jaxtyping import Bool, Float

from moe_theory import plot
from moe_theory.core.random import root_key
from moe_theory.core.system import check_run, fields, recorded_rounds, simulate_batch
from moe_theory.merging import adversary
from moe_theory.merging.params import Dims

STRIDE = 30  # slots between two records
TIMES = (30, 300, 3000)  # slots drawn, multiples of the stride
DIMS = Dims(max_experts=3, max_rounds=TIMES[-1], max_leaves=512)
RATIO = 0.85  # rho
SPLIT_CONSTANT = 0.2  # C
CORNERS = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])  # where the corners, one per expert, are drawn
LEAST_AREA = 1e-9  # Smaller parts of the simplex are points or lines and are not drawn


def compute(setup: plot.Setup) -> xr.Dataset:
    length = setup.rounds
    check_run(length, STRIDE)
    params = setup.params(num_experts=3, max_active=3, smoothness_ratio=RATIO, split_constant=SPLIT_CONSTANT)
    setup.progress.add_work(length)
    setup.progress.running(setup.name)
    system = adversary.one_rule(DIMS, "optimistic")
    root = root_key(setup.seed)
    observe = fields("state.tree")
    _, records = simulate_batch(system, root, 1, params, length, record_every=STRIDE, observe=observe)
    setup.progress.advance(length)
    times = np.minimum(TIMES, length)
    places = np.searchsorted(recorded_rounds(length, STRIDE), times)
    tree = jax.tree.map(lambda part: np.asarray(part)[places, ..., 0], records.tree)  # records of the only replicate
    is_leaf = tree.active[..., None]
    boxes = {name: np.where(is_leaf, getattr(tree, name), np.nan) for name in ("lower", "upper", "point")}
    leaves = {"depth": tree.depth, "pulls": tree.count}
    return xr.Dataset(
        {name: (("panel", "leaf", "expert"), value) for name, value in boxes.items()}
        | {name: (("panel", "leaf"), np.where(tree.active, value, np.nan)) for name, value in leaves.items()}
        | {"inactive": ("panel", tree.inactive), "left_out": ("panel", tree.left_out), "time": ("panel", times)},
        {"panel": np.arange(len(TIMES)), "leaf": np.arange(DIMS.max_leaves), "expert": np.arange(3)},
    )


def polygon(lower: Float[np.ndarray, " 3"], upper: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "c 3"]:
    """Return the corners, in order, of the intersection of a box and the simplex."""
    corners = np.eye(3)
    for k in range(3):
        for sign, edge in ((1.0, lower[k]), (-1.0, upper[k])):
            corners = _cut(corners, sign * (corners[:, k] - edge))
    return corners


def _cut(corners: Float[np.ndarray, "c 3"], room: Float[np.ndarray, " c"]) -> Float[np.ndarray, "d 3"]:
    """Return the corners of the part of a polygon where `room`, given at its corners and linear, is at least 0."""
    points: list[np.ndarray] = []
    for index in range(len(corners)):
        before = index - 1
        if (room[index] >= 0) != (room[before] >= 0):
            share = room[before] / (room[before] - room[index])
            points.append(corners[before] + share * (corners[index] - corners[before]))
        if room[index] >= 0:
            points.append(corners[index])
    return np.array(points).reshape(-1, 3)


def area(corners: Float[np.ndarray, "c 3"]) -> float:
    """Return twice the area of a polygon in the first two coordinates, by which the simplex has 1."""
    first = corners[:, 0]
    second = corners[:, 1]
    return float(abs(np.sum(first * np.roll(second, -1) - second * np.roll(first, -1))))


def caption_words(data: xr.Dataset) -> dict[str, str]:
    return {"lost": ", ".join(str(int(number)) for number in data.inactive)}


@plot.figure(
    "merging.simplex",
    compute,
    title="The tree's refinement of the simplex",
    summary="Leaves of the tree on three experts' simplex at three times, finest where the reward is largest.",
    words=caption_words,
    replicates=1,
    size=(7.2, 2.5),
    rounds=TIMES[-1],
    claims=("merging.assumption-1.*", "merging.remark.boxes"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """The simplex of three experts' weights, cut into what the leaves' boxes have of it, at three times; dots:
    candidates; cross: where the reward 1 − max |x − c|, which is known here, is largest. A slot pulls the leaf with the
    largest value + ν₁ρ^h; ρ = {RATIO:g}, C = {SPLIT_CONSTANT:g}, ν₁ = 1. Boxes that miss
    the simplex, {lost} of them, and those that touch it in a point or a line are not drawn.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import BoundaryNorm

    is_leaf = data.depth.notnull().values
    facts = zip("abc", data.time.values, is_leaf.sum(axis=1), strict=True)
    axes = plot.row(canvas, [f"({letter}) $t$ = {time}, {count} leaves" for letter, time, count in facts])
    deepest = int(data.depth.max())
    colours = ScalarMappable(BoundaryNorm(np.arange(deepest + 2) - 0.5, 256), "YlGnBu")
    for place, panel in enumerate(axes):
        _draw_leaves(panel, data.isel(panel=place), is_leaf[place], colours)
        _draw_frame(panel)
    ticks = range(0, deepest + 1, 1 + deepest // 8)  # there are at most 9 ticks
    bar = canvas.colorbar(colours, ax=list(axes), shrink=0.8, pad=0.01, ticks=ticks)
    bar.set_label("depth $h$ of the leaf")


def _draw_leaves(panel: plot.Axes, selection: xr.Dataset, is_leaf: Bool[np.ndarray, " C"], colours: Any) -> None:
    from matplotlib.collections import PolyCollection

    lower = selection.lower.values[is_leaf]
    upper = selection.upper.values[is_leaf]
    depth = selection.depth.values[is_leaf]
    shapes = [polygon(*box) for box in zip(lower, upper, strict=True)]
    is_shown = [len(shape) > 2 and area(shape) > LEAST_AREA for shape in shapes]
    polygons: Sequence[Any] = [shape @ CORNERS for shape in itertools.compress(shapes, is_shown)]
    faces = colours.to_rgba(depth[is_shown])
    panel.add_collection(PolyCollection(polygons, facecolors=faces, edgecolors="0.35", linewidths=0.35))
    points = selection.point.values[is_leaf][is_shown] @ CORNERS
    size = 9 if len(points) < 40 else 2.5  # many dots must be small
    panel.scatter(points[:, 0], points[:, 1], s=size, color="C1", linewidths=0, zorder=3)


def _draw_frame(panel: plot.Axes) -> None:
    peak = np.array([1, 2, 3]) / 6 @ CORNERS  # of `adversary.peaked_value`
    panel.plot(*peak, marker="+", color="black", markersize=9, markeredgewidth=1.2, zorder=4)
    for (x, y), name, up, side in zip(
        CORNERS, ("expert 1", "expert 2", "expert 3"), (-0.03, -0.03, 0.03), ("top", "top", "bottom"), strict=True
    ):
        panel.text(x, y + up, name, ha="center", va=side, fontsize="small")
    panel.set(xlim=(-0.08, 1.08), ylim=(-0.12, 1.0), aspect="equal")
    panel.axis("off")
