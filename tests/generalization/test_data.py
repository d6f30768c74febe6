"""Distributions that samples are from, by their frequencies and exact risks: catches a sample of another distribution.

Chi-square tests at 1e-7 on fixed seeds.
"""

import functools

import jax
import numpy as np
import pytest
from scipy import stats

from moe_theory import root_key
from moe_theory.core.errors import InvalidDimsError, UnknownNameError
from moe_theory.generalization import data, model
from moe_theory.generalization.model import Dims, Params
from moe_theory.generalization.training import system

LEAST = 1e-7
SIZE = 20_000
KEY = root_key(3)
quickly = functools.partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})
draw_sample = quickly(data.draw_sample, static_argnums=(1, 3))
draw_teacher = quickly(data.draw_teacher, static_argnums=1)
FEATURES = {"random-labels": 3, "teacher": 3, "digits": 64}


def drawn(name, noise):
    dims = Dims(4, FEATURES[name], SIZE)
    teacher = draw_teacher(root_key(1), dims) if name == "teacher" else None
    sample = draw_sample(root_key(2), dims, Params(num_samples=SIZE, label_noise=noise), name, teacher)
    return dims, teacher, jax.device_get(sample)


def is_fair(happened, chance):
    return stats.binomtest(int(np.sum(happened)), len(happened), chance).pvalue > LEAST


@pytest.mark.parametrize("name", ["teacher", "digits"])
def test_inputs_are_uniform_on_the_population_and_labels_flipped_as_often_as_said(name):
    dims, teacher, sample = drawn(name, 0.3)
    population = data.population(dims, name).astype(np.float32)
    places = {row.tobytes(): place for place, row in enumerate(population)}
    chosen = np.array([places[row.tobytes()] for row in np.asarray(sample.features)])
    eighths = np.bincount(chosen * 8 // len(population), minlength=8)
    expected = np.bincount(np.arange(len(population)) * 8 // len(population)) * SIZE / len(population)
    assert stats.chisquare(eighths, expected).pvalue > LEAST
    if name == "teacher":
        clean = np.asarray(quickly(data.teacher_labels)(teacher, sample.features))
    else:
        clean = data._digits()[1][chosen]
    assert is_fair(np.asarray(sample.labels) != clean, 0.3)


def test_random_labels_are_fair_coins_and_their_inputs_on_the_sphere():
    _, _, sample = drawn("random-labels", 0.0)
    features, labels = np.asarray(sample.features), np.asarray(sample.labels)
    np.testing.assert_allclose(np.linalg.norm(features, axis=1), 1, rtol=1e-5)
    assert is_fair(labels > 0, 0.5)
    for column in features.T:  # a coordinate of a uniform point of the sphere in three dimensions is uniform
        assert stats.chisquare(np.histogram(column, 10, (-1, 1))[0]).pvalue > LEAST
        assert is_fair((column > 0) == (labels > 0), 0.5)


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
    with pytest.raises(InvalidDimsError, match="num_features=8 must be 64"):
        system(Dims(2, 8, 8), data.DIGITS)
