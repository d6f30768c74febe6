"""Presets at other sizes, a gate drive or a data set: catches choices that are not what was asked for or is said."""

import dataclasses

import numpy as np
import pytest
from refusals import refusal

from moe_theory.core.errors import InvalidValueError, UnknownNameError
from moe_theory.deep import datasets, judging, presets, reading, runs
from moe_theory.deep.params import Dims

DIMS = Dims(4, 3, 12, num_samples=10, num_tests=8, num_epochs=2, batch_size=10)
TINY = dataclasses.replace(presets.preset("continual-mnist-small"), name="tiny", dims=DIMS, experts=(1, 4))
PUBLISHED = presets.preset("continual-mnist")


def plan_of(of=TINY, **changes):
    request = {"preset": of, "replicates": 2, "data": datasets.load("digits"), "reading": reading("balanced")} | changes
    return runs.Plan(**request)


def resized(experts=None, classes=None, **sizes):
    return judging.resized(PUBLISHED, experts, classes, **sizes)


def test_sizes_take_the_place_of_the_presets():
    found = resized(network="mlp", num_epochs=7, num_samples=50, max_rounds=9, experts=(2, 5))
    assert found.dims == Dims(5, 3, 9, 50, 1000, 7, 50, "mlp")  # a batch is never larger than the samples
    assert list(found.cells()) == ["M = 2", "M = 2, no termination", "M = 5", "M = 5, no termination"]
    assert {cell["num_rounds"] for cell in found.cells().values()} == {9}
    assert resized() == PUBLISHED


def test_sizes_that_cannot_be_are_refused():
    for sizes, error, argument in (
        ({"network": "mpl"}, UnknownNameError, "network"),
        ({"num_epochs": 0}, InvalidValueError, "num_epochs"),
        ({"num_samples": 50, "batch_size": 20}, InvalidValueError, "batch_size"),
        ({"experts": ()}, InvalidValueError, "experts"),
        ({"experts": (4, 4)}, InvalidValueError, "experts"),
    ):
        assert refusal(error, resized, **sizes).argument == argument, sizes


def test_test_images_are_thinned_evenly():
    data = datasets.load("digits")
    few = judging.thinned(data, None, 10)
    assert few.test.pixels.shape == (10, 8, 8, 1)
    np.testing.assert_array_equal(few.test.labels[[0, -1]], data.test.labels[[0, -1]])
    assert few.train is data.train
    assert judging.thinned(data, 10**6, None) is data is judging.thinned(data, None, None)
    assert len(judging.thinned(data, 20, None).test.labels) == 20
    assert refusal(InvalidValueError, judging.thinned, data, None, 0).argument == "test_images"


def test_many_seeds_are_looked_at_in_halves():
    """So that seeds that decide all claims are enough."""
    assert plan_of(replicates=127).looks == (31, 63, 127)
    assert plan_of(replicates=128).looks == (32, 64, 128)
    assert plan_of(replicates=40).looks == (40,)


@pytest.mark.thorough
def test_a_run_whose_experts_diverge_stops():
    plan = plan_of(settings={"expert_rate": 1e30, "final_rate": 1e30})
    with pytest.raises(InvalidValueError, match=r"seed \d: experts diverge in round \d+, at expert_rate=1e\+30"):
        runs.run_plan(plan, num_threads=1)
