"""Assumption 3, which is met by definition, once a sign is put right."""

from moe_theory.merging.statements.setting import statement

statement("assumption-3", module=__name__)
