"""What disks, power cuts and kills do to what is kept; `crashes.py` does the same by the thousand."""

import os
import subprocess
import sys
from pathlib import Path

import crashes
import pytest

from moe_theory.runs import files


def test_no_flipped_bit_changes_a_number(tmp_path):
    """Would catch a reader that takes a changed file for what was written, or ends in a traceback."""
    found = crashes.flip_bits(100, 0, tmp_path)
    assert {kind for kind, what in found if what == "detected"} == {
        each.kind for each in crashes.kept_files(tmp_path / "a")
    }


def test_a_power_cut_loses_nothing_that_was_kept(tmp_path):
    found = crashes.cut_power(10, 0, tmp_path)
    assert found["as kept"] > 10


@pytest.mark.parametrize("forgotten", ["_sync_tree", "_keep_names_of", "_record"])
def test_a_power_cut_shows_a_sync_that_is_missing(tmp_path, monkeypatch, forgotten):
    """Would catch power cuts that harm nothing."""
    monkeypatch.setattr(files, forgotten, lambda *arguments: None)
    with pytest.raises((AssertionError, FileNotFoundError)):
        crashes.cut_power(40, 0, tmp_path)


@pytest.mark.thorough
def test_killed_at_random_moments_and_resumed():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=1"  # runs are what costs
    environment = os.environ | {"XLA_FLAGS": flags.strip()}
    command = [sys.executable, Path(crashes.__file__), "--kills", "6"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("2 kills") == 3
