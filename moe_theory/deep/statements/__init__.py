"""Statements of two papers about networks, in the papers' order, and an own one.

The runs are on digits and mostly with smaller networks, so the claims are `literal`, and a sentence that is not seen
here is open. `moe-theory deep` tests the same claims on the papers' data.
"""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
