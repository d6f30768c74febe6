"""The package as imported and as a command: catches an eager import, a changed configuration, a missing name."""

import inspect
import json
import shutil
import subprocess
import sys
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
[mt.claims(pattern) for pattern in ("continual.lemma-4", "continual.theorem-*")]
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


def test_verify_is_a_function_with_a_signature():
    """Would catch `help(mt.verify)` without arguments."""
    assert list(inspect.signature(moe_theory.verify).parameters)[:3] == ["patterns", "readings", "replicates"]


@pytest.mark.parametrize(
    ("message", "module"), [("x is deprecated", "moe_theory.core.engine"), ("jax.x is gone", "flax")]
)
def test_deprecations_are_errors(message, module):
    """Would catch a silence in which JAX's deprecations reach users first."""
    with pytest.raises(DeprecationWarning):
        warnings.warn_explicit(message, DeprecationWarning, "file.py", 1, module=module)


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13", "3.14"])
def test_what_is_released_runs_the_first_steps(tmp_path, version, kind):
    """Would catch a template, a witness or a recorded verdict that is in neither file, an entry point that is not
    registered, a need that `pyproject.toml` does not say, and what a version of Python that it allows cannot run.
    """
    is_this = version == ".".join(map(str, sys.version_info[:2]))
    python = sys.executable if is_this else shutil.which(f"python{version}")
    if python is None or subprocess.run([python, "-c", "import venv"], capture_output=True).returncode:
        pytest.skip(f"there is no Python {version} here")
    build = [sys.executable, "-m", "build", "--no-isolation", f"--{kind}", "--outdir", tmp_path, ROOT]
    made = subprocess.run(build, capture_output=True, text=True)
    if made.returncode:
        pytest.skip(f"nothing can be built here, without what builds it: {made.stderr.splitlines()[-1]}")
    (file,) = tmp_path.glob("moe_theory-*")
    ask = [sys.executable, ROOT / ".ci" / "installed.py", file, python]
    done = subprocess.run(ask, capture_output=True, text=True)
    if done.returncode and "moe-theory" not in done.stderr.splitlines()[0]:  # what it needs could not be had
        if not is_this:
            pytest.skip(f"what it needs cannot be had here for Python {version}")
        done = subprocess.run([*ask, "--lend"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["megabytes of its own"] < 20
