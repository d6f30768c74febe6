"""Claims of the continual-learning paper, each beside the right statement where it is wrong.

Predictions are made for each replicate's own pool and loads, so that only what a statement leaves to chance is left in
a difference. Metrics are squared model distances; margins are fractions of a `scale` in the same unit.
"""

# isort: off
# The order of import is the order of the claims in every report.
from moe_theory.continual.claims import router as router
from moe_theory.continual.claims import smooth as smooth
from moe_theory.continual.claims import lemmas as lemmas
from moe_theory.continual.claims import gates as gates
from moe_theory.continual.claims import loads as loads
from moe_theory.continual.claims import softmax as softmax
from moe_theory.continual.claims import experts as experts
from moe_theory.continual.claims import learning as learning
from moe_theory.continual.claims import termination as termination
from moe_theory.continual.claims import proposition_4 as proposition_4
from moe_theory.continual.claims import theorems as theorems
from moe_theory.continual.claims import figure_2 as figure_2
from moe_theory.continual.claims import figures_8_9 as figures_8_9
