"""Lemma 10: convex combinations that are the same for all inputs."""

import itertools

import numpy as np

from moe_theory.generalization.experiments import CLASSES, FREE_SAMPLES, TO_ROUNDING, shown
from moe_theory.generalization.statements.setting import statement
from moe_theory.verification.claim import excess

LABELS = [f"{cell}, {part}" for part, cell in itertools.product(("random", "best"), CLASSES.cells)]


@statement("lemma-10", module=__name__, free=FREE_SAMPLES).charitable(
    "lemma-10.hull", CLASSES.together(*CLASSES.cells), TO_ROUNDING, labels=LABELS
)
def beyond_best(*runs) -> np.ndarray:
    random = [excess(shown(run, "mixtures"), shown(run, "complexity")) for run in runs]
    best = [shown(run, "vertex") - shown(run, "complexity") for run in runs]
    return np.stack(random + best)
