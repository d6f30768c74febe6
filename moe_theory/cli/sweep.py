"""`moe-theory sweep` and `moe-theory sweep show`."""

import contextlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

from moe_theory.cli.options import PATH, dask_option, examples, json_option, out_option
from moe_theory.cli.output import damaged_lines, open_console, show_document, stop_at_once, stoppable
from moe_theory.core.errors import InvalidRunError, OutputError

if TYPE_CHECKING:
    from moe_theory.sweep.results import Sweep


def _files_or_show(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    is_show = incomplete and "show".startswith(incomplete)
    return [CompletionItem("show") if is_show else CompletionItem(incomplete, type="file")]


@click.command(
    epilog=examples(
        "moe-theory sweep --example > grid.toml", "moe-theory sweep grid.toml --dry-run", "moe-theory sweep grid.toml"
    )
)
@click.argument("specification", required=False, metavar="[GRID.toml]", type=PATH, shell_complete=_files_or_show)
@out_option("Folder for the chunks and the results.", told="runs/NAME of the specification")
@click.option(
    "--dry-run", is_flag=True, help="Only say what it would take: cells, chunks, compilations, memory, disk, time."
)
@click.option(
    "--devices",
    type=int,
    help="Devices of this machine that compute at once.",
    show_default="all there are; of a CPU, its cores",
)
@dask_option("Compute")
@click.option("--example", is_flag=True, help="Print a commented specification.")
@json_option("as `sweep show`; with --dry-run cells, shape, replicates, chunks, bytes, seconds and the like.")
def sweep(
    specification: Path | None,
    out: Path | None,
    dry_run: bool,
    devices: int | None,
    dask: str | None,
    example: bool,
) -> None:
    """Run a grid of settings, many replicates each, from a specification.

    Finished chunks are kept in OUT as they come: rerunning, after an interrupt, a crash or a change of the
    specification, computes only what is missing, and the numbers never depend on how it ran. Several processes may
    share one OUT. `moe-theory sweep show FOLDER` shows what a sweep's folder holds.
    """
    if example:
        from moe_theory.sweep import specification as spec

        click.echo(spec.example(), nl=False)
    elif dry_run:
        if dask is not None:
            raise InvalidRunError("--dry-run times a short run on this machine, not on a cluster. Leave out --dask.")
        _estimate(specification, out, devices)
    else:
        with stoppable() as is_stopped:  # from before the heavy imports on
            _run(specification, out, devices, dask, is_stopped)


def _read(specification: Path | None, out: Path | None) -> tuple["Sweep", Path]:
    from moe_theory.sweep.results import Sweep

    if specification is None:
        raise InvalidRunError("name a specification: moe-theory sweep --example > grid.toml prints one to start from.")
    return Sweep.read(specification), out or Path("runs") / specification.stem


def _estimate(specification: Path | None, out: Path | None, devices: int | None) -> None:
    from moe_theory.report import sweeps
    from moe_theory.sweep.estimate import estimate

    grid, folder = _read(specification, out)
    _set_cpu_devices(devices)
    show_document(sweeps.estimate(estimate(grid, folder, devices)))


def _run(
    specification: Path | None,
    out: Path | None,
    devices: int | None,
    dask: str | None,
    is_stopped: Callable[[], bool],
) -> None:
    from moe_theory.report import sweeps
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import made_folder
    from moe_theory.sweep import runner
    from moe_theory.sweep.results import Results

    grid, folder = _read(specification, out)
    keep_programs(fallback=made_folder(folder) / "programs")
    _set_cpu_devices(devices)
    pool = runner.pool_of(dask=dask, devices=devices)
    try:
        with terminal_progress(open_console()) as progress:
            outcome = runner.run(
                grid, folder, pool=pool, progress=progress, arguments=sys.argv[1:], is_stopped=is_stopped
            )
            progress.at(f"writing {sweeps.RESULTS}")
            results = Results(outcome.plan, outcome.store)
            try:
                merged = f"results: {results.to_netcdf(folder / sweeps.RESULTS)}"
            except InvalidRunError as too_large:
                merged = f"{sweeps.RESULTS} is left out: {too_large}"
    except KeyboardInterrupt:
        stop_at_once(f"interrupted; finished chunks are kept in {folder}: the same command resumes from them")
    told = [*damaged_lines(outcome.counts.damaged), sweeps.closing_line(outcome.counts)]
    show_document(sweeps.document(results, [*told, merged, f"look: moe-theory sweep show {folder}"]))


def _set_cpu_devices(number: int | None) -> None:
    """Let JAX see this number of CPU devices; without effect once JAX has started."""
    import jax

    from moe_theory.runs.workers import check_devices

    if number is not None:
        check_devices(number)
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", number)


@click.command("sweep show", epilog=examples("moe-theory sweep show runs/grid"))
@click.argument("folder", metavar="FOLDER", type=PATH)
@click.option("--to", type=PATH, help="Also write the labelled results there, as .nc, .zarr or .parquet.")
@click.option(
    "--picture", type=PATH, help="Where to draw the quick look, .svg or .png.", show_default="look.svg in FOLDER"
)
@json_option(
    "schema, specification, digest, coverage, round and cells, each with settings, reading and the "
    "last round's statistics."
)
def show(folder: Path, to: Path | None, picture: Path | None) -> None:
    """Show what a sweep's folder holds: a table and a quick look.

    Also while the sweep is still running, or was interrupted.
    """
    from moe_theory.report import sweeps
    from moe_theory.sweep.results import Results

    results = Results.open(folder, partial=True)
    coverage, lines = results.coverage, list(results.damaged.values())
    if not coverage.is_complete:
        lines.append(
            f"{coverage.chunks:,} of {coverage.of_chunks:,} chunks are there and whole: the same `moe-theory sweep` "
            "command computes the others"
        )
    if picture is not None:
        lines.append(str(sweeps.draw(results, picture)))
    elif sweeps.scalars(results):
        try:
            lines.append(str(sweeps.draw(results, folder / "look.svg")))
        except OutputError as failure:  # such as another user's folder
            lines.append(f"no picture: {failure}")
    if to is not None:
        lines.append(str(sweeps.export(results, to)))
    show_document(sweeps.document(results, lines))
