"""The example notebooks run in a real Jupyter kernel and show what the site shows."""

import re
from pathlib import Path

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[2] / "docs" / "pages" / "notebooks"
PROGRESS = {"text/plain": ""}  # what a line of it is at the end
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def kinds(outputs):
    """Of what a cell shows, in order."""
    shown = [output for output in outputs if output.get("data") != PROGRESS]
    return [sorted(output.data) if "data" in output else output.output_type for output in shown]


def verdicts(text):
    return re.findall("SUPPORTED|REFUTED|INCONCLUSIVE|ERROR", text)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name == "own-paper" else pytest.mark.thorough) for name in NAMES]
)
def test_a_notebook_runs_and_shows_what_the_site_has(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    after = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(after, timeout=300, kernel_name="python3").execute()
    for old, new in zip(before.cells, after.cells, strict=True):
        if old.cell_type != "code":
            continue
        assert kinds(new.outputs) == kinds(old.outputs), old.source
        assert not any(output.output_type == "error" for output in new.outputs)
        shown = [output for output in new.outputs if output.get("data") != PROGRESS]
        for was, now in zip(old.outputs, shown, strict=True):
            text = was.get("data", {}).get("text/plain", "")
            assert len(text) < 4000  # a page reads it
            assert verdicts(now.get("data", {}).get("text/plain", "")) == verdicts(text)


def test_there_is_one_of_each_kind():
    assert NAMES == ["own-claim", "own-paper", "own-router"]
