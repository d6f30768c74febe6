"""Online expert merging: a tree-structured neural bandit (Tanbr) and its rivals.

Tier `merging:exact` has the paper's tables, and trees whose leaves are picked by the worst rules for the lemmas.
`merging:surfaces` measures regret over 512 and 5,000 slots in 128 worlds whose best weights are known.
`merging:testbed` measures accuracy over 5,000 slots of 64 streams on transformers trained here on digits.
`merging:clocks` times how a layer of the paper's sizes is served and fine-tuned, so its numbers depend on the machine.

Exact sign tests over worlds decide whether one policy beats another on a surface. Claims that reverse the paper's were
written after runs at seed 0, and are recorded at seed 1.

Source: Z. Han, X. Liu, R. Zhou, X. Dai, J. C. S. Lui, "Faster, Smaller, and Smarter: Task-Aware Expert Merging for
Online MoE Inference".
"""

from moe_theory.core.papers import Paper
from moe_theory.merging import corrected as corrected
from moe_theory.merging import monitor as monitor
from moe_theory.merging import policies as policies
from moe_theory.merging import rewards as rewards
from moe_theory.merging import theory as theory
from moe_theory.merging import tree as tree
from moe_theory.merging.online import RewardEstimate as RewardEstimate
from moe_theory.merging.online import Row as Row
from moe_theory.merging.online import Stream as Stream
from moe_theory.merging.online import compare as compare
from moe_theory.merging.online import compare_replicates as compare_replicates
from moe_theory.merging.online import merge_online as merge_online
from moe_theory.merging.params import READINGS as READINGS
from moe_theory.merging.params import Dims as Dims
from moe_theory.merging.params import Params as Params
from moe_theory.merging.params import Reading as Reading
from moe_theory.merging.policies import Pick as Pick
from moe_theory.merging.policies import Policy as Policy
from moe_theory.merging.rewards import Feedback as Feedback
from moe_theory.merging.rewards import Reward as Reward
from moe_theory.merging.system import Info as Info
from moe_theory.merging.system import State as State
from moe_theory.merging.system import system as system
from moe_theory.merging.weights import merge as merge
from moe_theory.merging.weights import weighted_sum as weighted_sum

# The paper is named only here. All code that lists papers reads this constant.
PAPER = Paper(
    name="merging",
    package=__name__,
    title="merging experts online",
    citation="""\
@misc{han-merging,
  title = {Faster, Smaller, and Smarter: Task-Aware Expert Merging for Online {MoE} Inference},
  author = {Han, Ziyi and Liu, Xutong and Zhou, Ruiting and Dai, Xiangxiang and Lui, John C. S.},
  year = {2025},
  eprint = {2509.19781},
  archivePrefix = {arXiv},
  url = {https://arxiv.org/abs/2509.19781},
}""",
    readings=READINGS,
    default_readings=("random-split", "effective-split"),
    statements="moe_theory.merging.statements",
    figures="moe_theory.merging.figures:FIGURES",
    overview="moe_theory.merging.figures.regret:OVERVIEW",
    systems={"merging": "moe_theory.merging.sweeps:SWEEPABLE"},
    commands={"merge": "moe_theory.merging.command:merge"},
    first_look={
        "merging.figure-3.printed": "65 % saved, by printed Table I",
        "merging.table-1.one-expert": "35 % saved, by its first column",
        "merging.lemma-1.candidates": "no more candidates than (5)",
        "merging.assumption-1.diameter": "leaf diameters ≤ ν₁ ρʰ",
        "merging.equation-3.parameters": "the number of parameters of (3)",
        "merging.remark.neural-part": "corrected: (6) is O(√T log T)",
    },
    rank=3,
)
reading = PAPER.reading  # returns a reading by its name, such as `reading("warm-start")`
