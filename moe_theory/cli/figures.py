"""`moe-theory figures`."""

from pathlib import Path
from typing import Any

import click

from moe_theory.cli.options import examples, json_option, out_option, seed_option
from moe_theory.cli.output import open_console, print_json, print_lines


@click.command(epilog=examples("moe-theory figures continual figure-8 --replicates 8"))
@click.argument("paper", default="continual", metavar="[PAPER]")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--reading", metavar="NAME", help="Reading to draw under.", show_default="the paper's first default")
@click.option("--replicates", type=int, help="Replicates of every cell.", show_default="each figure's own number")
@seed_option
@out_option("Folder that gets one folder of figures a paper.", "figures")
@click.option("--list", "only_list", is_flag=True, help="Only list the figures.")
@json_option("a list of the paths written, or with --list the figures' titles by name.")
def figures(paper: str, names: tuple[str, ...], out: Path, only_list: bool, as_json: bool, **asked: Any) -> None:
    """Regenerate a paper's figures with theory drawn over empirics.

    Draws the figures NAME of PAPER, all of them by default. Writes each as an SVG, and the numbers behind it as CSV,
    into OUT/PAPER/.
    """
    from moe_theory.report import plots
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs

    keep_programs()
    titles = {name: specification.title for name, specification in plots.figures_of(paper).items()}
    if only_list:
        if as_json:
            print_json(titles)
        else:
            print_lines(open_console(), *(f"{name}: {title}" for name, title in titles.items()))
        return
    console = open_console(to_stderr=as_json)
    with terminal_progress(console) as progress:
        paths = plots.make_figures(paper, names, out=out, progress=progress, **asked)
    if as_json:
        print_json([str(path) for path in paths])
    else:
        print_lines(console, *paths)
