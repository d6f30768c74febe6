"""Commands that anything prints: catches one that no longer parses, in the README, the site, help or a docstring."""

import ast
import re
from pathlib import Path

import click
import printed
import pytest

import moe_theory
from moe_theory import cli

PACKAGE = Path(moe_theory.__file__).parent


def in_docstrings() -> list[str]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text()
        for node in ast.walk(ast.parse(text)) if "moe-theory" in text else ():
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                found += printed.commands_in(ast.get_docstring(node) or "")
    return found


def in_help() -> list[str]:
    found = []
    for name in cli.commands():
        command = cli.command(name)
        lines = (command.epilog or "").splitlines()
        found += [line for line in lines if line.startswith("  moe-theory")]
        for words in (command.help, *(getattr(parameter, "help", "") for parameter in command.params)):
            found += printed.commands_in(words or "")
    return found


def test_it_parses(monkeypatch):
    """A command's name alone is a way to speak of it."""
    monkeypatch.setattr(click.Command, "invoke", lambda command, context: None)  # which comes after parsing
    for command in {*printed.printed(), *in_help(), *in_docstrings()}:
        words = printed.words(command)
        if not printed.is_template(command) and " ".join(words) not in cli.commands():
            cli.main(words)


def test_a_command_is_read_as_a_shell_would():
    page = """Text `moe-theory verify
a.b` and `moe-theory`, not `other`, and <code>moe-theory statements &#x27;a*&#x27;; moe-theory bound</code>.

```bash
$ moe-theory sweep --example > grid.toml   # a comment
moe-theory report runs \\
  --json | less
pip install . && .venv/bin/moe-theory bound
sbatch --wrap "moe-theory sweep a.toml --out b"
source <(moe-theory report --cite)
```
"""
    assert [printed.words(command) for command in printed.commands_in(page)] == [
        ["sweep", "--example"],
        ["report", "runs", "--json"],
        ["bound"],
        ["sweep", "a.toml", "--out", "b"],
        ["report", "--cite"],
        ["verify", "a.b"],
        [],
        ["statements", "a*"],
        ["bound"],
    ]
    assert printed.is_template("moe-theory COMMAND --help")


nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

FOLDER = Path(__file__).parents[2] / "docs" / "pages" / "notebooks"
NAMES = sorted(path.stem for path in FOLDER.glob("*.ipynb"))


def is_progress(output):
    return re.match("$|compiling |running ", output.get("data", {}).get("text/plain", "a result"))


def kinds(outputs):
    """Of what a cell shows, in order."""
    return [sorted(output.data) if "data" in output else output.output_type for output in outputs]


def verdicts(text):
    return re.findall("SUPPORTED|REFUTED|INCONCLUSIVE|ERROR", text)


@pytest.mark.thorough
@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_runs_and_shows_what_the_site_has(name, inside):
    before = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    after = nbformat.read(FOLDER / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(after, timeout=300, kernel_name="python3").execute()
    for old, new in zip(before.cells, after.cells, strict=True):
        if old.cell_type != "code":
            continue
        shown = [output for output in new.outputs if not is_progress(output)]
        assert kinds(shown) == kinds(old.outputs), old.source
        assert not any(output.output_type == "error" for output in shown)
        for was, now in zip(old.outputs, shown, strict=True):
            text = was.get("data", {}).get("text/plain", "")
            assert len(text) < 4000  # a page reads it
            assert verdicts(now.get("data", {}).get("text/plain", "")) == verdicts(text)
