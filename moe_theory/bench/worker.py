"""A process that measures: `python -m moe_theory.bench.worker` takes an order on stdin and prints a line an event.

The order is one JSON object: "cores" ("one" or "all"), "kind" ("groups", "compilation" or "accelerator") and what
that kind needs. The lines are JSON objects with one key: "facts", "under_way", "measurement",
"compilation", "accelerator" or "done". XLA asks which cores it may use when it starts, so they are chosen before JAX is
imported.
"""

import dataclasses
import json
import os
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    """Measure what the order asks for."""
    order = json.load(sys.stdin)
    # Whatever libraries print goes where people read it, not between the events.
    events = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)

    def emit(name: str, content: Any) -> None:
        events.write(json.dumps({name: content}) + "\n")

    carry_out(order, choose_cores(order["cores"]), emit)


def choose_cores(cores: str) -> int:
    """Keep to the last core this process may use, for "one"; how many cores it has then.

    Where the system cannot pin a process, XLA and NumPy use what they like, and one thread is asked for.
    """
    if not hasattr(os, "sched_setaffinity"):
        return 1 if cores == "one" else os.cpu_count() or 1
    if cores == "one":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    return len(os.sched_getaffinity(0))


def carry_out(order: dict[str, Any], num_threads: int, emit: Callable[[str, Any], None]) -> None:
    """Measure, and tell `emit` (name, content) of every event."""
    emit("facts", facts())
    if order["kind"] == "groups":
        from moe_theory.bench.trial import Effort, measure_group

        for document in order["groups"]:
            measured = measure_group(
                group_from(document),
                order["cores"],
                num_threads,
                Effort(**order["effort"]),
                lambda what: emit("under_way", what),
            )
            for each in measured:
                emit("measurement", dataclasses.asdict(each))
            emit("done", len(document["members"]))
    elif order["kind"] == "compilation":
        from moe_theory.bench.compile_time import PROGRAM, measure_compilation

        emit("under_way", f"compiling {PROGRAM}, {order['cache']}")
        emit("compilation", dataclasses.asdict(measure_compilation(order["cache"], order["cores"], num_threads)))
        emit("done", order["units"])
    else:
        from moe_theory.bench.accelerator import measure_system

        for system in order["systems"]:
            emit("under_way", f"{system} on the accelerator")
            measured = measure_system(system, order["precision"], **order["effort"])
            emit("accelerator", dataclasses.asdict(measured))
            emit("done", 1)


def group_from(document: dict[str, Any]) -> Any:
    """A group from a dictionary."""
    from moe_theory.bench.grid import Group, Member
    from moe_theory.bench.setting import Setting

    members = (Member(**{**member, "setting": Setting(**member["setting"])}) for member in document["members"])
    return Group(document["part"], document["title"], tuple(members))


def facts() -> dict[str, Any]:
    """What the times depend on besides the settings."""
    from moe_theory.runs import provenance

    return {
        "versions": provenance.versions(),
        "backend": provenance.backend(),
        "instructions": provenance.instruction_set(),
        "processor": provenance.processor_fact("model name").partition(":")[2].strip(),
        "source": provenance.source_digest()[:12],
        "xla_flags": os.environ.get("XLA_FLAGS", ""),
    }


if __name__ == "__main__":
    main()
