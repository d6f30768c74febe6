"""Tables 1 and 2 of `continual`, average incremental accuracy by number of experts and by termination."""

from moe_theory.deep import experiments
from moe_theory.deep.experiments import MOSTLY, Measure, average_accuracy, by_size, of_experts
from moe_theory.deep.statements.setting import statement


def mostly_below(runs_below: Measure, others: Measure) -> Measure:
    """Return whether each accuracy is below another, by run (V, B)."""
    return lambda runs: runs_below(runs) < others(runs)


for table, runs, sizes in (  # with termination, accuracy rises along the sizes
    ("table-1", experiments.CIFAR100, (1, 8, 10)),
    ("table-2", experiments.TINY_IMAGENET, (1, 10, 8)),
):
    of_table = statement(table, module=__name__)
    lower = sizes[:-1]
    higher = sizes[1:]
    others = tuple(sorted(sizes[1:]))
    endless = of_experts(average_accuracy, others, terminate=False)
    of_table.ours(
        f"{table}.order",
        runs,
        MOSTLY,
        labels=[f"M = {one} below M = {other}" for one, other in zip(lower, higher, strict=True)],
    )(mostly_below(of_experts(average_accuracy, lower), of_experts(average_accuracy, higher)))
    of_table.ours(f"{table}.termination", runs, MOSTLY, labels=by_size(others))(
        mostly_below(endless, of_experts(average_accuracy, others))
    )
    of_table.ours(f"{table}.below-one", runs, MOSTLY, labels=by_size(others))(
        mostly_below(endless, of_experts(average_accuracy, (1,) * len(others)))
    )
