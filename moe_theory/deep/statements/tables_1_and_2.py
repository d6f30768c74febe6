"""Tables 1 and 2 of `continual`, average incremental accuracy by number of experts and by termination."""

import itertools

from moe_theory.deep import experiments
from moe_theory.deep.experiments import MOSTLY, Measure, average_accuracy, by_size, of_experts
from moe_theory.deep.statements.setting import statement


def is_below(lower: Measure, higher: Measure) -> Measure:
    """Return the measure of whether each lower accuracy is below the higher one, by run (V, B)."""
    return lambda runs: lower(runs) < higher(runs)


for table, experiment, sizes in (  # in the paper, with termination, accuracy rises along the sizes
    ("table-1", experiments.CIFAR100, (1, 8, 10)),
    ("table-2", experiments.TINY_IMAGENET, (1, 10, 8)),
):
    table_statement = statement(table, module=__name__)
    several = tuple(sorted(sizes[1:]))  # numbers of experts above 1
    endless = of_experts(average_accuracy, several, terminate=False)
    table_statement.ours(
        f"{table}.order",
        experiment,
        MOSTLY,
        labels=[f"M = {lower} below M = {higher}" for lower, higher in itertools.pairwise(sizes)],
    )(is_below(of_experts(average_accuracy, sizes[:-1]), of_experts(average_accuracy, sizes[1:])))
    table_statement.ours(f"{table}.termination", experiment, MOSTLY, labels=by_size(several))(
        is_below(endless, of_experts(average_accuracy, several))
    )
    table_statement.ours(f"{table}.below-one", experiment, MOSTLY, labels=by_size(several))(
        is_below(endless, of_experts(average_accuracy, (1,) * len(several)))
    )
