"""The command line. Heavy imports wait until a command runs, so that `--help` answers at once."""

import dataclasses
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from moe_theory import __version__, arguments, commands, completion, welcome
from moe_theory.core.errors import InvalidArgumentsError, MoeTheoryError, shortened, unknown_name
from moe_theory.options import Appended, Bound, Cite, Deep, Merge, Names, Tour


@dataclasses.dataclass(frozen=True)
class Claims:
    """List the claims: id, source, kind, statement. Example: moe-theory claims 'continual.theorem-*'"""

    patterns: Annotated[tyro.conf.Positional[Names], tyro.conf.arg(metavar="[CLAIM...]")] = ("*",)
    """Ids, globs, or a paper's name."""
    json: bool = False
    """Print JSON: a list of the claims, each with id, paper, where, statement, kind, margin and replaced_by."""

    def run(self) -> None:
        commands.list_claims(self.patterns, self.json)


@dataclasses.dataclass(frozen=True)
class Verify:
    """Judge claims by Monte Carlo. Example: moe-theory verify continual.lemma-4 --reading unit-signal

    Replicates double until each claim is decided. Prints a table that grows with each verdict, and writes a report:
    report.html, report.md and verdicts.json. Running again goes on from the samples in OUT. Exits 0 when it ran,
    whatever the verdicts."""

    patterns: Annotated[tyro.conf.Positional[Names], tyro.conf.arg(metavar="[CLAIM...]")] = ()
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
    """Print JSON: what verdicts.json holds, with schema, summary (verdicts by status), command, seed, error, versions
    and verdicts; with --list a list of claim, reading, experiment and replicates; with --self-test passed, seed,
    tolerance, num_claims and rows."""

    def run(self) -> None:
        if self.self_test:
            commands.run_self_test(self)
        elif self.list:
            commands.list_verdicts(self)
        else:
            commands.run_verify(self)


@dataclasses.dataclass(frozen=True)
class Explore:
    """Map where a claim holds. Example: moe-theory explore continual.lemma-4 --over noise_scale=0.05..0.2 --points 2

    Judges the claim on a coarse grid over one or two parameters, then between neighbours whose statuses differ. Writes
    the map as a picture, its numbers as CSV and all verdicts as JSON into OUT."""

    claim: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="CLAIM")]
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
    """Print JSON: what CLAIM.json in OUT holds, with schema, claim, axes, summary and points, each with its place (at)
    and its verdict."""

    def run(self) -> None:
        commands.run_explore(self)


@dataclasses.dataclass(frozen=True)
class Sweep:
    """Run a grid of settings, many replicates each, from a specification.

    Example: moe-theory sweep --example > grid.toml
    Example: moe-theory sweep grid.toml --dry-run
    Example: moe-theory sweep grid.toml

    Finished chunks are kept in OUT as they come: running again, after an interrupt, a crash or a change of the
    specification, computes only what is missing, and the numbers never depend on how it ran. Several processes may
    share one OUT."""

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
    """Print JSON: as `sweep show`; with --dry-run cells, shape, replicates, chunks, bytes, seconds and the like."""

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

    folder: Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="FOLDER")]
    """The folder of a sweep."""
    to: Path | None = None
    """Also write the labelled results there, as .nc, .zarr or .parquet."""
    picture: Path | None = None
    """Where to draw the quick look, .svg or .png; look.svg in the folder unless given."""
    json: bool = False
    """Print JSON: schema, specification, digest, coverage, round and cells, each with settings, reading and the last
    round's statistics."""

    def run(self) -> None:
        commands.show_sweep(self)


@dataclasses.dataclass(frozen=True)
class Figures:
    """Regenerate a paper's figures with theory drawn over empirics.

    Example: moe-theory figures continual figure-8 --replicates 8

    Writes one SVG a figure and the numbers behind it as CSV into OUT/PAPER/."""

    paper: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="PAPER")] = "continual"
    """The paper."""
    names: Annotated[tyro.conf.Positional[Names], tyro.conf.arg(metavar="[NAME...]")] = ()
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
    """Print JSON: a list of the paths written, or with --list the figures' titles by name."""

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
    """Print JSON: what report.json holds, in the form of a verdicts.json."""

    def run(self) -> None:
        commands.make_report(self)


@dataclasses.dataclass(frozen=True)
class Completion:
    """Print a script with which your shell completes commands and options. Example: moe-theory completion bash

    To have it in every new shell, end the shell's start-up file with the line

      source <(moe-theory completion bash)     in ~/.bashrc
      source <(moe-theory completion zsh)      in ~/.zshrc, after compinit
      moe-theory completion fish | source      in ~/.config/fish/config.fish
    """

    shell: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="SHELL")]
    """bash, zsh or fish."""

    def run(self) -> None:
        flags = {name: arguments.flags_of(kind) for name, kind in COMMANDS.items()}
        print(completion.script(self.shell, flags, titles()), end="")  # noqa: T201


@dataclasses.dataclass(frozen=True)
class Text:
    """What needs no command: a page that is printed."""

    text: str

    def run(self) -> None:
        print(self.text)  # noqa: T201


GROUPS: dict[str, dict[str, type]] = {
    "See what there is": {"tour": Tour, "claims": Claims, "figures": Figures},
    "Judge claims": {"verify": Verify, "explore": Explore, "report": Report, "cite": Cite},
    "Run things of your own": {
        "sweep": Sweep,
        "sweep show": ShowSweep,
        "bound": Bound,
        "merge": Merge,
        "deep": Deep,
    },
    "This machine": {"completion": Completion},
}
COMMANDS = {name: kind for group in GROUPS.values() for name, kind in group.items()}


def main(given: Sequence[str] | None = None) -> None:
    """Entry point of `moe-theory`: runs a command; a user's mistake is one line on standard error and exit code 2."""
    try:
        parse(sys.argv[1:] if given is None else given).run()
    except KeyboardInterrupt:
        commands.stop("interrupted; what was not finished is not written")
    except BrokenPipeError:
        sys.stderr.close()  # the reader of a pipe has gone; there is nobody to tell
    except MoeTheoryError as failure:
        commands.refuse(failure)


def parse(given: Sequence[str]) -> Any:
    """The command that the arguments name, with its options; exits with code 0 where they ask for its help.

    Raises: InvalidArgumentsError or UnknownNameError for what is no command, or not what it takes.
    """
    words = list(given)
    if not words:
        return Text(welcome.next_steps())
    if words[0] in ("-h", "--help"):
        return Text(welcome.overview({group: titles(kinds) for group, kinds in GROUPS.items()}))
    if words[0] == "--version":
        return Text(f"moe-theory {__version__}")
    if words[0].startswith("-"):
        near = "--version" if words[0].startswith("--v") else "--help"
        raise InvalidArgumentsError(
            f"moe-theory has no option {shortened(words[0])}. Did you mean {near}? Options of a command come after its "
            "name."
        )
    length = next((length for length in (2, 1) if " ".join(words[:length]) in COMMANDS), 0)
    if not length:
        raise unknown_name("command", words[0], COMMANDS)
    name = " ".join(words[:length])
    return arguments.read(COMMANDS[name], f"moe-theory {name}", words[length:])


def titles(kinds: Mapping[str, type] | None = None) -> dict[str, str]:
    """What the commands do, each in a sentence, by name."""
    return {name: arguments.title_of(kind) for name, kind in (COMMANDS if kinds is None else kinds).items()}


if __name__ == "__main__":
    main()
