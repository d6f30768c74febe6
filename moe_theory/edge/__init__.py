"""Mobile edge computing with a Mixture-of-Experts: busy servers as experts.

Under `sibling`, signals equal ground truths, and gate steps are too small to specialise within the paper's horizon.
`orthogonal-signal` is tuned to a gate drive of 1, at which Fig. 3 is reproduced if its error is per coordinate.

Source: H. Li, L. Duan, "Theory of Mixture-of-Experts for Mobile Edge Computing", INFOCOM 2025.
"""

from moe_theory.core import baseline as baseline
from moe_theory.core.linear import minimum_norm as minimum_norm
from moe_theory.core.linear import targets_of as targets_of
from moe_theory.core.locality import Locality as Locality
from moe_theory.core.locality import Move as Move
from moe_theory.core.papers import Paper
from moe_theory.core.tasks import Pool as Pool
from moe_theory.edge import corrected as corrected
from moe_theory.edge import delays as delays
from moe_theory.edge import policies as policies
from moe_theory.edge import reduced as reduced
from moe_theory.edge import theory as theory
from moe_theory.edge.algorithm import Info as Info
from moe_theory.edge.algorithm import State as State
from moe_theory.edge.algorithm import begin as begin
from moe_theory.edge.algorithm import generalization_error as generalization_error
from moe_theory.edge.algorithm import generalization_error_flushed as generalization_error_flushed
from moe_theory.edge.algorithm import learn as learn
from moe_theory.edge.algorithm import on_pool as on_pool
from moe_theory.edge.algorithm import system as system
from moe_theory.edge.arrivals import Arrival as Arrival
from moe_theory.edge.arrivals import draw as draw
from moe_theory.edge.params import READINGS as READINGS
from moe_theory.edge.params import Dims as Dims
from moe_theory.edge.params import Params as Params
from moe_theory.edge.params import Reading as Reading
from moe_theory.edge.params import gate_drive as gate_drive
from moe_theory.edge.servers import DROPPED as DROPPED

# The paper is named only here. All code that lists papers reads this constant.
PAPER = Paper(
    name="edge",
    package=__name__,
    title="Mixture-of-Experts for mobile edge computing",
    citation="""\
@inproceedings{li-edge,
  title = {Theory of {Mixture-of-Experts} for Mobile Edge Computing},
  author = {Li, Hongbo and Duan, Lingjie},
  booktitle = {INFOCOM 2025},
  year = {2025},
  eprint = {2412.15690},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2412.15690},
}""",
    readings=READINGS,
    default_readings=("orthogonal-signal", "sibling", "scaled-signal", "independent-signal"),
    statements="moe_theory.edge.statements",
    figures="moe_theory.edge.figures:FIGURES",
    overview="moe_theory.edge.figures.figure_3:OVERVIEW",
    systems={"edge": "moe_theory.edge.sweeps:SWEEPABLE"},
    first_look={
        "edge.lemma-1.least-change": "updates have least norm",
        "edge.lemma-3.sum": "derivatives of π sum to zero",
        "edge.lemma-5.lower": "|π − π′| is at least π′|h − h′|",
        "edge.proposition-1.normal-quantile": "(16) bounds arrivals of a type",
    },
    rank=1,
)
reading = PAPER.reading  # returns a reading by its name, such as `reading("independent-signal")`
