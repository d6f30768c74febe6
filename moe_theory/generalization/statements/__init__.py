"""The statements of the paper on generalization, in its order."""

from moe_theory.verification.texts import import_statements

import_statements(__name__)
