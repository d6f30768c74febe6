"""Fig. 2: costs of a fine-tuning step. Its losses are left out, because the model is not available."""

import numpy as np

from moe_theory.merging.experiments import MOSTLY, STEPPED, STEPPING, is_cheaper
from moe_theory.merging.serving.methods import MERGED
from moe_theory.merging.statements.setting import statement

SHARES = {"token-top-1-capacity": 0.6, "smear-example-linear": 1 / 20, "smear-token-linear": 1 / 20}
MORE_MEMORY = 1.1  # largest share of the rival's memory

FIGURE_2 = statement("figure-2", module=__name__)


@FIGURE_2.charitable("figure-2.faster", STEPPING, MOSTLY, labels=STEPPED)
def takes_less(run) -> np.ndarray:
    return np.stack([is_cheaper(run, MERGED, rival, share=1, field="seconds") for rival in STEPPED])


@FIGURE_2.literal("figure-2.shares", STEPPING, MOSTLY, labels=STEPPED)
def takes_its_share(run) -> np.ndarray:
    return np.stack([is_cheaper(run, MERGED, rival, SHARES[rival], field="seconds") for rival in STEPPED])


@FIGURE_2.charitable("figure-2.memory", STEPPING, MOSTLY)
def needs_little_more(run) -> np.ndarray:
    return is_cheaper(run, MERGED, "token-top-1-capacity", MORE_MEMORY, field="peak_bytes")
