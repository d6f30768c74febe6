"""What users bring: catches data that are read wrongly or refused without a way out, and names that are not known."""

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from refusals import refusal

import moe_theory as mt
from moe_theory import deep, edge
from moe_theory.continual import baseline
from moe_theory.core.errors import DeclarationError, InvalidValueError
from moe_theory.deep import datasets, networks, tasks

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
FEATURES = (RNG.normal(size=(60, 5)) + 3 * LABELS[:, None]).astype(np.float32)
PARAMS = deep.Params(num_experts=2, gate_scale=3.0, num_rounds=6)
DIMS = deep.Dims(2, 3, 6, num_samples=10, num_tests=6, num_epochs=2, batch_size=10)


@pytest.fixture
def registered(restore):
    """Undo a test's registrations."""
    restore(networks.NETWORKS)


@functools.cache
def features():
    return datasets.from_arrays("features", FEATURES, LABELS, FEATURES[:15], LABELS[:15])


@functools.cache
def learner():
    """The printed algorithm on these features, whose program several tests run."""
    return deep.continual.system(DIMS, features(), (0, 1, 2))


def run_of(**parts):
    system = deep.continual.system(DIMS, features(), (0, 1, 2), **parts)
    return mt.simulate(system, mt.root_key(0), PARAMS, 6)


def test_arrays_of_images_are_bytes_with_channels():
    pixels = RNG.integers(0, 256, (60, 4, 4), np.uint8)
    found = datasets.from_arrays("grey", pixels, LABELS, pixels[:9], LABELS[:9], ("a", "b", "c"))
    assert found.train.pixels.shape == (60, 4, 4, 1)
    assert found.train.pixels.dtype == np.uint8
    assert found.class_names == ("a", "b", "c")


def test_arrays_that_do_not_fit_are_refused():
    arrays = {"train": FEATURES, "train_labels": LABELS, "test": FEATURES[:15], "test_labels": LABELS[:15]}
    for changes in (
        {"train_labels": LABELS[:7]},
        {"train": np.where(FEATURES > 3, np.nan, FEATURES)},
        {"test_labels": LABELS[:15] - 1},
        {"class_names": ("a",)},
        {"test": FEATURES[:15, :2]},
    ):
        refusal(InvalidValueError, datasets.from_arrays, "mine", **(arrays | changes))


def test_a_registered_network_is_known_by_name(registered, tmp_path):
    linear = networks.adapted(
        "linear",
        lambda key, images, k: jnp.zeros((images.size, k)),
        lambda weights, images: images.reshape(len(images), -1) @ weights,
    )
    deep.register(linear)
    like = deep.preset("continual-mnist-small")
    dims = dataclasses.replace(DIMS, max_experts=7, network="linear")
    preset = dataclasses.replace(like, name="mine", classes=(0, 1, 2), dims=dims)
    plan = deep.plan(preset, features(), replicates=1, folder=tmp_path)
    assert list(plan.params()) == list(preset.cells())
    weights = jax.eval_shape(preset.system(plan.data).init, mt.root_key(0), plan.params()["M = 7"]).experts
    assert [leaf.shape for leaf in jax.tree.leaves(weights)] == [(7, 5, 3)]  # of an expert each, features and classes
    from moe_theory.deep.experiments import claims_for

    assert len(claims_for(preset, "features")) == 4  # those of the figure that it changes
    refusal(InvalidValueError, deep.register, networks.NETWORKS["mlp"])


@pytest.mark.thorough
def test_what_the_gate_reads_of_the_images_and_a_locality_loss_with_its_memory_are_taken():
    state, info = run_of(embed=lambda images: images[:, 0, 0, :2].mean(axis=0), locality=baseline.last_move)
    assert state.gates.shape == (2, 2)
    assert np.any(state.gates != 0)
    last = np.zeros(2)
    for expert, length in zip(info.expert, info.locality, strict=True):
        last[expert] = length
    np.testing.assert_allclose(state.memory.last, last, rtol=1e-6)
    assert int(state.memory.num_moves) == len(info.expert)
    refusal(DeclarationError, run_of, embed=lambda images: images.mean())


def of_the_first_class(key, dims, state, params):
    arrival, _ = tasks.draw(key, dims, state.pool, params)
    return state.pool, arrival._replace(task=jnp.int32(0), transfer_delay=jnp.int32([0, 3]))


def to_the_last(outputs, perturbation, state, arrival, params):
    return jnp.arange(outputs.shape[0]) + 0 * outputs


def test_networks_take_the_parts_of_algorithm_1():
    """Would catch a copy of the algorithm that a stream, router, loss or optimizer of one's own does not reach."""
    state, info = run_of(
        stream=of_the_first_class,
        router=to_the_last,
        auxiliary=lambda visits, time, params: 1e3 * visits,
        optimizer=lambda rate: optax.sgd(rate, momentum=0.9),
    )
    assert (info.task == 0).all()
    assert (info.expert == 1).all()
    assert np.abs(state.gates).max() > 10  # moved by that loss
    assert jax.tree.leaves(state.optimizer_state)[0].shape == state.gates.shape


@pytest.mark.thorough
def test_servers_with_networks_take_a_stream():
    system = deep.edge.system(DIMS, features(), (0, 1, 2), (edge.policies.fastest,), stream=of_the_first_class)
    _, info = mt.simulate(system, mt.root_key(0), PARAMS._replace(max_transfer_delay=3), 6)
    assert (info.task == 0).all()
    assert info.delay[:2].tolist() == [4, 7]  # the second server is farther away


@pytest.mark.thorough
def test_classes_may_arrive_one_after_the_other():
    params = deep.reading("class-incremental").params(num_experts=2, gate_scale=3.0, num_rounds=6)
    _, info = mt.simulate(learner(), mt.root_key(0), params, 6)
    assert info.task.tolist() == [0, 0, 1, 1, 2, 2]


def test_a_network_that_does_not_fit_is_told_in_a_line():
    """Would catch a traceback out of the middle of a compiled round."""
    for apply in (
        lambda weights, images: images.reshape(len(images), -1) @ weights[:3],
        lambda weights, images: (images.reshape(len(images), -1) @ weights)[:, 0],
    ):
        network = networks.adapted("mine", lambda key, images, k: jnp.zeros((images.size, k)), apply)
        refusal(DeclarationError, networks.check, network, (8, 8, 1), 2)


NUMBERS = np.arange(30.0).reshape(6, 5)


def test_numbers_that_a_cast_would_change_are_refused(recwarn):
    """Would catch labels that wrap around, memory for classes that nobody has, and whatever is no real number."""
    labels = np.arange(6) % 2
    for values, numbers in (
        (NUMBERS, np.arange(6) + 2**32),  # class 0 and more, were they cast first
        (NUMBERS, np.array([0, 1, 2, 3, 4, 2**31 - 2])),
        (NUMBERS, np.arange(6) / 2),
        (NUMBERS * 1e300, labels),
        (NUMBERS * 1j, labels),
        (NUMBERS.astype(str), labels),
        (NUMBERS.astype(object), labels),
    ):
        refusal(InvalidValueError, datasets.from_arrays, "mine", values, numbers, values, numbers)
    assert not recwarn.list


def test_numbers_of_every_kind_are_read_as_they_are():
    for kind in ("f2", "f4", ">f8", "i8", ">i2", "u4", "?"):
        held = NUMBERS.astype(kind)
        pixels = datasets.from_arrays("mine", held, np.arange(6), held, np.arange(6)).test.pixels
        np.testing.assert_array_equal(pixels[:, 0, 0, :], held.astype(float), kind)
