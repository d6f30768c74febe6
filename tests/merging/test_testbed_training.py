"""Training of the testbed's model and its cache: catches idle experts, and damaged files that are trusted."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from moe_theory.merging.testbed import training, transformer
from moe_theory.merging.testbed.checkpoint import (
    InvalidCheckpointError,
    load_experts,
    merge_checkpoint,
    write_safetensors,
)
from moe_theory.merging.testbed.tasks import Examples, Setting, examples

SMALL = Setting(
    num_tasks=5,  # the first expert serves two tasks, which conflict
    num_experts=4,
    width=16,
    hidden=16,
    num_layers=1,
    num_heads=2,
    dense_steps=40,
    expert_steps=160,
    batch_size=64,
    learning_rate=1e-2,
)


@pytest.fixture(scope="module")
def lines():
    return []


@pytest.fixture(scope="module")
def fit(lines):
    return training.fit(SMALL, lines.append)


def equal(first, second):
    return all(np.array_equal(*pair) for pair in zip(*map(jax.tree.leaves, (first, second)), strict=True))


def test_experts_become_good_at_their_own_tasks(fit, lines):
    """Losses fall in both phases; experts are right on their own task and not on others; two on one expert share it."""
    assert fit.dense_losses.shape == (40,)
    assert fit.expert_losses.shape == (160,)
    assert fit.dense_losses[:5].mean() > fit.dense_losses[-5:].mean() + 0.3
    assert fit.expert_losses[:5].mean() > fit.expert_losses[-5:].mean() + 1
    data = examples(SMALL, "validation")
    every = [transformer.forward(fit.model, jnp.asarray(data.inputs), transformer.with_one_expert(k)) for k in range(4)]
    alone = np.array([(np.argmax(logits, axis=1) == data.labels).reshape(5, -1).mean(axis=1) for logits in every])
    assert np.all(np.diag(alone[:, :4])[1:] > 0.7)
    off = alone[1:, 1:4][~np.eye(3, dtype=bool)]
    assert off.mean() < 0.5
    assert 0.3 < (alone[0, 0] + alone[0, 4]) / 2 < 0.7
    assert lines[-1].startswith("experts: 160 of 160 steps, loss ")
    assert all(leaf.dtype == jnp.float32 for leaf in jax.tree.leaves(fit.model))


def test_batches_are_in_order_of_experts():
    data = Examples(jnp.zeros((15, 1, 1)), jnp.arange(15), jnp.repeat(jnp.arange(5), 3))
    batch = training.draw_batch(jax.random.key(0), data, 5, 2, 400)
    assert [set(np.asarray(half).tolist()) for half in np.split(batch.tasks, 2)] == [{0, 2, 4}, {1, 3}]
    assert set(np.asarray(batch.labels).tolist()) == set(range(15))
    np.testing.assert_array_equal(batch.tasks, batch.labels // 3)


def test_a_trained_model_is_kept_and_read_back_bit_for_bit(fit, tmp_path, monkeypatch):
    """Would catch a cache that forgets the setting, takes damaged files for whole, or dies where it cannot write."""
    runs, told = [], []

    def train(setting, progress):
        runs.append(setting)
        return fit.model

    monkeypatch.setattr(training, "train", train)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "user"))

    def trained(setting=SMALL, **options):
        return training.trained(setting, told.append, **options)

    assert equal(trained(folder=tmp_path), fit.model)
    assert equal(trained(folder=tmp_path), fit.model)
    assert len(runs) == 1
    (file,) = tmp_path.glob("*.safetensors")
    whole = bytearray(file.read_bytes())
    for damaged in (whole[:-3], whole[:-1] + bytes([whole[-1] ^ 1]), b"", b"something else"):
        file.write_bytes(damaged)
        assert equal(trained(folder=tmp_path), fit.model)
        assert told[-1].startswith("training again: ")
        assert file.read_bytes()[-8:] == whole[-8:]
    assert len(runs) == 5
    trained(dataclasses.replace(SMALL, seed=1), folder=tmp_path)
    trained()
    trained()
    assert len(runs) == 7
    assert len(list((tmp_path / "user" / "moe_theory" / "testbed").iterdir())) == 1
    trained(folder=file)  # a folder that cannot be made
    assert "not kept" in told[-1]


def test_a_model_is_a_checkpoint_like_any_other(fit, tmp_path):
    """Would catch names that the pattern misses, and a merge of files that is not the merge of the network."""
    path, out = tmp_path / "model.safetensors", tmp_path / "merged.safetensors"
    training.save_model(path, fit.model)
    assert equal(training.load_model(path), fit.model)
    found = load_experts(path, training.PATTERN)
    assert list(found) == [0]
    for name, part in fit.model.layers[0].experts._asdict().items():
        np.testing.assert_array_equal(found[0][name], part)
    weights = np.array([0.4, 0.3, 0.2, 0.1])
    merged = merge_checkpoint(path, training.PATTERN, weights, out)
    assert (merged.num_layers, merged.num_experts, merged.num_merged) == (1, 4, 4)
    for name, part in training.load_model(out).layers[0].experts._asdict().items():
        expected = np.tensordot(weights, np.asarray(found[0][name], float), axes=1)[None]
        np.testing.assert_allclose(part, expected, rtol=1e-6, atol=1e-8)
    write_safetensors(path, {"layers.0.attention.w_in": np.zeros((2, 3, 1, 2), np.float32)}, {})
    with pytest.raises(InvalidCheckpointError, match="no model of the testbed"):
        training.load_model(path)
