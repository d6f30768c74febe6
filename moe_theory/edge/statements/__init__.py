"""Claims of the edge-computing paper, each beside the right statement where it is wrong."""

# isort: off
# The order of import is the order of the claims in every report.
from moe_theory.edge.statements import lemmas as lemmas
from moe_theory.edge.statements import convergence as convergence
from moe_theory.edge.statements import errors as errors
from moe_theory.edge.statements import figure_3 as figure_3
