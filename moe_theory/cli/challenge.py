"""`moe-theory challenge`."""

from pathlib import Path

import click

from moe_theory.cli.options import examples, json_option, module_option, seed_option
from moe_theory.cli.output import open_console, show_document


@click.command(epilog=examples("moe-theory challenge continual.lemma-11-more-experts --seconds 10"))
@click.argument("statement", metavar="STATEMENT")
@click.option("--seconds", default=40.0, help="Time after which nothing new is looked at.")
@click.option(
    "--reading",
    metavar="NAME",
    help="Reading for everything else.",
    show_default="the paper's first default under which the hypotheses hold",
)
@seed_option
@click.option("--error", default=0.01, help="Probability that any flip is false.")
@module_option
@json_option(
    "schema, statement, sought (break or rescue), free, flips (each with its setting, borders and verdicts), recorded, "
    "nearest, settings, inadmissible, shapes and command."
)
def challenge(
    statement: str, seconds: float, reading: str | None, seed: int, error: float, module: Path | None
) -> None:
    """Search what a statement leaves free.

    Looks for a setting at which STATEMENT breaks, or is rescued where it is false, in the region that it declares:
    orders, sizes, scales and laws. What is found is a verdict on a seed of its own, and the command that repeats it.
    """
    from moe_theory.report.challenge import document
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.verify.challenge import challenge as search
    from moe_theory.verify.registry import load_claims

    if module is not None:
        load_claims(module)
    keep_programs()
    source = None if module is None else str(module)
    with terminal_progress(open_console()) as progress:
        found = search(statement, seconds, reading=reading, seed=seed, error=error, module=source, progress=progress)
    show_document(document(found))
