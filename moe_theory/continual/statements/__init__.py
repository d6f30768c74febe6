"""Statements of `continual`, one file for each number, and the claims that test them."""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
