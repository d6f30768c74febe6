"""`moe-theory merge`."""

import contextlib
import functools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from moe_theory.cli.options import PATH, Listed, examples, json_option, out_option, seed_option
from moe_theory.cli.output import open_console, print_lines, show_document
from moe_theory.core.errors import InvalidRunError, InvalidStreamError, OutputError, shortened

if TYPE_CHECKING:
    from rich.console import Console

    from moe_theory.merging.online import Stream

ALL = "all"  # policies
EQUAL = "equal"  # weights
RECORDED = "recorded"  # streams
OF_STREAMS = {"streams", "policy", "tasks", "slots", "out", "json"}  # options that go with them
SLOTS, DIGITS = 200, "digits"  # unless told otherwise


@click.command(
    epilog=examples(
        "moe-theory merge --slots 20",
        "moe-theory merge --streams recorded --policy mine.py:Mine",
        "moe-theory merge --checkpoint DIR --weights equal --write-merged OTHER",
    )
)
@click.option(
    "--checkpoint",
    type=PATH,
    help="A safetensors file or, with --weights or a Python --stream, a folder of its shards.",
    show_default="the testbed's own model",
)
@click.option(
    "--weights",
    metavar="NUMBERS",
    help="Merge the experts of --checkpoint once, by weights such as 0.5,0.3,0.2 or 'equal', and write --write-merged.",
)
@click.option(
    "--pattern",
    "patterns",
    cls=Listed,
    metavar="NAMES",
    help="Names of the experts' tensors, such as 'model.layers.{layer}.mlp.experts.{expert}.{name}', or "
    "'...experts[{expert}].{name}' where the first axis of one tensor is the experts; repeat it for more, or put "
    "commas between.",
    show_default="found by their names",
)
@click.option(
    "--as",
    "form",
    metavar="FORM",
    default="moe-1",
    help="What --write-merged is: moe-1, a mixture of one expert, or dense, the family's dense model.",
)
@click.option(
    "--method",
    metavar="NAME",
    default="average",
    help="How --weights merges: average; aligned, hidden units being matched first; or task-arithmetic, ties or dare.",
)
@click.option("--base", type=PATH, help="The checkpoint that the experts began from, for the last three methods.")
@click.option("--scale", default=1.0, help="What these multiply the merged difference from --base by.")
@click.option("--density", default=0.2, help="The share of each difference that ties and dare keep.")
@click.option(
    "--stream",
    "source",
    type=PATH,
    help="Requests: a Python file (see above), or an .npz of inputs, labels, tasks and slots for a testbed model.",
)
@click.option(
    "--streams",
    type=click.Choice([RECORDED]),
    help="Score --policy on 64 recorded streams of three models, beside every way to merge that is recorded.",
)
@click.option(
    "--tasks",
    metavar="NAME",
    help="The testbed's tasks: digits or sequences; of the recorded streams conflicting, agreeing or sequences.",
    show_default="digits; all that are recorded",
)
@click.option(
    "--policy",
    metavar="NAME",
    default="tanbr",
    help="Who chooses the weights: tanbr, nucb, uniform, average, mix, best-expert or gradient; or 'all', each on the "
    "same slots; with --streams also cma-es, or FILE:NAME, a policy of your own.",
)
@click.option(
    "--reading",
    metavar="NAME",
    default="random-split",
    help="How Tanbr splits and where its candidates are: as Algorithm 1 says, or as another reading of the paper.",
)
@click.option(
    "--monitor",
    metavar="NAME",
    default="average",
    help="How the task mix is estimated from earlier slots: average or sketch.",
)
@click.option("--slots", type=int, help="Slots at most.", show_default="200; all 512 that are recorded")
@click.option("--slot-size", default=128, help="Requests in a slot of the testbed.")
@click.option(
    "--drift",
    default=0.0,
    help="How far the testbed's task mix drifts: with 1, shares go up and down by a factor of up to e in 500 slots.",
)
@click.option("--max-active", type=int, help="B, experts that a merge may use at most.", show_default="all")
@seed_option
@click.option(
    "--write-merged",
    type=PATH,
    help="Where to write the checkpoint with its experts merged, by --weights or the last slot's.",
)
@out_option("Folder for the numbers and the picture.", "runs/merge")
@json_option(
    "policy, mean_reward, equal_weights (what these earn), slots (a row each) and files; with --policy all policies (a "
    "row each) and files; with --streams policy, slots, conditions (a row each), differences (a row for each way to "
    "merge and condition) and files; with --weights merged (numbers of tensors and bytes), patterns and files."
)
def merge(
    checkpoint: Path | None,
    weights: str | None,
    patterns: tuple[str, ...],
    form: str,
    method: str,
    base: Path | None,
    scale: float,
    density: float,
    source: Path | None,
    streams: str | None,
    tasks: str | None,
    policy: str,
    reading: str,
    monitor: str,
    slots: int | None,
    slot_size: int,
    drift: float,
    max_active: int | None,
    seed: int,
    write_merged: Path | None,
    out: Path,
) -> None:
    """Merge experts slot by slot and watch the rewards, or once.

    By default the stream is this package's own: a small transformer with 8 experts and 8 tasks on digits, trained on
    first use (about a minute). Tanbr and NUCB have the settings that were found best for each on it, as in Fig. 4's
    claims. Writes slots.csv and merge.svg into OUT; with --policy all, policies.csv and
    policies.svg.

    With --streams recorded the policy serves 64 streams of 512 slots under twelve conditions: tasks that conflict, that
    agree, and rules for sequences; a fixed and a drifting mix, known and estimated. Its place among all ways to merge
    and its differences from each, paired by stream, go into places.csv and places.svg.

    For a checkpoint of your own, --stream is a Python file with `num_tasks`, `slots(seed)`, which yields slots, and
    `serve(experts, slot)`, which returns rewards in [0, 1] and counts of requests, one each a task; `experts` are the
    merged tensors by layer and name. It may add a policy to `merging.policies.POLICIES`. With --weights there is no
    stream: the checkpoint is merged and written.
    """
    if streams is not None:
        context = click.get_current_context()
        for option in context.command.params:
            asked = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
            if asked and option.name not in OF_STREAMS:
                raise InvalidRunError(
                    f"{option.opts[0]} is not for recorded streams, whose experts, requests and settings are recorded. "
                    "Leave it out."
                )
        _score(policy, tasks, slots, out)
        return
    slots, tasks = SLOTS if slots is None else slots, tasks or DIGITS
    if weights is not None:
        if source is not None:
            raise InvalidRunError("--weights merges once, and --stream asks for weights slot by slot. Leave one out.")
        settings = {"name": method, "scale": scale, "density": density, "seed": seed}
        _merge_once(checkpoint, weights, patterns or None, write_merged, form, settings, base)
        return
    if method != "average" or base is not None or scale != 1:
        raise InvalidRunError(
            "--method, --base and --scale are for --weights: slots are served by averages. Leave them out."
        )
    if checkpoint is not None and checkpoint.is_dir() and source is None:
        raise InvalidRunError(
            f"{checkpoint} is a folder of a model of yours, which nothing here knows how to run: merge it once with "
            "--weights equal, or give a --stream of your own."
        )
    from moe_theory.checkpoints import merge_checkpoint
    from moe_theory.merging import Dims, compare, merge_online, online, policies, report
    from moe_theory.merging import reading as reading_named
    from moe_theory.merging.testbed.tasks import Recipe
    from moe_theory.runs.files import prepare_folder

    if slots < 1 or slot_size < 1:
        raise InvalidRunError(f"slots={slots} and slot_size={slot_size} must be at least 1. Raise them.")
    chosen = reading_named(reading)  # what is unknown is refused before anything is trained
    if policy != ALL and not _is_python(source):  # which may have a policy of its own
        policies.named(policy, Dims())
    if policy == ALL and write_merged is not None:
        raise InvalidRunError("--write-merged is by the weights of one policy, not of all. Name it with --policy.")
    if max_active is not None:
        online.params_for(policy, Recipe().num_experts if checkpoint is None else max_active, chosen, max_active)
    if write_merged is not None and checkpoint is None:
        raise InvalidRunError("--write-merged merges a checkpoint's experts: name it with --checkpoint.")
    if write_merged is not None and write_merged.exists():
        raise OutputError(f"{write_merged} exists already: name another file.")
    folder = prepare_folder(out, report.COMPARED if policy == ALL else report.NAMES)
    console = open_console()
    open_stream = functools.partial(
        _open_stream, checkpoint, patterns or None, source, tasks, slots, slot_size, drift, seed, console
    )
    if policy == ALL:
        by_policy = compare(
            open_stream, num_slots=slots, reading=chosen, max_active=max_active, monitor=monitor, seed=seed
        )
        show_document(report.comparison(by_policy, report.write_comparison(by_policy, folder)))
        return
    stream = open_stream()
    params = online.params_for(policy, stream.num_experts, chosen, max_active)
    rows = merge_online(stream, policy, slots, params, monitor, seed)
    served, is_interrupted = report.shown_live(rows, console, slots, policy)
    if not served:
        if is_interrupted:
            raise KeyboardInterrupt
        raise InvalidStreamError("the stream has no slots. Name another.")
    equal = None if _is_python(source) else online.equal_rewards(open_stream(), len(served))
    paths = report.write(served, policy, equal, folder)
    if checkpoint is not None and write_merged is not None:
        last = served[-1].weights
        merge_checkpoint(checkpoint, patterns or None, last / last.sum(), write_merged, form)
        paths.append(write_merged)
    show_document(report.document(served, policy, equal, paths))
    if is_interrupted:
        raise KeyboardInterrupt


def _score(policy: str, tasks: str | None, slots: int | None, out: Path) -> None:
    """On the recorded streams, or on those of one family."""
    from moe_theory.merging.benchmark import report, scoring, streams
    from moe_theory.runs.files import prepare_folder
    from moe_theory.runs.progress import terminal_progress

    own, num_slots = scoring.policy_of(policy), streams.NUM_SLOTS if slots is None else slots
    if tasks is not None:
        streams.testbed(tasks)  # what is unknown is refused here
    conditions = [at for at in streams.CONDITIONS if tasks in (None, at.tasks)]
    scoring.require_slots(num_slots)
    scoring.recorded()  # streams that are others than those of the scores are refused before they are served
    folder = prepare_folder(out, report.NAMES)
    with terminal_progress(open_console(to_stderr=True)) as progress:
        progress.add_work(num_slots * streams.NUM_STREAMS * len(conditions))
        progress.running(f"{policy} on recorded streams")
        found = scoring.score(own, num_slots, conditions, progress.advance)
    compared = scoring.compare(own.name, found)
    show_document(report.document(compared, report.write(compared, folder)))


def _merge_once(
    checkpoint: Path | None,
    weights: str,
    patterns: tuple[str, ...] | None,
    out: Path | None,
    form: str,
    settings: dict[str, Any],
    base: Path | None,
) -> None:
    """Without a stream, and without JAX."""
    from moe_theory.checkpoints import Method, find_experts, merge_checkpoint
    from moe_theory.report.document import Document

    if checkpoint is None or out is None:
        raise InvalidRunError("--weights merges --checkpoint and writes --write-merged: name both.")
    found = find_experts(checkpoint, patterns)
    count = next(iter(found.layers.values())).num_experts
    try:
        shares = [1 / count] * count if weights == EQUAL else [float(each) for each in weights.split(",")]
    except ValueError:
        raise InvalidRunError(
            f"--weights {shortened(weights)} must be {EQUAL!r} or numbers with commas between."
        ) from None
    console = open_console(to_stderr=True)
    with _progress(console) as show:
        merged = merge_checkpoint(checkpoint, found.patterns, shares, out, form, Method(**settings), base, show)
    lines = (
        *(f"experts: {pattern}" for pattern in found.patterns),
        f"{merged.num_layers} layers of {merged.num_experts} experts: {merged.num_merged:,} tensors merged "
        f"({settings['name']}), {merged.num_copied:,} copied; {merged.bytes_before / 1e9:.3g} GB before, "
        f"{merged.bytes_after / 1e9:.3g} GB after",
        f"wrote {out}",
    )
    body = {"merged": merged._asdict(), "patterns": found.patterns, "files": [str(out)]}
    show_document(Document(lambda: body, lambda _: lines))


@contextlib.contextmanager
def _progress(console: "Console") -> Iterator[Callable[[int, int], None]]:
    """A bar in a terminal with bytes and the time that is left, elsewhere a line every ten seconds."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn, TransferSpeedColumn

    from moe_theory.runs.progress import SECONDS_BETWEEN_LINES, duration

    if console.is_terminal:
        columns = (BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
        with Progress(*columns, console=console, transient=True) as bar:
            task = bar.add_task("merging", total=None)
            yield lambda done, total: bar.update(task, completed=done, total=total)
        return
    began = printed = time.monotonic()

    def show(done: int, total: int) -> None:
        nonlocal printed
        now = time.monotonic()
        if now - printed > SECONDS_BETWEEN_LINES:
            printed, left = now, (now - began) * (total - done) / done
            print_lines(console, f"merged {done / 1e9:.2f} of {total / 1e9:.2f} GB, {duration(left)} left")

    yield show


def _is_python(source: Path | None) -> bool:
    return source is not None and source.suffix == ".py"


def _open_stream(
    checkpoint: Path | None,
    patterns: tuple[str, ...] | None,
    source: Path | None,
    tasks: str,
    slots: int,
    slot_size: int,
    drift: float,
    seed: int,
    console: "Console",
) -> "Stream":
    """The stream that the options describe: the testbed's, a file of requests, or a Python file's."""
    from moe_theory.merging import online
    from moe_theory.merging.testbed import tasks as testbed
    from moe_theory.merging.testbed import training
    from moe_theory.merging.testbed.training import PATTERN, load_model

    if source is not None and _is_python(source):
        if checkpoint is None:
            raise InvalidStreamError(f"{source} serves merged experts of a checkpoint: name it by --checkpoint.")
        return online.from_module(source, checkpoint, patterns, seed)
    if patterns is not None and patterns != (PATTERN,):
        raise InvalidStreamError(
            "--pattern names tensors of a checkpoint of your own, which nothing here knows how to run: give --stream a "
            "Python file with num_tasks, slots(seed) and serve(experts, slot)."
        )
    setting = testbed.Recipe(tasks=tasks)
    if checkpoint is None:
        model = training.trained(setting, functools.partial(print_lines, console))
    else:
        model = load_model(checkpoint)
    if source is not None:
        return online.from_file(source, model)
    data = testbed.examples(setting, testbed.VALIDATION)
    if model.w_embedding.shape[0] != data.inputs.shape[2] or model.positions.shape[0] != data.inputs.shape[1]:
        raise InvalidStreamError(
            f"{checkpoint} does not read inputs of the tasks {tasks!r}. Name others with --tasks, or a stream of its "
            "own with --stream."
        )
    return online.drawn(model, data, setting.num_tasks, slots, slot_size, drift, seed)
