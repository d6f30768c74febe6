"""The fuzzer of the command line, and what kills do to what is saved: what breaks a promise is told."""

import os
import subprocess
import sys
from pathlib import Path

import crashes
import pytest
from commands import Input, Outcome, broken

SCRIPT = Path(__file__).with_name("commands.py")
SOUND = Outcome(2, "", "moe-theory: no. Say yes.\n", [], [], 0.1, False, False)
TRACEBACK = 'Traceback (most recent call last):\n  File "x"\nValueError\n'


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({}, []),
        ({"code": 0, "err": "", "out": "fine\n"}, []),
        ({"code": 130, "began": True, "is_stopped": True, "err": ""}, []),
        ({"err": f"{TRACEBACK}moe-theory: no\n"}, ["a traceback", "refuses in more than a line"]),
        ({"code": 70}, ["ends with 70"]),
        ({"code": -11}, ["ends with -11"]),
        ({"is_stopped": True}, ["hangs"]),
        ({"code": -9, "is_stopped": True, "began": True}, ["ends with -9", "hangs"]),
        ({"written": ["open '/etc/passwd'"]}, ["writes open '/etc/passwd'"]),
        ({"replaced": ["run/report.json"]}, ["refuses, and replaces run/report.json"]),
        ({"err": ""}, ["refuses without a word"]),
        ({"err": "moe-theory: one\nanother\n"}, ["refuses in more than a line"]),
        ({"err": f"moe-theory: {'x' * 9999}\n"}, ["refuses at length"]),
        ({"err": "moe-theory: \x1b]0;title\x07\n"}, ["passes on escape codes"]),
        ({"code": 0, "out": "1.5"}, ["accepts changed numbers"]),
    ],
)
def test_what_breaks_a_promise_is_told(change, told):
    same = "1.4" if told == ["accepts changed numbers"] else ""
    assert broken(Input(["report"], same_as=same), SOUND._replace(**change)) == told


@pytest.mark.thorough
def test_inputs_break_no_promise():
    command = [sys.executable, SCRIPT, "--seed", "7", "--number", "300", "--seconds", "240"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert ": 0 broken promises" in done.stdout


@pytest.mark.thorough
def test_killed_at_random_moments_and_resumed():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=1"  # runs are what costs
    environment = os.environ | {"XLA_FLAGS": flags.strip()}
    command = [sys.executable, Path(crashes.__file__), "--kills", "6"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("2 kills") == 3
