"""Sentences of the abstract: how the regret grows, and how much one merged expert saves.

Regret is measured on our rewards, and time and memory on this machine for one layer of the paper's sizes.
"""

import dataclasses

import numpy as np

from moe_theory.merging import experiments
from moe_theory.merging.experiments import LONG_SLOTS, MOSTLY, SERVING, TANBR_LONG, computed, is_cheaper, recorded
from moe_theory.merging.serving.methods import MERGED
from moe_theory.merging.statements.setting import statement
from moe_theory.verification.statement import Declared, alike, bound

SLOTS = (312, 625, 1250, 2500, LONG_SLOTS)  # slots at which growth is measured
# Seconds of Table I for token-level and task-level routing with 1, 2 and 3 experts, and with all merged.
TOKEN_SECONDS = np.array([1.81, 2.42, 3.05, 193.88])
TASK_SECONDS = np.array([1.16, 1.78, 2.41, 3.01])
TANBR_SECONDS = 0.61
TOLERANCE = 0.1  # margin of an exponent that is fitted over so few slots
BYTES = dataclasses.replace(SERVING, labels=("share of the bytes",))

SUBLINEAR = statement("abstract-sublinear", module=__name__)
SUBLINEAR.cite("remark.bound", role="literal")


def regret_over(run, first: int, last: int) -> np.ndarray:
    return recorded(run, "regret")[first:last].sum(axis=0)


@SUBLINEAR.competitor("abstract.sublinear-one-expert", experiments.ONE_EXPERT_LONG, MOSTLY)
@SUBLINEAR.charitable("abstract.sublinear", TANBR_LONG, MOSTLY)
def slows_down(run) -> np.ndarray:
    quarter = LONG_SLOTS // 4
    return regret_over(run, LONG_SLOTS - quarter, LONG_SLOTS) < regret_over(run, 0, quarter)


@SUBLINEAR.literal("abstract.sublinear-root", TANBR_LONG, MOSTLY)
def grows_like_root(run) -> np.ndarray:
    regret = np.maximum(recorded(run, "cumulative_regret")[np.array(SLOTS) - 1], 1e-9)  # a regret of 0 has no logarithm
    return experiments.exponent_over_log(regret, SLOTS) <= 0.5 + TOLERANCE


def claim_saving(statement: Declared, id: str, rival: str, saving: float, role: str = "literal") -> None:
    test_saving = statement.claim(f"{id}-{rival}", SERVING, MOSTLY, role=role)
    test_saving(lambda run: is_cheaper(run, MERGED, rival, share=1 - saving))


SAVING = 0.45  # share of a rival's time
SEVERAL_EXPERTS = ("token-top-2-capacity", "token-top-3-capacity", "smear-example-linear", "smear-token-linear")
LATENCY = statement("abstract-latency", module=__name__)


@LATENCY.charitable("abstract.latency-printed", computed("Tanbr"), bound(at_least=SAVING))
def saved_as_printed(run) -> np.ndarray:
    return alike(run, [1 - TANBR_SECONDS / min(*TOKEN_SECONDS, *TASK_SECONDS)])


for rival in experiments.TIMED:
    claim_saving(LATENCY, "abstract.latency", rival, SAVING, "charitable" if rival in SEVERAL_EXPERTS else "literal")

MEMORY = statement("abstract-memory", module=__name__)


def merged_over_routed(run, field: str) -> np.ndarray:
    merged = np.asarray(getattr(run.records[MERGED], field)[0], np.float64)
    routed = np.asarray(getattr(run.records["token-top-1-capacity"], field)[0], np.float64)
    return merged / routed


@MEMORY.ours("abstract.memory-loaded", BYTES, bound(at_most=0.8), exact=True)
@MEMORY.ours("abstract.memory-loaded-at-most", BYTES, bound(at_least=0.75), exact=True)
def share_of_loaded(run) -> np.ndarray:
    return merged_over_routed(run, "loaded_bytes")


@MEMORY.ours("abstract.memory-peak", BYTES, bound(at_most=0.8), exact=True)
def share_of_peak(run) -> np.ndarray:
    return merged_over_routed(run, "peak_bytes")
