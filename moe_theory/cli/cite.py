"""`moe-theory cite`."""

import click

from moe_theory.cli.options import examples, json_option
from moe_theory.cli.output import open_console, print_lines, show_document, wants_json


@click.command(epilog=examples("moe-theory cite runs/verify"))
@click.argument("source", metavar="RUN")
@click.option("--bibtex", is_flag=True, help="Print the BibTeX entries and nothing else.")
@json_option("schema, run, note, version, papers (each with key, title, statements and their verdicts), latex, bibtex.")
def cite(source: str, bibtex: bool) -> None:
    """Cite the statements that a run bears on, with BibTeX.

    RUN is a folder written by `verify`, `report`, `explore`, `sweep`, `deep` or `merge`, a file written by `figures`,
    or a claim's id, a glob or a paper's name. Prints the statements by paper with what the run says of each, a
    paragraph of LaTeX, and the entries that it cites, this software's among them.
    """
    from moe_theory.report import citations

    bearing = citations.bearing_of(source)
    if bibtex and not wants_json():
        print_lines(open_console(), citations.bibtex(bearing))
    else:
        show_document(citations.document(bearing))
