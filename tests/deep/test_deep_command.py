"""`moe-theory deep` as a user meets it: exit codes, resumed runs, files that say the same as the table."""

import contextlib
import dataclasses
import json
import sqlite3
import xml.etree.ElementTree as ElementTree

import pytest
import xarray as xr

from moe_theory.cli import output
from moe_theory.deep import presets, runs
from moe_theory.deep.params import Dims
from moe_theory.verification.verdict import Report

NAME, ROUNDS = "continual-mnist-small", 4


@pytest.fixture
def alone(monkeypatch):
    """No threads to leave: those of other tests would make an interrupted command end the whole process at once."""
    monkeypatch.setattr(output.threading, "active_count", lambda: 1)


@pytest.fixture
def tiny(monkeypatch):
    """The smallest experiment under the name of one that there are claims about."""
    dims = Dims(7, 3, ROUNDS, num_samples=10, num_tests=8, num_epochs=1, batch_size=10)
    monkeypatch.setitem(presets.PRESETS, NAME, dataclasses.replace(presets.preset(NAME), dims=dims))


@pytest.mark.thorough
def test_a_preset_is_run_shown_written_and_resumed(tiny, tmp_path, ran):
    out = tmp_path / "out"
    options = (NAME, "--replicates", 2, "--out", out)
    text = ran("deep", *options).out
    for said in ("Fig. 5 of continual on digits, reading balanced, 2 seeds", "M = 7, no termination", "sigma_0", "κ"):
        assert said in text
    assert "deep.figure-5." in text
    assert "balanced on digits" in text
    assert "WARNING: nothing can be terminated in M = 4 in 4 rounds" in text
    assert "WARNING: the verdicts are from 2 seeds" in text
    assert ElementTree.parse(out / "deep.svg").getroot().tag.endswith("svg")

    streams = ran("deep", *options, "--json")
    document = json.loads(streams.out)
    assert json.loads((out / "summary.json").read_text()) == document
    assert {verdict["data"] for verdict in document["verdicts"]} == {"digits"}
    assert all("moe-theory" in verdict["command"] for verdict in document["verdicts"])
    with xr.open_dataset(out / "results.nc") as results:
        assert results.attrs["preset"] == NAME
        errors = results.generalization_error.isel(round=-1).mean("replicate")
        for cell in document["cells"]:
            assert cell["measures"]["generalization_error"]["mean"] == pytest.approx(
                float(errors.sel(cell=cell["name"]))
            )
    names = ["results.nc", "summary.json", "verdicts.json", "deep.svg"]
    assert document["files"] == [str(out / name) for name in names]
    assert Report.from_json(json.loads((out / "verdicts.json").read_text())).verdicts

    before = (out / "results.nc").read_bytes()
    with contextlib.closing(sqlite3.connect(out / "runs" / "results.sqlite", isolation_level=None)) as database:
        one = "key = (SELECT min(key) FROM results)"
        database.execute(f"UPDATE results SET data = zeroblob(length(data)) WHERE {one}")
    text = ran("deep", *options).out
    assert "1 saved runs were damaged and had to be computed again" in text
    assert (out / "results.nc").read_bytes() == before

    text = ran("deep", NAME, "--set", "gate_scale=5", "--replicates", 1, "--out", out).out
    assert "reading balanced, gate_scale=5" in text


def test_a_folder_without_data_is_refused(tmp_path, refused):
    line = refused("deep", NAME, "--data", tmp_path, "--out", tmp_path / "out")
    assert f"no data set in {tmp_path}" in line
    assert "a run needs a preset" in refused("deep", "--data", tmp_path)


def test_an_interrupt_leaves_one_line(tiny, alone, tmp_path, refused, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(runs, "run_plan", interrupted)
    line = refused("deep", NAME, "--out", tmp_path, code=130, may_print=True)
    assert f"are saved in {tmp_path} after every 10 rounds, and the same command resumes" in line


def test_without_a_preset_they_are_listed(ran):
    text = ran("deep").out
    assert all(name in text for name in presets.PRESETS)
    assert "moe-theory deep continual-mnist-small" in text
    rows = {row["preset"]: row for row in json.loads(ran("deep", "--list", "--json").out)}
    assert list(rows) == list(presets.PRESETS)
    assert all(row["is_embedded"] == name.endswith("-small") for name, row in rows.items())


def test_what_cannot_be_met_is_refused(refused):
    for named, *options in (
        ("Did you mean 'continual-mnist'?", "continual-minst"),
        ("Did you mean 'balanced'?", NAME, "--reading", "balance"),
        ("gate_scale", NAME, "--set", "gate_scal=1"),
        ("terminate cannot be set", NAME, "--set", "terminate=false"),
        ("replicates=0", NAME, "--replicates", "0"),
        ("cannot be written", NAME, "--out", "/proc/nowhere"),
        ("--experts 'x' must be", NAME, "--experts", "4,x"),
        ("Did you mean 'mlp'?", NAME, "--network", "mpl"),
    ):
        assert named in refused("deep", *options)
