"""What `moe-theory cite` does, given its options."""

from typing import Any

from moe_theory.commands import open_console, print_json
from moe_theory.report import citing
from moe_theory.report.citations import bearing_of


def run_cite(options: Any) -> None:
    """Print what a run bears on, or only the BibTeX that it is cited with.

    Raises: InvalidReportError or UnknownNameError for what is neither a run nor claims.
    """
    bearing = bearing_of(options.source)
    if options.json:
        print_json(citing.to_json(bearing))
    elif options.bibtex:
        print(citing.bibtex(bearing))  # noqa: T201
    else:
        console = open_console()
        console.print(bearing.note, highlight=False, markup=False)
        for table in citing.tables(bearing, console.width):
            console.print(table)
        for page in (citing.latex(bearing), citing.bibtex(bearing)):
            console.print(f"\n{page}", highlight=False, markup=False, soft_wrap=True)
