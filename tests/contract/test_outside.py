"""The papers in `examples/`, as strangers install them: the commands find them, and find what their records say."""

import json
import tomllib
from pathlib import Path

import pytest

from .strangers import install, printed

ROOT = Path(__file__).parents[2]
PAPERS = sorted(path.name for path in (ROOT / "examples").iterdir() if (path / "pyproject.toml").exists())
LINES = 300


@pytest.fixture
def stranger(tmp_path):
    """What runs a command where one of these papers is installed."""

    def run(name, *words):
        place, installed = ROOT / "examples" / name, tmp_path / "installed"
        install(installed, tomllib.loads((place / "pyproject.toml").read_text(encoding="utf-8"))["project"])
        return printed(words, tmp_path, [place, installed, ROOT / "docs"])

    return run


def statuses(path):
    """By claim, those of a run or a record."""
    return {each["claim"]: each["status"] for each in json.loads(path.read_text(encoding="utf-8"))["verdicts"]}


def recorded(name):
    return statuses(ROOT / "examples" / name / name / "recorded.json")


@pytest.mark.parametrize("name", PAPERS)
def test_it_is_one_module_of_few_lines(name):
    (module,) = (ROOT / "examples" / name / name).glob("*.py")
    assert len(module.read_text(encoding="utf-8").splitlines()) < LINES


@pytest.mark.thorough
def test_our_own_texts_do_not_change_where_others_papers_are_installed(stranger):
    """Would catch a README that counts a stranger's statements among those of the four papers."""
    stranger(PAPERS[0], str(ROOT / "docs" / "readme.py"), "--check")


@pytest.mark.thorough
@pytest.mark.parametrize("name", PAPERS)
def test_all_of_it_runs(name, stranger, tmp_path):
    """Would catch a figure, a sweep, a search, a citation or a test of its own that does not."""
    say = [name, "-m", "moe_theory"]
    stranger(*say, "verify", name, "--seed", "0", "--out", "run")
    found = statuses(tmp_path / "run" / "verdicts.json")
    assert found == recorded(name)
    assert len(json.loads(stranger(*say, "statements", name, "--json"))) >= 3
    assert "no counterexample" in stranger(*say, "challenge", name, "--seconds", "10", "--out", "searched")
    assert "mean ± standard error" in stranger(
        *say, "sweep", str(ROOT / "examples" / name / "sweep.toml"), "--out", "swept"
    )
    assert ".svg" in stranger(*say, "figures", name, "--out", "drawn")
    assert "@inproceedings" in stranger(*say, "report", "run", "--cite")
    stranger(name, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(ROOT / "examples" / name / f"test_{name}.py"))
