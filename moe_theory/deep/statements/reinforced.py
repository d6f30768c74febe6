"""Ours: networks as experts, with a baseline in the locality loss and without."""

import numpy as np

from moe_theory.deep import experiments
from moe_theory.deep.presets import expert_cell, server_cell
from moe_theory.verify.statement import statement

final_error = experiments.final("generalization_error")
PRINTED = [expert_cell(4), expert_cell(4, terminate=False), expert_cell(1)]

NETWORKS = statement(
    "networks",
    paper="reinforced",
    where="With networks",
    says="Against the baseline networks end with a smaller error than with either of the printed router's variants.",
    note="On digits, with small networks of one hidden layer and gates that are never fixed.",
)


@NETWORKS.charitable(
    "networks.error",
    experiments.BASELINE.together("M = 4, baseline", *PRINTED),
    experiments.MOSTLY,
    labels=["printed", "without its end", "one expert"],
)
def is_below_all(own, *others) -> np.ndarray:
    r"""Four experts against the baseline end, in most runs of the same tasks, with a smaller generalization error than
    four as printed, than four whose gates are never fixed, and than one expert.
    $$\mathbb{P}\left( G_T^{\text{baseline}} < G_T \right) \ge \frac{1}{2}$$"""
    return np.stack([final_error(own) < final_error(other) for other in others])


SERVERS = statement(
    "networks-servers",
    paper="reinforced",
    where="With networks on servers",
    says="Against the baseline networks on five servers end with a smaller error than as printed.",
    note="On digits, with small networks of one hidden layer and delays of four rounds.",
)


@SERVERS.charitable(
    "networks.servers",
    experiments.EDGE_BASELINE.together("M = 5, baseline", server_cell(5)),
    experiments.MOSTLY,
    labels=["printed"],
)
def is_below_printed(own, printed) -> np.ndarray:
    r"""Five servers against the baseline end, in most runs of the same tasks, with a smaller generalization error than
    as printed.
    $$\mathbb{P}\left( G_T^{\text{baseline}} < G_T \right) \ge \frac{1}{2}$$"""
    return np.stack([final_error(own) < final_error(printed)])
