"""Tables and help texts for the page on the commands, taken from the code that runs them."""

import ast
import contextlib
import inspect
import io
import itertools
import os
import re
import textwrap
from unittest import mock

from moe_theory import cli, welcome
from moe_theory.commands import EXITS
from moe_theory.report import bounds, citing, deep, pages, sweeps
from moe_theory.verify import explore

_SCHEMAS = {  # of the documents that say their own, by command
    "verify": pages.SCHEMA,
    "report": pages.SCHEMA,
    "explore": explore.SCHEMA,
    "sweep": sweeps.SCHEMA,
    "sweep show": sweeps.SCHEMA,
    "deep": deep.SCHEMA,
    "bound": bounds.SCHEMA,
    "cite": citing.SCHEMA,
}
_ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


def help_texts() -> str:
    """Every command's whole help, by the groups of `moe-theory --help`."""
    lines = []
    for group, kinds in cli.GROUPS.items():
        lines += [f"## {group}", ""]
        for name in kinds:
            anchor = name.replace(" ", "-")
            lines += [f"### moe-theory {name} {{ #{anchor} }}", "", "```text", help_text(name), "```", ""]
    return "\n".join(lines)


def help_text(name: str) -> str:
    """What `moe-theory NAME --help` prints."""
    printed, width = io.StringIO(), {"COLUMNS": str(welcome.WIDTH)}  # whatever terminal the site is built in
    with mock.patch.dict(os.environ, width), contextlib.redirect_stdout(printed), contextlib.suppress(SystemExit):
        cli.main([*name.split(), "--help"])
    return _ESCAPE.sub("", printed.getvalue()).strip("\n")


def exit_codes() -> str:
    """The exit codes as a table."""
    rows = [f"| {code} | {meaning} |" for code, meaning in EXITS.items()]
    return "\n".join(["| code | meaning |", "| ---: | --- |", *rows])


def documents() -> str:
    """What each command that takes `--json` prints, and under which schema, as a table."""
    rows = []
    for name, kind in cli.COMMANDS.items():
        words = " ".join(_described(kind).get("json", "").split()).removeprefix("Print ").removeprefix("JSON: ")
        if words:
            schema = f"`{_SCHEMAS[name]}`" if name in _SCHEMAS else ""
            rows.append(f"| [`{name}`](#{name.replace(' ', '-')}) | {schema} | {words} |")
    return "\n".join(["| command | `schema` | what is printed |", "| --- | --- | --- |", *rows])


def _described(kind: type) -> dict[str, str]:
    """The options of a command with the words below them in its source."""
    (declared,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    found: dict[str, str] = {}
    for field, after in itertools.pairwise(getattr(declared, "body", [])):
        if isinstance(field, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            found[ast.unparse(field.target)] = str(after.value.value)
    return found
