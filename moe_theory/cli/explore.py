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
    help="An axis, such as signal_scale=0.5,2,8, or labels of a free choice. Repeat the option for a second axis.",
)
@click.option(
    "--reading", metavar="NAME", help="Reading for all other parameters.", show_default="the paper's first default"
)
@click.option("--replicates", type=int, help="Replicate limit at every point.", show_default="the experiment's own")
@seed_option
@click.option(
    "--error", default=0.01, help="Probability that any verdict on the map is false, split evenly over its points."
)
@module_option
@out_option("Folder for the verdicts.", "runs/explore")
@json_option(
    "the content of CLAIM.json in OUT: schema, claim, axes, summary and points, each with its place "
    "(at) and its verdict."
)
def explore(claim: str, module: Path | None, out: Path, **asked: Any) -> None:
    """Map the settings in which a claim holds.

    Tests the claim with id CLAIM on a grid of one or two parameters. Writes all verdicts as JSON into OUT.
    """
    from moe_theory.plot.document import Document, read_written
    from moe_theory.plot.markdown import Markup, code, paragraphs, table
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder, sealed, write_whole
    from moe_theory.verification.explore import carry_out_search, plan_search
    from moe_theory.verification.registry import load_claims

    if module is not None:
        load_claims(module)
    plan = plan_search(claim, **asked, module=module and str(module))
    name = f"{plan.claim.id}.json"
    path = prepare_folder(out, [name]) / name
    keep_programs()
    with terminal_progress(open_console()) as progress:
        search = carry_out_search(plan, progress=progress, command=command_line())
    write_whole(path, sealed(search.to_json()))
    columns = [*(axis.name for axis in search.axes), "verdict"]
    rows = [(*map(str, point.coordinates), point.verdict.status) for point in search.points]
    lines = [*search.summary(), *search.failures(), search.assurance(), Markup(code(str(path)))]
    text = paragraphs([Markup(table(columns, rows)), *lines])
    show_document(Document(lambda: read_written(path), lambda _: text))
