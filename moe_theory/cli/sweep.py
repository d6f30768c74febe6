"""`moe-theory sweep` and `moe-theory sweep show`."""

import contextlib
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from moe_theory.cli.options import PATH, cluster_option, examples, json_option, out_option
from moe_theory.cli.output import FAILED, damaged_lines, open_console, show_document, stop_at_once, stoppable
from moe_theory.core.errors import InvalidRunError, OutputError

if TYPE_CHECKING:
    from moe_theory.sweep.results import Results, Sweep


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
    "--dry-run",
    is_flag=True,
    help="Only say what it would take: cells, chunks, compilations, memory, disk, time; "
    "here, on the workers of --dask, or on as many as --workers says.",
)
@click.option(
    "--devices",
    type=int,
    help="Devices of this machine that compute at once.",
    show_default="all there are; of a CPU, its cores",
)
@cluster_option("Compute")
@click.option(
    "--workers",
    type=int,
    metavar="N",
    help="With --dry-run: suppose N workers of a core each, of a cluster or of all processes of a job array.",
)
@click.option(
    "--log",
    type=PATH,
    help="Add a line of JSON to this file every ten seconds: chunks done, rate, seconds left, what each host has done.",
)
@click.option(
    "--keep-going",
    is_flag=True,
    help="Where a cell raises an error go on with the others, list it at the end, and exit with 1.",
)
@click.option("--only", type=click.Choice(["failed"]), help="Compute only what raised errors in earlier runs.")
@click.option("--example", is_flag=True, help="Print a commented specification.")
@json_option("as `sweep show`; with --dry-run cells, shape, replicates, chunks, bytes, seconds and the like.")
def sweep(
    specification: Path | None,
    out: Path | None,
    dry_run: bool,
    devices: int | None,
    dask: str | None,
    workers: int | None,
    log: Path | None,
    keep_going: bool,
    only: str | None,
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
        _estimate(specification, out, devices, dask, workers)
    elif workers is not None:
        raise InvalidRunError("--workers says what --dry-run is to suppose: give that, or --dask or --devices.")
    else:
        with stoppable() as is_stopped:  # from before the heavy imports on
            how = {"is_stopped": is_stopped, "log": log, "keeps_going": keep_going, "only_failed": only == "failed"}
            _run(specification, out, devices, dask, how)


def _read(specification: Path | None, out: Path | None) -> tuple["Sweep", Path]:
    from moe_theory.sweep.results import Sweep

    if specification is None:
        raise InvalidRunError("name a specification: moe-theory sweep --example > grid.toml prints one to start from.")
    return Sweep.read(specification), out or Path("runs") / specification.stem


def _estimate(
    specification: Path | None, out: Path | None, devices: int | None, dask: str | None, workers: int | None
) -> None:
    from moe_theory.report import sweeps
    from moe_theory.sweep import runner
    from moe_theory.sweep.estimate import estimate

    given = {"--devices": devices, "--dask": dask, "--workers": workers}
    if len(asked := [name for name, value in given.items() if value is not None]) > 1:
        raise InvalidRunError(f"{' and '.join(asked)} exclude one another: give one of them.")
    grid, folder = _read(specification, out)
    _set_cpu_devices(devices)
    pool = runner.pool_of(devices=devices, dask=dask)
    try:
        if dask is not None:
            runner.fingerprint_of(pool, grid.system)  # counts its workers
        show_document(sweeps.estimate(estimate(grid, folder, workers, pool)))
    finally:
        pool.close()


def _run(
    specification: Path | None,
    out: Path | None,
    devices: int | None,
    dask: str | None,
    how: Mapping[str, Any],
) -> None:
    from moe_theory.report import sweeps
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import made_folder
    from moe_theory.sweep import runner
    from moe_theory.sweep.results import results_of

    grid, folder = _read(specification, out)
    keep_programs(fallback=made_folder(folder) / "programs")
    _set_cpu_devices(devices)
    pool = runner.pool_of(devices=devices, dask=dask)
    try:
        with terminal_progress(open_console()) as progress:
            outcome = runner.run(grid, folder, pool=pool, progress=progress, arguments=sys.argv[1:], **how)
            results = results_of(outcome, progress)
            progress.at(f"writing {sweeps.RESULTS}")
            merged = _written(results, folder / sweeps.RESULTS)
    except KeyboardInterrupt:
        stop_at_once(f"interrupted; finished chunks are kept in {folder}: the same command resumes from them")
    told = [*damaged_lines(outcome.counts.damaged), *sweeps.failures(results), sweeps.closing_line(outcome.counts)]
    show_document(sweeps.document(results, [*told, merged, f"look: moe-theory sweep show {folder}"]))
    if results.failed:
        raise SystemExit(FAILED)


def _written(results: "Results", path: Path) -> str:
    """Write the labelled results; a line that says where they are."""
    if not results.coverage.is_complete:
        return f"{path.name} is left out: it is written when all is there"
    if not results.packs.claim(path.name):
        return f"results: {path}, which another process is writing"
    try:
        return f"results: {results.to_netcdf(path)}"
    except InvalidRunError as too_large:
        return f"{path.name} is left out: {too_large}"
    finally:
        results.packs.close()


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
    "schema, specification, digest, coverage, round, runs (who ran it when, and how far a run that goes on was when it "
    "was last heard of) and cells, each with settings, reading and the last round's statistics."
)
@click.option("--version", metavar="ID", help="Show another version: one of other code or of another specification.")
@click.option("--prune", is_flag=True, help="Remove the chunks of all versions but the one shown.")
def show(folder: Path, to: Path | None, picture: Path | None, version: str | None, prune: bool) -> None:
    """Show what a sweep's folder holds: a table and a quick look.

    Also while the sweep is still running, or was interrupted.
    """
    from moe_theory.report import sweeps
    from moe_theory.sweep import versions
    from moe_theory.sweep.manifest import failed_in
    from moe_theory.sweep.results import Results

    results = Results.open(folder, partial=True, version=version)
    coverage, lines = results.coverage, []
    if not coverage.is_complete:
        lines.append(
            f"{coverage.chunks:,} of {coverage.of_chunks:,} chunks are there and whole: the same `moe-theory sweep` "
            "command computes the others"
        )
    results.failed = results.errors_of(failed_in(folder))
    lines += [*sweeps.failures(results), *sweeps.heard(results.history)]
    if prune:
        removed = versions.prune(results.packs, results.plan)
        lines.append(f"{removed:,} entries of other versions, chunks and statistics, are removed")
    for other, chunks in versions.other_versions(results.packs, results.plan).items():
        if not chunks:
            continue
        lines.append(
            f"{len(chunks):,} more chunks are of another version: moe-theory sweep show {folder} --version {other}"
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
