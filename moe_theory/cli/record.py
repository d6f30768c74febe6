"""`moe-theory record`."""

from pathlib import Path

import click

from moe_theory.cli.options import PATH, examples, json_option
from moe_theory.cli.output import show_document


@click.command(epilog=examples("moe-theory record runs/verify"))
@click.argument("folders", nargs=-1, metavar="[DIR]...", type=PATH)
@click.option(
    "--elsewhere", is_flag=True, help="The runs are on another data set. Publish them next to the paper's own results."
)
@json_option("a list of the records, each with path, paper, and the number of verdicts or searches.")
def record(folders: tuple[Path, ...], elsewhere: bool) -> None:
    """Publish the results of `verify` and `challenge` as a paper's results.

    DIR is a folder that these commands wrote. A verdict replaces the published one on the same claim and reading. A
    search replaces the published one on the same statement. All others stay. Use the record's own --seed for runs, and
    compare by `git diff`. Without DIR, only the indexes of papers are rebuilt. Do this after you edit a paper's Python
    files.
    """
    from moe_theory.core.papers import ordered_names
    from moe_theory.report import record as records
    from moe_theory.report.pages import NUMBERS
    from moe_theory.verification.challenge import FOLDER

    search_folders = [folder for folder in folders if (folder / FOLDER).is_dir()]
    # A folder with neither is a run, too, so that the error names its missing file.
    run_folders = [folder for folder in folders if folder not in search_folders or (folder / NUMBERS).is_file()]
    if elsewhere:
        new_records = [records.other_data_record(folders)]
    else:
        new_records = [*records.paper_records(run_folders), *records.search_records(search_folders)]
    for file in new_records:
        records.write(file)
    papers = {file.paper for file in new_records} if folders else ordered_names()
    records.write_indexes(papers)
    show_document(records.records_document(new_records))
