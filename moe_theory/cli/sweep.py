"""`moe-theory sweep` and `moe-theory sweep show`."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moe_theory.cli.options import PATH, cluster_option, examples, json_option, out_option
from moe_theory.cli.output import damaged_lines, open_console, show_document, stop_at_once, stoppable
from moe_theory.core.errors import InvalidValueError, OutputError

if TYPE_CHECKING:
    from moe_theory.sweep.results import Results


@click.command(epilog=examples("moe-theory sweep --example > grid.toml", "moe-theory sweep grid.toml"))
@click.argument("specification", required=False, metavar="[GRID.toml]", type=PATH)
@out_option("Folder for the chunks and the results.", default_words="runs/NAME of the specification")
@cluster_option("Compute")
@click.option(
    "--part",
    metavar="I/N",
    help="Compute only the I-th of N fixed shares of the chunks, into a file of its own: one job of a batch system. "
    "When all parts are there, the same command without --part writes the results.",
)
@click.option("--example", is_flag=True, help="Print a commented specification.")
@json_option("as `sweep show`.")
def sweep(specification: Path | None, out: Path | None, dask: str | None, part: str | None, example: bool) -> None:
    """Run a parameter sweep from a TOML file.

    Finished chunks are saved in OUT. The same command resumes after an interrupt, a crash or a change of the file, and
    computes only what is missing. The numbers do not depend on how the sweep ran. `moe-theory sweep show FOLDER` shows
    its results.

    Statistics over the replicates are count, mean, standard_error, min, max and quantiles: q10 is exceeded by 90 %.
    """
    from moe_theory.sweep import specification as specifications

    if example:
        click.echo(specifications.example(), nl=False)
        return
    if specification is None:
        raise InvalidValueError(
            "name a specification: moe-theory sweep --example > grid.toml prints one to start from."
        )
    folder = out or Path("runs") / specification.stem
    with stoppable() as is_stopped:  # from before the heavy imports on
        _run(specification, folder, dask, part, is_stopped)


def _run(specification: Path, folder: Path, dask: str | None, part: str | None, is_stopped: Callable[[], bool]) -> None:
    from moe_theory.plot.markdown import Markup, code, shell_path
    from moe_theory.report import sweeps
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.pools import pool_of
    from moe_theory.sweep import runner
    from moe_theory.sweep.results import Sweep, results_of

    grid = Sweep.read(specification)
    share = None if part is None else runner.Part.parsed(part)
    keep_programs()
    pool = pool_of(dask=dask)
    try:
        with terminal_progress(open_console()) as progress:
            outcome = runner.run(grid, folder, pool=pool, progress=progress, is_stopped=is_stopped, part=share)
            results = results_of(outcome)
            progress.at(f"writing {sweeps.RESULTS}")
            written = _written(results, folder / sweeps.RESULTS)
    except KeyboardInterrupt:
        stop_at_once(f"interrupted; finished chunks are saved in {folder}: the same command resumes from them")
    look = Markup(f"look: {code(f'moe-theory sweep show {shell_path(folder)}')}")
    lines = [*damaged_lines(outcome.counts.damaged), sweeps.closing_line(outcome.counts)]
    show_document(sweeps.document(results, [*lines, written, look]))


def _written(results: "Results", path: Path) -> str:
    """Write the labelled results, and return a line that says where they are."""
    from moe_theory.plot.markdown import Markup, code

    if not results.coverage.is_complete:
        return f"{path.name} is left out: it is written when all is there"
    try:
        return Markup(f"results: {code(str(results.save(path)))}")
    except InvalidValueError as too_large:
        return f"{path.name} is left out: {too_large}"


@click.command("sweep show", epilog=examples("moe-theory sweep show runs/grid"))
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--picture", type=PATH, help="File of the plot, .svg or .png.", show_default="look.svg in FOLDER")
@json_option(
    "schema, specification, digest, coverage, round and cells, each with settings, reading and the last round's "
    "statistics."
)
def show(folder: Path, picture: Path | None) -> None:
    """Summarize a sweep: table and plot. Also while the sweep is running."""
    from moe_theory.plot.markdown import code
    from moe_theory.report import sweeps
    from moe_theory.sweep.results import Results

    results = Results.open(folder, partial=True)
    coverage = results.coverage
    lines = []
    if not coverage.is_complete:
        lines.append(
            f"{coverage.chunks:,} of {coverage.of_chunks:,} chunks are there: the same `moe-theory sweep` command "
            "computes the others"
        )
    if picture is not None:
        lines.append(code(str(sweeps.draw(results, picture))))
    elif sweeps.can_be_drawn(results):
        try:
            lines.append(code(str(sweeps.draw(results, folder / "look.svg"))))
        except OutputError as failure:  # such as another user's folder
            lines.append(f"no picture: {failure}")
    show_document(sweeps.document(results, [*damaged_lines(results.damaged), *lines]))
