"""Where the time of a command goes: `python -m benchmarks.where_time_goes verify continual.lemma-4 --reading quick`.

Runs `moe-theory` with these arguments in a fresh process, with caches and an --out of its own, and prints a table:
the seconds that threads spend on each kind of work, without what other kinds do within it; how many cores are busy; and
the programs that take longest to compile. Threads that wait for a core count too, so compare on an idle machine, or
compare the processor time of the whole. Without arguments the command is that of `make verify`.
"""

import collections
import functools
import importlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

FIRST = 10.0  # seconds at the start that the cores' share leaves out
TICK = 0.25  # seconds between looks at the processor time
MOST_PROGRAMS = 12
RESULT = "MOE_THEORY_WHERE_TIME_GOES"  # the file that the process writes what it has measured to

COMPILING = "/jax/core/compile/backend_compile_duration"
EVENTS = {  # of JAX, by their names
    "/jax/core/compile/jaxpr_trace_duration": "tracing",
    "/jax/core/compile/jaxpr_to_mlir_module_duration": "lowering",
    COMPILING: "compiling",
}
SPANS = {  # functions by the kind of work that they do
    "simulating": ["moe_theory.runs.cells:compute_chunk"],
    "measuring": ["moe_theory.verification.session:sourced_runs"],
    "resolving": ["moe_theory.verification.request:resolve"],
    "sampling": ["moe_theory.verification.interim:SequentialTest.extend"],
    "judging": ["moe_theory.verification.interim:SequentialTest.look"],
    "keeping": ["moe_theory.verification.archive:Archive.save", "moe_theory.verification.archive:Archive.load"],
    "report": ["moe_theory.report.pages:write_report"],
}


def main(arguments: list[str]) -> None:
    """Print the table of a command."""
    with tempfile.TemporaryDirectory() as scratch:
        command = arguments or ["verify", *first_look(), "--reading", "quick"]
        found = {RESULT: f"{scratch}/result.json", "XDG_CACHE_HOME": f"{scratch}/cache"}
        code = f"from {__spec__.name} import measured; measured({[*command, '--out', f'{scratch}/out']!r})"
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-c", code], env=os.environ | found, stdout=subprocess.DEVNULL)
        if done.returncode:  # the command has said why
            raise SystemExit(done.returncode)
        wall = time.monotonic() - began
        print_table(json.loads(Path(found[RESULT]).read_text()), wall)


def first_look() -> list[str]:
    from moe_theory.core.papers import all_papers

    return [claim for paper in all_papers().values() for claim in paper.first_look]


def measured(command: list[str]) -> None:
    """Run a command in this process, and write what was measured."""
    began = time.monotonic()
    ticks, intervals, programs = [(0.0, 0.0)], [], []

    def tick() -> None:
        while True:
            time.sleep(TICK)
            ticks.append((time.monotonic() - began, time.process_time()))

    threading.Thread(target=tick, daemon=True).start()

    def add(kind: str, seconds: float, **about: Any) -> None:
        end = time.monotonic()
        intervals.append((threading.get_ident(), end - seconds, end, kind))
        if kind == "compiling":
            programs.append((about.get("fun_name", ""), seconds))

    import jax

    jax.monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **about: add(EVENTS[event], seconds, **about) if event in EVENTS else None
    )
    for kind, places in SPANS.items():
        for place in places:
            _wrap(place, functools.partial(add, kind))
    from moe_theory.cli import main as run

    add("imports", time.monotonic() - began)
    try:
        run(command)
    finally:
        ticks.append((time.monotonic() - began, time.process_time()))
        result = {"ticks": ticks, "intervals": intervals, "programs": programs}
        Path(os.environ[RESULT]).write_text(json.dumps(result))


def _wrap(place: str, add: Callable[[float], None]) -> None:
    """Time the function at "module:name", wherever a module has imported it."""
    module, _, name = place.partition(":")
    owner: Any = importlib.import_module(module)
    *path, last = name.split(".")
    for part in path:
        owner = getattr(owner, part)
    inner = getattr(owner, last)

    @functools.wraps(inner)
    def timed(*arguments: Any, **options: Any) -> Any:
        began = time.monotonic()
        try:
            return inner(*arguments, **options)
        finally:
            add(time.monotonic() - began)

    owners = [owner] if path else [each for each in list(sys.modules.values()) if vars(each).get(last) is inner]
    for each in owners:
        setattr(each, last, timed)


def print_table(result: dict[str, Any], wall: float) -> None:
    """Print what `measured` wrote."""
    ticks, programs = result["ticks"], result["programs"]
    processor = ticks[-1][1]
    print(f"wall {wall:.1f} s, processor {processor:.1f} s: {processor / wall:.2f} cores busy", end="")
    start = next((tick for tick in ticks if tick[0] >= FIRST), None)
    if start is not None and ticks[-1][0] > FIRST:
        share = (processor - start[1]) / (ticks[-1][0] - start[0])
        print(f", {share:.2f} after the first {FIRST:.0f} s", end="")
    print(f"\n{'kind':22} {'seconds':>8} {'times':>7}")
    spent, counts = exclusive(result["intervals"])
    for kind, seconds in spent.most_common():
        print(f"{kind:22} {seconds:8.1f} {counts[kind]:7d}")
    by_name = collections.Counter()
    for name, seconds in programs:
        by_name[name] += seconds
    times = collections.Counter(name for name, _ in programs)
    print(f"\n{len(programs)} programs compiled, of {len(by_name)} names")
    for name, seconds in by_name.most_common(MOST_PROGRAMS):
        print(f"{name[:48]:48} {seconds:8.1f} {times[name]:7d}")
    print("\ncores busy, by tenths of the time")
    shares = []
    for place in range(10):
        part = [tick for tick in ticks if place <= 10 * tick[0] / ticks[-1][0] <= place + 1]
        shares.append((part[-1][1] - part[0][1]) / max(part[-1][0] - part[0][0], TICK) if part else 0.0)
    print(" ".join(f"{share:.2f}" for share in shares))


def exclusive(
    intervals: list[tuple[int, float, float, str]],
) -> tuple[collections.Counter[str], collections.Counter[str]]:
    """Seconds of each kind that no interval within it has, and how many there are."""
    spent, counts = collections.Counter(), collections.Counter()
    by_thread = collections.defaultdict(list)
    for thread, start, end, kind in intervals:
        by_thread[thread].append((start, end, kind))
    for own in by_thread.values():
        around: list[tuple[float, str]] = []  # ends and kinds of the intervals that one lies in
        for start, end, kind in sorted(own, key=lambda each: (each[0], -each[1])):
            while around and around[-1][0] < (start + end) / 2:
                around.pop()
            spent[kind] += end - start
            counts[kind] += 1
            if around:
                spent[around[-1][1]] -= end - start
            around.append((end, kind))
    return spent, counts


if __name__ == "__main__":
    main(sys.argv[1:])
