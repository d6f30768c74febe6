"""Folders of one's own, pools of images, and the rows that a task takes."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from PIL import Image
from refusals import refusal

from moe_theory.core.errors import InvalidValueError, MoeTheoryError
from moe_theory.deep import datasets
from moe_theory.deep.datasets import Images
from moe_theory.deep.tasks import OTHER, inputs_of, on_device, pool_of, sample_rows

from .dataset_files import corners

RED, BLUE = (250, 10, 20), (10, 20, 250)
COLOURS = {"cat": RED, "dog": BLUE}


def image(path, colour=RED, size=(16, 16), form=None):
    """Of one colour; its half on the right is black."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", size, colour)
    picture.paste((0, 0, 0), (size[0] // 2, 0, *size))
    picture.save(path, form)


def tree(folder, *splits, count=5, names=("cat", "dog"), size=(16, 16)):
    for split in splits or ("train", "test"):
        for name in names:
            for number in range(count):
                image(folder / split / name / f"{number}.png", COLOURS.get(name, RED), size)


def beside(folder, name, content=b"x"):
    tree(folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def greyed(folder):
    tree(folder)
    Image.new("L", (16, 16)).save(folder / "train" / "cat" / "a.png")


TWO, SHAPE = (10, 10), (16, 16, 3)

# By name: what makes it; images by split, classes and shape; and its notes.
READ = {
    "train, test": (tree, TWO, 2, SHAPE, ()),
    "a grey image": (greyed, (11, 10), 2, SHAPE, ("1 grey images have three equal channels",)),
    "a class without test images": (lambda f: (tree(f), tree(f, "train", names=("owl",))), (15, 10), 3, SHAPE, ()),
}


@pytest.mark.parametrize("name", READ)
def test_a_folder_is_read_as_what_it_is(name, tmp_path):
    make, counts, num_classes, shape, notes = READ[name]
    make(tmp_path / "it")
    data = datasets.read_folder(tmp_path / "it")
    assert (len(data.train.labels), len(data.test.labels)) == counts
    assert (len(data.class_names), data.train.pixels.shape[1:]) == (num_classes, shape)
    assert data.notes == notes
    if set(data.class_names) == {"cat", "dog"} and "grey" not in name:
        for split in (data.train, data.test):
            expected = np.array([COLOURS[data.class_names[label]] for label in split.labels])
            assert np.abs(split.pixels[:, 3, 3].astype(int) - expected).max() < 8
            assert split.pixels[:, 3, -3].max() < 8


REFUSED = {
    "nothing": (lambda f: f.mkdir(), "the published files of MNIST"),
    "not there": (lambda f: None, "no data set in"),
    "train without classes": (
        lambda f: (image(f / "train" / "cat.0.png"), image(f / "test" / "0.png")), "no data set in"
    ),
    "one class": (lambda f: tree(f, names=("cat",)), "has 1 folders of classes, but needs at least 2"),
    "a class of the test split alone": (
        lambda f: (tree(f), image(f / "test/owl/0.png")), "'owl' is not one of the 2 classes of train"
    ),
    "a text beside images": (
        lambda f: beside(f, "train/cat/notes.txt"), "notes.txt is damaged: it is in a folder of images, but"
    ),
    "images of two sizes": (
        lambda f: (tree(f), image(f / "test/dog/0.png", size=(8, 16))),
        "test/dog/0.png. Resize them, for example with PIL.Image.open(path).resize((16, 16))",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_a_folder_is_refused_with_the_way_out(name, tmp_path):
    make, said = REFUSED[name]
    make(tmp_path / "it")
    assert said in str(refusal(MoeTheoryError, datasets.read_folder, tmp_path / "it"))


CLASSES = (3, 0, 4)

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


def test_classes_that_there_are_not_are_refused():
    for classes in ((0, 5), (-1, 0), (1, 1)):
        refusal(InvalidValueError, pool_of, corners(), classes)


def test_data_that_no_task_can_be_made_of_are_refused():
    data = corners()
    for split in ("train", "test"):
        images = getattr(data, split)
        for rows in (images.labels != 3, images.labels == 3):
            part = dataclasses.replace(data, **{split: Images(images.pixels[rows], images.labels[rows])})
            assert "images of class 3" in str(refusal(InvalidValueError, pool_of, part, CLASSES))
    fractions = Images(data.train.pixels / 255, data.train.labels)
    smaller = Images(data.test.pixels[:, 1:], data.test.labels)
    for changes in ({"train": fractions}, {"test": smaller}):
        refusal(InvalidValueError, pool_of, dataclasses.replace(data, **changes), CLASSES)
