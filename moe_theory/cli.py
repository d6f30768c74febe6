"""The command line. Heavy imports wait until a command runs, so that `--help` answers at once."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from moe_theory import commands
from moe_theory.options import Appended, Bench, Bound, Deep, Merge, Names


@dataclasses.dataclass(frozen=True)
class Claims:
    """List the claims: id, source, kind, statement. Example: moe-theory claims 'continual.theorem-*'"""

    patterns: tyro.conf.Positional[Names] = ("*",)
    """Ids, globs, or a paper's name."""
    json: bool = False
    """Print JSON instead of a table."""

    def run(self) -> None:
        commands.list_claims(self.patterns, self.json)


@dataclasses.dataclass(frozen=True)
class Verify:
    """Judge claims by Monte Carlo. Example: moe-theory verify continual --reading weak-signal --out runs/weak

    Replicates double until each claim is decided. Prints a table that grows with each verdict, and writes a report:
    report.html, report.md and verdicts.json. Running again goes on from the samples in OUT. Exits 0 when it ran,
    whatever the verdicts."""

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
            commands.run_self_test(self)
        elif self.list:
            commands.list_verdicts(self)
        else:
            commands.run_verify(self)


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
        commands.run_explore(self)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Run a grid of settings, many replicates each, from a specification. Example: moe-theory sweep grid.toml --dry-run

    Finished chunks are kept in OUT as they come: running again, after an interrupt, a crash or a change of the
    specification, computes only what is missing, and the numbers never depend on how it ran. Several processes may
    share one OUT. `moe-theory sweep --example` prints a specification to begin with; `moe-theory sweep show OUT` shows
    what there is."""

    specification: Annotated[tyro.conf.Positional[Path | None], tyro.conf.arg(metavar="GRID.toml")] = None
    """The specification."""
    out: Path | None = None
    """Folder for the chunks and the results; runs/NAME of the specification unless given."""
    dry_run: bool = False
    """Only say what it would take: cells, chunks, compilations, memory, disk, time."""
    devices: int | None = None
    """Devices of this machine that compute at once; all there are (of a CPU: its cores) unless given."""
    dask: str | None = None
    """Compute on a Dask cluster instead: a scheduler's address such as tcp://host:8786, or local:N for N processes."""
    example: bool = False
    """Print a commented specification."""
    json: bool = False
    """Print JSON instead of the table, or of what a dry run says."""

    def run(self) -> None:
        if self.example:
            commands.print_example()
        elif self.dry_run:
            commands.estimate_sweep(self)
        else:
            commands.run_sweep(self)


@dataclasses.dataclass(frozen=True)
class ShowSweep:
    """Show what a sweep's folder holds: a table and a quick look. Example: moe-theory sweep show runs/grid

    Also while the sweep is still running, or was interrupted."""

    folder: tyro.conf.Positional[Path]
    """The folder of a sweep."""
    to: Path | None = None
    """Also write the labelled results there, as .nc, .zarr or .parquet."""
    picture: Path | None = None
    """Where to draw the quick look, .svg or .png; look.svg in the folder unless given."""
    json: bool = False
    """Print JSON instead of the table."""

    def run(self) -> None:
        commands.show_sweep(self)


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
        commands.make_figures(self)


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
        commands.make_report(self)


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of `moe-theory`: runs a command; a user's mistake is one line on standard error and exit code 2."""
    try:
        parse(sys.argv[1:] if arguments is None else arguments).run()
    except KeyboardInterrupt:
        commands.stop("interrupted; what was not finished is not written")
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone; there is nobody to tell
    except ValueError as failure:
        from moe_theory.core.errors import MoeTheoryError

        if not isinstance(failure, MoeTheoryError):
            raise
        commands.refuse(failure)


def parse(arguments: Sequence[str]) -> Any:
    """The command that the arguments name; exits with code 2 and a help text where they name none."""
    if list(arguments[:2]) == ["sweep", "show"]:
        return tyro.cli(ShowSweep, prog="moe-theory sweep show", args=arguments[2:] or ["--help"])
    return tyro.extras.subcommand_cli_from_dict(
        {
            "claims": Claims,
            "verify": Verify,
            "explore": Explore,
            "sweep": Sweep,
            "figures": Figures,
            "report": Report,
            "bench": Bench,
            "bound": Bound,
            "merge": Merge,
            "deep": Deep,
        },
        prog="moe-theory",
        description="Executable theory of Mixture-of-Experts: numbered statements as claims with verdicts.",
        args=arguments or ["--help"],
        config=(tyro.conf.FlagCreatePairsOff,),
    )


if __name__ == "__main__":
    main()
