"""The sweep command: catches a mistake answered by a traceback, and output that leaves a user alone."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
import xarray as xr
from stored import files, harm, rows

from moe_theory import cli

SPECIFICATION = """
system = "continual"
rounds = 20
record_every = 10
replicates = 24
chunk_width = 8
[axes]
num_experts = [2, 3]
"""


@pytest.fixture
def specification(tmp_path):
    path = tmp_path / "grid.toml"
    path.write_text(SPECIFICATION)
    return path


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("sweep")
    (folder / "grid.toml").write_text(SPECIFICATION)
    cli.main(["sweep", str(folder / "grid.toml"), "--out", str(folder / "run")])
    return folder / "run"


def test_a_run_says_where_things_are_and_what_it_computed(ran, specification, tmp_path):
    out = tmp_path / "run"
    said = ran("sweep", specification, "--out", out).out
    for words in ("num_experts", "forgetting", "6 computed, 0 reused", str(out / "results.nc"), "sweep show"):
        assert words in said
    with xr.open_dataset(out / "results.nc") as data:
        assert data.sizes["num_experts"] == 2
    assert "0 computed, 6 reused" in ran("sweep", specification, "--out", out).out
    harmed = min(rows(out))
    harm(out, harmed)
    said = ran("sweep", specification, "--out", out).out
    assert f"damaged, computed again: {harmed}" in " ".join(said.split())
    assert "1 computed, 5 reused" in said


def test_show_draws(ran, finished, tmp_path):
    picture = tmp_path / "look.png"
    said = ran("sweep", "show", finished, "--picture", picture).out
    assert "generalization_error" in said
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_json_is_one_document(ran, finished):
    document = json.loads(ran("sweep", "show", finished, "--json").out)
    assert document["coverage"]["chunks"] == 6
    assert len(document["cells"]) == 2


def test_mistakes_are_one_line_with_the_place(refused, specification):
    for change in ("rounds = 20", "num_experts = [2, 3]"):
        name = change.partition(" ")[0]
        specification.write_text(SPECIFICATION.replace(change, f"{name} = [-1]"))
        assert f"{name}=" in refused("sweep", specification)


def test_other_mistakes_are_one_line(refused, specification, tmp_path):
    assert "name a specification" in refused("sweep")
    assert "none.toml cannot be read" in refused("sweep", tmp_path / "none.toml")
    assert "address" in refused("sweep", specification, "--dask", "nowhere", "--out", tmp_path / "run")
    assert "has no sweep" in refused("sweep", "show", tmp_path)
    (tmp_path / "file").write_text("")
    assert "cannot be written" in refused("sweep", specification, "--out", tmp_path / "file")


@pytest.mark.thorough
@pytest.mark.parametrize("sent", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.thorough)])
def test_an_interrupt_says_how_to_resume(specification, tmp_path, sent):
    specification.write_text(SPECIFICATION.replace("replicates = 24", "replicates = 8000"))
    out = tmp_path / "run"
    command = [sys.executable, "-m", "moe_theory", "sweep", str(specification), "--out", str(out)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
    while not (files(out) and rows(out)):
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, sent)
    _, said = process.communicate()
    assert process.returncode == 130
    assert said.decode().endswith("the same command resumes from them\n")
    assert "Traceback" not in said.decode()
    assert 0 < len(rows(out)) < 2000


def test_parts_write_no_results_before_all_are_there(ran, specification, tmp_path, finished):
    out = tmp_path / "run"
    assert "3 computed" in ran("sweep", specification, "--out", out, "--part", "1/2").out
    assert not (out / "results.nc").exists()
    assert "for the others" in ran("sweep", "show", out).out
    ran("sweep", specification, "--out", out, "--part", "2/2")
    assert "0 computed, 6 reused" in ran("sweep", specification, "--out", out).out
    assert (out / "results.nc").read_bytes() == (finished / "results.nc").read_bytes()
