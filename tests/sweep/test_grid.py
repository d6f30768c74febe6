"""The cells of a grid: their order, and what each is set to."""

import itertools

import pytest

from moe_theory import continual, edge
from moe_theory.core.errors import InvalidValueError, MoeTheoryError
from moe_theory.sweep.results import Sweep
from moe_theory.sweep.systems import sweepable, system_names


@pytest.mark.parametrize("system", system_names())
def test_a_sweep_without_axes_is_one_cell(system):
    """Would catch defaults that differ from the reading's and from the system's."""
    known = sweepable(system)
    grid = Sweep(system=system, rounds=10).grid
    assert (grid.axes, grid.shape, len(grid)) == ((), (), 1)
    [cell] = grid.cells
    assert cell.index == ()
    assert cell.settings == {}
    assert cell.reading == known.default_reading
    assert cell.params == known.readings[known.default_reading].params()
    assert cell.dims == known.dims(max_experts=cell.params.num_experts, **known.default_dims)
    assert cell.choices == {kind: next(iter(names)) for kind, names in known.choices.items()}


def test_cells_are_the_product_in_c_order():
    """Would catch axes in another order, and zips that are multiplied out."""
    sweep = Sweep(
        system="continual",
        rounds=10,
        zips={"pace": {"learning_rate": [0.1, 0.2], "balance_weight": [1, 2]}},
        axes={"truth_scale": [0.3, 0.2, 0.1], "num_experts": [4, 2]},
    )
    grid = sweep.grid
    assert [axis.name for axis in grid.axes] == ["truth_scale", "num_experts", "pace"]
    assert grid.axes[2].columns == {"learning_rate": (0.1, 0.2), "balance_weight": (1.0, 2.0)}
    assert grid.shape == (3, 2, 2)
    expected = itertools.product([0.3, 0.2, 0.1], [4, 2], [(0.1, 1.0), (0.2, 2.0)])
    indices = itertools.product(range(3), range(2), range(2))
    for cell, index, (scale, experts, (rate, weight)) in zip(grid.cells, indices, expected, strict=True):
        assert cell.index == index
        assert cell.settings == {
            "truth_scale": scale,
            "num_experts": experts,
            "learning_rate": rate,
            "balance_weight": weight,
        }
        assert cell.params == continual.Params(
            truth_scale=scale, num_experts=experts, learning_rate=rate, balance_weight=weight
        )


def test_axes_go_before_params_and_params_before_the_reading():
    """Would catch a reading that overrules what was asked for."""
    grid = Sweep(
        system="continual",
        rounds=10,
        axes={"reading": ["strong-signal", "weak-signal"], "noise_scale": [0.2]},
        params={"cluster_spread": 0.5},
    ).grid
    strong, weak = (cell.params for cell in grid.cells)
    assert (strong.signal_scale, strong.cluster_spread, strong.noise_scale) == (5.0, 0.5, 0.2)
    assert (weak.signal_scale, weak.cluster_spread, weak.noise_scale) == (1.0, 0.5, 0.2)
    assert [cell.reading for cell in grid.cells] == ["strong-signal", "weak-signal"]


def test_all_cells_are_padded_to_the_largest_number_of_experts():
    """Would catch one compiled program a cell."""
    axes = {"truth_scale": [0.1, 0.5], "num_experts": [3, 7, 5]}
    assert {cell.dims.max_experts for cell in Sweep(system="continual", rounds=1, axes=axes).grid.cells} == {7}
    given = Sweep(system="continual", rounds=1, axes=axes, dims={"max_experts": 9})
    assert {cell.dims.max_experts for cell in given.grid.cells} == {9}


def test_sizes_and_choices_may_be_axes():
    """Would catch cells that share the sizes of the first one."""
    grid = Sweep(
        system="edge",
        rounds=1,
        axes={"num_features": [20, 30], "policy": ["nearest", "adaptive"]},
        choices={"transfer": "geometric"},
        dims={"when_busy": "soonest", "max_waiting": 3},
    ).grid
    assert [cell.dims for cell in grid.cells[::2]] == [
        edge.Dims(50, 10, features, 10, when_busy="soonest", max_waiting=3) for features in (20, 30)
    ]
    assert [cell.choices["policy"] for cell in grid.cells] == ["nearest", "adaptive"] * 2
    assert {(cell.choices["transfer"], cell.choices["execution"]) for cell in grid.cells} == {("geometric", "uniform")}


@pytest.mark.parametrize(
    ("changes", "kind", "key", "words"),
    [
        ({"axes": {"num_experts": [3, 0]}}, InvalidValueError, ("axes", "num_experts"), "in the cell num_experts=0: "),
        (
            {"axes": {"truth_scale": [0.1, -1], "num_experts": [3]}},
            InvalidValueError,
            ("axes", "truth_scale"),
            "in the cell truth_scale=-1, num_experts=3: ",
        ),
        (
            {"zips": {"both": {"max_strength": [1, 2], "min_strength": [1, 3]}}},
            InvalidValueError,
            ("zips", "both", "min_strength"),
            "in the cell max_strength=2, min_strength=3: ",
        ),
        (
            {"axes": {"num_samples": [2, 40]}},
            InvalidValueError,
            ("axes", "num_samples"),
            "in the cell num_samples=40: ",
        ),
        ({"dims": {"num_samples": 40}}, InvalidValueError, ("dims", "num_samples"), "num_samples=40 must be below"),
        ({"params": {"noise_scale": -1}}, InvalidValueError, ("params", "noise_scale"), "noise_scale=-1.0 must not"),
    ],
)
def test_a_refused_cell_is_named(changes, kind, key, words):
    """Would catch a grid whose bad corner is found hours later, and an error without the setting to blame."""
    with pytest.raises(MoeTheoryError) as failure:
        Sweep(**({"system": "continual", "rounds": 10} | changes))
    assert type(failure.value) is kind
    assert failure.value.key == key
    assert words in str(failure.value)
