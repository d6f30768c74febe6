"""`moe-theory statements`."""

from pathlib import Path

import click

from moe_theory.cli.options import LAST_RUN, examples, from_option, json_option, module_option
from moe_theory.cli.output import show_document


@click.command(
    epilog=examples(
        "moe-theory statements edge",
        "moe-theory statements 'continual.lemma-*'",
        "moe-theory statements --from runs/verify",
    )
)
@click.argument("patterns", nargs=-1, metavar="[STATEMENT]...")
@click.option(
    "--tree", is_flag=True, help="Which are false or vacuous, below what their proofs use that is false or vacuous too."
)
@from_option
@module_option
@json_option(
    "a list of the statements, each with id, paper, where, says, formula, hypotheses, why, instance, corrected, roles "
    "of its claims, status, status_by_reading, and from, the folder of the run that judged it, or null; with --tree "
    "also rests_on, the statements that its proof uses, failing, those of them that are false or vacuous, and is_root."
)
def statements(patterns: tuple[str, ...], tree: bool, folder: Path | None, module: Path | None) -> None:
    """List the statements: their status, from the recorded runs.

    STATEMENT is a paper's name, a statement's such as continual.lemma-8 or 'Lemma 8', a glob, or a claim's id; by
    default all, with --module the module's.
    """
    from moe_theory.report import roots, verdicts
    from moe_theory.report.standing import standing

    document = roots.tree_document if tree else verdicts.statements_document
    show_document(document(standing(patterns, Path(LAST_RUN), folder, module)))
