"""Figs. 3 to 7 and Tables 1 and 2 of the continual-learning paper: deep experts, with and without termination."""

from collections.abc import Sequence
from typing import NamedTuple

from moe_theory.deep import experiments
from moe_theory.verify import Experiment
from moe_theory.verify.claim import claim
from moe_theory.verify.components import named


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
