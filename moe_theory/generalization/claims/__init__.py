"""Claims of the paper on generalization, each beside the right statement where it is wrong."""

# isort: off
# The order of import is the order of the claims in every report.
from moe_theory.generalization.claims import theorem_1 as theorem_1
from moe_theory.generalization.claims import remark as remark
from moe_theory.generalization.claims import lemmas as lemmas
from moe_theory.generalization.claims import steps as steps
from moe_theory.generalization.claims import corrected as corrected
