"""What holds for all tests."""

import pytest

from moe_theory.sweep import compilation


@pytest.fixture(autouse=True)
def no_programs_kept(monkeypatch):
    """Commands called in a test's process keep no compiled programs: JAX warns of what another process is writing."""
    monkeypatch.setattr(compilation, "keep_programs", lambda *arguments: None)
