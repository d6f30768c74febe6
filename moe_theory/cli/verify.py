"""`moe-theory verify`."""

import dataclasses
import itertools
import re
import time
from collections.abc import Iterable
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
from moe_theory.cli.output import command_line, damaged_lines, open_console, show_document, stop, stop_at_once
from moe_theory.core.errors import InvalidValueError, UnknownNameError, unknown_name
from moe_theory.core.papers import paper_names

if TYPE_CHECKING:
    from moe_theory.verification.request import Request
    from moe_theory.verification.verdict import Report, Verdict

PAGE_SECONDS = 0.02  # seconds of a budget that are reserved for each verdict on the report's page
END_SECONDS = 2.0  # seconds of a budget that are reserved for writing verdicts
LARGEST_SHARE = 0.25  # of a budget that is reserved for both
FIRST_REPLICATES = 512  # replicate limit of a first look, which is `verify` without arguments
_UNITS = {"s": 1, "m": 60, "h": 3600}


@click.command(epilog=examples("moe-theory verify continual.lemma-4 --reading unit-signal"))
@click.argument("patterns", nargs=-1, metavar="[CLAIM]...")
@click.option(
    "--reading",
    "--readings",
    "readings",
    cls=Listed,
    metavar="NAME",
    help="A reading, 'all', or 'quick' for one reading per paper. Repeat the option, or separate readings by commas.",
    show_default="each paper's defaults",
)
@set_option("each reading's own choices, such as signal_scale=5")
@click.option(
    "--replicates",
    type=int,
    help="Replicate limit of every experiment.",
    show_default="each experiment's own, or none with --budget",
)
@click.option(
    "--budget",
    callback=lambda context, option, text: None if text is None else seconds_of(text),
    metavar="TIME",
    help="Time limit, such as 90s, 10m or 1h. Claims that are then undecided stay INCONCLUSIVE.",
)
@seed_option
@click.option(
    "--error",
    type=float,
    help="Probability that any verdict is false, split evenly over the verdicts.",
    show_default="0.01, of which each verdict has a fixed share that its paper declares",
)
@module_option
@system_option
@out_option(
    "Folder for pages, verdicts and samples.", default_words=f"{LAST_RUN}, or {OWN_RUN} for --system, without pages"
)
@cluster_option("Take samples")
@json_option(
    "the content of verdicts.json: schema, summary (verdicts by status), command, seed, error, versions and verdicts. "
    "With --system schema, system, command, seed, error, differ, statements (each with differs, printed, own and "
    "does_not_apply) and files."
)
def verify(out: Path | None, dask: str | None, **asked: Any) -> None:
    """Test claims by Monte Carlo simulation.

    CLAIM is an id, a glob such as 'continual.theorem-*', a statement, or a paper's name. Without CLAIM a few claims of
    each paper are tested, which takes a minute. '*' tests all, and so does --budget alone. With --module the module's
    claims are tested. The number of replicates doubles until each claim is decided. The command prints a table, and
    saves verdicts.json and the samples, so that the same command resumes. With --out it also writes a page,
    report.html. Proofs of your own paper run first.

    With --system the claims are tested on your own algorithm, next to the published results.
    """
    from moe_theory.core.papers import all_papers

    is_narrowed = any(asked[name] for name in ("patterns", "module", "system", "budget"))
    first_look: dict[str, str] = {}
    if not is_narrowed:
        for paper in all_papers().values():
            first_look |= paper.first_look
    if first_look:
        asked["patterns"] = tuple(first_look)
        asked["readings"] = asked["readings"] or ("quick",)
        asked["replicates"] = asked["replicates"] or FIRST_REPLICATES
    if not asked["module"]:
        _require_known(asked["patterns"])
    default_folder = OWN_RUN if asked["system"] else LAST_RUN
    folder = out or Path(default_folder)
    report, paths, samples = _judge(request_of(**asked), folder, dask=dask, has_page=out is not None)
    from moe_theory.report import comparison, verdicts

    if first_look:
        show_document(verdicts.first_look_document(report, paths, first_look))
    elif report.own_system:
        show_document(comparison.comparison(report, paths))
    else:
        show_document(verdicts.verdicts_document(report, paths, samples))


def _require_known(patterns: Iterable[str]) -> None:
    """Raise UnknownNameError for a name that no paper has, without an import of JAX or a paper."""
    from moe_theory.verification.catalog import statements

    for pattern in patterns:
        if not re.search(r"[*?:\[]", pattern):  # neither a glob nor PAPER:TIER
            try:
                statements(pattern)
            except UnknownNameError:
                every = statements()
                ids = itertools.chain.from_iterable(statement.roles for statement in every)
                names = [statement.name for statement in every]
                raise unknown_name("claim", pattern, [*ids, *names, *paper_names()]) from None


def seconds_of(text: str) -> float:
    with_unit = text if text[-1:] in _UNITS else f"{text}s"
    try:
        return float(with_unit[:-1]) * _UNITS[with_unit[-1]]
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
    from moe_theory.verification.settings import parse_settings

    module_claims = [] if module is None else load_claims(module)
    return check_request(
        patterns or tuple(module_claims) or ("*",),
        readings or None,
        replicates,
        seed=seed,
        error=error,
        budget=budget,
        module=module and str(module),
        settings=parse_settings(settings),
        system=system,
    )


def _judge(
    request: "Request", out: Path, *, dask: str | None, has_page: bool
) -> tuple["Report", list[Path], list[str]]:
    """Return the report, the paths of its files, and lines about the samples."""
    from moe_theory.report import pages
    from moe_theory.runs import terminal_progress
    from moe_theory.runs.compilation import keep_programs
    from moe_theory.runs.files import prepare_folder
    from moe_theory.runs.runner import has_abandoned
    from moe_theory.verification.archive import Archive
    from moe_theory.verification.session import SAMPLES, carry_out

    if request.budget is not None:
        now = time.monotonic()
        start_time = click.get_current_context().obj or now  # None without `main`
        writing = END_SECONDS
        if has_page:
            writing += PAGE_SECONDS * request.num_verdicts
        reserve = now - start_time + min(writing, LARGEST_SHARE * request.budget)
        request = dataclasses.replace(request, reserve=min(reserve, request.budget))
    pool = None
    if dask is not None:
        from moe_theory.verification.remote import remote_pool

        pool = remote_pool(request.studies, dask=dask)
    names = (pages.NUMBERS, pages.PAGE) if has_page else (pages.NUMBERS,)
    folder = prepare_folder(out, names)
    keep_programs()
    archive = Archive(folder / SAMPLES)
    num_decided = 0

    def count_verdict(_: "Verdict") -> None:
        nonlocal num_decided
        num_decided += 1
        progress.at(f"{num_decided} of {request.num_verdicts} decided")

    try:
        with terminal_progress(open_console(), is_timed=False) as progress:
            progress.at(f"0 of {request.num_verdicts} decided")
            report = carry_out(
                request, archive=archive, pool=pool, progress=progress, on_verdict=count_verdict, command=command_line()
            )
    except KeyboardInterrupt:
        exit_now = stop_at_once if has_abandoned() else stop  # abandoned calls may run on
        exit_now("interrupted. The samples so far are saved, and the same command resumes from them")
    paths = pages.write_report(report, folder, pages.NUMBERS) if has_page else pages.write_numbers(report, folder)
    num_reused = len(archive.read_keys - archive.written_keys)
    samples_line = f"samples: {len(archive.written_keys):,} computed, {num_reused:,} reused"
    return report, paths, [*damaged_lines(archive.damaged), samples_line]
