"""Specifications of sweeps: one plain form, round trips, errors that say where, and the cells of their grids."""

import dataclasses
import itertools
import json
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from refusals import refusal

from moe_theory import continual, edge
from moe_theory.core.errors import InvalidValueError, MoeTheoryError
from moe_theory.sweep.results import Sweep
from moe_theory.sweep.specification import example
from moe_theory.sweep.systems import sweepable, system_names

SMALLEST = 'system = "continual"\nrounds = 10\n'


def sweep(**changes):
    return Sweep(**({"system": "continual", "rounds": 1000} | changes))


def canonical(spec):
    return json.dumps(spec.to_json(), sort_keys=True)


def test_the_example_is_a_specification():
    """Would catch an example that has gone stale, or that does not travel with the package."""
    spec = Sweep.from_toml(example())
    assert spec.grid.shape == (3, 2, 4)
    assert all(cell.params.signal_scale == 1 / cell.params.truth_scale for cell in spec.grid.cells)
    for field in dataclasses.fields(Sweep):
        assert field.name in example()


def test_what_is_left_out_is_settled():
    """Would catch a manifest that depends on defaults of a later version."""
    spec = sweep()
    assert spec.record_every == 20
    assert spec.observables == ("forgetting", "generalization_error")
    assert spec.reading == "unit-signal"
    assert spec.chunk_width is None
    assert sweep(rounds=7).record_every == 1
    assert spec == sweep(record_every=20, reading="unit-signal", observables=["forgetting", "generalization_error"])
    assert sweep(axes={"reading": ["weak-signal"]}).reading is None


SAME = {
    "types": [
        {"axes": {"truth_scale": values}}
        for values in ([1, 2], (1.0, 2.0), range(1, 3), np.array([1, 2]), np.float32([1, 2]), jnp.array([1.0, 2.0]))
    ]
    + [
        {"axes": {"truth_scale": [np.int64(1), np.array(2.0)]}},
        {"axes": {"truth_scale": {"linspace": [1, 2], "num": 2}}},
    ],
    "whole": [{"params": {"num_experts": value}} for value in (8, 8.0, np.int32(8), np.float64(8), jnp.int32(8))],
    "boolean": [{"params": {"terminate": value}} for value in (False, np.False_)],
    "zero": [{"params": {"noise_scale": value}} for value in (0, 0.0, -0.0)],
    "order": [{"params": {"noise_scale": 0.1, "truth_scale": 1}}, {"params": {"truth_scale": 1, "noise_scale": 0.1}}],
    "rounded": [{"axes": {"num_experts": values}} for values in ([1, 2, 3, 4], {"logspace": [1, 4], "num": 9})],
    "fields": [{"rounds": 50, "seed": 3}, {"rounds": np.int64(50), "seed": jnp.uint32(3)}],
}


def test_the_same_is_equal_however_it_is_written():
    """Would catch chunks computed again because 1 was written for 1.0."""
    for what, given in SAME.items():
        specs = [sweep(**changes) for changes in given]
        assert len({canonical(spec) for spec in specs}) == 1, what
        assert len(set(specs)) == 1, what


def test_ends_of_a_logspace_are_the_values_themselves():
    """Would catch exponents, and ends that are not quite what was asked for."""
    values = sweep(axes={"noise_scale": {"logspace": [0.3, 2.7], "num": 3}}).axes["noise_scale"]
    assert (values[0], values[-1]) == (0.3, 2.7)
    assert abs(values[1] - 0.9) < 1e-15


ROUND_TRIPS = [
    {},
    {"system": "edge", "axes": {"policy": ["nearest", "fastest"], "when_busy": ["drop"]}, "keep": "replicates"},
    {"axes": {"reading": ["weak-signal", "unit-signal"], "terminate": [True, False]}, "quantiles": []},
    {"zips": {"pace": {"learning_rate": [1e-5, 1e12], "num_active": [1, 1]}}, "chunk_width": 3, "precision": "float64"},
    {"params": {"signal_scale": 0.1, "terminate": False}, "dims": {"num_tasks": 3}},
    {"choices": {"optimizer": "adam"}, "observables": ["loads"], "seed": 2**32 - 1, "replicates": 2**32 - 1},
]


def test_round_trips_are_exact():
    """Would catch a manifest or a file that is read back as another sweep."""
    for changes in ROUND_TRIPS:
        spec = sweep(**changes)
        again = Sweep.from_json(json.loads(canonical(spec)))
        assert again == spec, changes
        assert canonical(again) == canonical(spec), changes
        assert pickle.loads(pickle.dumps(spec)) == spec, changes
        assert dataclasses.replace(spec, seed=5).seed == 5


ERRORS = [
    # document behind SMALLEST, name, words
    ('reding = "x"', "reding", "unknown key 'reding'. Did you mean 'reading'?"),
    ("[params]\nnoise = 1", "noise", "Did you mean 'noise_scale'"),
    ('[params]\nsignal_scale = "1 / truth"', "signal_scale", "should be a valid number"),
    ("[dims]\nnoise_scale = 1", "noise_scale", "Move it to the table params"),
    ("[axes]\ntruth_scale = [\n 1,\n 1.0,\n]", "truth_scale", "twice"),
    ("[axes]\nnum_experts = [3, 0]", "num_experts", "in the cell num_experts=0: "),
    ("[axes]\nnoise_scale = []", "noise_scale", "should have at least 1 item"),
    ("[axes]\nnoise_scale = [nan]", "noise_scale", "finite"),
    ("[axes]\nterminate = [1.5]", "terminate", "should be a valid boolean"),
    ("[axes]\nnum_experts = [1.5]", "num_experts", "whole number"),
    ("[axes]\nnum_clusters = [2147483648]", "num_clusters", "between 1 and 2147483647"),
    ('[axes]\noptimizer = ["adma"]', "optimizer", "Did you mean 'adam'"),
    (
        "[axes]\nnoise_scale = {linspace = [0, 1], num = 1000000000000}",
        "noise_scale.num",
        "less than or equal to 1000000",
    ),
    ("[axes]\nnoise_scale = {linspace = [0, 1]}", "noise_scale.num", "num is missing"),
    ("[axes]\nnoise_scale = {linspace = [0, 1, 2], num = 3}", "noise_scale.linspace", "at most 2 items"),
    ("[axes]\nnoise_scale = {logspace = [0, 1], num = 3}", "noise_scale.logspace", "greater than 0"),
    ("[axes]\nnoise_scale = [1]\n[params]\nnoise_scale = 1", "noise_scale", "set twice"),
    ("reading = 'weak-signal'\n[axes]\nreading = ['weak-signal']", "reading", "set twice"),
    ("[params]\nreading = 'weak-signal'", "reading", "Move it to the top level"),
    ("[params]\nnum_experts = 1e60", "num_experts", "between 1 and 2147483647"),
    ("[params]\nlearning_rate = 1e-60", "learning_rate", "float32"),
    ("params = 3", "params", "should be a valid dictionary"),
    ("[zips.pace]", "pace", "has no list"),
    ("[zips.round]\nnoise_scale = [1]", "round", "Rename it"),
    ("[zips.'../../x']\nnoise_scale = [1]", "'../../x'", "must be a letter"),
    ("[zips.a]\nnoise_scale = [1]\ntruth_scale = [1, 2]", "a", "equal length"),
    ("[zips.a]\nnoise_scale = [1, 1]\ntruth_scale = [2, 2]", "a", "should not have (1.0, 2.0) twice"),
    ("replicates = 4294967296", "replicates", "less than or equal to 4294967295"),
    ("record_every = 11", "record_every", "from 1 to rounds=10"),
    ("quantiles = [0.5, 1.5]", "quantiles", "less than or equal to 1"),
    ("quantiles = [0.5, 0.5]", "quantiles", "twice"),
    ("observables = ['error', 'error']", "observables", "twice"),
    ("observables = ['eror']", "observable", "Did you mean 'error'"),
    ("keep = 'all'", "keep", "keep='all' should be"),
    ("precision = 'float16'", "precision", "should be"),
    ("reading = 'weak'", "reading", "Did you mean 'weak-signal'"),
]


def test_errors_name_the_file_and_the_mistake():
    """Would catch a wrong setting that is let through, or that the reader has to search for."""
    for document, name, words in ERRORS:
        told = str(refusal(MoeTheoryError, Sweep.from_toml, SMALLEST + document, "sweep.toml"))
        assert told.startswith("sweep.toml: "), document
        assert name in told, document
        assert words in told, document


def test_what_is_no_specification_is_told_from_where():
    """Would catch a traceback for a slip of the pen."""
    for document, start in (
        ("", "s: system is missing"),
        ("rounds = 3", "s: system is missing"),
        ("rounds = 3\nsystem = 'contnual'", "s: unknown system 'contnual'. Did you mean 'continual'"),
        ("rounds = 3\nsystem = 4", "s: system=4 should be a valid string"),
        ("system = 'edge'\r\nrounds = 0\r\n", "s: rounds=0"),
        ("rounds = 3\n\nsystem = ", "s: this is not TOML: "),
        ("rounds = 3\nrounds = 4", "s: this is not TOML: "),
        ("rounds = 3\nx = '\x01'", "s: this is not TOML: "),
        ("rounds = 3\nx = [1,\n2,\n", "s: this is not TOML: "),
        (f"\nrounds = {'9' * 5000}\nx = 1", "s: this is not TOML: "),
        (f"\n\nx = {'[' * 9000}{']' * 9000}\ny = 1", "s: this is not TOML: "),
    ):
        assert str(refusal(MoeTheoryError, Sweep.from_toml, document, "s")).startswith(start), document


def test_files_are_read(tmp_path):
    """Would catch a mark at the beginning, as some editors leave, taken for text."""
    path = tmp_path / "ü.toml"
    path.write_bytes(b"\xef\xbb\xbf" + example().encode())
    assert Sweep.read(path) == Sweep.from_toml(example())
    path.write_bytes(b"system = '\xe9'")
    assert "utf-8" in str(refusal(MoeTheoryError, Sweep.read, path))
    path.write_text(example().replace("rounds = 200", "rounds = 0"))
    assert str(refusal(MoeTheoryError, Sweep.read, path)).startswith(f"{path}: rounds")


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"axes": {"truth_scale": range(10**30)}}, marks=pytest.mark.thorough),  # five seconds
        {"axes": {"truth_scale": {"linspace": [0, 1], "num": 10**12}}},
        {"axes": {name: range(1, 1000) for name in ("truth_scale", "noise_scale", "learning_rate")}},
        {"zips": {"a": {"truth_scale": range(10**5)}}, "axes": {"noise_scale": range(11)}},
        {"rounds": 2**31 - 1, "record_every": 1},
    ],
)
def test_arguments_that_cannot_be_run(changes):
    """Would catch a sweep that fills the memory before it is refused; any other arguments are in tests/properties."""
    assert len(str(refusal(MoeTheoryError, sweep, **changes))) < 500


def test_damaged_data_is_refused():
    """Would catch a manifest that somebody edited, read as another sweep."""
    for data in (
        None,
        [],
        {},
        {"system": "edge"},
        {"system": "edge", "rounds": 1, "axes": {"truth_scale": [1]}},
        {"system": "edge", "rounds": 1, "axes": [{"name": "truth_scale"}]},
        {"system": "edge", "rounds": 1, "axes": [{"name": "truth_scale", "values": [1]}] * 2},
        {"system": "edge", "rounds": 1, "axes": [{"name": ["x"], "values": [1]}]},
        {"system": "edge", "rounds": 1, "colour": "red"},
    ):
        refusal(MoeTheoryError, Sweep.from_json, data)


@pytest.mark.parametrize("system", system_names())
def test_every_name_of_a_system_may_be_fixed(system):
    """Would catch a parameter of a registered system whose own default a specification cannot say."""
    cell = Sweep(system=system, rounds=1).grid.cells[0]
    sizes = {name: value for name, value in dataclasses.asdict(cell.dims).items() if value is not None}
    spec = Sweep(system=system, rounds=1, params=cell.params._asdict(), dims=sizes, choices=cell.choices)
    assert spec.grid.cells[0] == cell
    assert Sweep.from_json(json.loads(canonical(spec))) == spec


@pytest.mark.parametrize("system", system_names())
def test_a_sweep_without_axes_is_one_cell(system):
    """Would catch defaults that differ from the reading's and from the system's."""
    known = sweepable(system)
    grid = Sweep(system=system, rounds=10).grid
    assert (grid.axes, grid.shape, len(grid)) == ((), (), 1)
    [cell] = grid.cells
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
    for cell, (scale, experts, (rate, weight)) in zip(grid.cells, expected, strict=True):
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


def test_a_refused_cell_is_named():
    """Would catch a grid whose bad corner is found hours later, and an error without the setting to blame."""
    limits = {"max_strength": [1, 2], "min_strength": [1, 3]}
    for changes, words in (
        ({"axes": {"num_experts": [3, 0]}}, "num_experts=0: "),
        ({"axes": {"truth_scale": [0.1, -1], "num_experts": [3]}}, "truth_scale=-1, num_expe"),
        ({"zips": {"both": limits}}, "max_strength=2, min_strength=3: "),
        ({"axes": {"num_samples": [2, 40]}}, "num_samples=40: "),
        ({"dims": {"num_samples": 40}}, "num_samples=40 must be below"),
        ({"params": {"noise_scale": -1}}, "noise_scale=-1.0 must be"),
    ):
        refused = refusal(InvalidValueError, Sweep, system="continual", rounds=10, **changes)
        assert ("in the cell " if "axes" in changes or "zips" in changes else "") + words in str(refused)
