"""Networks as experts, with and without a baseline in the locality loss."""

import numpy as np

from moe_theory.deep import experiments
from moe_theory.deep.presets import expert_cell, server_cell
from moe_theory.deep.statements.setting import statement

final_error = experiments.final("generalization_error")
PRINTED_CELLS = [expert_cell(4), expert_cell(4, terminate=False), expert_cell(1)]  # in the order of the labels

NETWORKS = statement("networks", module=__name__)


@NETWORKS.charitable(
    "networks.error",
    experiments.BASELINE.together("M = 4, baseline", *PRINTED_CELLS),
    experiments.MOSTLY,
    labels=["printed", "without its end", "one expert"],  # its end is that of gate updates
)
def is_below_all(reinforced, *printed_runs) -> np.ndarray:
    return np.stack([final_error(reinforced) < final_error(printed) for printed in printed_runs])


SERVERS = statement("networks-servers", module=__name__)


@SERVERS.charitable(
    "networks.servers",
    experiments.EDGE_BASELINE.together("M = 5, baseline", server_cell(5)),
    experiments.MOSTLY,
    labels=["printed"],
)
def is_below_printed(reinforced, printed) -> np.ndarray:
    return np.stack([final_error(reinforced) < final_error(printed)])
