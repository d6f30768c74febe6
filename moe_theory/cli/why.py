"""`moe-theory why`."""

import itertools
from pathlib import Path

import click

from moe_theory.cli.options import examples, from_option, json_option
from moe_theory.cli.output import show_document


@click.command(epilog=examples("moe-theory why generalization.theorem-1"))
@click.argument("name", metavar="STATEMENT")
@click.option("--script", "kind", flag_value="witness", help="Print a NumPy script that shows the failure.")
@click.option(
    "--proof", "kind", flag_value="proof", help="Print the program of the proof, or else of the exact counterexample."
)
@click.option("--disproof", "kind", flag_value="disproof", help="Print the program of the exact counterexample.")
@click.option("--derivation", "kind", flag_value="derivation", help="Print the program that proves the correction.")
@click.option("--all", "is_whole", is_flag=True, help="Also print full proofs, notes and free parameters.")
@from_option
@json_option(
    "a list of the statements, each as in `moe-theory statements` (id, status, status_by_reading, ...), with found, "
    "the sentence on the deciding verdict."
)
def why(name: str, kind: str | None, is_whole: bool, folder: Path | None) -> None:
    """Explain the status of a statement.

    STATEMENT is a name, such as continual.lemma-8, the paper's own name for it, such as 'Lemma 8' or
    'edge.Theorem 1', or the id of a claim. The card says whether the statement is true, why, what is true instead, and
    how we know it.
    """
    from moe_theory.core.errors import DeclarationError
    from moe_theory.report import verdicts
    from moe_theory.report.standing import standing

    standings = standing([name], folder)
    if kind is None:
        show_document(verdicts.why_document(standings, is_short=not is_whole))
        return
    statements = [standing.known.statement for standing in standings]
    kinds = set(itertools.chain.from_iterable(statement.scripts for statement in statements))
    if kind == "proof" and kind not in kinds and "disproof" in kinds:  # as the option's help says
        kind = "disproof"
    with_program = [statement for statement in statements if kind in statement.scripts] or statements[:1]
    programs = {statement.script(kind) for statement in with_program}  # raises if the first has none
    if len(programs) > 1:
        names = ", ".join(statement.name for statement in with_program)
        raise DeclarationError(f"name one statement. Each of {names} has a {kind}.")
    click.echo(programs.pop(), nl=False)
