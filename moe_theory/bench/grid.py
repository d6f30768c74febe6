"""Which settings are measured, and what a round is expected to cost in them."""

import dataclasses
import importlib.util
import itertools
from collections.abc import Iterator, Sequence
from typing import Any

from moe_theory.bench import engine
from moe_theory.bench.peers import PEERS
from moe_theory.bench.setting import SIZES, Contender, Setting
from moe_theory.core.engine import ROUNDS_AHEAD
from moe_theory.core.errors import unknown_name
from moe_theory.sweep.systems import sweepable

CONTENDERS: dict[str, Contender] = {engine.NAME: engine.ENGINE, **PEERS}
BATCHES = (64, 256)  # of the comparison with peers
GRID: dict[str, Sequence[int]] = {"num_experts": (5, 20, 80), "num_features": (10, 50, 200), "batch": (64, 256, 1024)}
SCALING_BATCH = 32
DOUBLINGS = 5  # points of an axis of the scaling
SCALED = {"M": "num_experts", "N": "num_tasks", "d": "num_features", "s": "num_samples", "T": "num_rounds"}
# log cost over log size, far out: see `operations`.
EXPECTED_SLOPES = {"M": 1, "N": 1, "d": 1, "s": 2, "T": 0}
PEER_EXPERTS = {"edge": 50}  # M of the comparison with peers, where it is not 10

_NANOSECONDS = 0.35  # an operation, about, on one core
_SECONDS = 0.15  # a call, about
# Where doubling starts from other sizes: s must stay below d, and N orthogonal signals need d to be at least N and a
# program that grows with N^2; the arrays of a batch should stay in the cache.
_ROOM = {
    "N": {"num_tasks": 2},
    "d": {"num_features": 16},
    "s": {"num_samples": 2, "num_features": 48},
    "T": {"num_rounds": 128},
}
_MOST_ROUNDS, _FEWEST_REPLICATES = 4096, 64  # narrower batches cost as much as this


@dataclasses.dataclass(frozen=True)
class Member:
    """What is timed in a group: a contender at a setting."""

    contender: str  # a name of CONTENDERS
    setting: Setting
    is_automatic: bool = False  # the batch is to be what sweeps would choose


@dataclasses.dataclass(frozen=True)
class Group:
    """What is timed in turn, in the same passes. The first member is what others are compared with."""

    part: str
    title: str
    members: tuple[Member, ...]


def operations(setting: Setting) -> float:
    """About how many operations a replicate's round takes.

    Routing and the gate step multiply M gates by d features: M d each. The update orthogonalises s columns of length d
    (d s^2) and moves one expert (d s). The metrics compare one model with N truths (N d), or with a one-hot choice of
    the M experts (M d). Drawing d s + M random numbers costs some ten operations each. So the cost of a round grows
    with M, N and d at most linearly and with s at most quadratically, in each case once its term outweighs the others,
    and does not depend on T.
    """
    m, n, d, s = setting.num_experts, setting.num_tasks, setting.num_features, setting.num_samples
    return 3 * m * d + 2 * n * d + d * s**2 + 10 * (d * s + m)


def with_rounds(setting: Setting) -> Setting:
    """The setting with so many rounds that a call of the engine takes some tenths of a second."""
    seconds = 1e-9 * _NANOSECONDS * operations(setting) * max(setting.batch, _FEWEST_REPLICATES)
    blocks = round(_SECONDS / (seconds * ROUNDS_AHEAD))
    return dataclasses.replace(setting, num_rounds=min(max(blocks, 1) * ROUNDS_AHEAD, _MOST_ROUNDS))


def quick_groups(systems: Sequence[str], precision: str, batches: Sequence[int] = ()) -> list[Group]:
    """The engine against its peers at one setting a system."""
    return [group for system in systems for group in _peer_groups(system, precision, (batches or BATCHES)[:1])]


def all_groups(systems: Sequence[str], precision: str, batches: Sequence[int] = ()) -> list[Group]:
    """The engine against its peers and between precisions, and over the grid."""
    return [
        group
        for system in systems
        for group in (
            *_peer_groups(system, precision, batches or BATCHES),
            _precision_group(system),
            *_grid_groups(system, precision, batches or GRID["batch"]),
        )
    ]


def scaling_groups(systems: Sequence[str], precision: str) -> list[Group]:
    """The engine's cost against each of M, N, d, s and T alone, doubled from a point where no other term hides it."""
    return [_scaling_group(system, precision, axis) for system in systems for axis in SCALED]


def missing(contender: Contender) -> str:
    """Why a contender cannot run here; nothing where it can."""
    needed = contender.requires
    return f"{needed} is not installed" if needed and importlib.util.find_spec(needed) is None else ""


def contender_of(name: str) -> Contender:
    """The contender called `name`. Raises: UnknownNameError."""
    if name not in CONTENDERS:
        raise unknown_name("contender", name, CONTENDERS)
    return CONTENDERS[name]


def paper_setting(system: str, precision: str, batch: int) -> Setting:
    """The sizes of a paper's own experiment."""
    sizes = _default_sizes(system)
    return with_rounds(
        Setting(system, PEER_EXPERTS.get(system, 10), **sizes, batch=batch, num_rounds=0, precision=precision)
    )


def _default_sizes(system: str) -> dict[str, Any]:
    defaults = sweepable(system).default_dims
    return {name: defaults[name] for name in SIZES}


def _peer_groups(system: str, precision: str, batches: Sequence[int]) -> Iterator[Group]:
    for batch in batches:
        setting = paper_setting(system, precision, batch)
        names = [name for name, contender in CONTENDERS.items() if system in contender.systems]
        # The engine leads; beside it, the engine at the batch that it would choose.
        members = (*(Member(name, setting) for name in names), Member(engine.NAME, setting, is_automatic=True))
        yield Group("peers", f"{system}, batch {batch}", members)


def _precision_group(system: str) -> Group:
    members = (Member(engine.NAME, paper_setting(system, each, BATCHES[0])) for each in ("float32", "float64"))
    return Group("precision", f"{system}, precisions", tuple(members))


def _grid_groups(system: str, precision: str, batches: Sequence[int]) -> Iterator[Group]:
    sizes = _default_sizes(system)
    for experts, features in itertools.product(GRID["num_experts"], GRID["num_features"]):
        # The papers have s = 0.6 d at d = 10: a small d asks for fewer samples.
        sizes |= {
            "num_features": features,
            "num_samples": min(_default_sizes(system)["num_samples"], 3 * features // 5),
        }
        base = Setting(system, experts, **sizes, batch=1, num_rounds=0, precision=precision)
        members = [
            Member(engine.NAME, with_rounds(dataclasses.replace(base, batch=batch)), is_automatic)
            for batch, is_automatic in [*((batch, False) for batch in batches), (1, True)]
        ]
        yield Group("grid", f"{system}, M = {experts}, d = {features}", tuple(members))


def _scaling_group(system: str, precision: str, axis: str) -> Group:
    base = with_rounds(Setting(system, 8, 8, 32, 4, batch=SCALING_BATCH, num_rounds=0, precision=precision))
    base = dataclasses.replace(base, **_ROOM.get(axis, {}))
    name = SCALED[axis]
    members = []
    for doubling in range(DOUBLINGS):
        setting = dataclasses.replace(base, **{name: getattr(base, name) * 2**doubling})
        members.append(Member(engine.NAME, setting if axis == "T" else with_rounds(setting)))
    return Group(f"scaling {axis}", f"{system}, growing {axis}", tuple(members))
