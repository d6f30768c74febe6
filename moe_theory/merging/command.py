"""`moe-theory merge`."""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from moe_theory.cli.options import PATH, examples, json_option, out_option, seed_option
from moe_theory.cli.output import open_console, print_lines, show_document
from moe_theory.core.errors import (
    OWN_CODE,
    InvalidRunError,
    InvalidStreamError,
    MoeTheoryError,
    described,
    frames,
)

if TYPE_CHECKING:
    from rich.console import Console

    from moe_theory.merging.online import Stream

ALL = "all"  # policies
OF_TESTBED = ("tasks", "slot_size", "drift")  # options that a stream of one's own does not have


@click.command(
    epilog=examples(
        "moe-theory merge --slots 20",
        "moe-theory merge --policy all --tasks sequences",
        "moe-theory merge --stream mine.py --policy tanbr",
    )
)
@click.option(
    "--stream",
    "source",
    type=PATH,
    metavar="FILE",
    help="A Python file with a function open_stream(seed) that returns a merging.Stream of your own model.",
    show_default="the testbed's own model",
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
@out_option("Folder for the numbers and the picture.", "runs/merge")
@json_option(
    "policy, mean_reward, equal_weights (what these earn), slots (a row each) and files; with --policy all policies (a "
    "row each) and files."
)
def merge(
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
    out: Path,
) -> None:
    """Merge experts slot by slot and watch the rewards.

    By default the stream is this package's own: a small transformer with 8 experts and 8 tasks on digits, trained on
    first use (about a minute). Tanbr and NUCB have the settings that were found best for each on it, as in Fig. 4's
    claims. Writes slots.csv and merge.svg into OUT; with --policy all, policies.csv and policies.svg.

    For a model of your own, --stream is a Python file with a function `open_stream(seed)`. It returns a
    `merging.Stream`: its `slots()` yields slots, and its `serve(slot, weights)` returns rewards in [0, 1] and counts of
    requests, one each a task. The file may add a policy to `merging.policies.POLICIES`.
    """
    from moe_theory.merging import Dims, compare, merge_online, online, policies, report
    from moe_theory.merging import reading as reading_named
    from moe_theory.merging.testbed.tasks import Recipe
    from moe_theory.runs.files import prepare_folder

    if source is not None:
        _refuse_testbed_options(source)
    if slots < 1 or slot_size < 1:
        raise InvalidRunError(f"slots={slots} and slot_size={slot_size} must be at least 1. Raise them.")
    chosen = reading_named(reading)  # what is unknown is refused before anything is trained
    if policy != ALL and source is None:  # a stream's file may have a policy of its own
        policies.named(policy, Dims())
    if max_active is not None:
        num_experts = Recipe().num_experts if source is None else max_active
        online.params_for(policy, num_experts, chosen, max_active)
    folder = prepare_folder(out, report.COMPARED if policy == ALL else report.NAMES)
    console = open_console()
    open_stream = functools.partial(_open_stream, source, tasks, slots, slot_size, drift, seed, console)
    if policy == ALL:
        with _failures_in_a_line(source):
            by_policy = compare(
                open_stream, num_slots=slots, reading=chosen, max_active=max_active, monitor=monitor, seed=seed
            )
        show_document(report.comparison(by_policy, report.write_comparison(by_policy, folder)))
        return
    stream = open_stream()
    params = online.params_for(policy, stream.num_experts, chosen, max_active)
    rows = merge_online(stream, policy, slots, params, monitor, seed)
    with _failures_in_a_line(source):
        served, is_interrupted = report.shown_live(rows, console, slots, policy)
    if not served:
        if is_interrupted:
            raise KeyboardInterrupt
        raise InvalidStreamError("the stream has no slots. Name another.")
    equal = online.equal_rewards(open_stream(), len(served)) if source is None else None
    paths = report.write(served, policy, equal, folder)
    show_document(report.document(served, policy, equal, paths))
    if is_interrupted:
        raise KeyboardInterrupt


def _refuse_testbed_options(source: Path) -> None:
    """Raise InvalidRunError for an option that says what the testbed's stream is."""
    context = click.get_current_context()
    for option in context.command.params:
        is_given = context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        if is_given and option.name in OF_TESTBED:
            raise InvalidRunError(
                f"{option.opts[0]} is for the testbed, and {source} has a stream of its own. Drop it."
            )


@contextlib.contextmanager
def _failures_in_a_line(source: Path | None) -> Iterator[None]:
    """Raise InvalidStreamError, with the line, where a user's file fails while it serves."""
    try:
        yield
    except MoeTheoryError:
        raise
    except OWN_CODE as failure:
        if source is None:
            raise
        raise InvalidStreamError(f"{source} failed: {described(failure)}{frames(failure)}") from failure


def _open_stream(
    source: Path | None, tasks: str, slots: int, slot_size: int, drift: float, seed: int, console: "Console"
) -> "Stream":
    """Return the testbed's stream, or the one that a user's file opens."""
    from moe_theory.merging import online
    from moe_theory.merging.testbed import tasks as testbed
    from moe_theory.merging.testbed import training

    if source is not None:
        return online.from_module(source, seed)
    setting = testbed.Recipe(tasks=tasks)
    model = training.trained(setting, functools.partial(print_lines, console))
    data = testbed.examples(setting, testbed.VALIDATION)
    return online.drawn(model, data, setting.num_tasks, slots, slot_size, drift, seed)
