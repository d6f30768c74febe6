"""`moe-theory statements`."""

from pathlib import Path

import click

from moe_theory.cli.options import LAST_RUN, OWN_RUN, examples, from_option, json_option, module_option, system_option
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
@click.option("--claims", is_flag=True, help="List the claims that test them, and how each is tested, instead.")
@click.option(
    "--tree", is_flag=True, help="Which are false or vacuous, below what their proofs use that is false or vacuous too."
)
@from_option
@module_option
@system_option
@json_option(
    "a list of the statements, each with id, paper, where, says, formula, hypotheses, why, instance, corrected, roles "
    "of its claims, status, status_by_reading, and from, the folder of the run that judged it, or null; with --tree "
    "also rests_on, the statements that its proof uses, failing, those of them that are false or vacuous, and is_root; "
    "with --system what `verify --system` prints; with --claims a list of the claims, each with id, paper, where, "
    "statement, kind, margin and replaced_by."
)
def statements(
    patterns: tuple[str, ...], claims: bool, tree: bool, folder: Path | None, module: Path | None, system: str | None
) -> None:
    """List the statements: their status, from the recorded runs.

    STATEMENT is a paper's name, a statement's such as continual.lemma-8 or 'Lemma 8', a glob, or a claim's id; by
    default all, with --module the module's. With --system they are shown beside those of an algorithm of your own, by
    its run in runs/system or another folder.
    """
    from moe_theory.report import roots, verdicts
    from moe_theory.report.standing import standing

    if claims:
        if tree or folder is not None or system is not None:
            raise InvalidValueError(
                "--claims lists what is declared, not a run. Leave out --tree, --from and --system."
            )
        from moe_theory.verification.registry import load_claims, select_claims

        own = () if module is None else tuple(load_claims(module))
        show_document(verdicts.claims_document(select_claims(patterns or own or ("*",))))
        return
    if system is not None:
        if tree:
            raise InvalidValueError(
                "--tree is of the printed algorithm, whose proofs use one another. Leave out --system."
            )
        from moe_theory.report import comparison
        from moe_theory.verification.registry import load_claims
        from moe_theory.verification.variant import variant_of

        if module is not None:
            load_claims(module)
        report = comparison.read_own(folder or Path(OWN_RUN), variant_of(system))
        show_document(comparison.comparison(report, patterns))
        return

    document = roots.tree_document if tree else verdicts.statements_document
    show_document(document(standing(patterns, Path(LAST_RUN), folder, module)))
