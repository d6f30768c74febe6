"""Measuring a group: every contender is prepared and warmed, then all are timed in turn."""

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import jax

from moe_theory.bench import engine, yardstick
from moe_theory.bench.grid import Group, Member, contender_of, missing, with_rounds
from moe_theory.bench.history import Measurement
from moe_theory.bench.measure import calls_to_fill, interleave, timed
from moe_theory.bench.setting import Run, Setting
from moe_theory.sweep.memory import machine_memory

ALONE = 1  # replicates of a contender that runs one after another


class Effort(NamedTuple):
    """How much is spent on a measurement."""

    passes: int = 7
    seconds: float = 0.2  # of the calls of one contender in a pass, at least


class _Ready(NamedTuple):
    measurement: Measurement  # without its times
    run: Run
    calls: int


def measure_group(
    group: Group, cores: str, num_threads: int, effort: Effort, tell: Callable[[str], None]
) -> list[Measurement]:
    """The measurements of a group, those that could not be taken included.

    On several threads the engine runs a chunk on each, and a peer all the replicates at once, on what threads it likes.

    Args:
        tell: is told what is under way.
    """
    jax.clear_caches()  # else a program that another group has compiled would seem to compile in no time
    members = [_resolved(member) for member in group.members]
    settings = [member.setting for member in members if not member.is_automatic]
    ready: list[_Ready] = []
    skipped = []
    for member in members:
        if member.is_automatic and member.setting in settings:
            continue  # measured anyway
        measurement = _blank(group, member, cores, num_threads)
        if measurement.skipped:
            skipped.append(measurement)
            continue
        tell(f"{group.title}: preparing {member.contender}")
        ready.append(_prepared(measurement, num_threads, effort.seconds))
    if not ready:
        return skipped
    tell(f"{group.title}: timing")
    rod = yardstick.prepare(num_threads)
    rod()
    seconds = interleave([rod, *(each.run for each in ready)], [1, *(each.calls for each in ready)], effort.passes)
    rods = tuple(seconds[:, 0].tolist())
    measured = [
        dataclasses.replace(each.measurement, seconds=tuple(column.tolist()), yardstick=rods)
        for each, column in zip(ready, seconds[:, 1:].T, strict=True)
    ]
    return [*measured, *skipped]


def _resolved(member: Member) -> Member:
    """The member with the batch that sweeps would choose, where it is to be that one."""
    if not member.is_automatic:
        return member
    width = engine.automatic_width(member.setting)
    return dataclasses.replace(member, setting=with_rounds(dataclasses.replace(member.setting, batch=width)))


def _blank(group: Group, member: Member, cores: str, num_threads: int) -> Measurement:
    """What is to be measured, or why it cannot be."""
    contender, setting = contender_of(member.contender), member.setting
    needed, available = engine.bytes_needed(setting, num_threads), machine_memory()
    too_large = f"needs {needed / 1e9:.1f} GB of this machine's {available / 1e9:.1f} GB" if needed > available else ""
    return Measurement(
        part=group.part,
        group=group.title,
        contender=member.contender,
        setting=setting,
        cores=cores,
        replicates=ALONE if contender.one_by_one else setting.batch * num_threads,
        is_automatic=setting.batch == engine.automatic_width(setting),
        skipped=missing(contender) or too_large,
    )


def _prepared(measurement: Measurement, num_threads: int, seconds: float) -> _Ready:
    contender, setting = contender_of(measurement.contender), measurement.setting
    run = _run_of(measurement, contender.prepare, setting, num_threads)
    first = timed(run)
    calls = calls_to_fill(seconds, timed(run))
    return _Ready(dataclasses.replace(measurement, first_seconds=first), run, calls)


def _run_of(measurement: Measurement, prepare: Callable[[Setting], Run], setting: Setting, num_threads: int) -> Run:
    if measurement.contender == engine.NAME:
        return engine.prepare(setting, num_threads)
    return prepare(dataclasses.replace(setting, batch=measurement.replicates))
