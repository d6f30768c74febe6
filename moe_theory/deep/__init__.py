"""The papers' experiments with networks as experts. Tasks are image classes. Users bring the data.

`deep.continual` and `deep.edge` are the systems, `deep.datasets` reads images, and `deep.networks` has the experts.
`deep.plan` and `deep.judge` run a preset and test the claims of its figure.

Source: Section 6 and Appendix A of `continual`, and Section VI of `edge`.
"""

from moe_theory.core.papers import Paper
from moe_theory.deep import continual as continual
from moe_theory.deep import datasets as datasets
from moe_theory.deep import edge as edge
from moe_theory.deep import networks as networks
from moe_theory.deep.judging import Judgement as Judgement
from moe_theory.deep.judging import judge as judge
from moe_theory.deep.judging import plan as plan
from moe_theory.deep.networks import register as register
from moe_theory.deep.params import READINGS as READINGS
from moe_theory.deep.params import Dims as Dims
from moe_theory.deep.params import Params as Params
from moe_theory.deep.params import Reading as Reading
from moe_theory.deep.presets import PRESETS as PRESETS
from moe_theory.deep.presets import Preset as Preset
from moe_theory.deep.presets import preset as preset
from moe_theory.deep.runs import Plan as Plan

# The paper is named only here. All code that lists papers reads this constant.
PAPER = Paper(
    name="deep",
    package=__name__,
    title="the experiments with networks",
    readings=READINGS,
    default_readings=("balanced", "uniform-delay"),
    statements="moe_theory.deep.statements",
    answers_for=("continual", "edge", "reinforced"),
    figures="moe_theory.deep.figures:FIGURES",
    most_verdicts=100,  # few, because a replicate trains networks for minutes
    commands={"deep": "moe_theory.deep.command:deep"},
    rank=5,
)
reading = PAPER.reading  # returns a reading by name, as in `reading("uncentred")`
