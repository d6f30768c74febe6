"""Statements of two papers about networks, in the papers' order: sentences about figures and tables; and one of ours.

The runs here are on digits and mostly with smaller networks, which is our choice; the same claims are judged on the
papers' data by `moe-theory deep`. So they are `literal`: where the sentence is not seen here, it is open and not false.
"""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
