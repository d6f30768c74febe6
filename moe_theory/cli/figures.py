"""`moe-theory figures`."""

from pathlib import Path
from typing import Any

import click

from moe_theory.cli.options import Listed, WholeNumber, examples, json_option, out_option, seed_option, set_option
from moe_theory.cli.output import open_console, show_document
from moe_theory.core.errors import InvalidValueError


@click.command(
    epilog=examples(
        "moe-theory figures continual figure-8 --replicates 8",
        "moe-theory figures continual figure-2 --experts 2,4 --rounds 100 --width 8cm",
    )
)
@click.argument("paper", required=False, metavar="[PAPER]")
@click.argument("names", nargs=-1, metavar="[NAME]...")
@click.option("--reading", metavar="NAME", help="Reading for the figures.", show_default="the paper's first default")
@set_option("the reading's own choices, such as truth_scale=.2")
@click.option(
    "--experts",
    cls=Listed,
    type=WholeNumber(),
    metavar="M,...",
    help="Numbers of experts to draw, such as 2,4,8.",
    show_default="the paper's",
)
@click.option(
    "--rounds", type=int, help="Rounds (or slots, or steps) of each run.", show_default="each figure's own number"
)
@click.option("--replicates", type=int, help="Replicates of every cell.", show_default="each figure's own number")
@seed_option
@click.option("--format", "forms", default="svg", metavar="FORM,...", help="Format of the pictures: svg, pdf or png.")
@click.option(
    "--width",
    metavar="LENGTH",
    help="Width of the pictures, such as 3.25in, 8cm or 80mm.",
    show_default="each figure's own",
)
@out_option("Folder for the figures. Each paper gets a subfolder.", "figures")
@click.option("--list", "only_list", is_flag=True, help="List the figures of PAPER or of all papers.")
@json_option("a list of the written paths. With --list the figures' titles by name, or by paper if PAPER is missing.")
def figures(
    paper: str | None,
    names: tuple[str, ...],
    settings: tuple[str, ...],
    experts: tuple[int, ...],
    forms: str,
    out: Path,
    only_list: bool,
    **asked: Any,
) -> None:
    """Redraw a paper's figures, which compare simulation and theory.

    Draws the figures NAME of PAPER, or all of them. Writes each picture and its data into OUT/PAPER/.
    """
    if only_list:
        _list(paper)
        return
    from moe_theory.core.papers import paper_names
    from moe_theory.plot.document import of_paths
    from moe_theory.report import plots
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.verification.catalog import OVERVIEW
    from moe_theory.verification.settings import parse_settings

    if paper is None:
        raise InvalidValueError(
            f"name a paper to draw: {', '.join([*paper_names(), OVERVIEW])}. --list shows their figures."
        )
    keep_programs()
    with terminal_progress(open_console()) as progress:
        paths = plots.make_figures(
            paper,
            names,
            settings=parse_settings(settings),
            experts=experts or None,
            forms=[form.strip() for form in forms.split(",")],  # pyright: ignore[reportArgumentType]
            out=out,
            progress=progress,
            **asked,
        )
    show_document(of_paths(paths))


def _list(paper: str | None) -> None:
    from moe_theory.plot.document import Document
    from moe_theory.plot.markdown import paragraphs
    from moe_theory.verification.catalog import all_figure_titles, figure_titles

    if paper is not None:
        titles = figure_titles(paper)
        lines = [f"{name}: {title}" for name, title in titles.items()]
    else:
        titles = all_figure_titles()
        lines = []
        for title_paper, titles_of_paper in titles.items():
            lines += [f"{title_paper} {name}: {title}" for name, title in titles_of_paper.items()]
    show_document(Document(lambda: titles, lambda _: paragraphs(lines)))
