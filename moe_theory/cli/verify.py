"""`moe-theory verify`."""

import dataclasses
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moe_theory.cli.options import (
    LAST_RUN,
    OWN_RUN,
    Listed,
    cluster_option,
    examples,
    json_option,
    module_option,
    out_option,
    seed_option,
    set_option,
    system_option,
)
from moe_theory.cli.output import command_line, damaged_lines, open_console, show_document, stop
from moe_theory.core.errors import InvalidValueError

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from moe_theory.verification.request import Request
    from moe_theory.verification.verdict import Report, Verdict

PAGE_SECONDS = 0.06  # of a budget, for each verdict's part of the report
PAGE_SHARE = 0.25  # of a budget, for the whole report at most
END_SECONDS = 2.0  # of a budget, for the verdicts
FIRST_REPLICATES = 512  # of a first look at most
_UNITS = {"s": 1, "m": 60, "h": 3600}
_JSON = (
    "what verdicts.json holds, with schema, summary (verdicts by status), command, seed, error, versions and verdicts; "
    "with --list a list of claim, reading, also (readings with the same parameters), experiment and replicates; with "
    "--system schema, system, command, seed, error, differ, statements (each with differs, printed, own and "
    "does_not_apply) and files."
)


@click.command(epilog=examples("moe-theory verify continual.lemma-4 --reading unit-signal"))
@click.argument("patterns", nargs=-1, metavar="[CLAIM]...")
@click.option(
    "--reading",
    "--readings",
    "readings",
    cls=Listed,
    metavar="NAME",
    help="A reading of the paper, 'all', or 'quick' for a first look; repeat it for more, or put commas between.",
    show_default="each paper's defaults",
)
@set_option("every reading's own choices, such as signal_scale=5")
@click.option(
    "--replicates",
    type=int,
    help="Replicate limit of every experiment.",
    show_default="each experiment's own; none with --budget",
)
@click.option(
    "--budget",
    callback=lambda context, option, text: None if text is None else seconds_of(text),
    metavar="TIME",
    help="Time to spend, such as 90s, 10m or 1h; what is undecided by then stays INCONCLUSIVE.",
)
@seed_option
@click.option(
    "--error",
    type=float,
    help="Probability that any verdict is false, split evenly (asymptotic where intervals are).",
    show_default="0.01, of which each has a fixed part that its paper declares",
)
@module_option
@system_option
@out_option(
    "Folder for pages, verdicts and samples.", default_words=f"no pages; {LAST_RUN}, or with --system {OWN_RUN}"
)
@cluster_option("Take samples")
@click.option("--fresh", is_flag=True, help="Discard the samples in OUT and start over.")
@click.option("--list", "only_list", is_flag=True, help="Only list what would be judged.")
@json_option(_JSON)
def verify(
    out: Path | None,
    dask: str | None,
    fresh: bool,
    only_list: bool,
    **asked: Any,
) -> None:
    """Judge claims by Monte Carlo.

    CLAIM is an id, a glob such as 'continual.theorem-*', a statement, or a paper's name. Without one it takes a first
    look: a few claims of each paper, in a minute. '*' tests all, and so does --budget alone; --module tests the
    module's. Replicates double until each claim is decided. Prints a table of verdicts, and saves the samples and
    verdicts.json, from which rerunning resumes. With --out it also writes pages, report.html and report.md.
    `moe-theory report` makes them of any saved verdicts. Proofs of a paper of your own are run first, and one that
    fails is refused. Exits with 0 when it ran, whatever the verdicts.

    With --system an algorithm of your own is judged instead, and shown beside what is recorded of the printed one.
    """
    is_narrowed = any(asked[name] for name in ("patterns", "module", "system", "budget"))
    first_look = {} if is_narrowed else _first_look()
    if first_look:
        asked["patterns"] = tuple(first_look)
        asked["readings"] = asked["readings"] or ("quick",)
        asked["replicates"] = asked["replicates"] or FIRST_REPLICATES
    if only_list:
        _list(request_of(**asked), asked["replicates"])
        return
    report, paths, samples = _judge(
        request_of(**asked),
        out or Path(OWN_RUN if asked["system"] else LAST_RUN),
        dask=dask,
        fresh=fresh,
        has_page=out is not None,
        has_table=not first_look,
    )
    _show(report, paths, samples, first_look)


def _first_look() -> dict[str, str]:
    """What each paper's first look says, by the claims' ids."""
    from moe_theory.core.papers import all_papers

    return {claim: words for paper in all_papers().values() for claim, words in paper.first_look.items()}


def _show(report: "Report", paths: list[Path], samples: list[str], first_look: Mapping[str, str]) -> None:
    from moe_theory.report import comparison, verdicts

    if first_look:
        show_document(verdicts.first_look_document(report, paths, first_look))
    elif report.own_system:
        show_document(comparison.comparison(report, paths=paths))
    else:
        show_document(verdicts.verdicts_document(report, paths, samples))


def seconds_of(text: str) -> float:
    number, unit = (text[:-1], text[-1]) if text[-1:] in _UNITS else (text, "s")
    try:
        return float(number) * _UNITS[unit]
    except ValueError:
        raise InvalidValueError(
            f"budget={text!r} is not a time. Write it as 90s, 10m or 1h.", argument="budget"
        ) from None


def request_of(
    patterns: tuple[str, ...],
    readings: tuple[str, ...],
    settings: tuple[str, ...],
    replicates: int | None,
    budget: float | None,
    seed: int,
    error: float | None,
    module: Path | None,
    system: str | None,
) -> "Request":
    from moe_theory.verification.registry import load_claims
    from moe_theory.verification.request import check_request
    from moe_theory.verification.settings import parsed

    own = [] if module is None else load_claims(module)
    source = None if module is None else str(module)
    wanted = patterns or tuple(own) or ("*",)
    given = (readings or None, replicates, seed, error, budget, source, parsed(settings))
    return check_request(wanted, *given, system)


def _list(request: "Request", replicates: int | None) -> None:
    from moe_theory.plot.document import Document
    from moe_theory.plot.markdown import paragraphs

    rows = [
        {
            "claim": blank.claim,
            "reading": blank.reading,
            "also": blank.also,
            "experiment": study.experiment.name,
            "replicates": replicates or study.experiment.replicates,
        }
        for study in request.studies
        for blank in study.blanks
    ]
    line = "{claim} under {readings}: {replicates} replicates of {experiment}"
    lines = [line.format(readings=" and ".join([row["reading"], *row["also"]]), **row) for row in rows]
    show_document(Document(lambda: rows, lambda _: paragraphs(lines)))


def _judge(
    request: "Request", out: Path, *, dask: str | None, fresh: bool, has_page: bool, has_table: bool
) -> tuple["Report", list[Path], list[str]]:
    """Judge a request, and return the report, the paths that are written, and lines on the samples."""
    from moe_theory.report import pages, verdicts
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder
    from moe_theory.verification.archive import Archive, clear_samples
    from moe_theory.verification.session import SAMPLES, carry_out

    if request.budget is not None:
        start_time = click.get_current_context().obj or time.monotonic()
        page_seconds = min(PAGE_SECONDS * request.num_verdicts, PAGE_SHARE * request.budget) if has_page else 0.0
        reserve = END_SECONDS + page_seconds + time.monotonic() - start_time
        request = dataclasses.replace(request, reserve=min(reserve, request.budget))
    pool = None
    if dask is not None:
        from moe_theory.verification.remote import remote_pool

        pool = remote_pool(request.studies, dask=dask)
    folder = prepare_folder(out, (pages.NUMBERS, *(pages.PAGE_NAMES if has_page else ())))
    keep_programs()
    if fresh:
        clear_samples(folder / SAMPLES)
    archive = Archive(folder / SAMPLES)
    about: Any = {"pool": pool, "command": command_line()}
    verdicts_so_far: list[Verdict] = []

    def table(console: "Console") -> "RenderableType":
        return verdicts.live_table(verdicts_so_far, console.width, console.height - 2)

    try:
        with terminal_progress(
            open_console(),
            header=table if has_table else None,
            is_timed=False,
        ) as progress:

            def add(verdict: "Verdict") -> None:
                verdicts_so_far.append(verdict)
                progress.at(f"{len(verdicts_so_far)} of {request.num_verdicts} decided")

            progress.at(f"0 of {request.num_verdicts} decided")
            report = carry_out(request, archive=archive, progress=progress, on_verdict=add, **about)
    except KeyboardInterrupt:
        stop("interrupted; the samples taken so far are saved: the same command resumes from them")
    paths = pages.write_report(report, folder, pages.NUMBERS) if has_page else pages.write_numbers(report, folder)
    lines = [*damaged_lines(archive.damaged), verdicts.samples_line(archive.written, archive.found)]
    return report, paths, lines
