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
    help="In a batch job, compute only the I-th of N fixed shares of the chunks, in a separate file. When all parts "
    "are done, the same command without --part writes the results.",
)
@click.option("--example", is_flag=True, help="Print a commented specification.")
@json_option("the same document as `sweep show`.")
def sweep(specification: Path | None, out: Path | None, dask: str | None, part: str | None, example: bool) -> None:
    """Run a parameter sweep from a TOML file.

    Finished chunks are saved in OUT. After an interrupt, a crash or a change of the file, the same command resumes and
    computes only missing chunks. Numbers do not depend on how the sweep ran. `moe-theory sweep show FOLDER` shows
    results.

    Statistics over the replicates are count, mean, standard_error, min, max and quantiles. 90 % of values exceed q10.
    """
    from moe_theory.sweep import specification as specifications

    if example:
        click.echo(specifications.example(), nl=False)
        return
    if specification is None:
        raise InvalidValueError("name a specification. To start, print one: moe-theory sweep --example > grid.toml")
    folder = out or Path("runs") / specification.stem
    with stoppable() as is_stopped:  # also during the heavy imports
        _run(specification, folder, dask=dask, part=part, is_stopped=is_stopped)


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
            results_line = _write_results(results, folder / sweeps.RESULTS)
    except KeyboardInterrupt:
        stop_at_once(f"interrupted. Finished chunks are saved in {folder}, and the same command resumes from them")
    show_line = Markup(f"results: {code(f'moe-theory sweep show {shell_path(folder)}')}")
    counts = outcome.counts
    chunks_line = f"{counts.num_chunks:,} chunks: {counts.computed:,} computed, {counts.present:,} reused"
    lines = [*damaged_lines(counts.damaged), chunks_line, results_line, show_line]
    show_document(sweeps.document(results, lines))


def _write_results(results: "Results", path: Path) -> str:
    """Write the results' file, and return a line that names it or says why it is not written."""
    from moe_theory.plot.markdown import Markup, code

    if not results.coverage.is_complete:
        return f"{path.name} is not written until all chunks exist"
    try:
        return Markup(f"results: {code(str(results.save(path)))}")
    except InvalidValueError as failure:  # too large for a file
        return f"{path.name} is not written: {failure}"


@click.command("sweep show", epilog=examples("moe-theory sweep show runs/grid"))
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--picture", type=PATH, help="File of the plot, .svg or .png.", show_default="look.svg in FOLDER")
@json_option(
    "schema, specification, digest, coverage, round and cells, each with settings, reading and last statistics."
)
def show(folder: Path, picture: Path | None) -> None:
    """Summarize a sweep in a table and a plot, even while it is running."""
    from moe_theory.plot.markdown import code
    from moe_theory.report import sweeps
    from moe_theory.sweep.results import Results

    results = Results.open(folder, partial=True)
    coverage = results.coverage
    lines = []
    if not coverage.is_complete:
        lines.append(
            f"{coverage.chunks:,} of {coverage.of_chunks:,} chunks exist. Rerun `moe-theory sweep` for the others"
        )
    if picture is not None:
        lines.append(code(str(sweeps.draw(results, picture))))
    elif sweeps.can_be_drawn(results):
        try:
            lines.append(code(str(sweeps.draw(results, folder / "look.svg"))))
        except OutputError as failure:  # for example in another user's folder
            lines.append(f"no picture: {failure}")
    show_document(sweeps.document(results, [*damaged_lines(results.damaged), *lines]))
