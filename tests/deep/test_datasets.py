"""Data sets from small files in the published formats, and from broken ones."""

import gzip
import hashlib

import numpy as np
import pytest
from sklearn.datasets import load_digits

from moe_theory.core.errors import DataError, InvalidValueError, MissingError, UnknownNameError
from moe_theory.deep.datasets import DATASETS, DataSet, load, published, read_folder

from . import dataset_files as files

EXTERNAL = sorted(DATASETS.keys() - {"digits"})


def raised(kind, name, folder):
    """The one line of the error."""
    with pytest.raises(kind) as caught:
        load(name, folder)
    (line,) = str(caught.value).splitlines()
    return line


def check(data: DataSet, name, num_classes):
    assert data.name == name
    assert data.source
    assert data.title.removesuffix(" (not as published)") == DATASETS[name].title
    assert len(data.class_names) == num_classes
    assert all(isinstance(each, str) for each in data.class_names)
    for split in (data.train, data.test):
        assert split.pixels.dtype == np.uint8
        assert split.pixels.ndim == 4
        assert split.labels.dtype == np.int32
        assert split.labels.shape == split.pixels.shape[:1]
        assert split.labels.min() >= 0
        assert split.labels.max() < num_classes


def same(split, pixels, labels):
    np.testing.assert_array_equal(split.pixels, pixels)
    np.testing.assert_array_equal(split.labels, labels)


def test_the_digits_are_embedded_and_split_evenly():
    data = load("digits")
    check(data, "digits", 10)
    assert data.class_names == tuple("0123456789")
    pixels, labels = load_digits(return_X_y=True)
    known = {image.tobytes(): digit for image, digit in zip(pixels.astype(np.uint8) * 15, labels, strict=True)}
    seen = [image.tobytes() for split in (data.train, data.test) for image in split.pixels]
    assert sorted(seen) == sorted(known)
    assert data.train.pixels.shape[1:] == (8, 8, 1)
    assert [known[key] for key in seen] == [*data.train.labels, *data.test.labels]
    for digit in range(10):
        count = np.sum(labels == digit)
        assert np.sum(data.test.labels == digit) == -(-count // 5)


@pytest.mark.parametrize("compressed", [False, True], ids=["plain", "gz"])
@pytest.mark.parametrize("separator", ["-", "."])
def test_mnist(tmp_path, separator, compressed):
    held = files.mnist(tmp_path, separator, compressed)
    data = load("mnist", str(tmp_path))
    check(data, "mnist", 10)
    same(data.train, *held["train"])
    same(data.test, *held["test"])


def test_files_that_are_not_as_published_are_named(tmp_path, monkeypatch):
    """Would catch hashes of the compressed files, hashes in another order, and other images that pass for published."""
    files.mnist(tmp_path, compressed=True)
    assert load("mnist", tmp_path).title == "MNIST (not as published)"  # which reports and verdicts say
    held = [gzip.decompress(next(tmp_path.glob(pattern)).read_bytes()) for pattern in published.MNIST.files]
    as_here = tuple(hashlib.md5(data).hexdigest() for data in held)
    for name in ("FASHION_MNIST", "MNIST"):  # which have the same names of files
        monkeypatch.setattr(published, name, getattr(published, name)._replace(md5=as_here))
        assert read_folder(tmp_path).title == getattr(published, name).title
        monkeypatch.undo()


def test_cifar10(tmp_path):
    held = files.cifar10(tmp_path / "10")
    data = load("cifar10", str(tmp_path / "10"))
    check(data, "cifar10", 10)
    *train, test = held.values()
    same(data.train, *map(np.concatenate, zip(*train, strict=True)))
    same(data.test, *test)
    assert data.class_names[:3] == ("airplane", "automobile", "bird")


def test_cifar100_has_its_fine_labels(tmp_path):
    held = files.cifar100(tmp_path / "100")
    data = load("cifar100", tmp_path / "100")
    check(data, "cifar100", 100)
    same(data.train, *held["train"])
    same(data.test, *held["test"])


@pytest.mark.parametrize("name", EXTERNAL)
def test_without_data_the_message_says_what_was_looked_for_and_where(tmp_path, name):
    file = tmp_path / "file"
    file.write_text("")
    for folder in (None, tmp_path, tmp_path / "absent", file):
        line = raised(MissingError, name, folder)
        assert line.endswith(f"Name the folder that has {', '.join(DATASETS[name].files)}.")
        assert folder is None or str(folder) in line


def test_a_data_set_in_part_is_missing_the_rest(tmp_path):
    files.mnist(tmp_path)
    (tmp_path / "t10k-labels-idx1-ubyte").unlink()
    line = raised(MissingError, "mnist", tmp_path)
    assert f"{tmp_path} has no t10k-labels[-.]idx1-ubyte*: MNIST cannot be read. Name" in line
    files.cifar10(tmp_path / "10")
    (tmp_path / "10" / "data_batch_3.bin").unlink()
    line = raised(MissingError, "cifar10", tmp_path / "10")
    assert "has no data_batch_3.bin: CIFAR-10 cannot be read. " in line


def test_an_unknown_name_is_answered_with_the_nearest():
    assert "Did you mean 'cifar10'?" in raised(UnknownNameError, "cifar-10", None)


IMAGES = files.idx(np.zeros((20, 28, 28)))


@pytest.mark.parametrize(
    ("kind", "data", "said"),
    [
        ("images", b"", "its header is empty, not 00 00 08 03"),
        ("labels", IMAGES, "its header is 00 00 08 03 00 00 00 14, not 00 00 08 01"),
        ("images", IMAGES[:-1], "promises 15,680 bytes after it, but there are 15,679"),
        (
            "images",
            IMAGES[:4] + b"\xff" * 4 + IMAGES[8:],
            "promises 3,367,254,359,280 bytes after it, but there are 15,680",
        ),
        ("labels", files.idx(np.arange(20) % 11), "label 10 of image 10 is not in 0..9"),
        ("labels", files.idx(np.arange(19) % 10), "19 labels, but train-images-idx3-ubyte has 20 images"),
    ],
)
def test_damaged_mnist(tmp_path, kind, data, said):
    files.mnist(tmp_path)
    path = tmp_path / files.MNIST_FILES["train", kind].format("-")
    path.write_bytes(data)
    line = raised(DataError, "mnist", tmp_path)
    assert line.startswith(f"{path} is damaged: ")
    assert said in line
    assert line.endswith("Download it again from its publisher.")


WHOLE = gzip.compress(IMAGES)


@pytest.mark.parametrize(
    "data",
    [IMAGES, WHOLE[:-9], WHOLE[:-8] + b"\0" * 8],
    ids=["no gzip", "cut", "another checksum"],
)
def test_what_cannot_be_decompressed(tmp_path, data):
    files.mnist(tmp_path, compressed=True)
    (tmp_path / "train-images-idx3-ubyte.gz").write_bytes(data)
    assert "train-images-idx3-ubyte.gz is damaged: it cannot be decompressed (" in raised(DataError, "mnist", tmp_path)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"", "0 bytes are not a whole number of images of 3,073 bytes"),
        (lambda data: data[:-1], "12,291 bytes are not a whole number of images"),
        (lambda data: data[:3073] + b"\x0a" + data[3074:], "label 10 of image 1 is not in 0..9"),
    ],
)
def test_damaged_binary_cifar(tmp_path, change, said):
    files.cifar10(tmp_path / "10")
    path = tmp_path / "10" / "test_batch.bin"
    path.write_bytes(change(path.read_bytes()))
    line = raised(DataError, "cifar10", tmp_path / "10")
    assert line.startswith(f"{path} is damaged: ")
    assert said in line


def test_tiny_imagenet(tmp_path):
    held = files.tiny_imagenet(tmp_path)
    data = load("tiny-imagenet", tmp_path)
    check(data, "tiny-imagenet", 3)
    assert "6 grey images have three equal channels" in data.notes
    for split, listed in ((data.train, held["train"]), (data.test, held["val"])):
        assert split.pixels.shape == (9, 64, 64, 3)
        reds = split.pixels[:, 20, 20, 0].astype(int)
        for label, wnid in enumerate(sorted(files.WNIDS)):
            expected = sorted(value for name, value in listed if name == wnid)
            np.testing.assert_allclose(sorted(reds[split.labels == label]), expected, atol=3)


@pytest.mark.parametrize(
    ("where", "change", "said"),
    [
        ("train/n01443537/images/n01443537_4.JPEG", lambda data: data[:-50], "it cannot be decoded ("),
        ("val/val_annotations.txt", lambda data: data.replace(b"val_3.", b"val_9."), "'val_3.JPEG' is missing here or"),
        ("val/val_annotations.txt", lambda data: data.replace(b"n04067472", b"n9"), "'n9' is missing here or"),
        ("wnids.txt", lambda data: data + b"n77777777\n", "n77777777/images"),
    ],
)
def test_damaged_tiny_imagenet(tmp_path, where, change, said):
    files.tiny_imagenet(tmp_path, per_class=2)
    path = tmp_path / where
    path.write_bytes(change(path.read_bytes()))
    assert said in raised((DataError, InvalidValueError), "tiny-imagenet", tmp_path)
