"""Training of sparse-MoE classifiers: what it reaches and how it is run, their samples, exact risks and shared runs."""

import functools

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory import root_key
from moe_theory.core import engine
from moe_theory.core.errors import UnknownNameError
from moe_theory.generalization import Dims, Params, data, experiments, model
from moe_theory.generalization.training import empirical_risk, gap, system, true_risk
from moe_theory.verification.request import check_request
from tests.continual.cases import refuse

ROOT = mt.root_key(17)
DIMS = Dims(max_experts=4, num_features=3, max_samples=24)


def watch(state, info):
    return {"gap": gap(state), "empirical": empirical_risk(state), "true": true_risk(state), "info": info}


@pytest.mark.thorough
def test_one_program_fits_random_labels_at_every_sparsity():
    """Would catch k, T or m that recompiles; a fit that does not fit; a risk of 1/2 that is only estimated."""
    programs = []
    for num_experts, num_active, num_samples in ((4, 1, 24), (4, 2, 24), (4, 4, 12), (1, 1, 24)):
        params = Params(num_experts, num_active, num_samples, expert_norm=5.0, router_norm=8.0)
        state, seen = mt.simulate_batch(system(DIMS), ROOT, 16, params, 80, 4, observe=watch)
        programs.append(engine.num_programs())
        assert np.all(seen["true"] == 0.5)
        np.testing.assert_allclose(seen["gap"], np.abs(seen["empirical"] - 0.5), atol=1e-6)
        gaps = seen["gap"].mean(axis=1)
        assert gaps[-1] > gaps[0] > 0
        assert gaps[-1] > 0.1
        assert np.all(seen["info"].error.mean(axis=1) < 0.5)
        squares = seen["info"].mean_square_gate
        assert np.all((squares >= 1 / num_active - 1e-5) & (squares <= 1 + 1e-5))
        assert np.linalg.norm(state.weights.experts[0], axis=1).max() < 5 + 1e-4
        assert np.linalg.norm(state.weights.router[0], axis=1).max() < 8 + 1e-4
    assert len(set(programs)) == 1


KEY = root_key(3)
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
draw_sample = quickly(data.draw_sample, static_argnums=(1, 3))
draw_teacher = quickly(data.draw_teacher, static_argnums=1)


@pytest.mark.parametrize("name", data.DATA)
def test_samples_are_of_their_population_and_begin_alike(name):
    """Would catch inputs that are too long, labels that are not the population's, and padding that changes a draw."""
    features = 64 if name == data.DIGITS else 5
    small, large = Dims(3, features, 40), Dims(3, features, 60)
    key, params = jax.random.key(8), Params(3, num_samples=30)
    teacher = draw_teacher(key, small) if name == data.TEACHER else None
    sample, other = (jax.device_get(draw_sample(key, dims, params, name, teacher)) for dims in (small, large))
    for one, two in zip(sample, other, strict=True):
        np.testing.assert_array_equal(one, two[:40])
        assert not np.any(one[30:])
    assert sample.is_drawn[:30].all()
    assert np.all(np.abs(sample.labels[:30]) == 1)
    assert 0 < np.sum(sample.labels == 1) < 30
    assert np.linalg.norm(sample.features, axis=1).max() < 1 + 1e-6
    flipped = draw_sample(key, small, params._replace(label_noise=1.0), name, teacher)
    np.testing.assert_array_equal(flipped.labels, sample.labels * (1 if name == data.RANDOM_LABELS else -1))
    if name == data.RANDOM_LABELS:
        return
    inputs = data.population(small, name)
    distances = np.abs(np.asarray(sample.features)[:30, None] - inputs).max(axis=2)
    assert distances.min(axis=1).max() < 1e-6
    assert len(set(distances.argmin(axis=1))) > 25


def test_the_teacher_itself_errs_by_the_noise():
    """Would catch a population labelled by another rule than the sample, and noise that the risk does not count."""
    dims = Dims(data.TEACHER_EXPERTS, 5, 50)
    teacher = draw_teacher(KEY, dims)
    strong = teacher._replace(experts=(np.float32(1e8) * np.asarray(teacher.experts[0]),))
    true_risk = quickly(data.true_risk, static_argnums=3)
    for noise in (0.0, 0.125):
        risk = true_risk(strong, 1, data.TEACHER_EXPERTS, data.TEACHER, teacher, noise)
        assert abs(risk - noise) < 1e-6
    sample = draw_sample(KEY, dims, Params(4, num_samples=50), data.TEACHER, teacher)
    outputs = quickly(model.outputs)(teacher, sample.features, 1, data.TEACHER_EXPERTS)
    assert np.all(np.asarray(sample.labels) * np.asarray(outputs) > 0)


def test_data_there_are_not_are_refused():
    with pytest.raises(UnknownNameError, match="digits"):
        system(Dims(2, 64, 8), "digit")
    refuse("num_features", system, Dims(2, 8, 8), data.DIGITS)


def test_readings_run_once():
    again = [study for study in check_request("generalization").studies if study.reading.name == "router-dimension"]
    assert {study.experiment for study in again} == {experiments.DENSE, experiments.NATURAL}
