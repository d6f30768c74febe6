"""Claims of the paper on expert merging, each beside the right statement where it is wrong."""

# isort: off
# The order of import is the order of the claims in every report.
from moe_theory.merging.claims import assumptions as assumptions
from moe_theory.merging.claims import lemmas_1_2 as lemmas_1_2
from moe_theory.merging.claims import growth as growth
from moe_theory.merging.claims import network as network
from moe_theory.merging.claims import regret as regret
from moe_theory.merging.claims import evaluation as evaluation
from moe_theory.merging.claims import tables as tables
