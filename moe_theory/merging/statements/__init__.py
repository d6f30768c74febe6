"""Statements of the paper on expert merging, one file a number, each with the right statement where it is wrong."""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
