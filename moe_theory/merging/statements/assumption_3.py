"""Assumption 3, the near-optimality dimension."""

from moe_theory.merging.statements.setting import statement

statement("assumption-3", module=__name__)
