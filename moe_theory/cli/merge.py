"""`moe-theory merge`."""

import functools
import itertools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from moe_theory.cli.options import PATH, examples, json_option, out_option, seed_option
from moe_theory.cli.output import open_console, print_json, print_lines
from moe_theory.core.errors import InvalidRunError, InvalidStreamError, OutputError

if TYPE_CHECKING:
    from rich.console import Console

    from moe_theory.merging.online import Row, Stream

ALL = "all"  # policies


@click.command(epilog=examples("moe-theory merge --slots 20"))
@click.option(
    "--checkpoint",
    type=PATH,
    help="A safetensors file or, with a Python --stream, a folder of its shards.",
    show_default="the testbed's own model",
)
@click.option(
    "--pattern",
    metavar="NAMES",
    help="Names of the experts' tensors, such as 'model.layers.{layer}.mlp.experts.{expert}.{name}'.",
)
@click.option(
    "--stream",
    "source",
    type=PATH,
    help="Requests: a Python file (see above), or an .npz of inputs, labels, tasks and slots for a testbed model.",
)
@click.option("--tasks", metavar="NAME", default="digits", help="The testbed's tasks: digits or sequences.")
@click.option(
    "--policy",
    metavar="NAME",
    default="tanbr",
    help="Who chooses the weights: tanbr, nucb, uniform, average, mix, best-expert or gradient; or 'all', each on the "
    "same slots.",
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
@click.option("--slots", default=200, help="Slots at most.")
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
    help="Where to write the checkpoint with its experts merged by the last slot's weights.",
)
@out_option("Folder for the numbers and the picture.", "runs/merge")
@json_option(
    "policy, mean_reward, equal_weights (what these earn), slots (a row each) and files; with --policy all policies (a "
    "row each) and files."
)
def merge(
    checkpoint: Path | None,
    pattern: str | None,
    source: Path | None,
    tasks: str,
    policy: str,
    reading: str,
    monitor: str,
    slots: int,
    slot_size: int,
    drift: float,
    max_active: int | None,
    seed: int,
    write_merged: Path | None,
    out: Path,
    as_json: bool,
) -> None:
    """Merge experts slot by slot and watch the rewards.

    By default the stream is this package's own: a small transformer with 8 experts and 8 tasks on digits, trained on
    first use (about a minute). Tanbr and NUCB have the settings that were found best for each on it, as in Fig. 4's
    claims. Writes slots.csv and merge.svg into OUT; with --policy all, policies.csv and
    policies.svg.

    For a checkpoint of your own, --stream is a Python file with `num_tasks`, `slots(seed)`, which yields slots, and
    `serve(experts, slot)`, which returns rewards in [0, 1] and counts of requests, one each a task; `experts` are the
    merged tensors by layer and name.
    """
    from moe_theory.core import constraints
    from moe_theory.merging import Dims, policies
    from moe_theory.merging import reading as reading_named
    from moe_theory.merging.online import merge_online
    from moe_theory.merging.testbed.checkpoint import merge_checkpoint
    from moe_theory.merging.testbed.tasks import Setting
    from moe_theory.merging.testbed.training import PATTERN
    from moe_theory.report import merging
    from moe_theory.runs.files import prepare_folder

    if slots < 1 or slot_size < 1:
        raise InvalidRunError(f"slots={slots} and slot_size={slot_size} must be at least 1. Raise them.")
    chosen = reading_named(reading)  # what is unknown is refused before anything is trained
    if policy != ALL:
        policies.named(policy, Dims())
    elif write_merged is not None:
        raise InvalidRunError("--write-merged is by the weights of one policy, not of all. Name it with --policy.")
    if max_active is not None:
        constraints.require(constraints.Count, max_active=max_active)
        if checkpoint is None:
            _require_so_many(max_active, Setting().num_experts)
    if write_merged is not None and checkpoint is None:
        raise InvalidRunError("--write-merged merges a checkpoint's experts: name it with --checkpoint.")
    if write_merged is not None and write_merged.exists():
        raise OutputError(f"{write_merged} exists already: name another file.")
    folder = prepare_folder(out, merging.COMPARED if policy == ALL else merging.NAMES)
    console = open_console(to_stderr=as_json)
    open_stream = functools.partial(
        _open_stream, checkpoint, pattern, source, tasks, slots, slot_size, drift, seed, console
    )
    stream = open_stream()
    active = stream.num_experts if max_active is None else max_active
    _require_so_many(active, stream.num_experts)

    def served_by(name: str) -> "Iterator[Row]":
        params = chosen.params(max_active=active, **policies.TUNED.get(name, {}))
        return merge_online(stream if name == policy else open_stream(), name, slots, params, monitor, seed)

    if policy == ALL:
        names = [name for name in policies.POLICIES if name != policies.MIX or stream.num_experts == stream.num_tasks]
        by_policy = {name: list(served_by(name)) for name in names}
        if not by_policy[policies.TANBR]:
            raise InvalidStreamError("the stream has no slots. Name another.")
        paths = merging.write_comparison(by_policy, folder)
        if as_json:
            print_json({"policies": merging.compared(by_policy), "files": [str(path) for path in paths]})
        else:
            console.print(merging.comparison(by_policy))
            print_lines(console, *(f"wrote {path}" for path in paths))
        return
    served, is_interrupted = merging.shown_live(served_by(policy), console, slots, policy)
    if not served:
        if is_interrupted:
            raise KeyboardInterrupt
        raise InvalidStreamError("the stream has no slots. Name another.")
    equal = None if _is_python(source) else _rewards_of_equal_weights(open_stream(), len(served))
    paths = merging.write(served, policy, equal, folder)
    if checkpoint is not None and write_merged is not None:
        weights = served[-1].weights
        merge_checkpoint(checkpoint, pattern or PATTERN, weights / weights.sum(), write_merged)
        paths.append(write_merged)
    if as_json:
        print_json(merging.to_json(served, policy, equal, paths))
    else:
        console.print(merging.summary(served, policy, equal), highlight=False, soft_wrap=True)
        print_lines(console, *(f"wrote {path}" for path in paths))
    if is_interrupted:
        raise KeyboardInterrupt


def _require_so_many(max_active: int, num_experts: int) -> None:
    from moe_theory.core import constraints

    values = {"max_active": max_active, "num_experts": num_experts}
    constraints.require_ordered(values, "max_active", "num_experts", "there are no more to merge")


def _is_python(source: Path | None) -> bool:
    return source is not None and source.suffix == ".py"


def _open_stream(
    checkpoint: Path | None,
    pattern: str | None,
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
        return online.from_module(source, checkpoint, pattern or PATTERN, seed)
    if pattern is not None and pattern != PATTERN:
        raise InvalidStreamError(
            "--pattern names tensors of a checkpoint of your own, which nothing here knows how to run: give --stream a "
            "Python file with num_tasks, slots(seed) and serve(experts, slot)."
        )
    setting = testbed.Setting(tasks=tasks)
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


def _rewards_of_equal_weights(stream: "Stream", num_slots: int) -> list[float]:
    """Of every slot."""
    import numpy as np

    weights = np.full(stream.num_experts, 1 / stream.num_experts)
    served = [stream.serve(slot, weights) for slot in itertools.islice(stream.slots(), num_slots)]
    return [float(np.average(each.rewards, weights=each.counts)) for each in served]
