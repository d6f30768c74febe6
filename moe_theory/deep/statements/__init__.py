"""Statements of two papers about networks, in the papers' order, and one of ours.

The runs are on digits and mostly with smaller networks. So the claims are `literal`, and a sentence that fails here is
open. `moe-theory deep` tests the same claims on the papers' data.
"""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
