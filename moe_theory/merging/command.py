"""`moe-theory merge`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from moe_theory.core.errors import InvalidValueError
from moe_theory.plot.commands import Option, Terminal
from moe_theory.plot.document import Document

if TYPE_CHECKING:
    from moe_theory.merging.online import Stream

ALL = "all"  # the value of --policy that means all policies

PolicyName = Annotated[
    str,
    Option(
        "Policy that chooses the weights: tanbr, nucb, uniform, average, mix, best-expert, gradient, or 'all' to serve "
        "the same slots with each policy.",
        metavar="NAME",
    ),
]
Slots = Annotated[int, Option("Largest number of slots.")]
SlotSize = Annotated[int, Option("Requests in a slot.")]
Seed = Annotated[int, Option("Seed of all random numbers.")]
OutFolder = Annotated[Path, Option("Folder for the numbers and the picture.")]
Results = Annotated[
    Document,
    Option(
        "policy, mean_reward, equal_weights (what these earn), slots (a row each) and files. With --policy all "
        "policies (a row each) and files."
    ),
]


def merge(
    *,
    policy: PolicyName = "tanbr",
    slots: Slots = 200,
    slot_size: SlotSize = 128,
    seed: Seed = 0,
    out: OutFolder = Path("runs/merge"),
    terminal: Terminal,
) -> Results:
    """Merge experts slot by slot and watch the rewards.

    The model is this package's own small transformer, with 8 experts and 8 tasks on digits. It is trained on first use,
    in about a minute. Tanbr and NUCB have their best settings on it, as in Fig. 4's claims. Writes slots.csv and
    merge.svg into OUT. For your own model use `merging.compare` in Python.

    Examples:
        moe-theory merge --slots 20
        moe-theory merge --policy all
    """
    from moe_theory.merging import Dims, compare, online, policies, report
    from moe_theory.merging.testbed import tasks as testbed
    from moe_theory.merging.testbed import training
    from moe_theory.runs.files import prepare_folder

    if slots < 1 or slot_size < 1:
        raise InvalidValueError(
            f"slots={slots} and slot_size={slot_size} must both be at least 1. Raise them.", argument="slots"
        )
    recipe = testbed.Recipe()
    if policy != ALL:  # refuses unknown names before anything is trained
        policies.named(policy, Dims())
    folder = prepare_folder(out, (report.TABLE, report.PICTURE))
    model = training.trained(recipe, terminal.say)
    data = testbed.examples(recipe, testbed.VALIDATION)

    def open_stream() -> "Stream":
        return online.drawn(model, data, recipe.num_tasks, num_slots=slots, size=slot_size, seed=seed)

    names = None if policy == ALL else list(dict.fromkeys((policy, policies.AVERAGE)))  # each once
    by_policy = compare(open_stream, names, num_slots=slots, seed=seed)
    if policy == ALL:
        summaries = [summary._asdict() for summary in report.summarized(by_policy)]
        return report.document(by_policy, {"policies": summaries}, folder)
    body = {"policy": policy, **report.served(by_policy[policy], by_policy[policies.AVERAGE])}
    return report.document(by_policy, body, folder)
