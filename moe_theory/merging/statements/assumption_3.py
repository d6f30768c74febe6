"""Assumption 3, met by definition with a corrected sign."""

from moe_theory.merging.statements.setting import statement

statement("assumption-3", module=__name__)
