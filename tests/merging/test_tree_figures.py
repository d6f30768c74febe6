"""The pictures of the tree: polygons against areas and vertices found another way, numbers against the tree's own."""

import itertools

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from moe_theory.merging import corrected
from moe_theory.merging.figures import FIGURES, leaves, simplex
from moe_theory.merging.params import Dims, Params

NUM_ROUNDS = 300


class Reading:
    name = "paper"
    summary = "as the paper has it"

    def params(self, **overrides):
        return Params(**overrides)


def vertices(lower, upper):
    """Of a box cut with x_1 + x_2 + x_3 = 1: two coordinates at ends of their sides, the third between its own."""
    found = set()
    for k, ends in itertools.product(range(3), itertools.product((0, 1), repeat=2)):
        point = np.zeros(3)
        others = [j for j in range(3) if j != k]
        point[others] = [(lower, upper)[end][j] for j, end in zip(others, ends, strict=True)]
        point[k] = 1 - point.sum()
        if lower[k] <= point[k] <= upper[k]:
            found.add(tuple(point))
    return found


def test_a_leaf_is_drawn_as_the_convex_hull_of_its_vertices():
    rng = np.random.default_rng(0)
    for _ in range(60):
        ends = np.sort(rng.integers(0, 9, (2, 3)), axis=0) / 8
        drawn = {tuple(corner) for corner in np.round(simplex.polygon(*ends), 12) + 0.0}
        expected = vertices(*ends)
        if len(expected) > 2:  # of a box that touches the simplex in a point or a line nothing is drawn
            assert drawn == expected


@pytest.fixture(scope="module")
def data():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(leaves, "DIMS", Dims(max_experts=3, max_leaves=128))
        patch.setattr(simplex, "DIMS", Dims(max_experts=3, max_leaves=128))
        yield {name: FIGURES[name].compute(Reading(), 1, 2, num_rounds=NUM_ROUNDS) for name in ("leaves", "simplex")}


def test_leaves_fill_the_simplex_at_every_time(data):
    here = data["simplex"]
    assert list(here.time) == [30, NUM_ROUNDS, NUM_ROUNDS]
    assert not here.left_out.any()
    for place in range(3):
        panel = here.isel(panel=place)
        held = panel.depth.notnull().values
        shapes = [simplex.polygon(*box) for box in zip(panel.lower.values[held], panel.upper.values[held], strict=True)]
        assert sum(simplex.area(shape) for shape in shapes if len(shape) > 2) == pytest.approx(1, abs=1e-6)


def test_the_deepest_leaf_reaches_the_bound_and_nothing_exceeds_it(data):
    here = data["leaves"]
    assert not here.left_out.any()
    np.testing.assert_array_equal(here.depth.sel(rule="deepest"), here.repaired_depth)
    assert bool((here.leaves <= here.repaired_leaves).all())
    assert bool((here.leaves.sel(case="large", rule="deepest") > here.printed_leaves.sel(case="large")).any())
    params = leaves.params_of(Reading(), leaves.CASES["usual"])
    assert float(here.repaired_leaves.sel(case="usual", time=NUM_ROUNDS)) == corrected.leaf_bound(NUM_ROUNDS, params)


def test_all_leaves_are_drawn_and_captions_say_what_is(data):
    figure = Figure(layout="constrained")
    FIGURES["simplex"].draw(data["simplex"], figure)
    drawn = [panel.collections[0] for panel in figure.axes[:3]]
    assert all(isinstance(part, PolyCollection) for part in drawn)
    assert len(drawn[0].get_paths()) > 10
    other = Figure(layout="constrained")
    FIGURES["leaves"].draw(data["leaves"], other)
    assert [len(panel.lines) for panel in other.axes] == [4, 4, 4, 5, 5, 5]
    for name, figure in FIGURES.items():
        if name in data:
            assert "Reading paper" in figure.caption(data[name])
