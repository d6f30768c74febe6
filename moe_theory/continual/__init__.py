"""Continual learning with a Mixture-of-Experts: Algorithm 1, its theory and exact replacements.

Source: H. Li, S. Lin, L. Duan, Y. Liang, N. B. Shroff, "Theory on Mixture-of-Experts in Continual Learning".
"""

from moe_theory.continual import corrected as corrected
from moe_theory.continual import corrected as exact  # noqa: F401  # an earlier name
from moe_theory.continual import reduced as reduced
from moe_theory.continual import theory as theory
from moe_theory.continual.algorithm import Info as Info
from moe_theory.continual.algorithm import State as State
from moe_theory.continual.algorithm import begin as begin
from moe_theory.continual.algorithm import draw as draw
from moe_theory.continual.algorithm import learn as learn
from moe_theory.continual.algorithm import on_pool as on_pool
from moe_theory.continual.algorithm import perturbed as perturbed
from moe_theory.continual.algorithm import stationary as stationary
from moe_theory.continual.algorithm import system as system
from moe_theory.continual.params import ORDERS as ORDERS
from moe_theory.continual.params import READINGS as READINGS
from moe_theory.continual.params import Dims as Dims
from moe_theory.continual.params import Params as Params
from moe_theory.continual.params import Reading as Reading
from moe_theory.continual.params import gate_drive as gate_drive
from moe_theory.core import baseline as baseline
from moe_theory.core.linear import minimum_norm as minimum_norm
from moe_theory.core.linear import targets_of as targets_of
from moe_theory.core.locality import Locality as Locality
from moe_theory.core.locality import Move as Move
from moe_theory.core.locality import distance_moved as distance_moved
from moe_theory.core.papers import Paper
from moe_theory.core.tasks import Arrival as Arrival
from moe_theory.core.tasks import Pool as Pool

# The paper is named only here. All code that lists papers reads this constant.
PAPER = Paper(
    name="continual",
    package=__name__,
    title="Mixture-of-Experts in continual learning",
    citation="""\
@misc{li-continual,
  title = {Theory on {Mixture-of-Experts} in Continual Learning},
  author = {Li, Hongbo and Lin, Sen and Duan, Lingjie and Liang, Yingbin and Shroff, Ness B.},
  year = {2025},
  eprint = {2406.16437},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2406.16437},
}""",
    readings=READINGS,
    default_readings=("unit-signal", "independent-signal", "orthogonal-signal", "strong-signal"),
    statements="moe_theory.continual.statements",
    figures="moe_theory.continual.figures:FIGURES",
    overview="moe_theory.continual.figures.figure_2:OVERVIEW",
    systems={"continual": "moe_theory.continual.sweeps:SWEEPABLE"},
    first_look={
        "continual.lemma-4": "gate gradients sum to zero",
        "continual.lemma-3": "a repeated task moves no expert",
        "continual.lemma-8.hoeffding": "shares obey Hoeffding's bound",
        "continual.lemma-11.product": "experts fill sets independently",
        "continual.proposition-1.contraction": "corrected: repeats cut errors",
        "continual.proposition-3.inside-tasks-quiet": "small α: tasks keep their set",
    },
    rank=0,
)
reading = PAPER.reading  # returns a reading by its name, such as `reading("weak-signal")`
