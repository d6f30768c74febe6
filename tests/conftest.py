"""What holds for all tests."""

import functools
import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Compiled programs are kept between tests, workers and runs of the suite: compiling is much of its time. A test's own
# processes inherit this. Set before anything imports JAX.
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(Path(__file__).parents[1] / ".pytest_cache" / "programs"))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

# Tracing makes objects by the million that last, which Python would look through again and again.
gc.set_threshold(50_000, 10, 10)

# For a CPU, XLA compiles in half the time without its newer way to emit fused loops and with LLVM's first level only;
# most programs here run for a moment. Where what users' programs do is asked, `compiled_for_users` brings both back.
QUICKLY = ("--xla_cpu_use_fusion_emitters=false", "--xla_backend_optimization_level=1")
FOR_USERS = {"xla_cpu_use_fusion_emitters": True, "xla_backend_optimization_level": 3}


def compile_quickly() -> None:
    """Ask XLA for it, here and in the tests' own processes, unless this XLA ends at a flag that it does not know."""
    flags = " ".join([os.environ.get("XLA_FLAGS", ""), *QUICKLY]).strip()
    environment = os.environ | {"XLA_FLAGS": flags, "JAX_PLATFORMS": "cpu"}
    tried = subprocess.run([sys.executable, "-c", "import jax; jax.devices()"], env=environment, capture_output=True)
    if tried.returncode == 0:
        os.environ["XLA_FLAGS"] = flags


def is_quick() -> bool:
    return set(QUICKLY) <= set(os.environ.get("XLA_FLAGS", "").split())


if not is_quick():  # else another of pytest's processes has asked
    compile_quickly()


@pytest.fixture
def compiled_for_users(monkeypatch: pytest.MonkeyPatch) -> None:
    """The engine's programs as those get them who set no flags of XLA."""
    from moe_theory.core import engine

    options = engine.cpu_options()
    if options is not None and is_quick():
        monkeypatch.setattr(engine, "cpu_options", lambda: options | FOR_USERS)
    monkeypatch.setattr(engine, "_program", functools.cache(engine._program.__wrapped__))
