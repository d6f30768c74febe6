"""The memory of past tasks; how well experts do is compared in test_deep_parity.py."""

import jax
import jax.numpy as jnp
import numpy as np
from refusals import refusal

from moe_theory.core.errors import InvalidValueError
from moe_theory.deep import evaluation
from moe_theory.deep.params import Dims
from moe_theory.deep.tasks import Arrival

DIMS = Dims(max_experts=3, num_classes=2, max_rounds=5, num_samples=1, num_tests=4, num_epochs=1, batch_size=1)
NUM_IMAGES = 7


def test_rounds_beyond_those_remembered_are_nan_or_refused():
    """Each would else be lost without a word: an update beyond the end of an array is none."""
    rows = evaluation.Tables(*np.zeros((2, DIMS.num_classes, NUM_IMAGES)))
    tests, first = jnp.zeros(DIMS.num_tests, jnp.int32), jnp.int32(0)
    arrival = Arrival(*[tests] * len(Arrival._fields))._replace(task=first)

    @jax.jit
    def one_round(past, time):
        tables = evaluation.Tables(*jnp.zeros((2, DIMS.max_experts, DIMS.num_classes, NUM_IMAGES)))
        past = evaluation.record(past, time, arrival, first, rows)
        return past, evaluation.scores(past, tables, time)

    past = evaluation.empty_past(DIMS)
    for time in range(1, DIMS.max_rounds + 3):
        past, found = one_round(past, jnp.int32(time))
        values = np.array([*found[:4], found.class_errors[0], found.class_accuracies[0]])  # class 1 never arrives
        assert np.all(np.isfinite(values) if time <= DIMS.max_rounds else np.isnan(values))
    past = evaluation.empty_past(DIMS)
    refusal(InvalidValueError, evaluation.record, past, jnp.int32(6), arrival, first, rows)
