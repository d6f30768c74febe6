"""Lemma 7: the effect of a round of exploration on gate outputs, for the worst expert, signal and round."""

import numpy as np

from moe_theory.continual import experiments
from moe_theory.continual.statements.setting import statement
from moe_theory.verification.statement import counterexample, identity, rate

CHOSEN = statement("lemma-7-chosen", module=__name__, free=experiments.FREE_AT_LEVEL)
OTHERS = statement("lemma-7-others", module=__name__, free=experiments.FREE_AT_LEVEL)
OTHERS.cite("lemma-7.sign-own", role="corrected")


@CHOSEN.charitable("lemma-7.chosen", experiments.BY_SCALE, rate(at_least=1.0))
def chosen_change(run) -> np.ndarray:
    return experiments.up_to_t1(run, "chosen_change").max(axis=0)


@OTHERS.charitable("lemma-7.others", experiments.BY_SCALE, rate(at_least=1.0))
@OTHERS.charitable("lemma-7.others-experts", experiments.BY_EXPERTS, rate(at_most=-1.0))
def others_change(run) -> np.ndarray:
    return experiments.up_to_t1(run, "others_change").max(axis=0)


@CHOSEN.literal("lemma-7.sign", experiments.BY_SCALE, counterexample(), instead="lemma-7.sign-own")
def rises_once(run) -> np.ndarray:
    return experiments.up_to_t1(run, "chosen_rise").max(axis=0) > 0


@CHOSEN.replacement("lemma-7.sign-own", experiments.BY_SCALE_QUIET, identity(within=1e-6), hypotheses=["small-noise"])
def largest_wrong_sign(run) -> np.ndarray:
    wrong = np.maximum(experiments.up_to_t1(run, "own_rise"), experiments.up_to_t1(run, "own_fall")).max(axis=0)
    return np.maximum(wrong, 0) / float(run.params.truth_scale)
