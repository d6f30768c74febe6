"""`moe-theory data`."""

from pathlib import Path

import click

from moe_theory.cli.options import PATH, examples, frame_options, json_option
from moe_theory.cli.output import open_console, print_json, print_lines


@click.command(epilog=examples("moe-theory data photographs --picture sheet.png"))
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--picture", type=PATH, metavar="FILE", help="Draw some images of each class, .png or .svg.")
@frame_options
@json_option(
    "schema, title, recognised, shape, type, classes, files, left_out, converted, notes, md5, digest and others."
)
def data(folder: Path, picture: Path | None, resize: str | None, size: str | None, as_json: bool) -> None:
    """Say what a folder of images holds, and what `deep --data` reads of it.

    DIR has a data set's published files, images of your own in folders of classes, or an .npz or .csv file. Prints as
    what it is recognised and why, its files, what is left out, how images are converted, its classes, and how it
    differs from what was published. Where nothing is recognised, says what is lacking.
    """
    from moe_theory.deep import datasets
    from moe_theory.deep.datasets.decoder import frame
    from moe_theory.report import data as pages

    names = datasets.found_in(folder)
    if not names:
        raise datasets.missing(folder)
    found = datasets.load(names[0], folder, frame(size, resize))
    console = open_console(to_stderr=as_json)
    if picture is not None:
        pages.draw(found, picture)
    if as_json:
        print_json(pages.to_json(found) | {"others": names[1:]})
    else:
        print_lines(console, *pages.lines(found), *pages.further_lines(found))
        console.print(pages.class_table(found))
        if names[1:]:
            print_lines(console, f"also there, and not read: {', '.join(names[1:])}")
    if picture is not None:
        print_lines(console, f"picture: {picture}")
