"""`moe-theory challenge`."""

from pathlib import Path

import click

from moe_theory.cli.options import examples, json_option, module_option, seed_option
from moe_theory.cli.output import open_console, show_document


@click.command(epilog=examples("moe-theory challenge continual.lemma-11-more-experts --seconds 10"))
@click.argument("patterns", nargs=-1, metavar="STATEMENT...")
@click.option("--seconds", default=40.0, help="Seconds for each statement.")  # SECONDS, without its slow import
@click.option(
    "--reading",
    metavar="NAME",
    help="Reading for all parameters that are not searched.",
    show_default="the first default reading, and for counterexamples also the others",
)
@seed_option
@click.option(
    "--error",
    type=float,
    help="Probability that any counterexample is false, split evenly over the statements.",
    show_default="5e-05 per statement, so that 200 statements together have 0.01",
)
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the searches. The same command resumes from it.",
)
@module_option
@json_option(
    "a list of the searches, each with schema, statement, sought (break or rescue), free, flips (each with its "
    "setting, borders and verdicts), clause, recorded, nearest, settings, inadmissible, shapes and command."
)
def challenge(
    patterns: tuple[str, ...],
    seconds: float,
    reading: str | None,
    seed: int,
    error: float | None,
    out: Path | None,
    module: Path | None,
) -> None:
    """Search for counterexamples in a statement's free parameters.

    If the STATEMENT is false, the command searches for settings where it holds. The search covers the ranges that the
    statement declares for orders, sizes, scales and distributions. A counterexample is confirmed on a fresh seed, and
    the command that repeats it is printed. If you name several statements, those without free parameters are skipped.
    """
    from moe_theory.core.errors import InvalidValueError
    from moe_theory.report.verdicts import searches_document
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.verification.challenge import search_each
    from moe_theory.verification.registry import load_claims

    if not patterns:
        raise InvalidValueError("name a STATEMENT, such as continual.lemma-11-more-experts, or a paper.")
    if module is not None:
        load_claims(module)
    keep_programs()
    module_path = module and str(module)
    with terminal_progress(open_console(), is_timed=False) as progress:
        searches = search_each(
            patterns,
            seconds,
            reading=reading,
            seed=seed,
            error=error,
            module=module_path,
            folder=out,
            progress=progress,
        )
    show_document(searches_document(searches))
