"""Measuring a group: every contender is prepared and warmed, then all are timed in turn."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax

from moe_theory.bench import engine, yardstick
from moe_theory.bench.grid import Group, Member, contender_of, missing, with_rounds
from moe_theory.bench.history import Measurement
from moe_theory.bench.measure import calls_to_fill, interleave, timed
from moe_theory.bench.setting import Run
from moe_theory.runs.machine import machine_memory

ALONE = 1  # replicates of a contender that runs one after another


class Effort(NamedTuple):
    """How much is spent on a measurement."""

    passes: int = 5
    seconds: float = 0.2  # of the calls of one contender in a pass, at least


class _Ready(NamedTuple):
    run: Run
    calls: int
    first_seconds: float


def measure_group(
    group: Group, cores: str, num_threads: int, effort: Effort, tell: Callable[[str], None]
) -> list[Measurement]:
    """The measurements of a group, those that could not be taken included, in the order of its members.

    Args:
        tell: is told what is under way.
    """
    jax.clear_caches()  # else a program that another group has compiled would seem to compile in no time
    planned = plan(group, cores, num_threads)
    ready = {}
    for each in planned:
        if not each.skipped:
            tell(f"{group.title}: preparing {each.contender}")
            ready[each.id] = _prepared(each, num_threads, effort.seconds)
    if not ready:
        return planned
    tell(f"{group.title}: timing")
    rod = yardstick.prepare(num_threads)
    rod()
    runs, calls = [rod, *(each.run for each in ready.values())], [1, *(each.calls for each in ready.values())]
    rods, *columns = interleave(runs, calls, effort.passes).T.tolist()
    seconds = dict(zip(ready, columns, strict=True))
    return [
        dataclasses.replace(
            each,
            first_seconds=ready[each.id].first_seconds,
            seconds=tuple(seconds[each.id]),
            yardstick=tuple(rods),
        )
        if each.id in ready
        else each
        for each in planned
    ]


def plan(group: Group, cores: str, num_threads: int) -> list[Measurement]:
    """What is to be measured, without its times, or why it cannot be; the same thing once."""
    planned: dict[str, Measurement] = {}
    for member in map(_resolved, group.members):
        contender, setting = contender_of(member.contender), member.setting
        each = Measurement(
            part=group.part,
            group=group.title,
            contender=member.contender,
            setting=setting,
            cores=cores,
            replicates=ALONE if contender.one_by_one else setting.batch * num_threads,
            is_automatic=member.contender == engine.NAME and setting.batch == engine.automatic_width(setting),
            skipped=missing(contender) or _too_large(member, num_threads),
        )
        planned.setdefault(each.id, each)
    return list(planned.values())


def run_of(measurement: Measurement, num_threads: int) -> Run:
    """What runs the replicates of a measurement.

    On several threads the engine runs a chunk on each, and a peer all the replicates at once, on what threads it likes.
    """
    if measurement.contender == engine.NAME:
        return engine.prepare(measurement.setting, num_threads)
    setting = dataclasses.replace(measurement.setting, batch=measurement.replicates)
    return contender_of(measurement.contender).prepare(setting)


def _prepared(measurement: Measurement, num_threads: int, seconds: float) -> _Ready:
    run = run_of(measurement, num_threads)
    first = timed(run)
    return _Ready(run, calls_to_fill(seconds, timed(run)), first)


def _resolved(member: Member) -> Member:
    """The member with the batch that sweeps would choose, where it is to be that one."""
    if not member.is_automatic:
        return member
    width = engine.automatic_width(member.setting)
    return dataclasses.replace(member, setting=with_rounds(dataclasses.replace(member.setting, batch=width)))


def _too_large(member: Member, num_threads: int) -> str:
    needed, available = engine.bytes_needed(member.setting, num_threads), machine_memory()
    return f"needs {needed / 1e9:.1f} GB of this machine's {available / 1e9:.1f} GB" if needed > available else ""
