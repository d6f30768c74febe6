"""The statements of the paper on generalization, in its order."""

from moe_theory.verify.texts import import_statements

import_statements(__name__)
