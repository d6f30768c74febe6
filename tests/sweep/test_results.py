"""Results of sweeps: catches wrong numbers or labels, made-up ones, and files that differ or lose any."""

import hashlib

import numpy as np
import pytest
import xarray as xr
from refusals import refusal
from stored import harm, leave_out

import moe_theory as mt
from moe_theory import root_key, simulate_batch
from moe_theory.core.errors import MissingError, OutputError
from moe_theory.runs.store import Store, pack
from moe_theory.runs.workers import device_pool
from moe_theory.sweep import runner
from moe_theory.sweep.plan import SweepPlan, fingerprint
from moe_theory.sweep.results import Results, Sweep
from moe_theory.sweep.systems import sweepable

ARGUMENTS = {
    "system": "continual",
    "rounds": 25,
    "record_every": 10,
    "axes": {"num_experts": [2, 3], "reading": ["unit-signal", "weak-signal"]},
    "zips": {"scale": {"truth_scale": [0.4, 0.2], "noise_scale": [0.1, 0.3]}},
    "replicates": 40,
    "chunk_width": 16,
    "observables": ["forgetting", "terminated", "expert", "loads"],
    "quantiles": [0.025, 0.5],
    "seed": 3,
}
STATISTICS = ["count", "mean", "standard_error", "min", "max", "q2.5", "q50"]
SMALL = {**ARGUMENTS, "axes": {}, "zips": {}, "params": {"num_experts": 3}}  # one cell of the same program


def made(folder, **changes):
    runner.run(Sweep(**{**ARGUMENTS, **changes}), folder, pool=device_pool(1))
    return folder


def planted(folder, values, **changes):
    """Results whose chunks hold what `values` gives for each of them."""
    plan = SweepPlan(Sweep(**{**SMALL, **changes}), fingerprint("continual"))
    store = Store(folder)
    store.put({chunk.name: pack(values(chunk)) for chunk in plan.chunks})
    return Results(plan, store)


@pytest.fixture(scope="module")
def statistics(tmp_path_factory):
    return made(tmp_path_factory.mktemp("statistics"))


@pytest.fixture(scope="module")
def replicates(tmp_path_factory):
    return made(tmp_path_factory.mktemp("replicates"), keep="replicates")


def simulated(cell, sweep):
    """A cell's records (R, ..., B), without a sweep's chunks: in batches that compile nothing anew."""
    kind = sweepable("continual")
    system, observe = kind.system(cell.dims, cell.choices), kind.observe(sorted(sweep.observables))
    batches = [
        simulate_batch(
            system, root_key(sweep.seed), np.arange(i, i + 16), cell.params, sweep.rounds, 10, observe=observe
        )[1]
        for i in (0, 16, 32)
    ]
    return {
        name: np.concatenate([np.asarray(batch[name], np.float64) for batch in batches], axis=-1)[..., :40]
        for name in sweep.observables
    }


def cell_at(results, **settings):
    (cell,) = (each for each in results.sweep.grid.cells if each.settings.items() >= settings.items())
    return cell


def contents(path):
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return {file.relative_to(path).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def test_statistics_are_those_of_directly_simulated_replicates(statistics):
    results = mt.Results.open(statistics)
    data = results.to_xarray()
    settings = {"num_experts": 3, "reading": "weak-signal", "truth_scale": 0.2}
    plain = simulated(cell_at(results, **settings), results.sweep)
    found = data.sel(num_experts=3, reading="weak-signal", scale=1)
    assert (float(found.truth_scale), float(found.noise_scale)) == (0.2, 0.3)
    assert list(data["round"]) == [10, 20, 25]
    assert list(data["statistic"]) == STATISTICS
    for name, values in plain.items():
        ordered = np.sort(values, axis=-1)
        place = 0.025 * 39
        quantile = ordered[..., 0] + place * (ordered[..., 1] - ordered[..., 0])
        expected = {
            "count": np.full(values.shape[:-1], 40),
            "mean": values.sum(-1) / 40,
            "standard_error": np.sqrt((np.square(values).sum(-1) - 40 * values.mean(-1) ** 2).clip(0) / 39 / 40),
            "min": ordered[..., 0],
            "max": ordered[..., -1],
            "q2.5": quantile,
            "q50": (ordered[..., 19] + ordered[..., 20]) / 2,
        }
        for statistic, value in expected.items():
            np.testing.assert_allclose(found[name].sel(statistic=statistic), value, rtol=2e-4, atol=1e-7, err_msg=name)
        assert found[name].dtype == np.float64


def test_replicates_keep_their_numbers_and_their_types(replicates):
    results = mt.Results.open(replicates)
    data = results.to_xarray().isel(num_experts=1, reading=0, scale=0)
    plain = simulated(cell_at(results, num_experts=3, reading="unit-signal", truth_scale=0.4), results.sweep)
    assert {name: variable.dtype.name for name, variable in data.items()} == {
        "forgetting": "float32",
        "terminated": "bool",
        "expert": "int32",
        "loads": "int32",
    }
    assert data["loads"].dims == ("round", "expert_index", "replicate")
    for name, values in plain.items():
        np.testing.assert_allclose(data[name].values.astype(np.float64), values, rtol=2e-5)


@pytest.mark.parametrize("kept", ["statistics", "replicates"])
def test_files_hold_everything_and_are_the_same_twice(kept, request, tmp_path):
    folder = request.getfixturevalue(kept)
    data = mt.Results.open(folder).to_xarray().load()
    one, two = (mt.Results.open(folder).save(tmp_path / name / "results.nc") for name in "ab")
    assert contents(one) == contents(two)
    assert [path.name for path in one.parent.iterdir()] == ["results.nc"]
    with xr.open_dataset(one, engine="scipy") as back:
        xr.testing.assert_identical(back.load(), data)


def test_what_cannot_be_written_is_refused(statistics, tmp_path):
    """A folder that is there, and a file that says no format."""
    (tmp_path / "theirs.nc").mkdir()
    for name in ("theirs.nc", "results.csv"):
        refusal(OutputError, mt.Results.open(statistics).save, tmp_path / name)


def test_what_is_missing_is_told_or_left_out(tmp_path):
    plan = mt.Results.open(made(tmp_path, keep="replicates")).plan
    leave_out(tmp_path, *(chunk.name for chunk in (plan.by_cell[2][1], *plan.by_cell[5])))
    assert "20 of 24 chunks" in str(refusal(MissingError, mt.Results.open, tmp_path))
    partial = mt.Results.open(tmp_path, partial=True)
    assert partial.coverage == (20, 24, 8 * 40 - 16 - 40, 320)
    data = partial.to_xarray()
    assert data["loads"].dtype == data["terminated"].dtype == np.float64
    assert data["forgetting"].dtype == np.float32
    gap = data["loads"].isel(num_experts=0, reading=1, scale=0)
    assert list(np.flatnonzero(np.isnan(gap).any(("round", "expert_index")))) == list(range(16, 32))
    assert np.isnan(data["forgetting"].isel(num_experts=1, reading=0, scale=1)).all()
    assert partial.statistics_of(2)["forgetting"][0, 0] == 24
    assert partial.statistics_of(5) is None


def test_partial_statistics_say_of_how_many(tmp_path):
    results = mt.Results.open(made(tmp_path, **SMALL))
    parts = results.plan.by_cell[0]
    whole = results.replicates_of(0)[1]["forgetting"]
    leave_out(tmp_path, parts[0].name)
    data = mt.Results.open(tmp_path, partial=True).to_xarray()["forgetting"]
    assert list(data.sel(statistic="count")) == [24] * 3
    np.testing.assert_allclose(data.sel(statistic="mean"), whole[:, 16:].mean(-1, dtype=np.float64))
    leave_out(tmp_path, *(chunk.name for chunk in parts[1:]))
    data = mt.Results.open(tmp_path, partial=True).to_xarray()["forgetting"]
    assert list(data.sel(statistic="count")) == [0] * 3
    assert np.isnan(data.drop_sel(statistic="count")).all()


def test_a_sweep_without_axes_is_one_cell(tmp_path):
    results = mt.Results.open(made(tmp_path, **SMALL))
    assert results.to_xarray()["forgetting"].dims == ("round", "statistic")


def test_statistics_are_those_of_numpy_at_the_labels_of_their_cell(tmp_path):
    """Would catch zips that are multiplied out or exchanged, and moments that lose digits as chunks are merged."""
    values = np.random.default_rng(0).normal(1e3, 1.0, (8, 3, 48))
    values[0, 0, 3] = np.nan
    values[0, 1, 7] = np.inf
    zips = {"scale": {"truth_scale": [0.4, 0.2], "noise_scale": [0.1, 0.3]}, "pace": {"learning_rate": [0.1, 0.2]}}
    results = planted(
        tmp_path,
        lambda chunk: {"forgetting": values[chunk.cell, :, chunk.first : chunk.first + 16]},
        axes={"reading": ["unit-signal", "weak-signal"]},
        zips=zips,
        observables=["forgetting"],
    )
    data = results.to_xarray()["forgetting"]
    assert data.dims == ("reading", "scale", "pace", "round", "statistic")
    assert data.coords["noise_scale"].dims == ("scale",)
    found = data.sel(reading="weak-signal").isel(scale=1, pace=0)
    assert (float(found.truth_scale), float(found.noise_scale), float(found.learning_rate)) == (0.2, 0.3, 0.1)
    numbers = values[6, :, :40]
    expected = {
        "count": np.full(3, 40.0),
        "mean": numbers.mean(-1),
        "standard_error": numbers.std(-1, ddof=1) / np.sqrt(40),
        "min": numbers.min(-1),
        "max": numbers.max(-1),
        "q2.5": np.quantile(numbers, 0.025, axis=-1),
        "q50": np.median(numbers, axis=-1),
    }
    for statistic, value in expected.items():
        np.testing.assert_allclose(found.sel(statistic=statistic), value, rtol=1e-12, err_msg=statistic)
    first = data[0, 0, 0]
    assert np.isnan(first.sel(statistic="mean")[0])
    assert first.sel(statistic="max")[1] == np.inf
    assert np.isfinite(first[2]).all()


def test_cells_of_different_sizes_stand_side_by_side(tmp_path):
    def loads(chunk):
        return {"loads": np.arange(3 * (chunk.cell + 3) * 16).reshape(3, chunk.cell + 3, 16)}

    results = planted(tmp_path, loads, axes={"max_experts": [3, 4]}, observables=["loads"])
    data = results.to_xarray()["loads"]
    assert data.sizes["expert_index"] == 4
    small = data.sel(max_experts=3)
    assert np.all(small.sel(statistic="count") == [40, 40, 40, 0])
    assert np.isnan(small.sel(statistic="mean", expert_index=3)).all()
    assert small.sel(statistic="min", round=25, expert_index=2) == 8 * 16
    assert data.sel(max_experts=4, statistic="max", round=25, expert_index=3) == 12 * 16 - 1


def test_a_damaged_chunk_is_refused_unless_the_results_are_partial(tmp_path):
    harm(tmp_path, mt.Results.open(made(tmp_path, **SMALL)).plan.by_cell[0][1].name)
    refusal(MissingError, mt.Results.open(tmp_path).to_xarray)
    assert mt.Results.open(tmp_path, partial=True).to_xarray()["forgetting"].isel(round=0, statistic=0) == 24
