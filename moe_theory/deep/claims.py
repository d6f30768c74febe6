"""Claims about the papers' deep experiments, registered in the order in which reports list them."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from moe_theory.deep import experiments
from moe_theory.deep.experiments import DRIVE, DRIVE_EXPERTS, EDGE_MNIST, STRONG, WEAK, drive_cell, final
from moe_theory.deep.gate import FREEZING_DRIVES
from moe_theory.deep.presets import server_cell
from moe_theory.runs import Run
from moe_theory.verify import Experiment
from moe_theory.verify.claim import Runs, Values, claim, excess, named, over


class Panel(NamedTuple):
    """A metric of a figure; smaller is better."""

    short: str  # in a claim's id
    words: str  # for a smaller value
    metric: experiments.Metric
    symbol: str  # LaTeX


ERROR = Panel("error", "a smaller generalization error", experiments.final("generalization_error"), "G_T")
FORGETTING = Panel("forgetting", "less forgetting", experiments.final("forgetting"), "F_T")
MISSES = Panel("accuracy", "a smaller error rate", lambda run: 1 - experiments.final("accuracy")(run), "1 - A_T")


class Figure(NamedTuple):
    where: str
    experiment: Experiment
    sizes: tuple[int, ...]  # numbers M of experts above 1
    panels: tuple[Panel, ...]


FIGURES = {
    "figure-3": Figure("Sec. 6, Fig. 3, CIFAR-10", experiments.CIFAR10, (4, 12), (ERROR, MISSES)),
    "figure-4": Figure("Appendix A.3, Fig. 4, CIFAR-10", experiments.CIFAR10, (4,), (FORGETTING,)),
    "figure-5": Figure("Appendix A.4, Fig. 5, MNIST", experiments.MNIST, (4, 7), (FORGETTING, ERROR)),
    "figure-6": Figure("Appendix A.5, Fig. 6, CIFAR-100", experiments.CIFAR100, (8, 10), (FORGETTING, ERROR)),
    "figure-7": Figure("Appendix A.6, Fig. 7, Tiny ImageNet", experiments.TINY_IMAGENET, (8, 10), (FORGETTING, ERROR)),
}


def _declare(name: str, figure: Figure, panel: Panel) -> None:
    sizes, sign, words = figure.sizes, panel.symbol, panel.words
    listed = ", ".join(map(str, sizes))
    among = rf"\quad M \in \{{{listed}\}}" if len(sizes) > 1 else rf"\quad M = {listed}"

    @claim(f"deep.{name}.moe-{panel.short}", paper="deep", where=f"continual, {figure.where}", kind="ordering")
    class Moe:
        __doc__ = f"With termination a Mixture-of-Experts (M = {listed}) ends with {words} than a single expert."
        formula = rf"\mathbb{{E}}[{sign} \mid M] < \mathbb{{E}}[{sign} \mid M = 1], {among}"
        experiment = figure.experiment
        labels = experiments.by_size(sizes)
        observe = experiments.of_experts(panel.metric, sizes)
        predict = experiments.of_experts(panel.metric, (1,) * len(sizes))

    @claim(f"deep.{name}.termination-{panel.short}", paper="deep", where=f"continual, {figure.where}", kind="ordering")
    class Termination:
        __doc__ = f"Terminating the gate updates ends with {words} than never terminating them (M = {listed})."
        formula = rf"\mathbb{{E}}[{sign} \mid \text{{terminate}}] < \mathbb{{E}}[{sign} \mid \text{{no termination}}], "
        formula += among
        experiment = figure.experiment
        labels = experiments.by_size(sizes)
        observe = experiments.of_experts(panel.metric, sizes)
        predict = experiments.of_experts(panel.metric, sizes, terminate=False)


for _name, _figure in FIGURES.items():
    for _panel in _figure.panels:
        _declare(_name, _figure, _panel)


def _declare_table(table: str, where: str, runs_of: Experiment, order: Sequence[int]) -> None:
    """Claims of a table in which accuracy rises along `order`, numbers of experts with termination."""
    lower, higher, others = order[:-1], order[1:], tuple(sorted(order[1:]))

    @claim(f"deep.{table}.order", paper="deep", where=f"continual, {where}", kind="ordering")
    class Order:
        __doc__ = f"Average incremental accuracy, with termination, rises from M = {' to '.join(map(str, order))}."
        formula = " < ".join(rf"\mathbb{{E}}[\bar A \mid M = {size}]" for size in order)
        experiment = runs_of
        labels = named(*(f"M = {one} below M = {other}" for one, other in zip(lower, higher, strict=True)))
        observe = experiments.of_experts(experiments.average_accuracy, lower)
        predict = experiments.of_experts(experiments.average_accuracy, higher)

    @claim(f"deep.{table}.termination", paper="deep", where=f"continual, {where}", kind="ordering")
    class Termination:
        """Without termination average incremental accuracy is below that of the same experts with it."""

        formula = r"\mathbb{E}[\bar A \mid \text{no termination}] < \mathbb{E}[\bar A \mid \text{terminate}]"
        experiment = runs_of
        labels = experiments.by_size(others)
        observe = experiments.of_experts(experiments.average_accuracy, others, terminate=False)
        predict = experiments.of_experts(experiments.average_accuracy, others)

    @claim(f"deep.{table}.below-one", paper="deep", where=f"continual, {where}", kind="ordering")
    class BelowOne:
        """Without termination average incremental accuracy is even below that of a single expert."""

        formula = r"\mathbb{E}[\bar A \mid \text{no termination}] < \mathbb{E}[\bar A \mid M = 1]"
        experiment = runs_of
        labels = experiments.by_size(others)
        observe = experiments.of_experts(experiments.average_accuracy, others, terminate=False)
        predict = experiments.of_experts(experiments.average_accuracy, (1,) * len(others))


_declare_table("table-1", "Appendix A.5, Table 1, CIFAR-100", experiments.CIFAR100, (1, 8, 10))
_declare_table("table-2", "Appendix A.6, Table 2, Tiny ImageNet", experiments.TINY_IMAGENET, (1, 10, 8))


DRIVE_WHERE = "continual, Sec. 6: Key design II beyond linear models"
LOW_DRIVE, HIGH_DRIVE = FREEZING_DRIVES  # kappa below which a router does not freeze by itself, and above which it does
NECESSARY = 1.25  # our reading of "poor performance": an error 25 % larger


def _drive_errors(scale: float, terminate: bool, factor: float = 1.0) -> Values:
    values = over([drive_cell(scale, terminate)], final("generalization_error"))
    return lambda runs: factor * values(runs)


def _has_drive(scale: float, words: str, holds: Callable[[float], bool]) -> Callable[[Any, Runs], list]:
    def check(dims: Any, runs: Runs) -> list[tuple[str, bool]]:
        del dims
        median = float(np.median(np.asarray(runs[drive_cell(scale, False)].records.drive)))
        return [(f"the median of kappa is {words}", holds(median))]

    return check


_HAS_LOW_DRIVE = _has_drive(WEAK, f"below {LOW_DRIVE:g}", lambda median: median < LOW_DRIVE)
_HAS_HIGH_DRIVE = _has_drive(STRONG, f"above {HIGH_DRIVE:g}", lambda median: median > HIGH_DRIVE)


@claim("deep.drive.weak", paper="deep", where=DRIVE_WHERE, kind="lower_bound")
class Weak:
    """Where gate steps move the router little (kappa below 10), never terminating costs at least 25 % more error."""

    formula = r"\mathbb{E}[G_T \mid \text{no termination}] \ge \frac{5}{4} \mathbb{E}[G_T \mid \text{terminate}]"
    experiment = DRIVE
    labels = named(f"M = {DRIVE_EXPERTS}")
    hypotheses = _HAS_LOW_DRIVE
    observe = _drive_errors(WEAK, terminate=False)
    predict = _drive_errors(WEAK, terminate=True, factor=NECESSARY)


@claim("deep.drive.strong", paper="deep", where=DRIVE_WHERE, kind="lower_bound", replaced_by="deep.drive.superfluous")
class Strong:
    """Where gate steps move the router far (kappa above 20), never terminating costs at least 25 % more error too."""

    formula = r"\mathbb{E}[G_T \mid \text{no termination}] \ge \frac{5}{4} \mathbb{E}[G_T \mid \text{terminate}]"
    experiment = DRIVE
    labels = named(f"M = {DRIVE_EXPERTS}")
    hypotheses = _HAS_HIGH_DRIVE
    observe = _drive_errors(STRONG, terminate=False)
    predict = _drive_errors(STRONG, terminate=True, factor=NECESSARY)


@claim("deep.drive.superfluous", paper="deep", where=f"replaces {DRIVE_WHERE}", kind="upper_bound", margin=0.1)
class Superfluous:
    """Where gate steps move the router far, it freezes by itself: never terminating costs at most 10 % more error."""

    formula = r"\mathbb{E}[G_T \mid \text{no termination}] \le 1.1\, \mathbb{E}[G_T \mid \text{terminate}]"
    experiment = DRIVE
    labels = named(f"M = {DRIVE_EXPERTS}")
    hypotheses = _HAS_HIGH_DRIVE
    observe = _drive_errors(STRONG, terminate=False)
    predict = _drive_errors(STRONG, terminate=True)


EDGE_WHERE = "edge, Sec. VI, Fig. 4, MNIST"
FEW, ENOUGH = 5, 10
EXISTING = ("nearest", "fastest")
SIGMA_0 = 0.1  # in the paper
_ERROR = final("generalization_error")


def _edge_errors(num_experts: int, policies: tuple[str, ...]) -> Values:
    return over([server_cell(num_experts, policy) for policy in policies], _ERROR)


def _gains(num_experts: int, factor: float = 1.0) -> Values:
    others, adaptive = _edge_errors(num_experts, EXISTING), _edge_errors(num_experts, ("adaptive",))
    return lambda runs: factor * (others(runs) - adaptive(runs))


@claim("deep.edge-figure-4.gain", paper="deep", where=EDGE_WHERE, kind="ordering")
class Gain:
    """With 10 servers the adaptive gate has a smaller final error than the nearest and the fastest server."""

    formula = r"\mathbb{E}[G_T \mid \text{adaptive}] < \mathbb{E}[G_T \mid \text{existing}], \quad M = 10"
    experiment = EDGE_MNIST
    labels = named(*EXISTING)
    observe = _edge_errors(ENOUGH, ("adaptive",) * len(EXISTING))
    predict = _edge_errors(ENOUGH, EXISTING)


@claim("deep.edge-figure-4.chance", paper="deep", where=f"beside {EDGE_WHERE}", kind="ordering")
class Chance:
    """With 10 servers the adaptive gate also has a smaller final error than a random server."""

    formula = r"\mathbb{E}[G_T \mid \text{adaptive}] < \mathbb{E}[G_T \mid \text{uniform}], \quad M = 10"
    experiment = EDGE_MNIST
    labels = named("uniform")
    observe = _edge_errors(ENOUGH, ("adaptive",))
    predict = _edge_errors(ENOUGH, ("uniform",))


@claim("deep.edge-figure-4.too-few", paper="deep", where=EDGE_WHERE, kind="ordering")
class TooFew:
    """With 5 servers the adaptive gate fails too: its gain is less than half of that with 10."""

    formula = r"\mathbb{E}[G_T^{\text{existing}} - G_T^{\text{adaptive}} \mid M = 5] < \frac{1}{2} "
    formula += r"\mathbb{E}[G_T^{\text{existing}} - G_T^{\text{adaptive}} \mid M = 10]"
    experiment = EDGE_MNIST
    labels = named(*EXISTING)
    observe = _gains(FEW)
    predict = _gains(ENOUGH, factor=0.5)


@claim("deep.edge-figure-4.large-error", paper="deep", where=EDGE_WHERE, kind="ordering")
class LargeError:
    """The adaptive gate has a larger final error with 5 servers than with 10."""

    formula = r"\mathbb{E}[G_T \mid M = 10] < \mathbb{E}[G_T \mid M = 5]"
    experiment = EDGE_MNIST
    labels = named("adaptive")
    observe = _edge_errors(ENOUGH, ("adaptive",))
    predict = _edge_errors(FEW, ("adaptive",))


def _variance(run: Run) -> np.ndarray:
    return np.asarray(run.records.variance[-1], np.float64)


def _declare_sigma_0(id: str, words: str, power: float) -> None:
    @claim(
        id, paper="deep", where=EDGE_WHERE, kind="equality", margin=0.2, replaced_by="deep.edge-figure-4.sigma-0-bound"
    )
    class Sigma0:
        __doc__ = f"Across tasks an element of the normalised mean images has a {words} of 0.1, within 20 %."
        formula = r"\sigma_0 = 0.1"
        experiment = EDGE_MNIST
        labels = named(words)
        observe = over([server_cell(ENOUGH)], lambda run: _variance(run) ** power)
        predict = staticmethod(lambda runs: SIGMA_0)


_declare_sigma_0("deep.edge-figure-4.sigma-0", "variance", 1.0)
_declare_sigma_0("deep.edge-figure-4.sigma-0-deviation", "deviation", 0.5)


@claim("deep.edge-figure-4.sigma-0-bound", paper="deep", where=f"replaces {EDGE_WHERE}", kind="identity", margin=1e-6)
class Sigma0Bound:
    """Images of norm 1 and p pixels have a mean variance of at most 1/p: a deviation of 0.1 needs p < 100."""

    formula = r"p \sigma_0^2 \le 1"
    experiment = EDGE_MNIST
    labels = named("sum of the elements' variances")
    observe = over([server_cell(ENOUGH)], lambda run: excess(np.asarray(run.records.total_variance[-1]), 1.0))
