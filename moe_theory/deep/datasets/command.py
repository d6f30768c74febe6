"""`moe-theory data`."""

from pathlib import Path

import click

from moe_theory.cli.options import PATH, examples, frame_options, json_option
from moe_theory.cli.output import show_document


@click.command(epilog=examples("moe-theory data photographs --picture sheet.png"))
@click.argument("folder", metavar="DIR", type=PATH)
@click.option("--picture", type=PATH, metavar="FILE", help="Draw some images of each class, .png or .svg.")
@frame_options
@json_option(
    "schema, title, recognised, shape, type, classes, files, left_out, converted, notes, md5, digest and others."
)
def data(folder: Path, picture: Path | None, resize: str | None, size: str | None) -> None:
    """Say what a folder of images holds, and what `deep --data` reads of it.

    DIR has a data set's published files, images of your own in folders of classes, or an .npz or .csv file. Prints as
    what it is recognised and why, its files, what is left out, how images are converted, its classes, and how it
    differs from what was published. Where nothing is recognised, says what is lacking.
    """
    from moe_theory.deep import datasets
    from moe_theory.deep.datasets import report
    from moe_theory.deep.datasets.decoder import frame

    names = datasets.found_in(folder)
    if not names:
        raise datasets.missing(folder)
    found = datasets.load(names[0], folder, frame(size, resize))
    if picture is not None:
        report.picture(found).save(picture)
    show_document(report.document(found, names[1:], picture))
