"""The continual experiment around its rounds: parameters that are refused, what the gate sees, and gates that ran off.

Rounds themselves are compared with a NumPy loop in `test_deep_parity.py`.
"""

import functools

import jax
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import moe_theory as mt
from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.core.system import check_system
from moe_theory.deep import continual, gate
from moe_theory.deep.params import Dims, Params, check_params

from .pictures import corners

CLASSES = (1, 3, 0)
DIMS = Dims(max_experts=3, num_classes=3, max_rounds=4, num_samples=4, num_tests=4, num_epochs=1, batch_size=4)
KEY = jax.random.key(1)

REFUSED = {
    "num_experts=4 must be at most max_experts=3": {"num_experts": 4},
    "num_experts=0 must be a whole number of at least 1": {"num_experts": 0},
    "num_experts=2.5 must be a whole number": {"num_experts": 2.5},
    "learning_rate=0 must be above 0": {"learning_rate": 0},
    "locality_power=0.0 must be above 0": {"locality_power": 0.0},
    "gate_scale=0.0 must be above 0": {"gate_scale": 0.0},
    "balance_weight=-1 must not be negative": {"balance_weight": -1},
    "perturbation_scale=-1 must not be negative": {"perturbation_scale": -1},
    "termination_threshold=-1 must not be negative": {"termination_threshold": -1},
    "expert_rate=-1 must not be negative": {"expert_rate": -1},
    "final_rate=-1 must not be negative": {"final_rate": -1},
    "weight_decay=-1 must not be negative": {"weight_decay": -1},
    "terminate=2 must be True or False": {"terminate": 2},
    "multi_class=0.5 must be True or False": {"multi_class": 0.5},
    "num_rounds=0 must be a whole number": {"num_rounds": 0},
    "policy=-1 must be a whole number of at least 0": {"policy": -1},
    "gate_lag=2 must be 0 or 1": {"gate_lag": 2},
    "min_execution_delay=5 must be at most max_execution_delay=4": {"min_execution_delay": 5},
    "min_transfer_delay=1 must be at most max_transfer_delay=0": {"min_transfer_delay": 1},
    "min_transfer_delay=-1 must be a whole number of at least 0": {"min_transfer_delay": -1},
    "max_execution_delay=1048577 must be at most 1048576": {"max_execution_delay": 2**20 + 1},
    "min_execution_delay=0 allow a delay of 0 rounds": {"min_execution_delay": 0},
    r"positive_share=0.0 must be in \(0, 1\]": {"positive_share": 0.0},
    r"positive_share=1.5 must be in \(0, 1\]": {"positive_share": 1.5},
    "positive_share=0.1 of num_samples=4 leaves no image": {"positive_share": 0.1},
    "multi_class needs positive_share=1, not 0.5": {"multi_class": True},
}


@pytest.mark.parametrize(("message", "changes"), REFUSED.items())
def test_parameters_out_of_range_are_refused(message, changes):
    with pytest.raises(InvalidValueError, match=message):
        check_params(DIMS, Params(num_experts=3)._replace(**changes))


def test_one_class_has_none_to_be_told_from():
    dims = Dims(1, 1, 1, 4, 4, 1, 4)
    with pytest.raises(InvalidValueError, match="multi_class needs num_classes above 1"):
        check_params(dims, Params(num_experts=1, multi_class=True, positive_share=1.0))


@pytest.mark.parametrize(
    ("message", "kind", "changes"),
    [
        ("batch_size=3 must divide num_samples=4", InvalidValueError, {"batch_size": 3}),
        ("batch_size=8 must divide num_samples=4", InvalidValueError, {"batch_size": 8}),
        ("num_epochs=0 must be a whole number of at least 1", InvalidValueError, {"num_epochs": 0}),
        ("max_rounds=2.0 must be a whole number", InvalidValueError, {"max_rounds": 2.0}),
        ("resnet", UnknownNameError, {"network": "resnet"}),
        ("sdg", UnknownNameError, {"optimizer": "sdg"}),
    ],
)
def test_sizes_that_make_no_program_are_refused(message, kind, changes):
    with pytest.raises(kind, match=message):
        Dims(**{"max_experts": 3, "num_classes": 3, "max_rounds": 4, "num_samples": 4, "batch_size": 4, **changes})


def test_what_a_system_is_run_with_is_checked_before_anything_is_compiled():
    system = continual.system(DIMS, corners(), CLASSES)
    with pytest.raises(InvalidValueError, match="num_experts=4"):
        check_system(system, Params())
    with pytest.raises(InvalidValueError, match=r"num_classes=3 must be the number of classes.*, 2"):
        check_system(continual.system(DIMS, corners(), (0, 1)), Params(num_experts=3))


def test_rounds_beyond_those_remembered_are_refused():
    """Would else be lost without a word: an update beyond the end of an array is none."""
    system, params = continual.system(DIMS, corners(), CLASSES), Params(num_experts=3)
    message = "after {} rounds must be at most max_rounds=4 in all.*raise Dims.max_rounds"
    with pytest.raises(InvalidValueError, match="num_rounds=5 " + message.format(0)):
        mt.simulate(system, KEY, params, 5)
    for shape, run in (((), mt.simulate), ((2,), functools.partial(mt.simulate_batch, replicates=2))):
        like = jax.eval_shape(system.init, KEY, params)
        state = jax.tree.map(lambda leaf, shape=shape: np.zeros(leaf.shape + shape, leaf.dtype), like)
        with pytest.raises(InvalidValueError, match="num_rounds=2 " + message.format(3)):
            run(system, KEY, params=params, num_rounds=2, state=state._replace(round=np.full(shape, 3, np.int32)))


@given(st.integers(0, 2**32 - 1), st.integers(1, 6), st.sampled_from(["any", "one pixel", "dark"]))
@settings(max_examples=30, deadline=None, derandomize=True)
def test_elements_of_mean_images_vary_by_1_over_their_number_at_most(seed, num_tasks, kind):
    """sigma_0 = 0.1 at 784 pixels (Section VI of `edge`) cannot be: |x| = 1 leaves E|x|^2 - |E x|^2 <= 1 to share.

    Images of a single bright pixel, one elsewhere for each task, come as near as it gets: (1 - 1/T) / p.
    """
    generator = np.random.default_rng(seed)
    images = generator.integers(0, 256, (num_tasks, 2, 3, 3, 1)).astype(np.uint8)
    if kind == "one pixel":
        images = np.broadcast_to(np.eye(9, dtype=np.uint8)[:num_tasks, None], (num_tasks, 2, 9)) * 255
        images = images.reshape(num_tasks, 2, 3, 3, 1)
    if kind == "dark":
        images = np.zeros_like(images)
    moments, seen = gate.initial_moments(9), []
    for time, pixels in enumerate(images, start=1):
        moments, image = observed(moments, pixels, np.int32(time))
        seen.append(np.asarray(image, float))
    variance = float(gate.variance(moments, num_tasks))
    assert variance == pytest.approx(np.var(seen, axis=0).mean(), abs=1e-6)
    assert variance <= 1 / 9 + 1e-6
    if kind == "one pixel":
        assert variance == pytest.approx((1 - 1 / num_tasks) / 9, abs=1e-6)


@jax.jit
def observed(moments, pixels, time):
    image = gate.mean_image(pixels)
    return gate.updated(moments, image, time), image
