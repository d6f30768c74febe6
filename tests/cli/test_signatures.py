"""Commands that are made from functions: catches an option of the wrong type, a default that is passed in place of the
function's own, help that is lost, and a function of which no command can be made.
"""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from refusals import refusal

from moe_theory import cli
from moe_theory.cli.papers import command_of
from moe_theory.core.errors import DeclarationError, InvalidValueError
from moe_theory.generalization.calculator import Setting
from moe_theory.generalization.command import bound
from moe_theory.plot.commands import Option, Terminal
from moe_theory.plot.document import Document

if TYPE_CHECKING:
    from decimal import Decimal


def measure(
    place: Path,
    count: int = 1,
    /,
    *,
    factor: float,
    is_fast: Annotated[bool, Option("Not slowly.", ("--fast",))] = False,
    sizes: tuple[int, ...] = (),
    names: Annotated[tuple[str, ...] | None, Option("Names.", default_words="all")] = None,
    rounds: Annotated[int | None, Option("Rounds.", default=7)] = None,
    terminal: Terminal,
) -> Annotated[Document, Option("all of it.")]:
    """Measure it.

    Examples:
        moe-theory measure here --factor 2
    """
    values = {"place": str(place), "count": count, "factor": factor, "is_fast": is_fast}
    terminal.say("measuring")
    return Document(lambda: values | {"sizes": sizes, "names": names, "rounds": rounds}, lambda width: "")


def run(*words: str) -> None:
    command_of("queues", "measure", measure).main(words, standalone_mode=False)


def test_options_reach_the_function_in_their_types(capsys):
    words = ("here", "1e3", "--factor", "2", "--fast", "--sizes", "2,4", "--sizes", "8", "--names", "a,b")
    run(*words, "--rounds", "7", "--json")
    streams = capsys.readouterr()
    assert json.loads(streams.out) == {
        "place": "here",
        "count": 1000,
        "factor": 2.0,
        "is_fast": True,
        "sizes": [2, 4, 8],
        "names": ["a", "b"],
        "rounds": 7,
    }
    assert streams.err == "measuring\n"


def test_what_is_not_given_is_left_to_the_function(capsys):
    """Would catch the default that help shows, 7 rounds, in place of None."""
    run("here", "--factor", "0.5", "--json")
    document = json.loads(capsys.readouterr().out)
    assert (document["count"], document["sizes"], document["names"], document["rounds"]) == (1, [], None, None)


def test_no_numbers_are_none():
    """Would catch figures that are refused as if numbers of experts were asked for."""
    figures = cli.command("figures")
    assert figures.make_context("figures", ["continual"]).params["experts"] == ()
    assert figures.make_context("figures", ["continual", "--experts", "2,4"]).params["experts"] == (2, 4)


def test_help_is_of_the_function(capsys):
    run("--help")
    page = " ".join(capsys.readouterr().out.split())
    for words in ("PLACE [COUNT]", "Measure it.", "--factor FLOAT [required]", "--fast Not slowly.", "[default: 7]"):
        assert words in page
    assert "Names. [default: (all)]" in page
    assert "Example: moe-theory measure here" in page
    assert "--json Print JSON: all of it." in page
    assert "terminal" not in page


def test_a_mistake_is_told():
    for words in (("--rounds", "2.5"), ("--sizes", "2,x")):
        refusal(InvalidValueError, run, "here", "--factor", "1", *words)


def test_a_function_of_which_no_command_can_be_made():
    def untyped(*, size=3): ...
    def mixed(*, size: int | str = 3): ...
    def missing(*, size: "Decimal"): ...
    def several(*sizes: int): ...
    def nothing() -> None: ...

    for function in (untyped, mixed, missing, several):
        refusal(DeclarationError, command_of, "queues", "measure", function)
    refusal(DeclarationError, command_of("queues", "measure", nothing).main, [], standalone_mode=False)


def test_bound_shows_the_defaults_of_a_setting():
    """Would catch help that shows another number of experts than the one that is taken."""
    fields = vars(Setting())
    shown = {option.name: option.default for option in command_of("generalization", "bound", bound).params}
    numbers = {name: value for name, value in shown.items() if name in fields and isinstance(value, int | float)}
    assert len(numbers) == 10
    assert numbers == {name: fields[name] for name in numbers}
