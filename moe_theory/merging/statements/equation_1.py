"""Problem (1), and why it is hard."""

from moe_theory.merging.statements.setting import statement

statement("equation-1", module=__name__)
