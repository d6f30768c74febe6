"""`moe-theory merge`."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moe_theory.core.commands import Option, Terminal, option_names
from moe_theory.core.errors import (
    OWN_CODE,
    DeclarationError,
    InvalidValueError,
    MoeTheoryError,
    described,
    frames,
)
from moe_theory.plot.document import Document

if TYPE_CHECKING:
    from moe_theory.merging.online import Stream

ALL = "all"  # policies
TASKS, SLOT_SIZE, DRIFT = "digits", 128, 0.0  # of the testbed, unless given


def merge(
    *,
    stream: Annotated[
        Path | None,
        Option(
            "A Python file with a function open_stream(seed) that returns a merging.Stream of your own model.",
            metavar="FILE",
            default_words="the testbed's own model",
        ),
    ] = None,
    tasks: Annotated[
        str | None, Option("The testbed's tasks: digits or sequences.", metavar="NAME", default=TASKS)
    ] = None,
    policy: Annotated[
        str,
        Option(
            "Who chooses the weights: tanbr, nucb, uniform, average, mix, best-expert or gradient; or 'all', each on "
            "the same slots.",
            metavar="NAME",
        ),
    ] = "tanbr",
    reading: Annotated[
        str,
        Option(
            "How Tanbr splits and where its candidates are: as Algorithm 1 says, or as another reading of the paper.",
            metavar="NAME",
        ),
    ] = "random-split",
    monitor: Annotated[
        str, Option("How the task mix is estimated from earlier slots: average or sketch.", metavar="NAME")
    ] = "average",
    slots: Annotated[int, Option("Slots at most.")] = 200,
    slot_size: Annotated[int | None, Option("Requests in a slot of the testbed.", default=SLOT_SIZE)] = None,
    drift: Annotated[
        float | None,
        Option(
            "How far the testbed's task mix drifts: with 1, shares go up and down by a factor of up to e in 500 slots.",
            default=DRIFT,
        ),
    ] = None,
    max_active: Annotated[int | None, Option("B, experts that a merge may use at most.", default_words="all")] = None,
    seed: Annotated[int, Option("Seed of all random numbers.")] = 0,
    out: Annotated[Path, Option("Folder for the numbers and the picture.")] = Path("runs/merge"),
    terminal: Terminal,
) -> Annotated[
    Document,
    Option(
        "policy, mean_reward, equal_weights (what these earn), slots (a row each) and files; with --policy all "
        "policies (a row each) and files."
    ),
]:
    """Merge experts slot by slot and watch the rewards.

    By default the stream is this package's own: a small transformer with 8 experts and 8 tasks on digits, trained on
    first use (about a minute). Tanbr and NUCB have the settings that were found best for each on it, as in Fig. 4's
    claims. Writes slots.csv and merge.svg into OUT; with --policy all, policies.csv and policies.svg.

    For a model of your own, --stream is a Python file with a function `open_stream(seed)`. It returns a
    `merging.Stream`: its `slots()` yields slots, and its `serve(slot, weights)` returns rewards in [0, 1] and counts of
    requests, one each a task. The file may add a policy to `merging.policies.POLICIES`.

    Examples:
        moe-theory merge --slots 20
        moe-theory merge --policy all --tasks sequences
        moe-theory merge --stream mine.py --policy tanbr
    """
    from moe_theory.merging import Dims, compare, merge_online, online, policies, report
    from moe_theory.merging import reading as reading_named
    from moe_theory.merging.testbed import tasks as testbed
    from moe_theory.merging.testbed import training
    from moe_theory.runs.files import prepare_folder

    if stream is not None:
        for name, value in {"tasks": tasks, "slot_size": slot_size, "drift": drift}.items():
            if value is not None:
                option = option_names(merge)[name]
                raise InvalidValueError(f"{option} is for the testbed, and {stream} has a stream of its own. Drop it.")
    slot_size = SLOT_SIZE if slot_size is None else slot_size
    drift = DRIFT if drift is None else drift
    if slots < 1 or slot_size < 1:
        raise InvalidValueError(
            f"slots={slots} and slot_size={slot_size} must be at least 1. Raise them.", argument="slots"
        )
    # Unknown names are refused before anything is trained.
    chosen = reading_named(reading)
    recipe = testbed.Recipe(tasks=TASKS if tasks is None else tasks)
    if policy != ALL and stream is None:  # a stream's file may have a policy of its own
        policies.named(policy, Dims())
    if max_active is not None:
        num_experts = recipe.num_experts if stream is None else max_active
        online.params_for(policy, num_experts, chosen, max_active)
    folder = prepare_folder(out, report.COMPARED if policy == ALL else report.NAMES)

    def open_stream() -> "Stream":
        if stream is not None:
            return online.from_module(stream, seed)
        model = training.trained(recipe, terminal.say)
        data = testbed.examples(recipe, testbed.VALIDATION)
        return online.drawn(model, data, recipe.num_tasks, slots, slot_size, drift, seed)

    if policy == ALL:
        with _failures_in_a_line(stream):
            by_policy = compare(
                open_stream, num_slots=slots, reading=chosen, max_active=max_active, monitor=monitor, seed=seed
            )
        return report.comparison(by_policy, folder)
    opened = open_stream()
    params = online.params_for(policy, opened.num_experts, chosen, max_active)
    rows = merge_online(opened, policy, slots, params, monitor, seed)
    with _failures_in_a_line(stream):
        served, is_interrupted = report.shown_live(rows, terminal.console, slots, policy)
    if not served:
        if is_interrupted:
            raise KeyboardInterrupt
        raise DeclarationError("the stream has no slots. Name another.")
    equal = online.equal_rewards(open_stream(), len(served)) if stream is None else None
    return report.document(served, policy, equal, folder, is_interrupted)


@contextlib.contextmanager
def _failures_in_a_line(source: Path | None) -> Iterator[None]:
    """Raise DeclarationError, with the line, where a user's file fails while it serves."""
    try:
        yield
    except MoeTheoryError:
        raise
    except OWN_CODE as failure:
        if source is None:
            raise
        raise DeclarationError(f"{source} failed: {described(failure)}{frames(failure)}") from failure
