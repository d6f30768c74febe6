"""The command line. Heavy imports wait until a command runs, so that `--help` answers at once."""

import dataclasses
import json
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, NoReturn

import tyro
from rich.console import Console

FAILED = 1
BAD_INPUT = 2
INTERRUPTED = 130
PAGE_SECONDS, PAGE_SHARE = 0.06, 0.25  # of a budget, for the report: seconds a verdict, and what it is worth at most
_LOG_WIDTH = 160  # columns of a log or a pipe

Names = tuple[str, ...]
Appended = tyro.conf.UseAppendAction[Names]  # an option that may be given again and again


@dataclasses.dataclass(frozen=True)
class Claims:
    """List the claims: id, source, kind, statement. Example: moe-theory claims 'continual.theorem-*'"""

    patterns: tyro.conf.Positional[Names] = ("*",)
    """Ids, globs, or a paper's name."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        _list_claims(self.patterns, self.json)


@dataclasses.dataclass(frozen=True)
class Verify:
    """Judge claims by Monte Carlo. Example: moe-theory verify continual --reading weak-signal --out runs/weak

    Replicates double until each claim is decided. Prints a table that grows with each verdict, and writes a report:
    report.html, report.md, verdicts.json and a picture of predictions and observations. Running again goes on from the
    samples in OUT. Exits 0 when it ran, whatever the verdicts."""

    patterns: tyro.conf.Positional[Names] = ()
    """Ids, globs such as 'continual.theorem-*', or a paper's name; all (with --module: the module's) unless given."""
    reading: Annotated[Names, tyro.conf.arg(metavar="NAME...", aliases=["--readings"])] = ()
    """Readings of the paper, 'all', or 'quick' for a first look; each paper's defaults unless given."""
    settings: Annotated[Appended, tyro.conf.arg(name="set", metavar="NAME=VALUE")] = ()
    """A parameter set beside every reading's own choices, such as signal_scale=5; may be given again for another."""
    replicates: int | None = None
    """Replicates of every experiment at most; each experiment's own number (with --budget: any) unless given."""
    budget: str | None = None
    """Time to spend, such as 90s, 10m or 1h; what is not decided by then stays INCONCLUSIVE."""
    seed: int = 0
    """Root of all random numbers."""
    error: float = 0.01
    """Probability that any verdict of this report is false, split evenly over them (asymptotic where intervals are)."""
    module: Path | None = None
    """A Python file that declares claims of your own."""
    out: Path = Path("runs/verify")
    """Folder for the report, and for the samples to go on from."""
    fresh: bool = False
    """Take all samples anew."""
    list: bool = False
    """Only list what would be judged."""
    self_test: bool = False
    """Judge planted claims, true and false, instead: measured errors and power; exits 1 if they are not as declared."""
    json: bool = False
    """Print the JSON document instead of the table."""

    def run(self) -> None:
        if self.self_test:
            _self_test(self)
        elif self.list:
            _list_verdicts(self)
        else:
            _verify(self)


@dataclasses.dataclass(frozen=True)
class Explore:
    """Map where a claim holds. Example: moe-theory explore continual.lemma-4 --over signal_scale=0.5..20

    Judges the claim on a coarse grid over one or two parameters, then between neighbours whose statuses differ. Writes
    the map as a picture, its numbers as CSV and all verdicts as JSON into OUT."""

    claim: tyro.conf.Positional[str]
    """The claim's id."""
    over: Annotated[Appended, tyro.conf.arg(metavar="NAME=LOW..HIGH")] = ()
    """An axis, such as signal_scale=0.5..20 or num_clusters=1,2,3; given again, a second one."""
    reading: str | None = None
    """The reading that decides everything else; the paper's first default unless given."""
    points: int = 5
    """Points of the coarse grid on each axis that is a range."""
    refine: int = 2
    """How often neighbouring points with different statuses are halved."""
    replicates: int | None = None
    """Replicates of every point at most; the experiment's own number unless given."""
    seed: int = 0
    """Root of all random numbers."""
    error: float = 0.01
    """Probability that any status of the map is wrong, split evenly over all points there can be."""
    module: Path | None = None
    """A Python file that declares claims of your own."""
    out: Path = Path("runs/explore")
    """Folder for the picture, the numbers and the verdicts."""
    json: bool = False
    """Print the JSON document instead of the summary."""

    def run(self) -> None:
        _explore(self)


@dataclasses.dataclass(frozen=True)
class Figures:
    """Regenerate a paper's figures with theory drawn over empirics. Example: moe-theory figures continual figure-2

    Writes one SVG a figure and the numbers behind it as CSV into OUT/PAPER/."""

    paper: tyro.conf.Positional[str] = "continual"
    """The paper."""
    names: tyro.conf.Positional[Names] = ()
    """Figures; all of the paper's unless given."""
    reading: str | None = None
    """The reading to draw under; the paper's first default unless given."""
    replicates: int | None = None
    """Replicates of every cell; each figure's own number unless given."""
    seed: int = 0
    """Root of all random numbers."""
    out: Path = Path("figures")
    """Folder that the paper's folder of figures goes into."""
    list: bool = False
    """Only list the figures there are."""
    json: bool = False
    """Print the paths (or with --list the figures) as JSON."""

    def run(self) -> None:
        _figures(self)


@dataclasses.dataclass(frozen=True)
class Report:
    """Make one page of what `verify` wrote, that opens anywhere. Example: moe-theory report runs/verify

    Writes report.html, report.md and report.json, which say the same. Several folders become one report: a later
    verdict on a claim under a reading replaces an earlier one, and their errors add up."""

    folders: tyro.conf.Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="DIR...")]]
    """Folders that hold a verdicts.json, or whose subfolders do."""
    out: Path | None = None
    """Folder for the report; the first DIR unless given."""
    json: bool = False
    """Print the report as JSON instead of the paths."""

    def run(self) -> None:
        _report(self)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `moe-theory`: runs a command; a user's mistake is one line on standard error and exit code 2."""
    try:
        parse(sys.argv[1:] if arguments is None else arguments).run()
    except KeyboardInterrupt:
        _stop("interrupted; what was not finished is not written")
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone; there is nobody to tell
    except ValueError as failure:
        from moe_theory.core.errors import MoeTheoryError

        if not isinstance(failure, MoeTheoryError):
            raise
        _refuse(failure)


def parse(arguments: Sequence[str]) -> Any:
    """The command that the arguments name; exits with code 2 and a help text where they name none."""
    return tyro.extras.subcommand_cli_from_dict(
        {"claims": Claims, "verify": Verify, "explore": Explore, "figures": Figures, "report": Report},
        prog="moe-theory",
        description="Executable theory of Mixture-of-Experts: numbered statements as claims with verdicts.",
        args=arguments or ["--help"],
        config=(tyro.conf.FlagCreatePairsOff,),
    )


def _stop(reason: str) -> NoReturn:
    print(f"moe-theory: {reason}", file=sys.stderr)  # noqa: T201
    raise SystemExit(INTERRUPTED) from None


def _refuse(failure: Exception) -> NoReturn:
    print(f"moe-theory: {failure}", file=sys.stderr)  # noqa: T201
    raise SystemExit(BAD_INPUT)


def _console(to_stderr: bool = False) -> Console:
    """A console that, where it is no terminal, is wide enough for the tables."""
    console = Console(stderr=to_stderr)
    return console if console.is_terminal else Console(stderr=to_stderr, width=_LOG_WIDTH)


def _print_json(document: Any) -> None:
    print(json.dumps(document, indent=2))  # noqa: T201


def _list_claims(patterns: Names, as_json: bool) -> None:
    from moe_theory.report import verdicts
    from moe_theory.verify import select_claims

    claims = select_claims(patterns or ("*",))
    if as_json:
        fields = ("id", "paper", "where", "statement", "kind", "margin", "replaced_by")
        _print_json([{field: getattr(claim, field) for field in fields} for claim in claims])
    else:
        _console().print(verdicts.claims_table(claims))


def _request(options: Verify) -> Any:
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
        None if options.budget is None else _seconds(options.budget),
        None if options.module is None else str(options.module),
        parsed(options.settings),
    )


def _seconds(text: str) -> float:
    """A time such as 90s, 10m, 1.5h, or a number of seconds."""
    from moe_theory.core.errors import InvalidRunError

    units = {"s": 1, "m": 60, "h": 3600}
    number, unit = (text[:-1], text[-1]) if text[-1:] in units else (text, "s")
    try:
        return float(number) * units[unit]
    except ValueError:
        raise InvalidRunError(f"budget={text!r} is no time: write it as 90s, 10m or 1h. Mend budget.") from None


def _list_verdicts(options: Verify) -> None:
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
        _print_json(rows)
    else:
        for row in rows:
            line = f"{row['claim']} under {row['reading']}: {row['replicates']} replicates of {row['experiment']}"
            _console().print(line, highlight=False, soft_wrap=True)


def _verify(options: Verify) -> None:
    from moe_theory.report import pages, verdicts
    from moe_theory.report.closing import closing_lines
    from moe_theory.report.output import prepare_folder
    from moe_theory.sweep import terminal_progress
    from moe_theory.verify.archive import Archive
    from moe_theory.verify.session import carry_out

    request = _request(options)
    if request.budget is not None:
        reserve = min(PAGE_SECONDS * request.num_verdicts, PAGE_SHARE * request.budget)
        request = dataclasses.replace(request, reserve=reserve)
    folder = prepare_folder(options.out, (pages.NUMBERS, *pages.PAGE_NAMES))
    archive = Archive(folder / "samples")
    if options.fresh:
        archive.clear()
    console = _console(to_stderr=options.json)
    judged: list = []
    try:
        with terminal_progress(
            console, header=lambda console: verdicts.live_table(judged, console.width, console.height - 2)
        ) as progress:
            report = carry_out(
                request, archive=archive, progress=progress, on_verdict=judged.append, command=_command_line()
            )
    except KeyboardInterrupt:
        _stop("interrupted; the samples taken so far are kept: the same command goes on from them")
    numbers = pages.write_numbers(report, folder)
    page = pages.write_pages(report, folder)[0]
    if options.json:
        print(pages.to_json(report), end="")  # noqa: T201
        return
    console.print(verdicts.live_table(report.verdicts, console.width))
    for line in (*closing_lines(report), f"numbers: {numbers}", f"report: {page}"):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def _explore(options: Explore) -> None:
    from moe_theory.report import exploration
    from moe_theory.report.output import prepare_folder
    from moe_theory.sweep import terminal_progress
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
    console = _console(to_stderr=options.json)
    judged: list = []
    with terminal_progress(console, header=lambda _: exploration.live_counts(judged, plan.most_points)) as progress:
        found = explore.carry_out_search(plan, progress=progress, on_point=judged.append, command=_command_line())
    paths = exploration.write_exploration(found, folder)
    if options.json:
        _print_json(found.to_json())
        return
    for line in [*found.summary(), *found.failures(), found.assurance(), *(str(path) for path in paths)]:
        console.print(line, highlight=False, soft_wrap=True)


def _self_test(options: Verify) -> None:
    import os

    from moe_theory.core.random import root_key
    from moe_theory.report import selftest
    from moe_theory.report.output import prepare_folder, write_text
    from moe_theory.sweep import terminal_progress
    from moe_theory.verify.selftest import self_test

    root_key(options.seed)
    numbers = "self-test.json"
    folder = prepare_folder(options.out, (numbers, selftest.PICTURE, selftest.NUMBERS))
    console = _console(to_stderr=options.json)
    with terminal_progress(console) as progress:
        result = self_test(seed=options.seed, workers=os.cpu_count() or 1, progress=progress)
    write_text(folder / numbers, json.dumps(result.to_json(), indent=2) + "\n")
    paths = [folder / numbers, *selftest.write_picture(result, folder)]
    if options.json:
        _print_json(result.to_json())
    else:
        console.print(selftest.table(result.rows))
        for line in (selftest.closing_line(result), *map(str, paths)):
            console.print(line, highlight=False, soft_wrap=True, markup=False)
    if not result.passed:
        raise SystemExit(FAILED)


def _figures(options: Figures) -> None:
    from moe_theory.report import plots
    from moe_theory.sweep import terminal_progress

    specifications = plots.figures_of(options.paper)
    if options.list:
        titles = {name: specification.title for name, specification in specifications.items()}
        if options.json:
            _print_json(titles)
        else:
            for name, title in titles.items():
                _console().print(f"{name}: {title}", highlight=False)
        return
    console = _console(to_stderr=options.json)
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
        _print_json([str(path) for path in paths])
    else:
        for path in paths:
            console.print(str(path), highlight=False, soft_wrap=True)


def _report(options: Report) -> None:
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
    console = _console()
    for line in (summary(report.verdicts), *map(str, paths)):
        console.print(line, highlight=False, soft_wrap=True, markup=False)


def _command_line() -> str:
    return shlex.join(["moe-theory", *sys.argv[1:]])


if __name__ == "__main__":
    main()
