"""Results of sweeps: catches wrong numbers or labels, reads nobody asked for, and files that differ or lose any."""

import copy
import errno
import hashlib
import json
import os
import pickle
import sys

import numpy as np
import pandas as pd
import pytest
import xarray as xr
from packed import harm, leave_out

import moe_theory as mt
from moe_theory import root_key, simulate_batch
from moe_theory.core.errors import InvalidParamsError, InvalidRunError, MissingChunkError, OutputError, UnknownNameError
from moe_theory.runs import files
from moe_theory.runs.files import pack
from moe_theory.runs.packs import Packs
from moe_theory.runs.workers import DevicePool
from moe_theory.sweep import runner
from moe_theory.sweep.plan import SweepPlan, fingerprint
from moe_theory.sweep.results import Results, Sweep, _Cache
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
    runner.run(Sweep(**{**ARGUMENTS, **changes}), folder, pool=DevicePool(1))
    return folder


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


def reads(monkeypatch):
    """Names of the chunks that are read from here on."""
    seen, read = [], Packs.read
    monkeypatch.setattr(Packs, "read", lambda packs, name: seen.append(name) or read(packs, name))
    return seen


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


def test_only_the_cells_asked_for_are_read(statistics, monkeypatch):
    seen = reads(monkeypatch)
    results = mt.Results.open(statistics)
    data = results.to_xarray()
    assert repr(results)
    assert repr(results.sweep).startswith("<Sweep continual, axes: ")  # in a line, as in a notebook its row is a table
    assert repr(data)
    chosen = data["forgetting"].sel(num_experts=3, reading="weak-signal").isel(scale=[1], round=-1)
    assert not seen
    first = chosen.values
    place = results.sweep.grid.cells.index(cell_at(results, num_experts=3, reading="weak-signal", truth_scale=0.2))
    assert seen == [chunk.name for chunk in results.plan.by_cell[place]]
    np.testing.assert_array_equal(data["forgetting"].values[1, 1, [1], -1], first)
    assert len(seen) == 8 * 3  # all cells, and the first only once
    data.load()
    assert len(seen) == 8 * 3


@pytest.mark.parametrize(
    "index",
    [
        {"num_experts": -1, "round": slice(None, None, -1)},
        {"num_experts": [1, 0, 1], "statistic": [2, 0]},
        {"reading": slice(1, 1)},
        {"num_experts": xr.DataArray([0, 1], dims="pair"), "reading": xr.DataArray([1, 0], dims="pair")},
    ],
)
def test_lazy_indexing_is_that_of_arrays(statistics, index):
    data = mt.Results.open(statistics).to_xarray()
    loaded = data.load().copy()
    xr.testing.assert_identical(mt.Results.open(statistics).to_xarray().isel(index).load(), loaded.isel(index))


def test_a_dataset_can_be_copied_and_sent(statistics):
    data = mt.Results.open(statistics).to_xarray()
    for twin in (copy.deepcopy(data), pickle.loads(pickle.dumps(data)), data.copy(deep=True)):
        xr.testing.assert_identical(twin.load(), data)


def test_attributes_say_what_decides_and_nothing_of_how_it_ran(statistics, tmp_path):
    data = mt.Results.open(statistics).to_xarray()
    again = mt.Results.open(made(tmp_path / "elsewhere")).to_xarray()
    assert data.attrs == again.attrs
    assert Sweep.from_json(json.loads(data.attrs["specification"])) == Sweep(**ARGUMENTS)
    other = mt.Results.open(made(tmp_path / "other", **{**SMALL, "seed": 4}))
    assert other.digest != mt.Results.open(statistics).digest
    assert data["forgetting"].attrs["long_name"] == sweepable("continual").observables["forgetting"].about
    assert data["num_experts"].attrs["long_name"] == "number of experts, M"


@pytest.mark.parametrize("kept", ["statistics", "replicates"])
@pytest.mark.parametrize("form", ["netcdf", "zarr", "parquet"])
def test_files_hold_everything_and_are_the_same_twice(kept, form, request, tmp_path):
    if form != "netcdf":
        pytest.importorskip({"zarr": "zarr", "parquet": "pyarrow"}[form])
    folder = request.getfixturevalue(kept)
    data = mt.Results.open(folder).to_xarray().load()
    one, two = (getattr(mt.Results.open(folder), f"to_{form}")(tmp_path / name / "results") for name in "ab")
    assert contents(one) == contents(two)
    assert [path.name for path in one.parent.iterdir()] == ["results"]
    if form == "parquet":
        table = pd.read_parquet(one)
        frame = data.to_dataframe(dim_order=[*table.columns[:6]]).reset_index()[list(table.columns)]
        assert list(table.columns[:6]) == ["num_experts", "reading", "scale", "round", "expert_index", kept[:-1]]
        pd.testing.assert_frame_equal(table, frame, check_dtype=False)
    else:
        with xr.open_dataset(one, engine={"netcdf": "scipy", "zarr": "zarr"}[form]) as back:
            xr.testing.assert_identical(back.load(), data)


def test_only_a_folder_of_ours_is_replaced_and_only_by_a_whole_one(statistics, tmp_path, monkeypatch):
    pytest.importorskip("zarr")
    with pytest.raises(OutputError, match="something else"):
        mt.Results.open(statistics).to_zarr(statistics)
    target, results = tmp_path / "results.zarr", mt.Results.open(statistics)
    for _ in range(2):
        results.to_zarr(target)
    assert [path.name for path in tmp_path.iterdir()] == ["results.zarr"]
    first = contents(target)
    with monkeypatch.context() as patched:
        replace = os.replace

        def fails(old, new):
            if old.suffix == ".part" and not old.name.endswith(".old.part"):
                raise OSError(errno.ENOSPC, "no space")
            return replace(old, new)

        patched.setattr(os, "replace", fails)
        if sys.platform == "linux":  # both folders change places at once: there is no moment without one
            results.to_zarr(target)
        patched.setattr(files, "_exchange", lambda one, other: False)
        with pytest.raises(OutputError, match="no space"):
            results.to_zarr(target)
    assert contents(target) == first
    (tmp_path / "link.zarr").symlink_to(target)
    xr.Dataset({"theirs": ("x", [1.0])}).to_zarr(tmp_path / "theirs.zarr", zarr_format=2)
    for name in ("link.zarr", "theirs.zarr"):
        with pytest.raises(OutputError, match="something else"):
            results.to_zarr(tmp_path / name)
    assert xr.open_zarr(tmp_path / "theirs.zarr").theirs == 1
    with pytest.raises(OutputError):
        mt.Results.open(statistics).to_netcdf(target)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError):
        mt.Results.open(statistics).to_netcdf(tmp_path / "file" / "results.nc")


@pytest.mark.parametrize(("form", "package"), [("zarr", "zarr"), ("parquet", "pyarrow")])
def test_without_an_extra_one_line_says_how_to_get_it(statistics, form, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(InvalidRunError, match=rf"pip install 'moe-theory\[{form}\]'"):
        getattr(mt.Results.open(statistics), f"to_{form}")(tmp_path / "results")


def test_what_is_missing_is_told_or_left_out(tmp_path):
    plan = mt.Results.open(made(tmp_path, keep="replicates")).plan
    leave_out(tmp_path, *(chunk.name for chunk in (plan.by_cell[2][1], *plan.by_cell[5])))
    with pytest.raises(MissingChunkError, match=r"20 of 24 chunks .*`moe-theory sweep`"):
        mt.Results.open(tmp_path)
    partial = mt.Results.open(tmp_path, partial=True)
    assert partial.coverage == (20, 24, 8 * 40 - 16 - 40, 320)
    assert "20 of 24 chunks" in repr(partial)
    data = partial.to_xarray()
    assert data["loads"].dtype == data["terminated"].dtype == np.float64
    assert data["forgetting"].dtype == np.float32
    gap = data["loads"].isel(num_experts=0, reading=1, scale=0)
    assert list(np.flatnonzero(np.isnan(gap).any(("round", "expert_index")))) == list(range(16, 32))
    assert np.isnan(data["forgetting"].isel(num_experts=1, reading=0, scale=1)).all()
    assert partial.statistics_of(2)["forgetting"][0, 0] == 24
    assert partial.statistics_of(5) is None
    with pytest.raises(MissingChunkError):
        partial.run_of(2)
    assert partial.run_of(2, 0, 16).records.forgetting.shape == (3, 16)


def test_partial_statistics_say_of_how_many(tmp_path):
    results = mt.Results.open(made(tmp_path, **SMALL))
    parts = results.plan.by_cell[0]
    whole = results.run_of(0).records.forgetting
    leave_out(tmp_path, parts[0].name)
    data = mt.Results.open(tmp_path, partial=True).to_xarray()["forgetting"]
    assert list(data.sel(statistic="count")) == [24] * 3
    np.testing.assert_allclose(data.sel(statistic="mean"), whole[:, 16:].mean(-1, dtype=np.float64))
    leave_out(tmp_path, *(chunk.name for chunk in parts[1:]))
    data = mt.Results.open(tmp_path, partial=True).to_xarray()["forgetting"]
    assert list(data.sel(statistic="count")) == [0] * 3
    assert np.isnan(data.drop_sel(statistic="count")).all()


def test_a_damaged_chunk_is_told_when_it_is_read(tmp_path):
    results = mt.Results.open(made(tmp_path, **SMALL))
    name = results.plan.by_cell[0][1].name
    harm(tmp_path, name)
    damaged = mt.Results.open(tmp_path)
    for _ in range(2):  # every time, and never of fewer replicates
        with pytest.raises(MissingChunkError, match=r"2 of 3 chunks .*damaged"):
            damaged.to_xarray()["forgetting"].load()
    assert list(damaged.damaged) == [name]
    partial = mt.Results.open(tmp_path, partial=True)
    assert partial.to_xarray()["forgetting"].isel(round=0, statistic=0) == 24
    assert partial.coverage.chunks == 2


def test_whole_numbers_are_never_made_up_for_a_damaged_chunk(tmp_path):
    results = mt.Results.open(made(tmp_path, **SMALL, keep="replicates"))
    name = results.plan.by_cell[0][1].name
    harm(tmp_path, name)
    partial = mt.Results.open(tmp_path, partial=True)
    data = partial.to_xarray()
    assert np.isnan(data["forgetting"].values[:, 16:32]).all()
    with pytest.raises(MissingChunkError, match="expert has no number"):
        data["expert"].load()
    assert np.isnan(partial.to_xarray()["expert"].values[:, 16:32]).all()


@pytest.mark.parametrize("form", ["netcdf", "zarr", "parquet"])
def test_a_sweep_without_axes_is_written_too(tmp_path, form):
    if form != "netcdf":
        pytest.importorskip({"zarr": "zarr", "parquet": "pyarrow"}[form])
    results = mt.Results.open(made(tmp_path / "swept", **SMALL))
    path = getattr(results, f"to_{form}")(tmp_path / "results")
    if form == "parquet":
        assert len(pd.read_parquet(path)) == 3 * 3 * len(STATISTICS)  # rounds, experts and statistics
    else:
        with xr.open_dataset(path, engine={"netcdf": "scipy", "zarr": "zarr"}[form]) as back:
            xr.testing.assert_identical(back.load(), results.to_xarray().load())


def test_runs_are_read_by_name_and_only_as_many_as_asked_for(statistics, monkeypatch):
    results = mt.Results.open(statistics)
    seen = reads(monkeypatch)
    runs = results.runs(10, 10)
    name = "num_experts = 3, reading = unit-signal, truth_scale = 0.2, noise_scale = 0.3"
    assert name in list(runs)
    assert len(runs) == 8
    run = runs[name]
    assert run is runs[name]
    assert len(seen) == 2  # the chunks of replicates 0 to 15 and 16 to 31
    plain = simulated(cell_at(results, num_experts=3, reading="unit-signal", truth_scale=0.2), results.sweep)
    for observable, values in plain.items():
        np.testing.assert_allclose(getattr(run.records, observable), values[..., 10:20], rtol=2e-5)
    assert list(run.replicates) == list(range(10, 20))
    assert list(run.rounds) == [10, 20, 25]
    assert run.params.truth_scale == 0.2
    assert run.state is None
    with pytest.raises(KeyError, match="Did you mean"):
        runs["num_experts = 3"]
    with pytest.raises(InvalidRunError, match="raise `replicates`"):
        results.runs(0, 41)


def test_a_cell_is_found_by_its_place_or_its_settings(statistics):
    results = mt.Results.open(statistics)
    by_settings = results.cell(num_experts=3, reading="weak-signal", noise_scale=0.3)
    assert by_settings.params == results.cell(7).params
    np.testing.assert_array_equal(by_settings.records.forgetting, results.cell(-1).records.forgetting)
    with pytest.raises(UnknownNameError, match="num_experts"):
        results.cell(experts=3)
    with pytest.raises(InvalidParamsError, match="Known: 2, 3"):
        results.cell(num_experts=4)
    with pytest.raises(InvalidRunError, match=r"4 cells .* give also reading"):
        results.cell(num_experts=3)


def test_cells_of_computed_axes_have_short_names(tmp_path):
    results = mt.Results.open(
        made(tmp_path, **{**SMALL, "axes": {"learning_rate": {"linspace": [0.1, 0.9], "num": 3}}})
    )
    assert results.names == ("learning_rate = 0.1", "learning_rate = 0.5", "learning_rate = 0.9")
    near = mt.Results.open(made(tmp_path / "near", **{**SMALL, "axes": {"learning_rate": [0.1, 0.1 + 1e-9]}}))
    assert near.names == ("learning_rate = 0.1", "learning_rate = 0.100000001")
    none = mt.Results.open(made(tmp_path / "none", **SMALL))
    assert list(none.runs()) == ["continual"]
    assert none.to_xarray()["forgetting"].dims == ("round", "statistic")


def test_cells_of_different_sizes_stand_side_by_side(tmp_path):
    sizes = {"axes": {"max_experts": [3, 4]}, "params": {"num_experts": 3}, "observables": ["loads"]}
    plan, packs = SweepPlan(Sweep(**{**SMALL, **sizes}), fingerprint("continual")), Packs(tmp_path)
    for chunk in plan.chunks:
        loads = np.arange(3 * (chunk.cell + 3) * 16).reshape(3, chunk.cell + 3, 16)
        packs.write([(chunk.name, pack(chunk.task, {"loads": loads}))])
    data = Results(plan, packs).to_xarray()["loads"]
    assert data.sizes["expert_index"] == 4
    small = data.sel(max_experts=3)
    assert np.all(small.sel(statistic="count") == [40, 40, 40, 0])
    assert np.isnan(small.sel(statistic="mean", expert_index=3)).all()
    assert small.sel(statistic="min", round=25, expert_index=2) == 8 * 16
    assert data.sel(max_experts=4, statistic="max", round=25, expert_index=3) == 12 * 16 - 1


def test_values_that_are_not_finite_stay_so(tmp_path, monkeypatch):
    read = Packs.read

    def planted(packs, name):
        arrays = read(packs, name)
        arrays["forgetting"][0, :2] = np.inf, np.nan
        arrays["forgetting"][1, 0] = np.inf
        return arrays

    monkeypatch.setattr(Packs, "read", planted)
    data = mt.Results.open(made(tmp_path, **SMALL)).to_xarray()["forgetting"]
    assert np.isnan(data.sel(statistic="mean").values[0])
    assert not np.isfinite(data.sel(statistic="mean").values[1])
    assert data.sel(statistic="max").values[1] == np.inf
    assert np.isfinite(data.values[2]).all()


def test_the_cache_forgets_what_was_asked_for_longest_ago():
    cache, made = _Cache(2 * 80), []

    def ask(key):
        return cache.get(key, lambda: made.append(key) or {"x": np.zeros(10)})

    for key in "ababcab":
        ask(key)
    assert made == list("abcab")
