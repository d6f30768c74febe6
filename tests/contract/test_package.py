"""The package as imported and as a command: catches an eager import, a changed configuration, a missing name."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import warnings
from pathlib import Path

import pytest

import moe_theory
from moe_theory.core.papers import paper_names

ROOT = Path(__file__).parents[2]
# In a process of its own, from little to much: what is loaded after each of three steps, and what has changed.
SCRIPT = """
import json, sys, moe_theory as mt, moe_theory.cli
heavy = {name.split(".")[0] for name in sys.modules} & {"jax", "scipy", "matplotlib", "xarray", "optax"}
import jax
before = dict(jax.config.values)
mt.verify.select_claims(["continual.lemma-4", "continual.theorem-*"])
parts = {name.split(".")[1] for name in sys.modules if name.startswith("moe_theory.")}
[getattr(mt, name) for name in mt.__all__]
mt.claims()
import moe_theory.report.plots
changed = {key for key, value in jax.config.values.items() if before.get(key) != value}
print(json.dumps([*map(sorted, (heavy, parts, changed))]))
"""


def test_no_more_is_imported_than_is_used_and_nothing_configured():
    """Would catch an eager import, a claim that imports other papers, and a change of JAX's settings."""
    out = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True).stdout
    heavy, parts, changed = json.loads(out)
    assert heavy == []
    assert set(parts) & set(paper_names()) == {"continual"}
    assert changed == []


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="simulat'"):
        moe_theory.simulat  # noqa: B018


def test_verify_is_a_package_and_a_function():
    from moe_theory.verify import session

    assert session.verify.__name__ == "verify"
    assert callable(moe_theory.verify)


@pytest.mark.parametrize(
    ("message", "module"), [("x is deprecated", "moe_theory.core.engine"), ("jax.x is gone", "flax")]
)
def test_deprecations_are_errors(message, module):
    """Would catch a silence in which JAX's deprecations reach users first."""
    with pytest.raises(DeprecationWarning):
        warnings.warn_explicit(message, DeprecationWarning, "file.py", 1, module=module)


@pytest.mark.thorough
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_the_wheel_runs_the_first_steps(tmp_path, version):
    """Would catch a template, a witness or a recorded verdict that is not in the wheel, an entry point that is not
    registered, a need that `pyproject.toml` does not say, and what a version of Python that it allows cannot run.
    """
    is_this = version == ".".join(map(str, sys.version_info[:2]))
    python = sys.executable if is_this else shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", "import venv"], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version} here")
    made = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", tmp_path, ROOT],
        capture_output=True,
        text=True,
    )
    if made.returncode:
        pytest.skip(f"no wheel can be built here, without the package that builds it: {made.stderr.splitlines()[-1]}")
    (wheel,) = tmp_path.glob("*.whl")
    subprocess.run([python, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", wheel]
    if subprocess.run(install, capture_output=True).returncode:  # without a network: what it needs is taken from here
        if not is_this:
            pytest.skip(f"what it needs cannot be had here for Python {version}")
        subprocess.run([*install, "--no-deps"], check=True)
        (place,) = (tmp_path / "venv").glob("lib/python*/site-packages")
        (place / "needs.pth").write_text(sysconfig.get_path("purelib"))
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    for words in (
        ["-c", "import moe_theory; print(moe_theory.__file__)"],
        ["-m", "moe_theory.cli", "why", "generalization.theorem-1", "--script"],
        ["-m", "moe_theory.cli", "verify", "continual.lemma-4", "--reading", "unit-signal", "--replicates", "64"],
        ["-m", "moe_theory.cli", "cite", "runs/verify"],
        ["-m", "moe_theory.cli", "report", "runs/verify"],
        ["-m", "moe_theory.cli", "bound"],
    ):
        done = subprocess.run([python, *words], cwd=tmp_path, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout
        if words[0] == "-c":
            assert Path(done.stdout.strip()).is_relative_to(tmp_path)
    assert "Lemma 4" in (tmp_path / "runs" / "verify" / "report.html").read_text()
