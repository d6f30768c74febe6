"""`moe-theory statements`."""

import click

from moe_theory.cli.options import examples, json_option
from moe_theory.cli.output import show_document


@click.command(epilog=examples("moe-theory statements edge", "moe-theory statements 'continual.lemma-*'"))
@click.argument("patterns", nargs=-1, metavar="[STATEMENT]...")
@json_option(
    "a list of the statements, each with id, paper, where, says, formula, hypotheses, why, instance, corrected, roles "
    "of its claims, status, and status_by_reading."
)
def statements(patterns: tuple[str, ...]) -> None:
    """List the statements: their status, from the recorded runs.

    STATEMENT is a paper's name, a statement's such as continual.lemma-8, a glob, or a claim's id; all by default.
    """
    from moe_theory.report import verdicts
    from moe_theory.verify.recorded import judged_statements

    found = {each.statement.name: each for pattern in patterns or ("*",) for each in judged_statements(pattern)}
    show_document(verdicts.statements_document(list(found.values())))
