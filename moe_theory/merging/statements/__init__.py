"""Statements of the paper on expert merging, one file for each number, with corrections of false ones."""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
