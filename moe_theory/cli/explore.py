"""`moe-theory explore`."""

from pathlib import Path
from typing import Any

import click

from moe_theory.cli.options import examples, json_option, module_option, out_option, seed_option
from moe_theory.cli.output import command_line, open_console, show_document


@click.command(epilog=examples("moe-theory explore continual.lemma-4 --over noise_scale=0.05,0.2"))
@click.argument("claim", metavar="CLAIM")
@click.option(
    "--over",
    multiple=True,
    metavar="NAME=VALUE,VALUE",
    help="An axis, such as signal_scale=0.5,2,8, or labels of a choice that the statement leaves free; repeat it for a "
    "second one.",
)
@click.option(
    "--reading", metavar="NAME", help="Reading for everything else.", show_default="the paper's first default"
)
@click.option("--replicates", type=int, help="Replicate limit of every point.", show_default="the experiment's own")
@seed_option
@click.option(
    "--error",
    default=0.01,
    help="Probability that any verdict of the map is false, split evenly over its points.",
)
@module_option
@out_option("Folder for the picture and the verdicts.", "runs/explore")
@json_option(
    "what CLAIM.json in OUT holds, with schema, claim, axes, summary and points, each with its place "
    "(at) and its verdict."
)
def explore(claim: str, module: Path | None, out: Path, **asked: Any) -> None:
    """Map the settings in which a claim holds.

    Tests CLAIM, an id, on a grid over one or two parameters. Writes the map as a picture and all verdicts as JSON into
    OUT.
    """
    from moe_theory.report import exploration
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder
    from moe_theory.verification.explore import carry_out_search, plan_search
    from moe_theory.verification.registry import load_claims

    if module is not None:
        load_claims(module)
    plan = plan_search(claim, **asked, module=module and str(module))
    folder = prepare_folder(out, exploration.names_of(plan.claim.id))
    keep_programs()
    with terminal_progress(open_console()) as progress:
        search = carry_out_search(plan, progress=progress, command=command_line())
    show_document(exploration.document(search, exploration.write_exploration(search, folder)))
