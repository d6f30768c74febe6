"""A valid claim and experiment, to be changed in one respect by each test."""

import numpy as np

from moe_theory import continual
from moe_theory.verification import Claim, Experiment, criteria

KINDS = {kind.kind: kind for kind in vars(criteria).values() if hasattr(kind, "kind")}
DIMS = continual.Dims(max_experts=1, num_tasks=2, num_features=3, num_samples=1)


def experiment(**changes) -> Experiment:
    settings = {
        "name": "test",
        "dims": DIMS,
        "system": continual.system(DIMS),
        "cells": {"M=1": {"num_experts": 1}},
        "num_rounds": 2,
        "record_every": 1,
        "observe": lambda state, info: info.error,
        "replicates": 40,
    }
    return Experiment(**{**settings, **changes})


def make(kind="equality", margin=0.1, predict=lambda runs: 1.0, **changes) -> Claim:
    """Return a claim with a criterion of this kind, value and margin, and whatever else is changed."""
    parts = {name: changes.pop(name) for name in ("side", "scale", "trivial", "abscissa") if name in changes}
    settings = {
        "id": "test.claim",
        "paper": "continual",
        "where": "here",
        "statement": "One equals one.",
        "experiment": experiment(),
        "observe": lambda runs: np.ones(40),
        "criterion": KINDS[kind](predict, margin, **parts),
    }
    return Claim(**{**settings, **changes})
