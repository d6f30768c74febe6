"""Table I: how much routing by task saves over routing by token, as printed and on a layer of the paper's sizes."""

import numpy as np

from moe_theory.merging.experiments import MOSTLY, SERVING, computed, is_cheaper
from moe_theory.merging.serving.methods import MERGED
from moe_theory.merging.statements.abstract import TASK_SECONDS, TOKEN_SECONDS
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import alike, identity

SAVED = 0.35  # "about 35 %"
ROUGHLY = 0.05
SMEAR = ("smear-example-linear", "smear-token-linear")

TABLE_1 = statement("table-1", module=__name__)
TABLE_1.cite("figure-3.latency-smear-token-linear", role="literal")


@TABLE_1.charitable("table-1.one-expert", computed("1 expert"), identity(within=ROUGHLY))
def distance_of_one(run) -> np.ndarray:
    return distance_to_35(run)[:1]


@TABLE_1.literal(
    "table-1.about-35-per-cent", computed("1 expert", "2 experts", "3 experts", "merging"), identity(within=ROUGHLY)
)
def distance_to_35(run) -> np.ndarray:
    return alike(run, np.abs(1 - TASK_SECONDS / TOKEN_SECONDS - SAVED))


@TABLE_1.charitable("table-1.merging-costs-more", SERVING, MOSTLY, labels=SMEAR)
def costs_twice(run) -> np.ndarray:
    return np.stack([is_cheaper(run, MERGED, smear, share=0.5) for smear in SMEAR])


for build in ("task-top-1-one-task", "task-top-1-capacity"):
    test_routing = TABLE_1.literal(f"table-1.task-routing-{build}", SERVING, MOSTLY)
    test_routing(lambda run, build=build: is_cheaper(run, build, "token-top-1-capacity", share=0.7))
