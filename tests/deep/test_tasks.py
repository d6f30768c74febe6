"""Pools of images, and the rows that a task takes.

Catches rows of another kind, rows that are never or too often drawn, a share of positives that is only near, classes
that are mixed up, and data that no task can be made of.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from moe_theory.core.errors import InvalidValueError
from moe_theory.deep.datasets import Images
from moe_theory.deep.tasks import OTHER, inputs_of, on_device, pool_of, sample_rows

from .pictures import corners

CLASSES = (3, 0, 4)
NUMBER = 50_000  # draws, of which half are positives
FALSE_ALARM = 1e-7  # of one chi-square test

draw = jax.jit(sample_rows)


def test_images_keep_their_labels_and_lie_class_by_class():
    data = corners()
    for split, images in zip(pool_of(data, CLASSES)[:2], (data.train, data.test), strict=True):
        known = {image.tobytes(): label for image, label in zip(images.pixels, images.labels, strict=True)}
        shown = [known[image.tobytes()] for image in split.pixels]
        assert [CLASSES.index(label) if label in CLASSES else OTHER for label in shown] == split.labels.tolist()
        assert np.all(np.diff(split.labels) >= 0)
        for place, (start, count) in enumerate(zip(split.starts, split.counts, strict=True)):
            np.testing.assert_array_equal(np.flatnonzero(split.labels == place), np.arange(start, start + count))


@pytest.mark.parametrize("task", range(len(CLASSES)))
def test_rows_are_uniform_on_the_right_images(task):
    """Half of the rows are the class's, and of either half every image is drawn as often."""
    split = pool_of(corners(), CLASSES).train
    uniforms = np.random.default_rng(task).random(NUMBER, np.float32)
    rows = np.asarray(draw(split, jnp.int32(task), uniforms, 0.5))
    halves = np.split(rows, 2)
    kinds = [np.flatnonzero(split.labels == task), np.flatnonzero(split.labels != task)]
    for half, kind in zip(halves, kinds, strict=True):
        counts = np.bincount(half, minlength=len(split.labels))
        assert counts[kind].sum() == len(half)
        assert stats.chisquare(counts[kind]).pvalue > FALSE_ALARM


@pytest.mark.parametrize(("share", "positives"), [(1.0, 12), (0.5, 6), (0.25, 3), (0.3, 4), (0.05, 1)])
def test_the_share_of_positives_is_exact(share, positives):
    split = pool_of(corners(), CLASSES).test
    for end in (np.nextafter(np.float32(0), np.float32(1)), np.nextafter(np.float32(1), np.float32(0))):
        labels = split.labels[np.asarray(draw(split, jnp.int32(1), np.full(12, end), share))]
        assert (labels == 1).tolist() == [True] * positives + [False] * (12 - positives)


def test_the_rows_at_the_ends_of_a_pool_are_reached():
    """Smallest and largest uniforms give the first and last rows of a kind, past the class in the middle too."""
    split = pool_of(corners(), CLASSES).train
    ends = np.array([1e-9, 1 - 2**-24] * 2, np.float32)
    for task in range(len(CLASSES)):
        first, last, least, most = np.asarray(draw(split, jnp.int32(task), ends, 0.5))
        assert (first, last) == (split.starts[task], split.starts[task] + split.counts[task] - 1)
        others = np.flatnonzero(split.labels != task)
        assert (least, most) == (others[0], others[-1])


def test_inputs_have_mean_0_and_deviation_1_in_every_channel():
    """Over all training images; of a channel that never changes both are 0, and nothing is NaN."""
    data = corners()
    generator = np.random.default_rng(1)

    def coloured(images: Images) -> Images:
        others = generator.integers(0, 9, images.pixels.shape)
        return Images(
            np.concatenate([images.pixels, others, np.full_like(others, 255)], axis=-1).astype(np.uint8), images.labels
        )

    data = dataclasses.replace(data, train=coloured(data.train), test=coloured(data.test))
    pool = on_device(pool_of(data, CLASSES))
    inputs = np.asarray(inputs_of(pool, pool.train.pixels)).reshape(-1, 3)
    assert np.allclose(inputs.mean(axis=0), 0, atol=1e-5)
    assert np.allclose(inputs.std(axis=0), [1, 1, 0], atol=1e-5)


def without(images: Images, keep) -> Images:
    return Images(images.pixels[keep], images.labels[keep])


@pytest.mark.parametrize("classes", [(0, 5), (-1, 0), (1, 1)])
def test_classes_that_there_are_not_are_refused(classes):
    with pytest.raises(InvalidValueError, match=r"different classes of corners, 0\.\.4"):
        pool_of(corners(), classes)


@pytest.mark.parametrize("split", ["train", "test"])
@pytest.mark.parametrize("is_missing", [True, False])
def test_a_split_without_images_of_a_class_or_of_the_others_is_refused(split, is_missing):
    data = corners()
    images = getattr(data, split)
    data = dataclasses.replace(data, **{split: without(images, (images.labels == 3) != is_missing)})
    with pytest.raises(InvalidValueError, match=f"needs {'training' if split == 'train' else split} images of class 3"):
        pool_of(data, CLASSES)


def test_pixels_that_are_no_bytes_or_of_two_shapes_are_refused():
    data = corners()
    fractions = Images(data.train.pixels / 255, data.train.labels)
    with pytest.raises(InvalidValueError, match="as uint8 or features as float32"):
        pool_of(dataclasses.replace(data, train=fractions), CLASSES)
    smaller = Images(data.test.pixels[:, 1:], data.test.labels)
    with pytest.raises(InvalidValueError, match="the same in both splits"):
        pool_of(dataclasses.replace(data, test=smaller), CLASSES)
