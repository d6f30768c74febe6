"""The command line. Heavy imports wait until a command runs, so that `--help` answers at once."""

import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import tyro

from moe_theory import commands

Names = tuple[str, ...]
Appended = tyro.conf.UseAppendAction[Names]  # an option that may be given again and again
Count = Annotated[str, tyro.conf.arg(metavar="INT")]  # also as 1e6


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


@dataclasses.dataclass(frozen=True)
class Bench:
    """Measure how fast this package is here. Example: moe-theory bench --quick

    Times the engine against other ways to run the same rounds (NumPy, PyTorch where it is installed, textbook JAX),
    over a grid of sizes, its scaling and its compile time, on one pinned core and on all. All of it takes about
    half an hour, --quick a minute or two. What was measured until an interrupt is kept."""

    system: Annotated[Names, tyro.conf.arg(metavar="NAME...", aliases=["--systems"])] = ()
    """Systems; all that are registered unless given."""
    quick: bool = False
    """Only against other ways, at one setting a system."""
    cores: str = "both"
    """What to measure on: one, all or both."""
    precision: str = "float32"
    """Of the runs: float32 or float64."""
    batch: Annotated[tuple[int, ...], tyro.conf.arg(metavar="INT...")] = ()
    """Replicates that run together; several sizes that are typical unless given."""
    compile: bool = True
    """Whether to time compiling the eight cells of Fig. 2, cold and kept."""
    accelerator: bool = False
    """Measure a batch of 100,000 on an accelerator instead."""
    out: Path | None = None
    """File for the measurements; runs/bench/TIME.json unless given."""
    compare: Annotated[Path | None, tyro.conf.arg(metavar="EARLIER.json")] = None
    """Measurements of an earlier run to compare with."""
    report: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder for a table in Markdown, figures and the measurements."""
    source: Annotated[Path | None, tyro.conf.arg(name="from", metavar="FILE.json")] = None
    """Measurements of an earlier run to show instead of measuring."""
    json: bool = False
    """Print the measurements as JSON instead of tables."""

    def run(self) -> None:
        from moe_theory import bench_command

        bench_command.run_bench(self)


@dataclasses.dataclass(frozen=True)
class Bound:
    """Bounds on a sparse MoE's generalization error. Example: moe-theory bound --experts 8 --active 1 --samples 1000000

    Of each bound: its value, whether it informs (the loss is in [0, 1], so one of 1 or more says nothing), from how
    many samples on, and whether it holds or is refuted. Experts and router are linear unless told otherwise."""

    experts: Count = "8"
    """T, experts there are."""
    active: Count = "2"
    """k, experts that are active for an input."""
    samples: Count = "60000"
    """m, samples to learn from, such as 60000 or 1e6."""
    features: Count = "784"
    """d, entries of an input."""
    expert_norm: float = 1.0
    """B: |w| <= B for each linear expert; the Frobenius norm of each layer of expert networks."""
    router_norm: float = 1.0
    """W: |v| <= W for each row of a linear router."""
    feature_norm: float = 1.0
    """c: |x| <= c for each input."""
    lipschitz: float = 1.0
    """C, of the loss in the model's output; such as 0.5 for the ramp loss clip((1 - y f)/2, 0, 1)."""
    delta: float = 0.05
    """Probability with which each bound may fail."""
    threshold: float = 1.0
    """A bound informs below it."""
    router: Annotated[str | None, tyro.conf.arg(metavar="CLASS")] = None
    """linear, network, fixed (chosen before the samples are seen) or free (any function); else as options say."""
    dimension: Annotated[str | None, tyro.conf.arg(metavar="READING")] = None
    """What d_N is the dimension of: masks (Definition 4) or router (Theorem 1); both unless given."""
    natarajan: float | None = None
    """Your own d_N; without --router nothing else is taken to be known of the router."""
    rademacher: Annotated[str | None, tyro.conf.arg(metavar="R")] = None
    """Your own R_m(H), of experts of any kind: a number, measured at this m, or '2.5/sqrt(m)' where that bounds it on
    any m inputs, however they were picked."""
    expert_widths: Annotated[tuple[int, ...], tyro.conf.arg(metavar="INT...", aliases=["--expert-width"])] = ()
    """Hidden units of expert networks (ReLU, no biases), layer by layer."""
    router_widths: Annotated[tuple[int, ...], tyro.conf.arg(metavar="INT...", aliases=["--router-width"])] = ()
    """Hidden units of a router network (ReLU, no biases), layer by layer."""
    operator_norms: Annotated[tuple[float, ...], tyro.conf.arg(metavar="FLOAT...")] = ()
    """Largest spectral norm of each layer of expert networks (K_i of Lemma 3); --expert-norm unless given."""
    row_norms: Annotated[tuple[float, ...], tyro.conf.arg(metavar="FLOAT...")] = ()
    """Largest sum of the rows' norms of each layer (b_i of Lemma 3); what widths and norms allow unless given."""
    picture: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where to draw the bounds over m, .svg or .png."""
    json: bool = False
    """Print JSON instead of the table."""

    def run(self) -> None:
        from moe_theory import bound_command

        bound_command.run_bound(self)


@dataclasses.dataclass(frozen=True)
class Merge:
    """Merge experts slot by slot and watch what it earns. Example: moe-theory merge --slots 300 --drift 1

    Without options the stream is this package's own: a small transformer with 8 experts and 8 tasks on digits, trained
    on first use (about a minute). Writes slots.csv and merge.svg into OUT. For a checkpoint of your own, --stream is a
    Python file with `num_tasks`, `slots(seed)`, which yields slots, and `serve(experts, slot)`, which returns rewards
    in [0, 1] and counts of requests, one each a task; `experts` are the merged tensors by layer and name."""

    checkpoint: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """A safetensors file or, with a Python --stream, a folder of its shards; the testbed's own model unless given."""
    pattern: Annotated[str | None, tyro.conf.arg(metavar="NAMES")] = None
    """Names of the experts' tensors, such as 'model.layers.{layer}.mlp.experts.{expert}.{name}'."""
    stream: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Requests: a Python file (see above), or an .npz of inputs, labels, tasks and slots for a testbed model."""
    tasks: str = "digits"
    """The testbed's tasks: digits or sequences."""
    policy: str = "tanbr"
    """Who chooses the weights: tanbr, nucb, uniform, average, mix, best-expert or gradient."""
    reading: str = "effective-split"
    """How Tanbr splits and where its candidates are; see `moe-theory verify merging`."""
    monitor: str = "average"
    """How the task mix is estimated from the slots before: average or sketch."""
    slots: int = 200
    """Slots at most."""
    slot_size: int = 128
    """Requests of a slot of the testbed."""
    drift: float = 0.0
    """How far the testbed's task mix drifts: with 1, shares go up and down by a factor of up to e in 500 slots."""
    max_active: int | None = None
    """B, experts that a merge may use at most; all unless given."""
    seed: int = 0
    """Root of all random numbers."""
    write_merged: Annotated[Path | None, tyro.conf.arg(metavar="FILE")] = None
    """Where to write the checkpoint with its experts merged by the last slot's weights."""
    out: Path = Path("runs/merge")
    """Folder for the numbers and the picture."""
    json: bool = False
    """Print the JSON document instead of the table."""

    def run(self) -> None:
        from moe_theory import merge_command

        merge_command.run_merge(self)


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
        },
        prog="moe-theory",
        description="Executable theory of Mixture-of-Experts: numbered statements as claims with verdicts.",
        args=arguments or ["--help"],
        config=(tyro.conf.FlagCreatePairsOff,),
    )


if __name__ == "__main__":
    main()
