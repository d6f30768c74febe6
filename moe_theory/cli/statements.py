"""`moe-theory statements`."""

import dataclasses

import click

from moe_theory.cli.options import examples, json_option
from moe_theory.cli.output import open_console, print_json, print_lines


@click.command(epilog=examples("moe-theory statements edge", "moe-theory statements 'continual.lemma-*'"))
@click.argument("patterns", nargs=-1, metavar="[STATEMENT]...")
@json_option(
    "a list of the statements, each with id, paper, where, says, formula, hypotheses, why, instance, corrected, roles "
    "of its claims, status, and status_by_reading."
)
def statements(patterns: tuple[str, ...], as_json: bool) -> None:
    """List the statements: their status, from the recorded runs.

    STATEMENT is a paper's name, a statement's such as continual.lemma-8, a glob, or a claim's id; all by default.
    """
    from moe_theory.report import verdicts, wording
    from moe_theory.verify.recorded import judged_statements

    found = {each.statement.name: each for pattern in patterns or ("*",) for each in judged_statements(pattern)}
    known = list(found.values())
    if as_json:
        print_json([dataclasses.asdict(each.statement) | wording.status_json(each) for each in known])
        return
    console = open_console()
    for line in verdicts.statement_lines(known, console.width):
        console.print(line, no_wrap=True, overflow="ignore", crop=False)
    print_lines(console, f"{len(known)} statements: {wording.status_counts(known)}")
