"""Tables 1 and 2 of `continual`: average incremental accuracy by the number of experts and by termination."""

from moe_theory.deep import experiments
from moe_theory.deep.experiments import EXPLORES, MOSTLY, Measure, average_accuracy, by_size, of_experts
from moe_theory.verify.statement import statement

UNLIKE = (
    "The accuracy is among six classes, as one expert's 17 %, 1/6, tells, of ResNet-18 on images that are not here; "
    "runs here tell one class from the rest, where chance is 1/2: to be worse than one expert is another event."
)
AS_PRINTED = "Its own numbers are in that order. What would decide it: accuracy among six classes on those images."
BELOW = r"""$$\mathbb{P}\left( \bar A^{\text{no termination}} < \bar A^{%s} \right) \ge \frac{1}{2}$$"""


def mostly_below(runs_below: Measure, others: Measure) -> Measure:
    """Whether each accuracy is below another one, run by run (V, B)."""
    return lambda runs: runs_below(runs) < others(runs)


for table, where, says, runs, sizes in (  # accuracy rises along the sizes, with termination
    (
        "table-1",
        "Appendix A.5, Table 1, CIFAR-100",
        "Average incremental accuracy grows from M = 1 to 8 to 10 with termination, and without it is below that of "
        "one expert.",
        experiments.CIFAR100,
        (1, 8, 10),
    ),
    (
        "table-2",
        "Appendix A.6, Table 2, Tiny ImageNet",
        "Average incremental accuracy is best at M = 8 and then M = 10 with termination, and without it is below that "
        "of one expert.",
        experiments.TINY_IMAGENET,
        (1, 10, 8),
    ),
):
    made = statement(
        table, paper="continual", where=where, says=says, hypotheses=[EXPLORES], untestable=UNLIKE, note=AS_PRINTED
    )
    lower, higher, others = sizes[:-1], sizes[1:], tuple(sorted(sizes[1:]))
    endless = of_experts(average_accuracy, others, terminate=False)
    made.ours(
        f"{table}.order",
        runs,
        MOSTLY,
        labels=[f"M = {one} below M = {other}" for one, other in zip(lower, higher, strict=True)],
    ).says(
        f"In most runs average incremental accuracy, with termination, rises from M = {' to '.join(map(str, sizes))}."
        r"$$\mathbb{P}\left( \bar A^{(M)} < \bar A^{(M')} \right) \ge \frac{1}{2}$$"
    )(mostly_below(of_experts(average_accuracy, lower), of_experts(average_accuracy, higher)))
    made.ours(f"{table}.termination", runs, MOSTLY, labels=by_size(others)).says(
        "In most runs average incremental accuracy without termination is below that of the same experts with it."
        + BELOW % r"\text{terminate}"
    )(mostly_below(endless, of_experts(average_accuracy, others)))
    made.ours(f"{table}.below-one", runs, MOSTLY, labels=by_size(others)).says(
        "In most runs average incremental accuracy without termination is even below that of a single expert."
        + BELOW % "M = 1"
    )(mostly_below(endless, of_experts(average_accuracy, (1,) * len(others))))
