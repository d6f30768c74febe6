"""Lemma 4, whose width is out of reach."""

from moe_theory.merging.statements.setting import statement

statement("lemma-4", module=__name__)
