"""What the paper says of networks, in Fig. 3 and Appendices A.3 to A.6. Claims on them are those of `deep`."""

from moe_theory.verify.statement import statement

BOTH = ("moe-error", "moe-forgetting", "termination-error", "termination-forgetting")

TRANSFER = statement(
    "figure-3-transfer",
    where="Sec. 6, Fig. 3, CIFAR-10",
    says="Several experts and early termination help deep networks in the way they help linear models.",
)
FIGURE_4 = statement(
    "figure-4",
    where="Appendix A.3, Fig. 4, CIFAR-10",
    says="The figure alone shows how deep experts forget with and without termination, for M = 1 and M = 4.",
)
FIGURE_5 = statement(
    "figure-5",
    where="Appendix A.4, Fig. 5, MNIST",
    says="""The figure alone shows the two metrics of convolutional experts with and without termination, for M = 1,
    4 and 7.""",
)
FIGURE_6 = statement(
    "figure-6",
    where="Appendix A.5, Fig. 6, CIFAR-100",
    says="The figure alone shows how deep experts learn with and without termination, for M = 1, 8 and 10.",
)
TABLE_1 = statement(
    "table-1",
    where="Appendix A.5, Table 1, CIFAR-100",
    says="""Average incremental accuracy grows from M = 1 to 8 to 10 with termination, and without it is below that
    of one expert.""",
)
FIGURE_7 = statement(
    "figure-7",
    where="Appendix A.6, Fig. 7, Tiny ImageNet",
    says="The figure alone shows how deep experts learn with and without termination, for M = 1, 8 and 10.",
)
TABLE_2 = statement(
    "table-2",
    where="Appendix A.6, Table 2, Tiny ImageNet",
    says="""Average incremental accuracy is best at M = 8 and then M = 10 with termination, and without it is below
    that of one expert.""",
)

for of, figure, sentences in (
    (TRANSFER, "figure-3", ("moe-accuracy", "moe-error", "termination-accuracy", "termination-error")),
    (FIGURE_4, "figure-4", ("moe-forgetting", "termination-forgetting")),
    (FIGURE_5, "figure-5", BOTH),
    (FIGURE_6, "figure-6", BOTH),
    (FIGURE_7, "figure-7", BOTH),
    (TABLE_1, "table-1", ("termination",)),
    (TABLE_2, "table-2", ("termination",)),
):
    of.also(*(f"deep.{figure}.{name}" for name in sentences), role="figure")
for of in (TABLE_1, TABLE_2):  # whose images are not those that the claims run on, on which sizes may stand otherwise
    of.also(f"deep.{of.id}.order", f"deep.{of.id}.below-one", role="literal")
TRANSFER.also("deep.drive.weak", "deep.drive.strong", "deep.drive.superfluous", role="ours")
