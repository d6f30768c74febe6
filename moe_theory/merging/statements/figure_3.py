"""Fig. 3: inference time."""

import numpy as np

from moe_theory.merging.experiments import MOSTLY, SERVING, computed, is_cheaper
from moe_theory.merging.serving.methods import MERGED
from moe_theory.merging.statements.abstract import TANBR_SECONDS, TOKEN_SECONDS, claim_saving
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import alike, bound

ONE_EXPERT = 0.65  # share of the time that is saved compared with RL and Switch
SMEAR = 0.98  # share that is saved compared with SMEAR: "nearly 99 %"
RIVALS = ("token-top-1-capacity", "rl-capacity", "smear-example-linear", "smear-token-linear")

FIGURE_3 = statement("figure-3", module=__name__)


@FIGURE_3.charitable("figure-3.printed", computed("Switch", "SMEAR"), bound(at_least=0))
def beyond_printed(run) -> np.ndarray:
    return alike(run, 1 - TANBR_SECONDS / TOKEN_SECONDS[[0, -1]] - [ONE_EXPERT, SMEAR])


@FIGURE_3.charitable("figure-3.faster", SERVING, MOSTLY, labels=RIVALS)
def takes_less(run) -> np.ndarray:
    return np.stack([is_cheaper(run, MERGED, rival, share=1) for rival in RIVALS])


for rival in RIVALS:
    claim_saving(FIGURE_3, "figure-3.latency", rival, saving=SMEAR if "smear" in rival else ONE_EXPERT)
