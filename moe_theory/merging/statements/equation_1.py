"""Problem (1), whose hardness no run can show."""

from moe_theory.merging.statements.setting import statement

statement("equation-1", module=__name__)
