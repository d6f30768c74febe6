"""Tables 1 and 2: average incremental accuracies of deep experts on CIFAR-100 and Tiny ImageNet."""

from collections.abc import Sequence

from moe_theory.deep.claims.values import average_accuracy, by_size, named, of_experts
from moe_theory.deep.experiments import CIFAR100, TINY_IMAGENET
from moe_theory.verify import Experiment
from moe_theory.verify.claim import claim


def _declare_table(table: str, where: str, runs_of: Experiment, order: Sequence[int]) -> None:
    """Claims of a table in which accuracy rises along `order`, numbers of experts with termination."""
    lower, higher, others = order[:-1], order[1:], tuple(sorted(order[1:]))

    @claim(f"deep.{table}.order", paper="deep", where=f"continual, {where}", kind="ordering")
    class Order:
        __doc__ = f"Average incremental accuracy, with termination, rises from M = {' to '.join(map(str, order))}."
        formula = " < ".join(rf"\mathbb{{E}}[\bar A \mid M = {size}]" for size in order)
        experiment = runs_of
        labels = named(*(f"M = {one} below M = {other}" for one, other in zip(lower, higher, strict=True)))
        observe = of_experts(average_accuracy, lower)
        predict = of_experts(average_accuracy, higher)

    @claim(f"deep.{table}.termination", paper="deep", where=f"continual, {where}", kind="ordering")
    class Termination:
        """Without termination average incremental accuracy is below that of the same experts with it."""

        formula = r"\mathbb{E}[\bar A \mid \text{endless}] < \mathbb{E}[\bar A \mid \text{terminate}]"
        experiment = runs_of
        labels = by_size(others)
        observe = of_experts(average_accuracy, others, terminate=False)
        predict = of_experts(average_accuracy, others)

    @claim(f"deep.{table}.below-one", paper="deep", where=f"continual, {where}", kind="ordering")
    class BelowOne:
        """Without termination average incremental accuracy is even below that of a single expert."""

        formula = r"\mathbb{E}[\bar A \mid \text{endless}] < \mathbb{E}[\bar A \mid M = 1]"
        experiment = runs_of
        labels = by_size(others)
        observe = of_experts(average_accuracy, others, terminate=False)
        predict = of_experts(average_accuracy, (1,) * len(others))


_declare_table("table-1", "Appendix A.5, Table 1, CIFAR-100", CIFAR100, (1, 8, 10))
_declare_table("table-2", "Appendix A.6, Table 2, Tiny ImageNet", TINY_IMAGENET, (1, 10, 8))
