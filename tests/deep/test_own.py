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
from moe_theory.core.errors import DataError, DeclarationError, InvalidValueError
from moe_theory.deep import datasets, networks, own, presets, runs, tasks

RNG = np.random.default_rng(0)
LABELS = np.arange(60) % 3
FEATURES = (RNG.normal(size=(60, 5)) + 3 * LABELS[:, None]).astype(np.float32)
PARAMS = deep.Params(num_experts=2, gate_scale=3.0, num_rounds=6)
DIMS = deep.Dims(2, 3, 6, num_samples=10, num_tests=6, num_epochs=2, batch_size=10)


@pytest.fixture
def registered(restore):
    """Undo a test's registrations."""
    restore(networks.NETWORKS, datasets.DATASETS, presets.PRESETS)


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


def test_an_npz_file_is_found_and_split_where_it_has_no_test_data(tmp_path):
    np.savez(tmp_path / "mine.npz", x_train=FEATURES, y_train=LABELS)
    assert datasets.found_in(tmp_path) == ["arrays"]
    found = datasets.load("arrays", tmp_path)
    assert (found.title, len(found.train.labels), len(found.test.labels)) == ("mine", 48, 12)
    assert np.bincount(found.test.labels).tolist() == [4, 4, 4]
    held = {tuple(row) for row in found.train.pixels.reshape(48, 5)} | {tuple(r) for r in found.test.pixels[:, 0, 0]}
    assert len(held) == 60
    np.savez(tmp_path / "mine.npz", images=FEATURES)
    refusal(DataError, datasets.load, "arrays", tmp_path)
    (tmp_path / "mine.npz").write_bytes(b"nothing")
    refusal(DataError, datasets.load, "arrays", tmp_path)


def test_what_is_registered_is_known_by_name(registered, tmp_path):
    deep.register(features())
    linear = networks.adapted(
        "linear",
        lambda key, images, k: jnp.zeros((images.size, k)),
        lambda weights, images: images.reshape(len(images), -1) @ weights,
    )
    deep.register(linear)
    preset = deep.register(
        dataclasses.replace(
            deep.preset("continual-mnist-small"),
            name="mine",
            data="features",
            classes=(0, 1, 2),
            dims=dataclasses.replace(DIMS, max_experts=7, network="linear"),
        )
    )
    plan = runs.Plan(preset, datasets.load("features"), deep.reading("balanced"), replicates=1, folder=tmp_path)
    assert list(plan.params()) == list(preset.cells())
    weights = jax.eval_shape(preset.system(plan.data).init, mt.root_key(0), plan.params()["M = 7"]).experts
    assert [leaf.shape for leaf in jax.tree.leaves(weights)] == [(7, 5, 3)]  # of an expert each, features and classes
    from moe_theory.deep.experiments import claims_for

    assert len(claims_for(preset, "features")) == 4  # those of the figure that it changes
    for refused in (networks.NETWORKS["mlp"], 3):
        refusal(InvalidValueError, deep.register, refused)


def test_a_network_of_a_module_is_imported(registered, tmp_path, on_path):
    (tmp_path / "models.py").write_text(
        "from moe_theory.deep import networks\nnet = networks.mlp('imported', (4,))\nother = 3\n"
    )
    assert own.network_named("models:net") == "imported"
    assert networks.NETWORKS["imported"].name == "imported"
    assert own.network_named("mlp") == "mlp"
    for name in ("models:other", "models:none", "nowhere:net"):
        refusal(InvalidValueError, own.network_named, name)


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


def test_a_file_whose_arrays_do_not_fit_is_refused_in_a_line(tmp_path):
    for changes, error in (
        ({"y_train": np.arange(6) / 2}, InvalidValueError),
        ({"y_train": np.arange(4)}, InvalidValueError),
        ({"x_test": np.zeros((2, 5))}, DataError),  # without its labels
        ({"x_test": np.zeros((2, 4)), "y_test": np.arange(2)}, InvalidValueError),
    ):
        np.savez(tmp_path / "mine.npz", **({"x_train": np.zeros((6, 5)), "y_train": np.arange(6) % 2} | changes))
        refusal(error, datasets.load, "arrays", tmp_path)


NUMBERS = np.arange(30.0).reshape(6, 5)


def test_numbers_that_a_cast_would_change_are_refused(tmp_path, recwarn):
    """Would catch labels that wrap around, memory for classes that nobody has, and whatever is no real number."""
    path = tmp_path / "mine.npz"
    for changes in (
        {"y_train": np.arange(6) + 2**32},  # class 0 and more, were they cast first
        {"y_train": np.array([0, 1, 2, 3, 4, 2**31 - 2])},
        {"y_train": np.array([0, 1, 2, 3, 4, -1])},
        {"x_train": NUMBERS * 1e300},
        {"x_train": np.where(NUMBERS > 3, np.inf, NUMBERS)},
        {"x_train": NUMBERS * 1j},
        {"x_train": NUMBERS.astype(str)},
        {"x_train": NUMBERS.astype(object)},
    ):
        given = {"x_train": NUMBERS, "y_train": np.arange(6) % 2} | changes
        np.savez(path, **given)
        assert str(path) in str(refusal((DataError, InvalidValueError), datasets.load, "arrays", tmp_path))
        values = (given["x_train"], given["y_train"])
        with pytest.raises(InvalidValueError):  # arrays in memory are of no other kinds
            datasets.from_arrays("mine", *values, *values)
    assert not recwarn.list


def test_numbers_of_every_kind_are_read_as_they_are(tmp_path):
    for kind in ("f2", "f4", ">f8", "i8", ">i2", "u4", "?"):
        held = NUMBERS.astype(kind)
        arrays = {"x_train": held, "y_train": np.arange(6), "x_test": held, "y_test": np.arange(6)}
        np.savez_compressed(tmp_path / "mine.npz", **arrays)
        pixels = datasets.load("arrays", tmp_path).test.pixels
        np.testing.assert_array_equal(pixels[:, 0, 0, :], held.astype(float), kind)
