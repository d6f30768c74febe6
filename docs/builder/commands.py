"""Tables and help texts for the page on the commands, taken from the code that runs them."""

import contextlib
import io
import os
from unittest import mock

import click

from moe_theory import cli
from moe_theory.cli.output import EXITS
from moe_theory.report import bounds, citations, deep, pages, sweeps
from moe_theory.verify import explore

_SCHEMAS = {  # of the documents that say their own, by command
    "verify": pages.SCHEMA,
    "report": pages.SCHEMA,
    "explore": explore.SCHEMA,
    "sweep": sweeps.SCHEMA,
    "sweep show": sweeps.SCHEMA,
    "deep": deep.SCHEMA,
    "bound": bounds.SCHEMA,
    "cite": citations.SCHEMA,
}


def help_texts() -> str:
    """Every command's whole help, by the groups of `moe-theory --help`."""
    lines = []
    for group, names in cli.GROUPS.items():
        lines += [f"## {group}", ""]
        for name in names:
            anchor = name.replace(" ", "-")
            lines += [f"### moe-theory {name} {{ #{anchor} }}", "", "```text", help_text(name), "```", ""]
    return "\n".join(lines)


def help_text(name: str) -> str:
    """What `moe-theory NAME --help` prints."""
    printed, width = io.StringIO(), {"COLUMNS": "80"}  # whatever terminal the site is built in
    with mock.patch.dict(os.environ, width), contextlib.redirect_stdout(printed):
        cli.main([*name.split(), "--help"])
    return printed.getvalue().strip("\n")


def exit_codes() -> str:
    """The exit codes as a table."""
    rows = [f"| {code} | {meaning} |" for code, meaning in EXITS.items()]
    return "\n".join(["| code | meaning |", "| ---: | --- |", *rows])


def documents() -> str:
    """What each command that takes `--json` prints, and under which schema, as a table."""
    rows = []
    for name in cli.COMMANDS:
        for option in cli.command(name).params:
            if isinstance(option, click.Option) and "--json" in option.opts:
                words = (option.help or "").removeprefix("Print JSON: ")
                schema = f"`{_SCHEMAS[name]}`" if name in _SCHEMAS else ""
                rows.append(f"| [`{name}`](#{name.replace(' ', '-')}) | {schema} | {words} |")
    return "\n".join(["| command | `schema` | what is printed |", "| --- | --- | --- |", *rows])
