"""Figs. 3 to 7: errors, forgetting and accuracies of deep experts, with and without termination of the gates."""

from typing import NamedTuple

from moe_theory.deep.claims.values import Measured, by_size, final, of_experts
from moe_theory.deep.experiments import CIFAR10, CIFAR100, MNIST, TINY_IMAGENET
from moe_theory.verify import Experiment
from moe_theory.verify.claim import claim


class Metric(NamedTuple):
    """What a panel of a figure shows; the smaller the better."""

    short: str  # in a claim's id
    words: str  # what an end that is better ends in
    value: Measured
    sign: str  # LaTeX


ERROR = Metric("error", "a smaller overall generalization error", final("generalization_error"), "G_T")
FORGETTING = Metric("forgetting", "less forgetting", final("forgetting"), "F_T")
MISSES = Metric("accuracy", "a smaller share of wrong answers", lambda run: 1 - final("accuracy")(run), "1 - A_T")


class Figure(NamedTuple):
    """What a figure compares."""

    where: str
    experiment: Experiment
    sizes: tuple[int, ...]  # numbers M of experts above 1
    metrics: tuple[Metric, ...]


FIGURES = {
    "figure-3": Figure("Sec. 6, Fig. 3, CIFAR-10", CIFAR10, (4, 12), (ERROR, MISSES)),
    "figure-4": Figure("Appendix A.3, Fig. 4, CIFAR-10", CIFAR10, (4,), (FORGETTING,)),
    "figure-5": Figure("Appendix A.4, Fig. 5, MNIST", MNIST, (4, 7), (FORGETTING, ERROR)),
    "figure-6": Figure("Appendix A.5, Fig. 6, CIFAR-100", CIFAR100, (8, 10), (FORGETTING, ERROR)),
    "figure-7": Figure("Appendix A.6, Fig. 7, Tiny ImageNet", TINY_IMAGENET, (8, 10), (FORGETTING, ERROR)),
}


def _declare(name: str, figure: Figure, metric: Metric) -> None:
    sizes, sign, words = figure.sizes, metric.sign, metric.words
    listed = ", ".join(map(str, sizes))
    among = rf"\quad M \in \{{{listed}\}}" if len(sizes) > 1 else rf"\quad M = {listed}"

    @claim(f"deep.{name}.moe-{metric.short}", paper="deep", where=f"continual, {figure.where}", kind="ordering")
    class Moe:
        __doc__ = f"With termination a Mixture-of-Experts (M = {listed}) ends in {words} than a single expert."
        formula = rf"\mathbb{{E}}[{sign} \mid M] < \mathbb{{E}}[{sign} \mid M = 1], {among}"
        experiment = figure.experiment
        labels = by_size(sizes)
        observe = of_experts(metric.value, sizes)
        predict = of_experts(metric.value, (1,) * len(sizes))

    @claim(f"deep.{name}.termination-{metric.short}", paper="deep", where=f"continual, {figure.where}", kind="ordering")
    class Termination:
        __doc__ = f"Terminating the updates of the gates ends in {words} than updating for ever (M = {listed})."
        formula = rf"\mathbb{{E}}[{sign} \mid \text{{terminate}}] < \mathbb{{E}}[{sign} \mid \text{{endless}}], {among}"
        experiment = figure.experiment
        labels = by_size(sizes)
        observe = of_experts(metric.value, sizes)
        predict = of_experts(metric.value, sizes, terminate=False)


for _name, _figure in FIGURES.items():
    for _metric in _figure.metrics:
        _declare(_name, _figure, _metric)
