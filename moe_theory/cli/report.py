"""`moe-theory report`."""

from pathlib import Path

import click

from moe_theory.cli.options import LAST_RUN, PATH, examples, json_option, out_option
from moe_theory.cli.output import show_document
from moe_theory.core.errors import InvalidValueError


@click.command(
    epilog=examples(
        "moe-theory report runs/verify",
        "moe-theory report --paper generalization",
        "moe-theory report runs/verify --cite",
    )
)
@click.argument("folders", nargs=-1, metavar="[DIR...]", type=PATH)
@click.option("--paper", metavar="NAME", help="Report the published results of a paper.")
@click.option("--cite", is_flag=True, help="Print BibTeX of this software and of the tested papers.")
@out_option("Folder for the report.", default_words="the first DIR, or runs/papers/NAME")
@json_option(
    "the content of report.json, in the form of verdicts.json. With --cite schema, papers, version and bibtex."
)
def report(folders: tuple[Path, ...], paper: str | None, cite: bool, out: Path | None) -> None:
    """Write an HTML report of a run, or of a paper's published results.

    DIR, by default runs/verify, has a verdicts.json. Writes report.html, and report.json with its numbers. Several
    folders give one report. Later verdicts on the same claim and reading replace earlier ones, and errors are added.
    """
    from moe_theory.plot.document import Document, read_written
    from moe_theory.plot.markdown import code, paragraphs
    from moe_theory.report import bibliography, pages
    from moe_theory.report.cards import label_counts
    from moe_theory.report.wording import judged_statements, summary
    from moe_theory.runs.files import prepare_folder

    if folders and paper is not None:
        raise InvalidValueError("name either folders, or a paper with --paper NAME.")
    if cite and out is not None:
        raise InvalidValueError("--cite only prints. Leave out --out.")
    if paper is not None:
        merged = pages.of_paper(paper)
        default_folder = Path("runs/papers") / paper
    else:
        folders = folders or (Path(LAST_RUN),)
        merged = pages.read_printed(folders) if cite else pages.read_reports(folders)
        default_folder = folders[0] if folders[0].is_dir() else folders[0].parent  # of a verdicts.json
    if cite:
        show_document(bibliography.document(merged))
        return
    folder = prepare_folder(out or default_folder, pages.OWN_NAMES)
    paths = pages.write_report(merged, folder)
    statement_counts = label_counts(judged_statements(merged))
    lines = [f"statements: {statement_counts}", f"claims: {summary(merged.verdicts)}"]
    text = paragraphs([*lines, *(code(str(path)) for path in paths)])
    show_document(Document(lambda: read_written(paths[-1]), lambda _: text))
