"""The evaluation's sentences: accuracy on a trained MoE, latency and memory of every build, Figs. 6 and 7.

Latency and memory are of this package's small transformer, on this machine; each verdict names the build of its rival.
"""

import itertools
from collections.abc import Callable

import numpy as np

from moe_theory.merging import policies, uncertainty
from moe_theory.merging.claims.values import claim, half, in_most, mean_value, over, recorded
from moe_theory.merging.experiments import (
    ABLATION,
    BATCH,
    LATE,
    LEARNING_RATES,
    NUM_ROUNDS,
    ROUTED_EXPERTS,
    ROUTING,
    SMOOTHNESS_RATIOS,
    STEP_EXPERTS,
    STEPS,
    TESTBED_METHODS,
    TESTBEDS,
    TIMED,
    TIMES,
    experts_cell,
    rate_cell,
    ratio_cell,
    routed_cell,
)
from moe_theory.merging.serving.methods import MERGED
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, Values, named

LEAST_GAIN = 0.05  # of accuracy, Section V-C
LEAVES = 20  # feasible ones that Fig. 6 counts steps to
EARLY = 128  # slots in which a network is still to converge
MOST_SECONDS = 0.4e-3  # Section V-D, at K = 192
_GAIN = r"\mathbb{P}(a_{\text{Tanbr}} - a"
_ACCURACY = r"\mathbb{P}(a_{\text{%s}} < a_{\text{%s}}) \ge \frac{1}{2}"


def late_accuracy(cell: str) -> Values:
    """Mean accuracy over the last slots (B,)."""
    return lambda runs: recorded(runs[cell], "accuracy")[-LATE:].mean(axis=0)


def _declare_order(id: str, where: str, worse: str, better: str, mix: str, replaced_by: str | None = None) -> None:
    """On most streams one way to serve ends more accurate than another."""

    @claim(id, where=where, kind="probability", replaced_by=replaced_by)
    class Order:
        __doc__ = f"With a {mix} task mix `{better}` ends more accurate than `{worse}` on most streams."
        formula = _ACCURACY % (worse, better)
        experiment = TESTBEDS[mix]
        side = "at_least"
        observe = in_most(late_accuracy(worse), late_accuracy(better))
        predict = half


def _declare_accuracy(method: str, mix: str, is_ahead: bool) -> None:
    """Tanbr against one way to serve on the trained model; beside it the reverse, where that is what is seen."""
    id, other = f"merging.table-2.{method}-{mix}", f"merging.table-2.{method}-ahead-{mix}"
    where = f"Figs. 3 and 4, Table II, on the digits testbed with a {mix} task mix"
    _declare_order(id, where, method, policies.TANBR, mix, other if is_ahead else None)
    if is_ahead:
        _declare_order(other, f"replaces {where}", policies.TANBR, method, mix)


def _declare_gain(method: str) -> None:
    """That Tanbr is ahead of a rival by what the paper says."""

    @claim(
        f"merging.figure-5.gain-{method}",
        where=f"Section V-C: ahead by 5 to 10 % with dynamic task features, of `{method}`, on the digits testbed",
        kind="probability",
    )
    class Gain:
        __doc__ = f"With a drifting mix Tanbr ends more accurate than `{method}` by at least .05 on most streams."
        formula = _GAIN + r"_{\text{" + method + r"}} \ge 0.05) \ge \frac{1}{2}"
        experiment = TESTBEDS["dynamic"]
        side = "at_least"
        observe = staticmethod(
            lambda runs: late_accuracy(policies.TANBR)(runs) - late_accuracy(method)(runs) >= LEAST_GAIN
        )
        predict = half


for _method in ("average", "fisher", "regmean", policies.NUCB):
    _declare_gain(_method)
AHEAD = ("task-top-1-dense", policies.MIX)
for _mix in TESTBEDS:
    for _method in (*TESTBED_METHODS, policies.NUCB, policies.UNIFORM, policies.MIX):
        _declare_accuracy(_method, _mix, _method in AHEAD)


def _faster(method: str, rival: str, share: float) -> Values:
    """Whether a method serves a batch in `share` of a rival's time, in each repetition."""
    return lambda runs: _seconds(runs, method) <= share * _seconds(runs, rival)


def _seconds(runs: Runs, name: str) -> np.ndarray:
    return np.asarray(runs[BATCH].records[name].serving[0], np.float64)


def _declare_latency(id: str, where: str, rival: str, saving: float) -> None:
    @claim(id, where=where, kind="probability")
    class Faster:
        __doc__ = (
            f"In most repetitions one merged expert serves a batch in at least {saving:.0%} less time than `{rival}`."
        )
        formula = (
            rf"\mathbb{{P}}(s_{{\text{{merged}}}} \le {1 - saving:.2g} s_{{\text{{{rival}}}}}) \ge \frac{{1}}{{2}}"
        )
        experiment = TIMES
        side = "at_least"
        observe = _faster(MERGED, rival, 1 - saving)
        predict = half


for _rival in TIMED:
    _declare_latency(
        f"merging.abstract.latency-{_rival}",
        f"Abstract: at least 45 %, against `{_rival}`, merging not counted",
        _rival,
        0.45,
    )
for _rival in ("token-top-1-capacity", "rl-capacity"):
    _declare_latency(
        f"merging.figure-3.latency-{_rival}",
        f"Section V-B: 65 %, against `{_rival}`, merging not counted",
        _rival,
        0.65,
    )
for _rival in ("smear-token-linear", "smear-token-materialised"):
    _declare_latency(
        f"merging.figure-3.latency-{_rival}",
        f"Section V-B: nearly 99 %, against `{_rival}`, merging not counted",
        _rival,
        0.98,
    )


def _declare_task_routing(build: str, token: str) -> None:
    @claim(
        f"merging.table-1.task-routing-{build}",
        where=f"Table I and Section I: about 35 %, `{build}` against `{token}`",
        kind="probability",
    )
    class TaskRouting:
        __doc__ = f"In most repetitions `{build}` serves a batch in at least 30 % less time than `{token}`."
        formula = r"\mathbb{P}(s_{\text{task}} \le 0.7 s_{\text{token}}) \ge \frac{1}{2}"
        experiment = TIMES
        side = "at_least"
        observe = _faster(build, token, 0.7)
        predict = half


for _build in ("task-top-1-one-task", "task-top-1-capacity"):
    _declare_task_routing(_build, "token-top-1-capacity")


def _bytes(name: str, field: str) -> Callable[[Runs], np.ndarray]:
    return lambda runs: np.asarray(getattr(runs[BATCH].records[name], field)[0], np.float64)


def _declare_memory(name: str, field: str, where: str, words: str, share: float, is_at_most: bool) -> None:
    """Bytes with one merged expert as a share of those with all experts."""

    @claim(f"merging.{name}", where=where, kind="upper_bound" if is_at_most else "lower_bound")
    class Memory:
        __doc__ = words
        formula = r"\frac{{b_{{\text{{merged}}}}}}{{b_{{\text{{all}}}}}} {} {:g}".format(
            r"\le" if is_at_most else r"\ge", share
        )
        experiment = TIMES
        labels = named("share of the bytes")
        observe = staticmethod(lambda runs: _bytes(MERGED, field)(runs) / _bytes("token-top-1-capacity", field)(runs))
        predict = staticmethod(lambda runs: share)


_declare_memory(
    "abstract.memory-loaded",
    "loaded_bytes",
    "Abstract and Section V-B: 20 to 25 %, of parameters",
    "One merged expert a layer takes at least 20 % fewer bytes of parameters than all experts.",
    0.8,
    True,
)
_declare_memory(
    "abstract.memory-loaded-at-most",
    "loaded_bytes",
    "Abstract: up to 25 %, of parameters",
    "One merged expert a layer takes no less than 75 % of the bytes of parameters of all experts.",
    0.75,
    False,
)
_declare_memory(
    "abstract.memory-peak",
    "peak_bytes",
    "Abstract and Section V-B: 20 to 25 %, of the whole program that serves a batch",
    "The program that serves a batch by one merged expert needs at least 20 % fewer bytes than by all of them.",
    0.8,
    True,
)


def _routing(cell: str) -> Values:
    """Seconds of a choice in each repetition (B,)."""
    return lambda runs: np.asarray(runs[cell].records.seconds[0], np.float64)


def _declare_routing_time(id: str, form: str, how: str) -> None:
    @claim(id, where=f"Section V-D, Fig. 6: below 0.4 ms, {how}", kind="probability")
    class RoutingTime:
        __doc__ = f"In most repetitions Tanbr, {how}, chooses among 20 leaves for K = 192 experts in less than 0.4 ms."
        formula = r"\mathbb{P}(s_{192} < 0.4 \text{ms}) \ge \frac{1}{2}"
        experiment = ROUTING
        side = "at_least"
        observe = staticmethod(lambda runs: _routing(routed_cell(192, form))(runs) < MOST_SECONDS)
        predict = half


_declare_routing_time("merging.figure-6.routing-time", uncertainty.DIAGONAL, "with the diagonal of Z")
_declare_routing_time("merging.figure-6.routing-time-exact", uncertainty.EXACT, "with all of Z")


@claim("merging.figure-6.routing-grows", where="Section V-D, Fig. 6", kind="probability")
class RoutingGrows:
    """In most repetitions a choice, with the diagonal of Z, takes longer the more experts there are."""

    formula = r"\mathbb{P}(s_K < s_{K'}) \ge \frac{1}{2}, \quad K < K'"
    experiment = ROUTING
    side = "at_least"
    labels = named(*(f"K = {number}" for number in ROUTED_EXPERTS[1:]))
    observe = staticmethod(
        lambda runs: np.stack(
            [
                _routing(routed_cell(one))(runs) < _routing(routed_cell(other))(runs)
                for one, other in itertools.pairwise(ROUTED_EXPERTS)
            ],
            axis=1,
        )
    )
    predict = half


def _steps(experts: tuple[int, ...]) -> Values:
    """Slots until there are 20 feasible leaves; all slots and one where there never are."""
    return over([experts_cell(number) for number in experts], _first_slot)


def _first_slot(run: Run) -> np.ndarray:
    enough = np.asarray(run.records.num_active) >= LEAVES
    return np.where(enough.any(axis=0), 1.0 + np.argmax(enough, axis=0), 1.0 + len(enough))


@claim("merging.figure-6.steps-grow", where="Section V-D, Fig. 6", kind="ordering")
class StepsGrow:
    """With more experts it takes more slots until a tree whose leaves are picked at random has 20 feasible ones."""

    formula = r"\mathbb{E}[t_{20}(K)] < \mathbb{E}[t_{20}(K')], \quad K < K'"
    experiment = STEPS
    labels = named(*(f"K = {number}" for number in STEP_EXPERTS[1:]))
    observe = _steps(STEP_EXPERTS[:-1])
    predict = _steps(STEP_EXPERTS[1:])


_BY_RATIO = named(*(f"rho = {one:g} against {other:g}" for one, other in itertools.pairwise(SMOOTHNESS_RATIOS)))
_RATIO_CELLS = [ratio_cell(ratio) for ratio in SMOOTHNESS_RATIOS]
_RATE_CELLS = [rate_cell(rate) for rate in LEARNING_RATES]
_END = NUM_ROUNDS


@claim("merging.figure-7.conservative", where="Section V-D, Fig. 7", kind="probability")
class Conservative:
    """A smaller rho makes the tree split later: in most worlds it has fewer candidates in the end."""

    formula = r"N_T(\rho) < N_T(\rho'), \quad \rho < \rho'"
    experiment = ABLATION
    side = "at_least"
    labels = _BY_RATIO
    observe = in_most(
        over(_RATIO_CELLS[:-1], lambda run: recorded(run, "num_leaves")[-1]),
        over(_RATIO_CELLS[1:], lambda run: recorded(run, "num_leaves")[-1]),
    )
    predict = half


@claim("merging.figure-7.small-ratio", where="Section V-D, Fig. 7", kind="probability")
class SmallRatio:
    """A smaller rho ends, in most worlds, in a lower mean reward over the last quarter of the slots."""

    formula = r"\bar{f}(\rho) < \bar{f}(\rho'), \quad \rho < \rho'"
    experiment = ABLATION
    side = "at_least"
    labels = _BY_RATIO
    observe = in_most(
        over(_RATIO_CELLS[:-1], lambda run: mean_value(run, _END - EARLY, _END)),
        over(_RATIO_CELLS[1:], lambda run: mean_value(run, _END - EARLY, _END)),
    )
    predict = half


@claim("merging.figure-7.fast-start", where="Section V-D, Fig. 7", kind="probability")
class FastStart:
    """A smaller rho learns faster at first: in most worlds the mean reward of the first quarter is higher."""

    formula = r"\bar{f}(\rho') < \bar{f}(\rho), \quad \rho < \rho'"
    experiment = ABLATION
    side = "at_least"
    labels = _BY_RATIO
    observe = in_most(
        over(_RATIO_CELLS[1:], lambda run: mean_value(run, 0, EARLY)),
        over(_RATIO_CELLS[:-1], lambda run: mean_value(run, 0, EARLY)),
    )
    predict = half


@claim("merging.figure-7.learning-rate", where="Section V-D, Fig. 7", kind="probability")
class LearningRate:
    """A larger learning rate converges faster: in most worlds the mean reward of the first quarter is higher."""

    formula = r"\bar{f}(\eta) < \bar{f}(\eta'), \quad \eta < \eta'"
    experiment = ABLATION
    side = "at_least"
    labels = named(*(f"{rate:g}" for rate in LEARNING_RATES[1:]))
    observe = in_most(
        over(_RATE_CELLS[:-1], lambda run: mean_value(run, 0, EARLY)),
        over(_RATE_CELLS[1:], lambda run: mean_value(run, 0, EARLY)),
    )
    predict = half
