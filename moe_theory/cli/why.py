"""`moe-theory why`."""

import typing
from collections.abc import Sequence
from pathlib import Path

import click

from moe_theory.cli.options import LAST_RUN, examples, from_option, json_option, module_option
from moe_theory.cli.output import show_document

if typing.TYPE_CHECKING:
    from moe_theory.verification.verdict import Statement


@click.command(epilog=examples("moe-theory why generalization.theorem-1"))
@click.argument("name", metavar="STATEMENT")
@click.option(
    "--script",
    "printed",
    flag_value="witness",
    help="Print the witness, a NumPy script that shows what fails, instead.",
)
@click.option(
    "--proof", "printed", flag_value="proof", help="Print the program of its proof, or else disproof, instead."
)
@click.option("--disproof", "printed", flag_value="disproof", help="Print that of its disproof, as printed, instead.")
@click.option("--derivation", "printed", flag_value="derivation", help="Print that of what holds instead, likewise.")
@from_option
@module_option
@json_option(
    "a list of the statements, each as of `moe-theory statements` (id, status, status_by_reading, ...), with found, "
    "the sentence of the verdict that decides."
)
def why(name: str, printed: str | None, folder: Path | None, module: Path | None) -> None:
    """Say why a statement has its status, from the recorded runs.

    STATEMENT is a statement's name, such as continual.lemma-8, or theorem-1 for that of every paper, the paper's own
    name for it, such as 'Lemma 8' or 'edge.Theorem 1', or the id of a claim. Prints what it says, its status, what was
    found, why, a proof, instances with their numbers, and what holds instead.
    """
    from moe_theory.report import verdicts
    from moe_theory.report.standing import standing

    standings = standing([name], Path(LAST_RUN), folder, module)
    if printed:
        _print_program(printed, [standing_of_one.known.statement for standing_of_one in standings])
    else:
        show_document(verdicts.why_document(standings))


def _print_program(kind: str, found: Sequence["Statement"]) -> None:
    """Print the one program of this kind that statements have. Raises: DeclarationError for none or several."""
    from moe_theory.core.errors import DeclarationError

    kinds = {script for of in found for script in of.scripts}
    if kind == "proof" and kind not in kinds and "disproof" in kinds:
        kind = "disproof"
    having = [each for each in found if kind in each.scripts] or found[:1]  # which says that it has none
    program, *others = {each.script(kind): each.name for each in having}.items()
    if others:
        names = ", ".join(name for _, name in (program, *others))
        raise DeclarationError(f"name one statement: each of {names} has a {kind}.")
    click.echo(program[0], nl=False)
