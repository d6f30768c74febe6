"""The example of ternary weights: catches a mixture that does not learn, and a bound that does not hold."""

import numpy as np
import pytest

from examples.ternary import outputs, train
from moe_theory.core.digits import handwritten_digits
from moe_theory.core.errors import InvalidValueError
from moe_theory.generalization.certificate import certificate, code_length


def test_a_small_mixture_on_digits_has_a_bound_that_informs():
    """As the page on bounds has it: the error on images that were held out is below the bound, and that below 1/2."""
    pixels, digits, is_test = handwritten_digits()
    blocks = pixels.reshape(-1, 4, 2, 4, 2).mean((2, 4)).reshape(-1, 16) / 8 - 1
    features = np.hstack([blocks, np.ones((len(blocks), 1))]).astype(np.float32)
    weights = train(features[~is_test], (digits >= 5)[~is_test].astype(int), num_experts=2)
    wrong = (outputs(weights, features)[:, 0] > 0) != (digits >= 5)
    risk = certificate(code_length(weights._asdict()), float(wrong[~is_test].mean()), int((~is_test).sum()))
    assert wrong[is_test].mean() < risk < 0.45


def test_ternary_weights_learn_what_needs_two_experts():
    """y = sign(x_1 x_2), which no linear classifier gets right in more than half of the samples."""
    chance = np.random.default_rng(2)
    features = chance.choice([-1, 1], (2000, 2)) * chance.uniform(0.2, 1, (2000, 2))
    features = np.hstack([features, np.ones((2000, 1))]).astype(np.float32)
    labels = (features[:, 0] * features[:, 1] > 0).astype(int)
    weights = train(features, labels, num_experts=4, seed=1)
    assert {*np.unique(weights.router), *np.unique(weights.experts)} <= {-1, 0, 1}
    error = np.mean((outputs(weights, features)[:, 0] > 0) != labels)
    assert error < 0.1
    assert certificate(code_length(weights._asdict()), float(error), 2000) < 0.25
    with pytest.raises(InvalidValueError, match="labels"):
        train(features, labels[:5], num_experts=2)
