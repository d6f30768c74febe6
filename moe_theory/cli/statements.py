"""`moe-theory statements`."""

from pathlib import Path

import click

from moe_theory.cli.options import examples, from_option, json_option, module_option
from moe_theory.cli.output import show_document
from moe_theory.core.errors import InvalidValueError


@click.command(
    epilog=examples(
        "moe-theory statements edge",
        "moe-theory statements 'continual.lemma-*'",
        "moe-theory statements --from runs/verify",
    )
)
@click.argument("patterns", nargs=-1, metavar="[STATEMENT]...")
@click.option("--claims", is_flag=True, help="List the claims and how they are tested.")
@from_option
@module_option
@json_option(
    "a list of the statements, each with id, paper, where, says, formula, hypotheses, why, instance, corrected, roles "
    "of its claims, status, status_by_reading, and from, the folder of the deciding run or null. With --claims a list "
    "of the claims, each with id, paper, where, statement, kind, margin and replaced_by."
)
def statements(patterns: tuple[str, ...], claims: bool, folder: Path | None, module: Path | None) -> None:
    """List all statements and their status.

    STATEMENT is a paper's name, a statement such as continual.lemma-8 or 'Lemma 8', a glob, or a claim's id. Without
    STATEMENT all are listed, or with --module the module's.
    """
    from moe_theory.report import verdicts
    from moe_theory.report.standing import standing

    if module is not None:
        from moe_theory.verification.registry import load_claims

        patterns = patterns or tuple(load_claims(module))
    if not claims:
        show_document(verdicts.statements_document(standing(patterns, folder)))
        return
    if folder is not None:
        raise InvalidValueError("--claims lists declarations, not a run. Leave out --from.")
    from moe_theory.verification.registry import select_claims

    show_document(verdicts.claims_document(select_claims(patterns or ("*",))))
