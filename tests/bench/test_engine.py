"""The engine as a contender: catches replicates run twice or not at all, other parameters, another precision."""

import dataclasses

import numpy as np
import pytest
from bench_samples import TINY

from moe_theory import continual, root_key, simulate_batch
from moe_theory.bench import engine
from moe_theory.core.errors import InvalidDimsError


def expected(setting, replicates):
    system = continual.system(continual.Dims(setting.num_experts, setting.num_tasks, setting.num_features, 2))
    params = continual.Params(num_experts=setting.num_experts)
    _, info = simulate_batch(system, root_key(setting.seed), replicates, params, setting.num_rounds)
    return np.asarray(info.generalization_error[-1])


@pytest.mark.parametrize("threads", [1, 3])
def test_it_runs_the_replicates_of_all_threads(threads):
    np.testing.assert_allclose(engine.prepare(TINY, threads)(), expected(TINY, 4 * threads), rtol=1e-5)


def test_precision_and_seed_are_those_asked_for():
    double = dataclasses.replace(TINY, precision="float64")
    assert engine.prepare(TINY)().dtype == np.float32
    assert engine.prepare(double)().dtype == np.float64
    assert engine.bytes_of_state(double) > 1.5 * engine.bytes_of_state(TINY)
    other = dataclasses.replace(TINY, seed=1)
    assert not np.array_equal(engine.prepare(other)(), engine.prepare(TINY)())


def test_wide_states_run_in_narrow_batches():
    wide = dataclasses.replace(TINY, num_experts=1000, num_features=2000)
    assert engine.automatic_width(wide) < engine.automatic_width(TINY)
    assert engine.bytes_needed(wide, 3) == 3 * engine.bytes_needed(wide)


def test_sizes_that_cannot_be_run_are_refused():
    with pytest.raises(InvalidDimsError):
        engine.prepare(dataclasses.replace(TINY, num_samples=3))
