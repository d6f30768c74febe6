"""Claims of the continual-learning paper, each with the corrected statement where it is wrong."""

# isort: off
# Reports list claims in the order of these imports.
from moe_theory.continual.claims import lemmas_1_2 as lemmas_1_2
from moe_theory.continual.claims import lemmas_3_4 as lemmas_3_4
from moe_theory.continual.claims import lemmas_5_to_9 as lemmas_5_to_9
from moe_theory.continual.claims import lemma_10 as lemma_10
from moe_theory.continual.claims import lemmas_11_to_13 as lemmas_11_to_13
from moe_theory.continual.claims import lemmas_14_15 as lemmas_14_15
from moe_theory.continual.claims import proposition_3 as proposition_3
from moe_theory.continual.claims import proposition_4 as proposition_4
from moe_theory.continual.claims import theorems as theorems
from moe_theory.continual.claims import figure_2 as figure_2
from moe_theory.continual.claims import figures_8_9 as figures_8_9
