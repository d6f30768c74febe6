"""Commands that anything prints: catches one that no longer parses, in the README, the site, help or a docstring."""

import ast
import re
from pathlib import Path

import printed
import pytest

import moe_theory
from moe_theory import arguments, cli, welcome

PACKAGE = Path(moe_theory.__file__).parent


def in_docstrings() -> list[printed.Printed]:
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (words := ast.get_docstring(node)):
                found += printed.commands_in(words, str(path.relative_to(PACKAGE.parent)))
    return found


def in_help() -> list[printed.Printed]:
    found = [printed.Printed("moe-theory", 0, command) for command in welcome.NEXT]
    for name, kind in cli.COMMANDS.items():
        page = arguments.help_of(kind, name)
        found += [printed.Printed(f"{name} --help", 0, example) for example in arguments.examples_of(kind)]
        found += printed.commands_in(re.sub(r"[│\s]+", " ", page), f"{name} --help")
    return found


def parsed(each: printed.Printed) -> None:
    """Parse it; a command's name alone is a way to speak of it, and one that asks for help ends there."""
    if each.is_template or " ".join(each.words) in cli.COMMANDS:
        return
    try:
        cli.parse(each.words)
    except SystemExit as stop:
        assert not stop.code  # noqa: PT017


FOUND = {each.text: each for each in [*printed.printed(), *in_help(), *in_docstrings()]}


@pytest.mark.parametrize("command", FOUND)
def test_it_parses(command):
    parsed(FOUND[command])


def test_they_were_found_where_they_are_printed():
    pages = {each.page for each in FOUND.values()}
    assert {"README.md", "moe-theory", "verify --help"} <= pages
    assert any(page.startswith("moe_theory/") for page in pages)
    assert len(FOUND) > 50


def test_a_command_is_read_as_a_shell_would():
    page = """Text `moe-theory verify
a.b` and `moe-theory`, not `other`, and <code>moe-theory claims &#x27;a*&#x27;; moe-theory bound</code>.

```bash
$ moe-theory sweep --example > grid.toml   # a comment
moe-theory report runs \\
  --json | less
pip install . && .venv/bin/moe-theory bound
sbatch --wrap "moe-theory sweep a.toml --out b"
source <(moe-theory completion bash)
```
"""
    found = {each.line: each.words for each in printed.commands_in(page, "page.md")}
    second = [each.words for each in printed.commands_in(page, "page.md") if each.line == 2]
    assert second == [[], ["claims", "a*"], ["bound"]]
    del found[2]
    assert found == {
        1: ["verify", "a.b"],
        5: ["sweep", "--example"],
        6: ["report", "runs", "--json"],
        8: ["bound"],
        9: ["sweep", "a.toml", "--out", "b"],
        10: ["completion", "bash"],
    }
    assert next(printed.commands_in("`moe-theory COMMAND --help`", "")).is_template
