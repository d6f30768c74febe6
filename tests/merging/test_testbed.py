"""The testbed's tasks, network and slots against plain NumPy: catches tasks without conflict, a wrong forward pass."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.merging.serving import merge
from moe_theory.merging.testbed import tasks, training, transformer
from moe_theory.merging.testbed.tasks import Examples, Recipe, accuracies, examples
from moe_theory.merging.testbed.training import initial
from moe_theory.runs.store import Store


def parts(setting, split="train"):
    """Inputs (V, n, ...) and labels (V, n)."""
    found = examples(setting, split)
    num_tasks = setting.num_tasks
    np.testing.assert_array_equal(found.tasks, np.repeat(np.arange(num_tasks), len(found.tasks) // num_tasks))
    return found.inputs.reshape(num_tasks, -1, *found.inputs.shape[1:]), found.labels.reshape(num_tasks, -1)


def test_no_input_has_the_same_label_under_two_label_maps():
    bases = len(tasks.CHANGES)
    inputs, labels = parts(Recipe(num_tasks=bases * tasks.NUM_CLASSES, num_experts=1), "validation")
    assert inputs.shape[2:] == (tasks.NUM_TOKENS, tasks.NUM_FEATURES)
    for first in range(tasks.NUM_CLASSES):
        np.testing.assert_array_equal(inputs[first * bases :][:bases], inputs[:bases])
        for second in range(first):
            assert np.all(labels[first * bases :][:bases] != labels[second * bases :][:bases])
    assert set(labels.ravel()) == set(range(tasks.NUM_CLASSES))
    assert inputs.dtype == np.float32
    assert labels.dtype == np.int32


def test_the_digits_are_changed_as_said():
    from sklearn.datasets import load_digits

    pixels, shown = load_digits(return_X_y=True)
    inputs, labels = parts(Recipe(), "validation")
    images = inputs.reshape(8, -1, 2, 2, 4, 4).swapaxes(3, 4).reshape(8, -1, 8, 8)
    known = {image.tobytes(): digit for image, digit in zip(pixels / 8 - 1, shown, strict=True)}
    plain, turned, negated, permuted = images[:4].astype(float)
    np.testing.assert_array_equal([known[image.tobytes()] for image in plain], labels[0])
    np.testing.assert_array_equal(turned, [np.rot90(image) for image in plain])
    np.testing.assert_array_equal(negated, -plain)
    assert sorted(map(tuple, permuted.reshape(-1, 64).T)) == sorted(map(tuple, plain.reshape(-1, 64).T))
    assert np.mean(permuted != plain) > 0.3


def test_a_fifth_of_every_digit_is_for_validation_and_no_image_is_in_both():
    (train, train_labels), (held_out, labels) = parts(Recipe()), parts(Recipe(), "validation")
    assert train.shape[1] + held_out.shape[1] == 1797
    shares = np.bincount(labels[0]) / (np.bincount(labels[0]) + np.bincount(train_labels[0]))
    assert np.all(np.abs(shares - 0.2) < 0.01)
    assert not {image.tobytes() for image in train[0]} & {image.tobytes() for image in held_out[0]}


SMALL = Recipe(num_tasks=3, num_experts=3, width=6, hidden=5, num_layers=2, num_heads=2, batch_size=3)


@pytest.fixture(scope="module")
def model():
    """Random arrays everywhere, so that no bias, norm or position is idle."""
    rng = np.random.default_rng(3)

    def random(shape):
        return np.float32(rng.normal(0, 0.7, shape))

    start = jax.eval_shape(lambda: initial(jax.random.key(0), SMALL))
    experts = [transformer.Experts(*(random((3, *part.shape[1:])) for part in start.layers[0].experts)) for _ in "12"]
    return transformer.replace_experts(jax.tree.map(lambda leaf: random(leaf.shape), start), experts)


def loop_forward(model, inputs, experts_of):
    """One example, token, head and layer at a time, in double precision."""
    model = jax.tree.map(lambda leaf: np.asarray(leaf, float), model)

    def norm(own, vector):
        return (vector - vector.mean()) / np.sqrt(vector.var() + 1e-5) * own.scale + own.shift

    logits = []
    for example, row in enumerate(np.asarray(inputs, float)):
        tokens = list(row @ model.w_embedding + model.b_embedding + model.positions)
        for index, layer in enumerate(model.layers):
            own, normed = layer.attention, [norm(layer.attention_norm, token) for token in tokens]
            for place, _ in enumerate(tokens):
                for head in range(own.w_out.shape[0]):
                    query, keys, values = (
                        [token @ own.w_in[:, part, head] + own.b_in[part, head] for token in normed]
                        for part in range(3)
                    )
                    scores = np.exp([query[place] @ key / np.sqrt(len(key)) for key in keys])
                    mixed = sum(score * value for score, value in zip(scores, values, strict=True)) / scores.sum()
                    tokens[place] = tokens[place] + mixed @ own.w_out[head]
                tokens[place] = tokens[place] + own.b_out
            w_in, b_in, w_out, b_out = experts_of(layer.experts, index, example)
            for place, token in enumerate(tokens):
                hidden = np.maximum(norm(layer.experts_norm, token) @ w_in + b_in, 0)
                tokens[place] = token + hidden @ w_out + b_out
        logits.append(norm(model.head_norm, np.mean(tokens, axis=0)) @ model.w_head + model.b_head)
    return np.array(logits)


def only_expert(index):
    return lambda experts, tokens, _: transformer.dense(jax.tree.map(lambda part: part[index][None], experts), tokens)


def test_the_forward_pass_is_that_of_a_plain_loop(model):
    """For merged experts, one expert, experts by group, and experts replaced by what they are merged to."""
    inputs = np.random.default_rng(4).normal(size=(6, 4, 16)).astype(np.float32)
    weights = np.array([0.5, 0.2, 0.3], np.float32)

    def close(moe, experts_of, of=model):
        ours = jax.jit(lambda of: transformer.forward(of, inputs, moe))(of)
        np.testing.assert_allclose(ours, loop_forward(model, inputs, experts_of), rtol=2e-4, atol=2e-4)

    def averaged(experts, layer, example):
        return tuple(sum(share * part[k] for k, share in enumerate(weights)) for part in experts)

    close(only_expert(2), lambda experts, layer, example: tuple(part[2] for part in experts))
    close(transformer.in_groups, lambda experts, layer, example: tuple(part[example // 2] for part in experts))
    close(merge.single, averaged, jax.jit(merge.weighted)(model, weights))


def test_slots_follow_their_mix():
    """Labels are those of their inputs; a task of no share is never drawn."""
    places = np.arange(12, dtype=np.int32)
    data = Examples(np.float32(places).reshape(12, 1, 1), places, np.repeat(places[:4], 3))
    mix = np.float32([0.5, 0.0, 0.3, 0.2])
    draw_slot = jax.jit(tasks.draw_slot, static_argnums=3)
    slot = jax.device_get(draw_slot(jax.random.key(5), data, mix, 30_000))
    np.testing.assert_array_equal(slot.tasks, slot.labels // 3)
    np.testing.assert_array_equal(slot.inputs[:, 0, 0], slot.labels)
    assert slot.tasks.dtype == jnp.int32
    last = draw_slot(jax.random.key(6), data, np.float32([0.7, 0.3, 0.0, 0.0]), 30_000)
    assert np.asarray(last.tasks).max() == 1


def test_accuracies_by_task():
    rng = np.random.default_rng(8)
    logits, labels, tasks = rng.normal(size=(50, 3)), rng.integers(0, 3, 50), rng.choice([0, 1, 3], 50)
    rewards, counts = jax.jit(accuracies, static_argnums=3)(np.float32(logits), np.int32(labels), np.int32(tasks), 4)
    for task in range(4):
        own = tasks == task
        expected = np.mean(np.argmax(logits[own], axis=1) == labels[own]) if own.any() else 0
        assert int(counts[task]) == own.sum()
        assert float(rewards[task]) == pytest.approx(expected, abs=1e-6)
    assert counts.dtype == jnp.int32


def equal(first, second):
    return all(np.array_equal(*pair) for pair in zip(*map(jax.tree.leaves, (first, second)), strict=True))


def test_batches_are_in_order_of_experts():
    places = np.arange(15, dtype=np.int32)
    data = Examples(np.zeros((15, 1, 1), np.float32), places, np.repeat(places[:5], 3))
    draw_batch = jax.jit(training.draw_batch, static_argnums=(2, 3, 4))
    batch = jax.device_get(draw_batch(jax.random.key(0), data, 5, 2, 400))
    assert [set(np.asarray(half).tolist()) for half in np.split(batch.tasks, 2)] == [{0, 2, 4}, {1, 3}]
    assert set(np.asarray(batch.labels).tolist()) == set(range(15))
    np.testing.assert_array_equal(batch.tasks, batch.labels // 3)


TRAINED = Recipe(num_tasks=5, num_experts=4, width=16, hidden=16, num_layers=1, num_heads=2, batch_size=64)


@pytest.fixture(scope="module")
def begun():
    return jax.jit(initial, static_argnums=1)(jax.random.key(0), TRAINED)


def test_a_trained_model_is_kept_and_read_back_bit_for_bit(begun, tmp_path, monkeypatch):
    """Would catch a cache that takes damaged files for whole, or dies where it cannot write."""
    runs, lines = [], []

    def trained(folder):
        """As `training.trained`, by a model that is not trained."""

        def make():
            runs.append(folder)
            return begun

        return training.cached(Store(folder), "a setting", make, begun, lines.append)

    for _ in range(2):
        assert equal(trained(tmp_path), begun)
    assert len(runs) == 1
    file = tmp_path / "results.sqlite"
    file.write_bytes(b"something else")
    assert equal(trained(tmp_path), begun)
    assert "move it away" in lines.pop()
    assert equal(trained(file), begun)  # a folder that cannot be made
    assert "not saved" in lines[-1]
    assert len(runs) == 3
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))
    assert training.cache_folder() == tmp_path / "user" / "moe_theory" / "testbed"
