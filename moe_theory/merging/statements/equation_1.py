"""Problem (1), whose hardness no run can show."""

from moe_theory.verify.statement import statement

statement(
    "equation-1",
    where="Section III-C, Problem (1)",
    says="Problem (1) is NP-hard, since it can be reduced to the knapsack problem.",
    untestable="A reduction to a hard problem says nothing about the problem's own hardness; the converse would, and "
    "is not given. No run can stand for either.",
)
