"""What kills do to what is saved."""

import os
import subprocess
import sys
from pathlib import Path

import crashes
import pytest


@pytest.mark.thorough
def test_killed_at_random_moments_and_resumed():
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_backend_optimization_level=1"  # runs are what costs
    environment = os.environ | {"XLA_FLAGS": flags.strip()}
    command = [sys.executable, Path(crashes.__file__), "--kills", "6"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("2 kills") == 3
