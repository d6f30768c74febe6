"""Lemma 2: the Natarajan dimension of networks, at the one class of which it is known exactly."""

import numpy as np

from moe_theory.generalization import complexity
from moe_theory.generalization.experiments import LONE_CELL, LONE_POINT
from moe_theory.verify.claim import Selection
from moe_theory.verify.statement import alike, rate, statement

NUM_FEATURES = (2, 4, 8, 16)


@statement(
    "lemma-2",
    where="Lemma 2",
    says="The Natarajan dimension of ReLU networks of p parameters and d outputs is O(d p^2)."
    r"$$d_N = \mathcal{O}(d\, p^2)$$",
    untestable="Cited, with an unnamed constant: the dimension of networks with hidden layers is not known exactly. "
    "That of linear routers of two experts is, but grows like p, so that it leaves p^2 untested.",
).ours(
    "lemma-2.linear-router",
    Selection(LONE_POINT, (LONE_CELL,), abscissa=tuple(2 * features for features in NUM_FEATURES)),
    rate(at_most=2.0, margin=0.01),
    labels=[f"d = {features}" for features in NUM_FEATURES],
    exact=True,
)
def dimension(run) -> np.ndarray:
    r"""Linear routers of two experts, p = 2d parameters and d_N = d, have a d_N that grows no faster than p squared.
    $$d_N = d = \frac{p}{2} = \mathcal{O}(p^2)$$"""
    return alike(run, [complexity.natarajan("linear", 2, 1, features) for features in NUM_FEATURES])
