"""Scores of ways to merge on the recorded streams, and a policy's place among them.

A score is of a stream and of a phase: the share of right answers in its slots. All ways answer the same requests, so
that differences are paired by stream, and their intervals cover together.
"""

import csv
import functools
import io
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from moe_theory.core.errors import InvalidRunError, InvalidSystemError, shortened, unknown_name
from moe_theory.merging import evolution, policies
from moe_theory.merging.benchmark import runs, streams
from moe_theory.merging.benchmark.runs import Right, Told, untold
from moe_theory.merging.benchmark.streams import CONDITIONS, NUM_SLOTS, SLOT_SIZE, Condition, Testbed, Traffic
from moe_theory.merging.params import Dims
from moe_theory.merging.policies import Policy
from moe_theory.verify import intervals
from moe_theory.verify.registry import module_name, run_file

PHASES = ((1, 32), (33, 64), (65, 128), (129, 256), (257, 512))  # first and last slots
ERROR = 0.05  # that some interval of a comparison leaves out its mean
CMA_ES = "cma-es"
POLICIES = (*policies.POLICIES, CMA_ES)
NUMBERS = tuple(f"stream {number}" for number in range(streams.NUM_STREAMS))  # columns of `scores.csv`

# Settings that `benchmarks/record_streams.py --tune` found best, beside those of `policies.TUNED`, and what takes them.
TUNED: Mapping[str, Mapping[str, Any]] = {
    policies.BEST_EXPERT: {"scale": 0.021},
    policies.GRADIENT: {"noise": 0.41, "rate": 0.16},
    CMA_ES: {"scale": 0.69, "population": 12},
}
MAKERS: Mapping[str, Callable[..., Policy]] = {
    policies.BEST_EXPERT: policies.single_expert,
    policies.GRADIENT: policies.policy_gradient,
    CMA_ES: evolution.cma_es,
}

Scores = Mapping[Condition, Int[np.ndarray, "P B"]]  # right answers by phase and stream


class Ours(NamedTuple):
    """A policy to score, and what it is called."""

    name: str
    serve: Callable[[Testbed, Traffic, str, Told], Right]
    threads: int = 2  # conditions at a time: 1 for objects of a user's, which may share what is not for threads


class Difference(NamedTuple):
    """A policy's accuracy less a rival's under one condition, in the last phase that the policy has served."""

    rival: str
    condition: Condition
    accuracy: float  # the rival's
    mean: float
    low: float  # of an interval; all of a comparison cover together
    high: float


class Comparison(NamedTuple):
    """A policy among those that are recorded."""

    name: str
    accuracies: Mapping[Condition, float]  # over the slots of the last phase that it has served
    whole: Mapping[Condition, float]  # over all of its slots
    phase: tuple[int, int]  # that one's first and last slot
    differences: Sequence[Difference]

    def place(self, condition: Condition) -> tuple[int, int]:
        """Its place by accuracy among all that are recorded under a condition, and their number with it."""
        others = [each.accuracy for each in self.differences if each.condition == condition]
        return 1 + sum(other > self.accuracies[condition] for other in others), 1 + len(others)


@functools.cache
def recorded() -> Mapping[str, Scores]:
    """Scores of every way to merge that is recorded, by name.

    Raises: InvalidRunError where the streams that are made here are not those that were scored.
    """
    for tasks, known in json.loads(streams.kept("digests.json")).items():
        if streams.digest_of(tasks) != known:
            raise InvalidRunError(
                f"the streams of {tasks!r} that are made here are not those whose scores are recorded: another NumPy "
                "or scikit-learn gives other requests. Record them anew with `python -m benchmarks.record_streams`."
            )
    found: dict[str, dict[Condition, list[list[int]]]] = {}
    for row in csv.DictReader(io.StringIO(streams.kept("scores.csv").decode())):
        condition = Condition(row["tasks"], row["law"], row["mix"])
        of = found.setdefault(row["method"], {}).setdefault(condition, [])
        of.append([int(row[number]) for number in NUMBERS])
    return {name: {at: np.array(rows) for at, rows in scores.items()} for name, scores in found.items()}


def by_phase(right: Right) -> Int[np.ndarray, "P B"]:
    """Right answers in each phase that was served to its end."""
    served = [phase for phase in PHASES if phase[1] <= right.shape[1]]
    return np.stack([right[:, first - 1 : last].sum(axis=1) for first, last in served])


def built_in(name: str) -> Ours:
    """A policy of the package, with the settings that were found best for it. Raises: UnknownNameError."""
    if name in MAKERS:
        return _compiled(name, lambda _: MAKERS[name](**TUNED[name]))
    if name not in policies.POLICIES:
        raise unknown_name("policy", name, POLICIES)
    return _compiled(name, lambda dims: policies.named(name, dims), **policies.TUNED.get(name, {}))


def _compiled(name: str, make: Callable[[Dims], Policy], **settings: Any) -> Ours:
    def serve(of: Testbed, served: Traffic, mix: str, told: Told) -> Right:
        return runs.serve_compiled(make(runs.dims_of(of)), runs.params_of(of, **settings), of, served, mix, told, name)

    return Ours(name, serve)


def policy_of(place: str) -> Ours:
    """The policy that a name of the package's, or "FILE:NAME", stands for: a `merging.Policy`, or what makes a plain
    object with `choose` and `learn` of (num_experts, num_tasks, seed).

    Raises: UnknownNameError; InvalidClaimError for a file that cannot be read or run; InvalidSystemError for something
        that is no policy.
    """
    path, _, name = place.rpartition(":")
    if not path and place.endswith(".py"):
        raise InvalidRunError(f"--policy {place} names no policy in the file. Write it as FILE:NAME.")
    if not path:
        return built_in(place)
    run_file(Path(path), "--policy")
    known = vars(sys.modules[module_name(Path(path))])
    if name not in known:
        own = [key for key, each in known.items() if key[0] != "_" and (callable(each) or isinstance(each, Policy))]
        raise unknown_name("policy", name, own)
    if isinstance(known[name], Policy):
        return _compiled(place, lambda _: known[name])
    if not callable(known[name]):
        raise InvalidSystemError(
            f"--policy {place} is {shortened(known[name])}: neither a merging.Policy nor a class that is made of "
            "(num_experts, num_tasks, seed) and has choose and learn. Change it."
        )
    return Ours(place, lambda *given: runs.serve_plain(known[name], *given, place=place), threads=1)


def require_slots(num_slots: int) -> None:
    """Raise InvalidRunError unless a phase ends with so many slots: others' scores are of whole phases."""
    if num_slots not in (ends := [last for _, last in PHASES]):
        raise InvalidRunError(
            f"slots={num_slots} must be one of {', '.join(map(str, ends))}, where phases of the scores end. Change it."
        )


def score(
    of: Ours,
    num_slots: int = NUM_SLOTS,
    conditions: Sequence[Condition] = CONDITIONS,
    told: Told = untold,
) -> Scores:
    """Right answers of a policy by phase and stream, under each condition.

    Args:
        num_slots: of each stream, from its first on: as many as some phase ends with.
        told: is told of slots as they are served, all streams together.
    Raises: InvalidRunError for other numbers of slots; InvalidSystemError for a plain policy that fails or chooses
        weights outside the simplex.
    """
    require_slots(num_slots)

    def run(condition: Condition) -> Int[np.ndarray, "P B"]:
        served = Traffic(*(each[:, :num_slots] for each in streams.arrivals(condition.tasks, condition.law)))
        return by_phase(of.serve(streams.testbed(condition.tasks), served, condition.mix, told))

    with ThreadPoolExecutor(of.threads) as pool:
        return dict(zip(conditions, pool.map(run, conditions), strict=True))


def accuracies(right: Int[np.ndarray, "P B"]) -> Float[np.ndarray, "P B"]:
    """Shares of right answers by phase and stream."""
    sizes = np.array([last - first + 1 for first, last in PHASES[: len(right)]]) * SLOT_SIZE
    return right / sizes[:, None]


def compare(name: str, own: Scores, error: float = ERROR) -> Comparison:
    """A policy's scores beside all others that are recorded, over the last phase that it has served.

    Differences are paired by stream. Intervals are by Student's t, widened by what skewness moves it as those of
    verdicts are, and for 64 streams; all together leave out a mean with probability at most `error`.
    """
    others = recorded()
    number = len(next(iter(own.values())))
    pairs = [(rival, at) for rival in others if rival != name for at in own]
    last = {at: accuracies(right)[-1] for at, right in own.items()}
    theirs = [accuracies(others[rival][at])[number - 1] for rival, at in pairs]
    samples = np.stack([last[at] - their for (_, at), their in zip(pairs, theirs, strict=True)], axis=1)
    means, halves = _intervals(samples, error / len(pairs))
    rows = zip(pairs, theirs, means.tolist(), (means - halves).tolist(), (means + halves).tolist(), strict=True)
    sizes = np.array([last - first + 1 for first, last in PHASES[:number]]) / PHASES[number - 1][1]
    return Comparison(
        name,
        {at: float(each.mean()) for at, each in last.items()},
        {at: float(sizes @ accuracies(right).mean(axis=1)) for at, right in own.items()},
        PHASES[number - 1],
        [Difference(rival, at, float(their.mean()), *row) for (rival, at), their, *row in rows],
    )


def _intervals(
    samples: Float[np.ndarray, "B C"], error: float
) -> tuple[Float[np.ndarray, " C"], Float[np.ndarray, " C"]]:
    """Means, and half of the width of an interval of each; 0 where all streams are equal."""
    means, errors = intervals.mean_and_error(samples)
    critical = intervals.student_tail(error / 2, len(samples) - 1)
    shift, _ = intervals.skewness_shift(samples, critical)
    return means, np.where(intervals.varies(samples), (critical + intervals.CAUTION * shift) * errors, 0.0)
