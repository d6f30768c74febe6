"""The package as imported, as a command and as released: catches an eager import, a changed configuration, a lost name.

One version, metadata in step, workflows that call what there is, names that end.
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

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


sys.path.append(str(ROOT / ".ci"))

import metadata  # noqa: E402

ENDS = re.compile(r"goes in (\d+)\.(\d+): use \S")
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_the_version_stands_in_one_place():
    """Would catch a version raised without running `.ci/metadata.py`, and a changelog that does not know it."""
    assert metadata.version() == moe_theory.__version__
    cff = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert metadata.citation(cff) == cff
    assert yaml.safe_load(cff)["version"] == moe_theory.__version__
    latest = re.search(r"^## (\S+?),? ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert latest
    assert latest[1] == moe_theory.__version__


def commands(node):
    """Every command that a workflow runs."""
    if isinstance(node, dict):
        for key, part in node.items():
            yield from [part] if key == "run" and isinstance(part, str) else commands(part)
    elif isinstance(node, list):
        yield from (each for part in node for each in commands(part))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_calls_what_there_is(path):
    """Would catch a target or a script that was renamed, and a Python that `pyproject.toml` does not allow."""
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    matrices = [job.get("strategy", {}).get("matrix", {}) for job in workflow["jobs"].values()]
    listed = [entry for matrix in matrices for entry in matrix.get("include", [])]
    called = [each for each in commands(workflow) if isinstance(each, str)]
    called += [entry["command"] for entry in listed if "command" in entry]
    targets = set(re.findall(r"^([\w.-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    for command in called:
        if command.startswith("make "):
            assert set(command.partition(" && ")[0].split()[1:]) <= targets | {".venv/.ready"}
        assert all((ROOT / name).exists() for name in re.findall(r"\.ci/\S+", command))
    pythons = {entry["python"] for entry in listed if "python" in entry}
    pythons |= {version for matrix in matrices for version in matrix.get("python", [])}
    assert all(re.fullmatch(r"3\.1[1-9]", version) for version in pythons)
    assert len(called) > 0


def test_a_deprecated_name_is_gone_by_the_version_that_it_names():
    now = tuple(map(int, moe_theory.__version__.split(".")[:2]))
    for path in sorted((ROOT / "moe_theory").rglob("*.py")):
        for major, minor in ENDS.findall(path.read_text(encoding="utf-8")):
            assert now < (int(major), int(minor)), path
