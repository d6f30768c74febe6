"""Options of the commands that have a module of their own, which is imported when they run."""

import dataclasses
from pathlib import Path
from typing import Annotated

import tyro

Names = tuple[str, ...]
Appended = tyro.conf.UseAppendAction[Names]  # an option that may be given again and again
Count = Annotated[str, tyro.conf.arg(metavar="INT")]  # also as 1e6


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
    """Print JSON: schema, setting, known (what follows from it) and bounds, each with value, status and the like."""

    def run(self) -> None:
        from moe_theory import bound_command

        bound_command.run_bound(self)


@dataclasses.dataclass(frozen=True)
class Merge:
    """Merge experts slot by slot and watch what it earns. Example: moe-theory merge --slots 20

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
    """Print JSON: policy, mean_reward, equal_weights (what these earn), slots (a row each) and files."""

    def run(self) -> None:
        from moe_theory import merge_command

        merge_command.run_merge(self)


@dataclasses.dataclass(frozen=True)
class Deep:
    """Run a paper's deep-network experiment. Example: moe-theory deep continual-mnist-small --replicates 4

    Without a preset, lists them. Those that end in -small run on embedded digits in minutes on two cores; the others
    read their data set from DIR, and nothing is downloaded. Each run is kept in OUT as it goes: running again goes on
    from the last checkpoints, and ends with the same numbers. Prints each cell's errors, what they differ by and the
    verdicts on the figure's claims; writes results.nc, summary.json, verdicts.json and deep.svg."""

    positional: Annotated[tyro.conf.Positional[str | None], tyro.conf.arg(metavar="PRESET")] = None
    """The preset, also by --preset."""
    preset: Annotated[str | None, tyro.conf.arg(metavar="NAME")] = None
    """The preset, by the paper and the data set of its figure, such as continual-mnist-small."""
    data: Annotated[Path | None, tyro.conf.arg(metavar="DIR")] = None
    """Folder of the data set's published files."""
    replicates: Annotated[int | None, tyro.conf.arg(aliases=["--seeds"])] = None
    """Seeds that each cell is run with; 8, and 32 on embedded digits, unless given."""
    reading: str = "balanced"
    """Where the papers are silent: balanced, multi-class, all-positive, squared-loss, uncentred, per-parameter or
    uniform-delay."""
    settings: Annotated[Appended, tyro.conf.arg(name="set", metavar="NAME=VALUE")] = ()
    """A parameter set before the preset's own choice, such as gate_scale=5; may be given again for another."""
    seed: int = 0
    """Root of all random numbers."""
    checkpoint_every: int = 10
    """Rounds from one checkpoint to the next; another number is another run."""
    out: Path | None = None
    """Folder for checkpoints and results; runs/deep/PRESET unless given."""
    fresh: bool = False
    """Forget all runs of the preset that OUT holds, of other seeds and settings too."""
    list: bool = False
    """Only list the presets."""
    json: bool = False
    """Print JSON: what summary.json holds, with schema, preset, where, cells, verdicts and files; without a preset a
    list of the presets."""

    def run(self) -> None:
        from moe_theory import deep_command

        deep_command.run_deep(self)


@dataclasses.dataclass(frozen=True)
class Cite:
    """Cite the statements that a run bears on, with BibTeX. Example: moe-theory cite runs/verify

    RUN is a folder that `verify`, `report`, `explore`, `sweep`, `deep` or `merge` wrote, a file of `figures`, or a
    claim's id, a glob or a paper's name. Prints the statements by paper with what the run says of each, a paragraph of
    LaTeX and the entries that it cites, this software's among them."""

    source: Annotated[tyro.conf.Positional[str], tyro.conf.arg(metavar="RUN")]
    """A folder, a file of a figure, or claims."""
    bibtex: bool = False
    """Print the BibTeX entries and nothing else."""
    json: bool = False
    """Print JSON: schema, run, note, version, papers (each with key, title, statements and their verdicts), latex,
    bibtex."""

    def run(self) -> None:
        from moe_theory import cite_command

        cite_command.run_cite(self)


@dataclasses.dataclass(frozen=True)
class Tour:
    """A guided tour: from one trajectory to a verdict. Example: moe-theory tour --steps 1-4

    Shows ten steps of words, code and what comes of them, one after another, in a minute or two. Writes into OUT the
    script (tour.py, for you to change; also a notebook), the pictures and one page of everything, tour.html."""

    steps: Annotated[str | None, tyro.conf.arg(metavar="A-B")] = None
    """Steps to show, such as 4 or 1-4; what they need of earlier ones is computed first. All unless given."""
    out: Path = Path("runs/tour")
    """Folder for the script, the pictures and the page."""
    script: bool = False
    """Only print the script."""
    json: bool = False
    """Print JSON: a list of the steps, each with step (its number), title, seconds, pictures, numbers and output."""

    def run(self) -> None:
        from moe_theory import tour_command

        tour_command.run_tour(self)
