"""What a newcomer reads first: what this is, five things to do, the commands and how they answer."""

import textwrap
from collections.abc import Mapping

from moe_theory.commands import EXITS

WIDTH = 80  # columns of every terminal
ABOUT = """moe-theory runs the algorithms of theory papers on Mixture-of-Experts by the
thousand replicates, and answers for their numbered statements with verdicts."""
NEXT: dict[str, tuple[str, str]] = {  # command: what it does, and its time on two cores
    "moe-theory tour": ("ten steps from one trajectory to a verdict, with pictures", "2 min"),
    "moe-theory verify continual.lemma-4 --reading unit-signal": ("judge one lemma by Monte Carlo", "10 s"),
    "moe-theory cite runs/verify": ("cite what that bears on, with BibTeX", "4 s"),
    "moe-theory figures continual figure-2": ("draw the first paper's Fig. 2, theory over empirics", "1 min"),
    "moe-theory sweep --example > grid.toml": ("begin a grid of settings of your own", "2 s"),
}
JSON = "With --json a command prints one JSON document and nothing else; its help says what is in it."


def next_steps() -> str:
    """What `moe-theory` alone prints: what it is, what to do next, and where help is."""
    steps = "\n".join(f"  {command}\n      {what} ({time})" for command, (what, time) in NEXT.items())
    return f"""{ABOUT}

Five things to do next:
{steps}

All commands: moe-theory --help    One of them: moe-theory COMMAND --help"""


def overview(groups: Mapping[str, Mapping[str, str]]) -> str:
    """What `moe-theory --help` prints.

    Args:
        groups: by heading, what each command does in a sentence, by name.
    """
    wide = max(len(name) for titles in groups.values() for name in titles)
    parts = ["usage: moe-theory COMMAND [ARGUMENTS]", ABOUT]
    for heading, titles in groups.items():
        lines = [_hung(f"  {name:{wide}}  ", f"{title.rstrip('.')}") for name, title in titles.items()]
        parts.append("\n".join([f"{heading}:", *lines]))
    options = {
        "COMMAND --help": "all of a command's help, with an example",
        "--version": "the version",
    }
    parts.append("\n".join(["Options:", *(f"  {name:16}{what}" for name, what in options.items())]))
    codes = [_hung(f"  {code:3}  ", what) for code, what in EXITS.items()]
    parts.append("\n".join(["Exit codes:", *codes]))
    parts.append(textwrap.fill(JSON, WIDTH))
    return "\n\n".join(parts)


def _hung(begin: str, text: str) -> str:
    return textwrap.fill(text, WIDTH, initial_indent=begin, subsequent_indent=" " * len(begin))
