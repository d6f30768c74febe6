"""`moe-theory claims`."""

import click

from moe_theory.cli.options import examples, json_option
from moe_theory.cli.output import show_document


@click.command(epilog=examples("moe-theory claims 'continual.theorem-*'"))
@click.argument("patterns", nargs=-1, metavar="[CLAIM]...")
@json_option("a list of the claims, each with id, paper, where, statement, kind, margin and replaced_by.")
def claims(patterns: tuple[str, ...]) -> None:
    """List the claims: id, source, kind, statement.

    CLAIM is an id, a glob or a paper's name; all claims by default.
    """
    from moe_theory.report import verdicts
    from moe_theory.verify import select_claims

    show_document(verdicts.claims_document(select_claims(patterns or ("*",))))
