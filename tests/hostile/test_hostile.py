"""The fuzzer of the command line, and kills at random moments."""

import os
import subprocess
import sys
from pathlib import Path

import crashes
import pytest
from commands import Outcome, broken


@pytest.mark.parametrize(
    ("outcome", "promises"),
    [
        (Outcome(0, "fine"), []),
        (Outcome(2, "no"), []),
        (Outcome(1, "Traceback (most recent call last):"), ["a traceback"]),
        (Outcome(-9, ""), ["ends with -9"]),
        (Outcome(2, ""), ["refuses without a word"]),
    ],
)
def test_broken(outcome, promises):
    assert broken(outcome) == promises


@pytest.mark.thorough
def test_fuzz_breaks_no_promise():
    command = [sys.executable, Path(__file__).with_name("commands.py"), "--seed", "7", "--number", "100"]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.thorough
def test_kill_at_random_moments_and_resume():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=1"  # runs are what costs
    environment = os.environ | {"XLA_FLAGS": flags.strip()}
    command = [sys.executable, Path(crashes.__file__), "--kills", "6"]
    run = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("2 kills") == 3
