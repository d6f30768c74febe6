"""`moe-theory claims`."""

import click

from moe_theory.cli.options import examples, json_option
from moe_theory.cli.output import open_console, print_json


@click.command(epilog=examples("moe-theory claims 'continual.theorem-*'"))
@click.argument("patterns", nargs=-1, metavar="[CLAIM]...")
@json_option("a list of the claims, each with id, paper, where, statement, kind, margin and replaced_by.")
def claims(patterns: tuple[str, ...], as_json: bool) -> None:
    """List the claims: id, source, kind, statement.

    CLAIM is an id, a glob or a paper's name; all claims by default.
    """
    from moe_theory.report import verdicts
    from moe_theory.verify import select_claims

    chosen = select_claims(patterns or ("*",))
    if as_json:
        fields = ("id", "paper", "where", "statement", "kind", "margin", "replaced_by")
        print_json([{field: getattr(claim, field) for field in fields} for claim in chosen])
    else:
        console = open_console()
        console.print(verdicts.claims_shown(chosen, console.width))
