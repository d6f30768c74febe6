"""What `moe-theory merge` does, given its options."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from moe_theory.commands import open_console, print_json
from moe_theory.core.errors import InvalidRunError, InvalidStreamError, OutputError
from moe_theory.merging import online, reading
from moe_theory.merging.online import Stream, merge_online
from moe_theory.merging.params import Params
from moe_theory.merging.testbed import training
from moe_theory.merging.testbed.checkpoint import merge_checkpoint
from moe_theory.merging.testbed.tasks import VALIDATION, Setting, examples
from moe_theory.merging.testbed.training import PATTERN, load_model
from moe_theory.merging.testbed.transformer import Model
from moe_theory.report import merging
from moe_theory.report.output import prepare_folder


def run_merge(options: Any) -> None:
    """Serve slot after slot, show each, and write what was chosen and earned.

    Raises: MoeTheoryError for options that cannot be met, before the first slot unless only serving can tell.
    """
    if options.slots < 1 or options.slot_size < 1:
        raise InvalidRunError(
            f"slots={options.slots} and slot_size={options.slot_size} must be at least 1. Raise them."
        )
    if options.write_merged is not None and options.checkpoint is None:
        raise InvalidRunError("--write-merged merges a checkpoint's experts: name it with --checkpoint.")
    if options.write_merged is not None and options.write_merged.exists():
        raise OutputError(f"{options.write_merged} is there already: name another place.")
    folder = prepare_folder(options.out, merging.NAMES)
    console = open_console(to_stderr=options.json)
    stream = stream_of(options, console)
    params = params_of(options, stream.num_experts)
    rows = merge_online(stream, options.policy, options.slots, params, options.monitor, options.seed)
    served, was_interrupted = merging.shown_live(rows, console, options.slots, options.policy)
    if not served:
        if was_interrupted:
            raise KeyboardInterrupt
        raise InvalidStreamError("the stream has no slots. Name another.")
    equal = equal_weights_reward(options, len(served), console)
    paths = merging.write(served, options.policy, equal, folder)
    if options.write_merged is not None:
        paths.append(write_merged(options, served[-1].weights))
    if options.json:
        print_json(merging.to_json(served, options.policy, equal, paths))
    else:
        console.print(merging.summary(served, options.policy, equal), highlight=False, soft_wrap=True)
        for path in paths:
            console.print(f"wrote {path}", highlight=False, soft_wrap=True, markup=False)
    if was_interrupted:
        raise KeyboardInterrupt


def params_of(options: Any, num_experts: int) -> Params:
    """The policy's parameters for a stream of so many experts."""
    active = num_experts if options.max_active is None else options.max_active
    return reading(options.reading).params(max_active=active)


def stream_of(options: Any, console: Console) -> Stream:
    """The stream that the options describe: the testbed, a file of requests, or a Python file.

    Raises: InvalidStreamError or InvalidCheckpointError for what cannot be read or does not go together.
    """
    if is_own(options):
        if options.checkpoint is None:
            raise InvalidStreamError(
                f"{options.stream} serves merged experts of a checkpoint: name it by --checkpoint."
            )
        checkpoint: Path = options.checkpoint
        return online.from_module(options.stream, checkpoint, options.pattern or PATTERN, options.seed)
    if options.pattern is not None and options.pattern != PATTERN:
        raise InvalidStreamError(
            "--pattern names tensors of a checkpoint of your own, which nothing here knows how to run: give --stream a "
            "Python file with num_tasks, slots(seed) and serve(experts, slot)."
        )
    model = trained(options, console) if options.checkpoint is None else load_model(options.checkpoint)
    if options.stream is not None:
        return online.from_file(options.stream, model)
    return testbed_stream(options, model)


def is_own(options: Any) -> bool:
    """Whether serving is the user's own, by a Python file."""
    return options.stream is not None and options.stream.suffix == ".py"


def trained(options: Any, console: Console) -> Model:
    """The testbed's model, trained if it has not been."""
    return training.trained(
        Setting(tasks=options.tasks), lambda line: console.print(line, highlight=False, markup=False)
    )


def testbed_stream(options: Any, model: Model) -> Stream:
    """Slots of validation examples, whose tasks follow a mix that drifts."""
    setting = Setting(tasks=options.tasks)
    data = examples(setting, VALIDATION)
    if model.w_embedding.shape[0] != data.inputs.shape[2] or model.positions.shape[0] != data.inputs.shape[1]:
        raise InvalidStreamError(
            f"{options.checkpoint} does not read inputs of the tasks {options.tasks!r}. Name others with --tasks, or a "
            "stream of its own with --stream."
        )
    return online.drawn(model, data, setting.num_tasks, options.slots, options.slot_size, options.drift, options.seed)


def equal_weights_reward(options: Any, num_slots: int, console: Console) -> float | None:
    """What equal weights earn in the same slots, to compare with; None where serving is the user's own."""
    if is_own(options):
        return None
    stream = stream_of(options, console)
    weights = np.full(stream.num_experts, 1 / stream.num_experts)
    served = [stream.serve(slot, weights) for slot in itertools.islice(stream.slots(), num_slots)]
    return float(np.mean([slot.reward for slot in served]))


def write_merged(options: Any, weights: Any) -> Path:
    """The checkpoint with its experts merged by the last slot's weights."""
    merge_checkpoint(options.checkpoint, options.pattern or PATTERN, weights / weights.sum(), options.write_merged)
    return options.write_merged
