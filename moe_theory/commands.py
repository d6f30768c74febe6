"""What the commands of `cli.py` do, each given its options. Heavy imports wait until one runs."""

import contextlib
import dataclasses
import json
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

from rich.console import Console

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
EXITS = {  # every code that a command ends with, and what it says
    DONE: "it ran, whatever the verdicts",
    FAILED: "verify --self-test found errors or a power that are not as declared",
    BAD_INPUT: "it was asked for what cannot be done: one line on standard error says what to change",
    INTERRUPTED: "it was interrupted (Ctrl-C, SIGTERM): one line says what is kept",
}
PAGE_SECONDS, PAGE_SHARE = 0.06, 0.25  # of a budget, for the report: seconds a verdict, and what it is worth at most
_LOG_WIDTH = 160  # columns of a log or a pipe


def stop(reason: str) -> NoReturn:
    print(f"moe-theory: {reason}", file=sys.stderr)  # noqa: T201
    raise SystemExit(INTERRUPTED) from None


def refuse(failure: Exception) -> NoReturn:
    print(f"moe-theory: {failure}", file=sys.stderr)  # noqa: T201
    raise SystemExit(BAD_INPUT)


def open_console(to_stderr: bool = False) -> Console:
    """A console that, where it is no terminal, is wide enough for the tables."""
    console = Console(stderr=to_stderr)
    return console if console.is_terminal else Console(stderr=to_stderr, width=_LOG_WIDTH)


def print_json(document: Any) -> None:
    print(json.dumps(document, indent=2))  # noqa: T201


def list_claims(patterns: tuple[str, ...], as_json: bool) -> None:
    from moe_theory.report import verdicts
    from moe_theory.verify import select_claims

    claims = select_claims(patterns or ("*",))
    if as_json:
        fields = ("id", "paper", "where", "statement", "kind", "margin", "replaced_by")
        print_json([{field: getattr(claim, field) for field in fields} for claim in claims])
    else:
        open_console().print(verdicts.claims_table(claims))


def _request(options: Any) -> Any:
    """What the options ask for, the user's own claims included."""
    from moe_theory.verify.modules import load_claims
    from moe_theory.verify.session import check_request
    from moe_theory.verify.settings import parsed

    own = [] if options.module is None else load_claims(options.module)
    return check_request(
        options.patterns or tuple(own) or ("*",),
        options.reading or None,
        options.replicates,
        options.seed,
        options.error,
        None if options.budget is None else seconds_of(options.budget),
        None if options.module is None else str(options.module),
        parsed(options.settings),
    )


def seconds_of(text: str) -> float:
    """A time such as 90s, 10m, 1.5h, or a number of seconds."""
    from moe_theory.core.errors import InvalidRunError

    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        return float(number) * units[unit]
    except ValueError:
        raise InvalidRunError(f"budget={text!r} is no time: write it as 90s, 10m or 1h. Change budget.") from None


def list_verdicts(options: Any) -> None:
    rows = [
        {
            "claim": claim.id,
            "reading": job.reading.name,
            "experiment": job.experiment.name,
            "replicates": options.replicates or job.experiment.replicates,
        }
        for job in _request(options).jobs
        for claim in job.claims
    ]
    if options.json:
        print_json(rows)
    else:
        for row in rows:
            line = f"{row['claim']} under {row['reading']}: {row['replicates']} replicates of {row['experiment']}"
            open_console().print(line, highlight=False, soft_wrap=True)


def run_verify(options: Any) -> None:
    from moe_theory.report import pages, verdicts
    from moe_theory.report.closing import closing_lines
    from moe_theory.report.output import prepare_folder
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.verify.archive import Archive
    from moe_theory.verify.session import carry_out

    request = _request(options)
    if request.budget is not None:
        reserve = min(PAGE_SECONDS * request.num_verdicts, PAGE_SHARE * request.budget)
        request = dataclasses.replace(request, reserve=reserve)
    folder = prepare_folder(options.out, (pages.NUMBERS, *pages.PAGE_NAMES))
    keep_programs(folder / "programs")
    archive = Archive(folder / "samples")
    if options.fresh:
        archive.clear()
    console = open_console(to_stderr=options.json)
    judged: list = []
    try:
        with terminal_progress(
            console, header=lambda console: verdicts.live_table(judged, console.width, console.height - 2)
        ) as progress:
            report = carry_out(
                request, archive=archive, progress=progress, on_verdict=judged.append, command=command_line()
            )
    except KeyboardInterrupt:
        stop("interrupted; the samples taken so far are kept: the same command goes on from them")
    numbers = pages.write_numbers(report, folder)
    page = pages.write_pages(report, folder)[0]
    if options.json:
        print(pages.to_json(report), end="")  # noqa: T201
        return
    console.print(verdicts.live_table(report.verdicts, console.width))
    for line in (*closing_lines(report), f"numbers: {numbers}", f"report: {page}"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def run_explore(options: Any) -> None:
    from moe_theory.report import exploration
    from moe_theory.report.output import prepare_folder
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.verify import explore
    from moe_theory.verify.modules import load_claims

    if options.module is not None:
        load_claims(options.module)
    plan = explore.plan_search(
        options.claim,
        options.over,
        options.reading,
        options.points,
        options.refine,
        options.replicates,
        options.seed,
        options.error,
        None if options.module is None else str(options.module),
    )
    folder = prepare_folder(options.out, [path.name for path in exploration.paths_of(options.out, plan.claim.id)])
    keep_programs(folder / "programs")
    console = open_console(to_stderr=options.json)
    judged: list = []
    with terminal_progress(console, header=lambda _: exploration.live_counts(judged, plan.most_points)) as progress:
        found = explore.carry_out_search(plan, progress=progress, on_point=judged.append, command=command_line())
    paths = exploration.write_exploration(found, folder)
    if options.json:
        print_json(found.to_json())
        return
    for line in [*found.summary(), *found.failures(), found.assurance(), *(str(path) for path in paths)]:
        console.print(line, highlight=False, soft_wrap=True)


def run_self_test(options: Any) -> None:

    from moe_theory.core.random import root_key
    from moe_theory.report import selftest
    from moe_theory.report.output import prepare_folder
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.machine import available_cores
    from moe_theory.verify.selftest import self_test

    root_key(options.seed)
    folder = prepare_folder(options.out, (selftest.PICTURE, selftest.NUMBERS))
    console = open_console(to_stderr=options.json)
    with terminal_progress(console) as progress:
        result = self_test(seed=options.seed, workers=available_cores(), progress=progress)
    paths = selftest.write_picture(result, folder)
    if options.json:
        print_json(result.to_json())
    else:
        console.print(selftest.table(result.rows))
        for line in (selftest.closing_line(result), *map(str, paths)):
            console.print(line, highlight=False, soft_wrap=True, markup=False)
    if not result.passed:
        raise SystemExit(FAILED)


def print_example() -> None:
    from moe_theory.sweep.specification import example

    print(example(), end="")  # noqa: T201


def estimate_sweep(options: Any) -> None:
    from moe_theory.core.errors import InvalidRunError
    from moe_theory.report import costs
    from moe_theory.sweep.estimate import estimate

    if options.dask is not None:
        raise InvalidRunError("--dry-run times a short run on this machine, not on a cluster. Leave out --dask.")
    sweep, folder = _sweep_of(options)
    _prepare_devices(options.devices)
    estimated = estimate(sweep, folder, options.devices)
    if options.json:
        print_json(estimated.to_json())
    else:
        open_console().print(costs.estimate_table(estimated))


def run_sweep(options: Any) -> None:
    with stoppable() as is_stopped:  # from before the heavy imports on
        _run_sweep(options, is_stopped)


def _run_sweep(options: Any, is_stopped: Callable[[], bool]) -> None:
    from moe_theory.core.errors import InvalidRunError
    from moe_theory.report import costs, sweeps
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import made_folder
    from moe_theory.sweep import runner
    from moe_theory.sweep.results import Results

    sweep, folder = _sweep_of(options)
    keep_programs(made_folder(folder) / "programs")
    _prepare_devices(options.devices)
    console = open_console(to_stderr=options.json)
    pool = runner.pool_of(dask=options.dask, devices=options.devices)
    try:
        with terminal_progress(console) as progress:
            outcome = runner.run(
                sweep, folder, pool=pool, progress=progress, arguments=sys.argv[1:], is_stopped=is_stopped
            )
    except KeyboardInterrupt:
        leave_threads(f"interrupted; finished chunks are kept in {folder}: the same command goes on from them")
    results = Results(outcome.plan, outcome.store)
    try:
        merged = f"results: {results.to_netcdf(folder / sweeps.RESULTS)}"
    except InvalidRunError as too_large:
        merged = f"{sweeps.RESULTS} is left out: {too_large}"
    if options.json:
        print_json(sweeps.to_json(results))
        return
    console.print(sweeps.table(results))
    for line in (*costs.closing_lines(outcome.counts), merged, f"look: moe-theory sweep show {folder}"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def show_sweep(options: Any) -> None:
    from moe_theory.core.errors import OutputError
    from moe_theory.report import sweeps
    from moe_theory.sweep.results import Results

    results = Results.open(options.folder, partial=True)
    console = open_console()
    if options.json:
        print_json(sweeps.to_json(results))
    else:
        console.print(sweeps.table(results))
    coverage, lines = results.coverage, list(results.damaged.values())
    if not coverage.is_complete:
        lines.append(
            f"{coverage.chunks:,} of {coverage.of_chunks:,} chunks are there and whole: the same `moe-theory sweep` "
            "command goes on with the others"
        )
    if options.picture is not None:
        lines.append(str(sweeps.draw(results, options.picture)))
    elif sweeps.scalars(results):
        try:
            lines.append(str(sweeps.draw(results, options.folder / "look.svg")))
        except OutputError as failure:  # somebody else's folder, say
            lines.append(f"no picture: {failure}")
    if options.to is not None:
        lines.append(str(sweeps.export(results, options.to)))
    for line in () if options.json else lines:
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def leave_threads(reason: str) -> NoReturn:
    """Stop at once, also where a thread is in the middle of a chunk that nobody wanted to wait for."""
    try:
        stop(reason)
    except SystemExit:
        if threading.active_count() == 1:
            raise
        sys.stderr.flush()
        os._exit(INTERRUPTED)


def _sweep_of(options: Any) -> tuple[Any, Path]:
    """The sweep that is specified, and the folder it goes into."""
    from moe_theory.core.errors import InvalidRunError
    from moe_theory.sweep.results import Sweep

    if options.specification is None:
        raise InvalidRunError("name a specification: moe-theory sweep --example > grid.toml prints one to begin with.")
    sweep = Sweep.read(options.specification)
    return sweep, options.out or Path("runs") / options.specification.stem


def _prepare_devices(number: int | None) -> None:
    """Let JAX see so many devices where they are a CPU's; without effect once JAX has started."""
    import jax

    if number is not None and number > 0:
        with contextlib.suppress(RuntimeError):
            jax.config.update("jax_num_cpu_devices", number)


@contextlib.contextmanager
def stoppable() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM, which a cluster's queue sends before it kills, end a run like Ctrl-C; whether either has come."""
    asked: list[int] = []

    def interrupt(number: int, _: Any) -> NoReturn:
        asked.append(number)
        raise KeyboardInterrupt

    if threading.current_thread() is not threading.main_thread():
        yield lambda: False
        return
    before = {number: signal.signal(number, interrupt) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: bool(asked)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def make_figures(options: Any) -> None:
    from moe_theory.report import plots
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs

    keep_programs()
    specifications = plots.figures_of(options.paper)
    if options.list:
        titles = {name: specification.title for name, specification in specifications.items()}
        if options.json:
            print_json(titles)
        else:
            for name, title in titles.items():
                open_console().print(f"{name}: {title}", highlight=False)
        return
    console = open_console(to_stderr=options.json)
    with terminal_progress(console) as progress:
        paths = plots.make_figures(
            options.paper,
            options.names,
            reading=options.reading,
            replicates=options.replicates,
            seed=options.seed,
            out=options.out,
            progress=progress,
        )
    if options.json:
        print_json([str(path) for path in paths])
    else:
        for path in paths:
            console.print(str(path), highlight=False, soft_wrap=True)


def make_report(options: Any) -> None:
    from moe_theory.report import pages
    from moe_theory.report.output import prepare_folder
    from moe_theory.report.verdicts import summary

    report = pages.read_reports(options.folders)
    first = options.folders[0]
    folder = prepare_folder(options.out or (first if first.is_dir() else first.parent), pages.OWN_NAMES)
    paths = pages.write_report(report, folder)
    if options.json:
        print(pages.to_json(report), end="")  # noqa: T201
        return
    console = open_console()
    for line in (summary(report.verdicts), *map(str, paths)):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def command_line() -> str:
    return shlex.join(["moe-theory", *sys.argv[1:]])
