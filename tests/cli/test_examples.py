"""The examples of the commands' help, and what it says of JSON. That each parses is tested in `test_printed.py`."""

import re

import pytest

from moe_theory import cli


@pytest.mark.parametrize("name", cli.commands())
def test_every_command_has_an_example_and_a_document(name):
    command = cli.command(name)
    examples = re.findall(r"^  (moe-theory .*)$", command.epilog or "", re.MULTILINE)
    assert examples
    assert all(example.startswith(f"moe-theory {name.split()[0]}") for example in examples)
    (words,) = [option.help for option in command.params if "--json" in option.opts]
    assert words.startswith("Print JSON: ")
