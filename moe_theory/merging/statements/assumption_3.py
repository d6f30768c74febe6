"""Assumption 3, which holds by definition if a sign is corrected."""

from moe_theory.merging.statements.setting import statement

statement("assumption-3", module=__name__)
