"""No data file runs code, and `deep` is a paper like a stranger's: catches a pickle that is loaded, a decoder that
starts a program, what needs the paper below, and a command that fails without it.
"""

import json
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest
from refusals import refusal

from moe_theory.core.errors import MoeTheoryError
from moe_theory.deep import datasets
from moe_theory.deep.datasets.images import FORMATS

from . import dataset_files as files
from .dataset_files import load_first


class Writes:
    """Pickles as a call that writes a file."""

    def __init__(self, sentinel):
        self.sentinel = sentinel

    def __reduce__(self):
        return exec, (f"open({str(self.sentinel)!r}, 'w').close()",)


@pytest.fixture
def payload(tmp_path):
    """A pickle, and the file that it would write; which it does where it is loaded."""
    sentinel = tmp_path / "ran"
    data = pickle.dumps(Writes(sentinel))
    pickle.loads(data)
    assert sentinel.exists()
    sentinel.unlink()
    return data, sentinel


@pytest.mark.parametrize("name", ["cifar10", "cifar100"])
def test_pickles_of_cifar_are_not_loaded(name, payload, tmp_path):
    data, sentinel = payload
    folder = tmp_path / "held"
    folder.mkdir()
    for file in (*files.CIFAR10_FILES, "train", "test", "meta", "batches.meta"):  # of the Python version
        (folder / file).write_bytes(data)
    for read in (load_first, lambda place: datasets.load(name, place)):
        refusal(MoeTheoryError, read, folder)
    assert not sentinel.exists()


@pytest.mark.parametrize("array", ["x_train", "y_train"])
def test_objects_in_an_archive_are_not_loaded(array, payload, tmp_path):
    _, sentinel = payload
    arrays = {"x_train": np.zeros((6, 5)), "y_train": np.arange(6) % 2}
    arrays[array] = np.array([Writes(sentinel)] * 6, object)
    (tmp_path / "held").mkdir()
    np.savez(tmp_path / "held" / "mine.npz", **arrays)
    sentinel.unlink(missing_ok=True)
    refusal(MoeTheoryError, load_first, tmp_path / "held")
    assert not sentinel.exists()


@pytest.mark.parametrize("name", ["mine.npz", "train-images-idx3-ubyte", "data_batch_1.bin", "train/a/0.png"])
def test_a_pickle_in_the_place_of_another_file_is_not_loaded(name, payload, tmp_path):
    data, sentinel = payload
    folder = tmp_path / "held"
    files.mnist(folder)
    files.cifar10(folder / "cifar-10-batches-bin")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for kind in ("mnist", "cifar10", "arrays", "folders", "tiny-imagenet"):
        try:
            datasets.load(kind, folder)
        except MoeTheoryError:
            continue
    assert not sentinel.exists()


def test_no_format_starts_a_program():
    """Pillow's EPS starts Ghostscript."""
    assert not {"EPS", "PDF", "WMF", "EMF"} & {*FORMATS}


LISTS = ("--help", "statements --claims --json", "figures --list --json")
OTHERS = (
    "statements --json",
    "why edge.theorem-1",
    "verify continual.lemma-4 --reading quick --replicates 64 --out run",
    "report run --out report",
    "report --paper edge --out paper",
    "report run --cite --json",
)
WITHOUT = """
import contextlib, io, json, sys
from importlib import metadata

every = metadata.entry_points
metadata.entry_points = lambda **asked: metadata.EntryPoints(each for each in every(**asked) if each.name != "deep")
sys.modules["moe_theory.deep"] = None  # as if it were not installed
from moe_theory.cli import main

said = {}
for command in sys.argv[1:]:
    with contextlib.redirect_stdout(io.StringIO()) as text:
        try:
            main(command.split())
        except SystemExit as end:
            assert not end.code, command
    said[command] = text.getvalue()
print(json.dumps(said))
"""


def run_without_it(commands, folder):
    """What each command prints."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, *commands], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.thorough
def test_lists_leave_it_out_where_it_is_not_installed(tmp_path):
    said = run_without_it(LISTS, tmp_path)
    listed = re.findall(r"^  (\w+) ", said["--help"], re.MULTILINE)
    assert "bound" in listed
    assert "deep" not in listed
    papers = {each["paper"] for each in json.loads(said["statements --claims --json"])}
    assert papers == {"continual", "edge", "generalization", "merging", "reinforced"}
    assert "deep" not in json.loads(said["figures --list --json"])


@pytest.mark.thorough
def test_everything_else_works_without_it(tmp_path):
    run_without_it(OTHERS, tmp_path)
    assert (tmp_path / "report" / "report.html").is_file()
    assert (tmp_path / "paper" / "report.html").is_file()
