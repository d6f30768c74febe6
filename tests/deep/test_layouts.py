"""Folders as people have them: each is read as what it is, with everything left out or changed counted, or refused with
the nearest layout and the way out. Catches images that are dropped, stretched, darkened, turned or given another label
without a word, and a data set that is called by the name of another.
"""

import hashlib
import io
import re
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from moe_theory.core.errors import InvalidDimsError, InvalidParamsError, InvalidRunError, MoeTheoryError
from moe_theory.deep import datasets
from moe_theory.deep.datasets import decoder, mnist
from moe_theory.deep.datasets import report as pages

from . import dataset_files as files
from .test_images import chunk

pillow = pytest.importorskip("PIL.Image")

RED, BLUE = (250, 10, 20), (10, 20, 250)
COLOURS = {"cat": RED, "dog": BLUE}


def image(path, colour=RED, size=(16, 16), form=None, **options):
    """Of one colour; its half on the right is black."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = pillow.new("RGB", size, colour)
    picture.paste((0, 0, 0), (size[0] // 2, 0, *size))
    picture.save(path, form, **options)


def tree(folder, *splits, count=5, names=("cat", "dog"), ending="png", size=(16, 16)):
    for split in splits or ("train", "test"):
        for name in names:
            for number in range(count):
                image(folder / split / name / f"{number}.{ending}", COLOURS.get(name.lower(), RED), size)


HEADER = "label," + ",".join(f"pixel{k}" for k in range(64))


def table(path, count=12, columns=64, header=HEADER, labels=True):
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = np.random.default_rng(0).integers(0, 256, (count, columns))
    first = [np.arange(count) % 2] if labels else []
    lines = [",".join(map(str, row)) for row in np.column_stack([*first, rows])]
    path.write_text("\n".join(([header] if header else []) + lines) + "\n")


def archive(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    np.savez(path, **arrays)


def pixels(count=10, *shape):
    return np.random.default_rng(count).integers(0, 256, (count, *(shape or (8, 8, 3))), np.uint8)


def labels(count=10):
    return np.arange(count) % 2


def emnist(folder, split):
    folder.mkdir(parents=True, exist_ok=True)
    for part, count in (("train", 12), ("test", 6)):
        pictures = np.zeros((count, 28, 28), np.uint8)
        pictures[:, 3, 20] = 200  # row 20 of column 3, as the file has columns first
        (folder / f"emnist-{split}-{part}-images-idx3-ubyte").write_bytes(files.idx(pictures))
        (folder / f"emnist-{split}-{part}-labels-idx1-ubyte").write_bytes(files.idx(1 + np.arange(count) % 5))


def kaggle_mnist(folder):
    files.mnist(folder / "flat")
    for path in (folder / "flat").iterdir():
        (folder / path.name).mkdir()
        path.rename(folder / path.name / path.name)
    (folder / "flat").rmdir()


def beside(folder, name, content=b"x"):
    tree(folder)
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def resaved_cifar(folder):
    held = files.cifar10(folder / "batches", "python")
    for name, (images, found) in held.items():
        content = {"data": files.rows(images), "labels": np.array(found, np.uint8)}
        (folder / "batches" / name).write_bytes(files.repickled(content, 4))


def linked(folder):
    tree(folder)
    tree(folder.parent / "elsewhere", "more")
    (folder / "train" / "cat" / "link").symlink_to(folder.parent / "elsewhere")


X, Y, XT, YT = pixels(), labels(), pixels(4), labels(4)
KERAS = {"x_train": X, "y_train": Y[:, None], "x_test": XT, "y_test": YT[:, None]}
MEDICAL = {"train_images": X, "train_labels": Y[:, None], "test_images": XT, "test_labels": YT[:, None]}
TORCH = {"x_train": np.moveaxis(X, -1, 1), "y_train": Y, "x_test": np.moveaxis(XT, -1, 1), "y_test": YT}
TWO, SHAPE = (10, 10), (16, 16, 3)

# By name: what makes it; the data set, images by split, classes and shape; and words that must be said of it.
READ = {
    "train, test": (tree, "folders", TWO, 2, SHAPE, ()),
    "capitals": (lambda f: tree(f, "Train", "TEST"), "folders", TWO, 2, SHAPE, ("Train/CLASS and TEST/CLASS",)),
    "training_set": (lambda f: tree(f, "training_set", "test_set"), "folders", TWO, 2, SHAPE, ("training_set/",)),
    "train, val of 64 x 64": (
        lambda f: tree(f, "train", "val", size=(64, 64)), "folders", TWO, 2, (64, 64, 3), ("train/CLASS and val/CLASS",)
    ),
    "train, valid": (lambda f: tree(f, "train", "valid"), "folders", TWO, 2, SHAPE, ("valid/CLASS",)),
    "train, val, test": (
        lambda f: tree(f, "train", "val", "test"), "folders", TWO, 2, SHAPE, ("10 in val/, not needed",)
    ),
    "test without labels": (
        lambda f: (tree(f, "train", "val"), image(f / "test" / "0.png")), "folders", TWO, 2, SHAPE,
        ("1 in test/, without folders of these classes", "val/CLASS"),
    ),
    "train alone": (lambda f: tree(f, "train"), "folders", (8, 2), 2, SHAPE, ("every 5th image",)),
    "flat": (lambda f: tree(f, "."), "folders", (8, 2), 2, SHAPE, ("every 5th image", "2 folders with images")),
    "a class of trains": (
        lambda f: tree(f, ".", names=("cat", "dog", "train")), "folders", (12, 3), 3, SHAPE, ("3 folders with images",)
    ),
    "one folder deeper": (lambda f: tree(f / "pets-v2"), "folders", TWO, 2, SHAPE, ("pets-v2",)),
    "two folders deeper": (lambda f: tree(f / "archive" / "pets", "."), "folders", (8, 2), 2, SHAPE, ("pets",)),
    "__MACOSX": (
        lambda f: (tree(f / "pets"), beside(f / "pets", "train/cat/._0.png"), image(f / "__MACOSX" / "x.png")),
        "folders", TWO, 2, SHAPE, ("1 of the system, or hidden",),
    ),
    "system files": (lambda f: beside(f, "train/Thumbs.db"), "folders", TWO, 2, SHAPE, ("1 of the system",)),
    "subfolders of a class": (
        lambda f: (tree(f), image(f / "train/cat/indoors/9.png"), image(f / "train/cat/outdoors/9.png")),
        "folders", (12, 10), 2, SHAPE, ("images in folders inside those of classes (2)", "indoors, outdoors"),
    ),
    "a linked folder": (linked, "folders", TWO, 2, SHAPE, ("1 linked folders",)),
    "no image": (lambda f: beside(f, "train/cat/notes.txt", b"BMW"), "folders", TWO, 2, SHAPE, ("1 no image: .txt",)),
    "a film": (lambda f: beside(f, "test/cat/a.avi", b"RIFF0000"), "folders", TWO, 2, SHAPE, ("1 no image: .avi",)),
    "no ending": (
        lambda f: (tree(f), image(f / "train/cat/scan", form="PNG")), "folders", (11, 10), 2, SHAPE, ("1 none",)
    ),
    "another ending": (
        lambda f: (tree(f), image(f / "train/cat/a.jpg", form="PNG"), image(f / "train/cat/b.txt", form="BMP")),
        "folders", (12, 10), 2, SHAPE, ("1 .txt", "1 BMP"),
    ),
    "beside the classes": (
        lambda f: (beside(f, "README.md"), image(f / "train" / "9.png")), "folders", TWO, 2, SHAPE,
        ("1 images beside the folders of classes", "1 beside the folders: .md"),
    ),
    "another folder": (
        lambda f: (tree(f), image(f / "masks" / "0.png")), "folders", TWO, 2, SHAPE, ("1 in masks/, which is no split",)
    ),
    "a class without test images": (
        lambda f: (tree(f), tree(f, "train", names=("owl",))), "folders", (15, 10), 3, SHAPE,
        ("classes without test images (1): owl",),
    ),
    "CIFAR as images": (
        lambda f: tree(f / "cifar10", names=("airplane", "frog"), size=(32, 32)), "folders", TWO, 2, (32, 32, 3), ()
    ),
    "ImageNet's classes, larger": (
        lambda f: tree(f, "train", "val", names=("n01443537", "n02124075"), size=(80, 60)), "folders", TWO, 2,
        (48, 64, 3), ("20 scaled down",),
    ),
    "Imagenette": (
        lambda f: tree(f, "train", "val", names=("n01440764", "n02102040"), size=(64, 64)), "folders", TWO, 2,
        (64, 64, 3), (),
    ),
    "Tiny ImageNet": (
        lambda f: files.tiny_imagenet(f / "tiny-imagenet-200", "published"), "tiny-imagenet", (9, 9), 3, (64, 64, 3),
        ("WordNet ids", "100,000 + 10,000 of 200 were published", "val/ is the test split"),
    ),
    "Tiny ImageNet in folders": (
        lambda f: files.tiny_imagenet(f, "folders"), "tiny-imagenet", (9, 9), 3, (64, 64, 3), ()
    ),
    "MNIST of Kaggle": (kaggle_mnist, "mnist", (20, 15), 10, (28, 28, 1), ("not as MNIST was published (by MD5)",)),
    "MNIST one folder deeper": (
        lambda f: files.mnist(f / "archive", compressed=True), "mnist", (20, 15), 10, (28, 28, 1), ("not as published",)
    ),
    "called KMNIST": (
        lambda f: files.mnist(f / "KMNIST" / "raw"), "kmnist", (20, 15), 10, (28, 28, 1),
        ("data: Kuzushiji-MNIST: ", "no MD5 of Kuzushiji-MNIST in this form is known"),
    ),
    "EMNIST letters": (
        lambda f: emnist(f / "EMNIST" / "raw", "letters"), "emnist-letters", (12, 6), 26, (28, 28, 1),
        ("18 transposed", "labels 1, 2, ... of its files are classes 0, 1, ...", "no MD5 of EMNIST letters in"),
    ),
    "EMNIST balanced": (lambda f: emnist(f, "balanced"), "emnist-balanced", (12, 6), 47, (28, 28, 1), ()),
    "CIFAR-10 saved again": (resaved_cifar, "cifar10", (20, 4), 10, (32, 32, 3), ("not as CIFAR-10 was published",)),
    "Keras": (
        lambda f: archive(f / "a.npz", **KERAS), "arrays", (10, 4), 2, (8, 8, 3), ("14 labels (n, 1) to (n,)",)
    ),
    "MedMNIST": (
        lambda f: archive(f / "pathmnist.npz", val_images=XT, val_labels=YT, **MEDICAL), "arrays", (10, 4), 2,
        (8, 8, 3), ("1 array 'val_images'", "pathmnist"),
    ),
    "PyTorch's axes": (
        lambda f: archive(f / "a.npz", **TORCH), "arrays", (10, 4), 2, (8, 8, 3), ("14 axes (n, c, h, w)",)
    ),
    "without test data": (
        lambda f: archive(f / "a.npz", X_train=X, y_train=Y), "arrays", (8, 2), 2, (8, 8, 3), ("every 5th of a class",)
    ),
    "rows of pixels": (
        lambda f: archive(f / "a.npz", x_train=pixels(10, 64), y_train=Y), "arrays", (8, 2), 2, (1, 1, 64),
        ("if they are images, reshape x to (n, 8, 8)",),
    ),
    "a class of none": (
        lambda f: archive(f / "a.npz", x_train=X, y_train=2 * Y), "arrays", (8, 2), 3, (8, 8, 3),
        ("classes without training images: 1 of 3",),
    ),
    "Kaggle's table": (
        lambda f: (table(f / "train.csv"), table(f / "test.csv", header="pixels", labels=False)), "arrays", (8, 4), 2,
        (8, 8, 1), ("1 test.csv, which has no column of labels", "12 rows of bytes to images of 8 x 8"),
    ),
    "tables of MNIST": (
        lambda f: [table(f / f"mnist_{split}.csv", 10, 784, "") for split in ("train", "test")], "arrays", (10, 10), 2,
        (28, 28, 1), ("mnist_train.csv and mnist_test.csv",),
    ),
    "a table of features": (
        lambda f: table(f / "a.csv", columns=3, header="class,a,b,c"), "arrays", (8, 4), 2, (1, 1, 3), ()
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READ)
def test_a_folder_is_read_as_what_it_is(name, tmp_path):
    make, kind, counts, num_classes, shape, said = READ[name]
    make(tmp_path / "it")
    assert datasets.found_in(tmp_path / "it")[0] == kind
    data = datasets.load(kind, tmp_path / "it")
    assert (len(data.train.labels), len(data.test.labels)) == counts
    assert (len(data.class_names), data.train.pixels.shape[1:]) == (num_classes, shape)
    lines = "\n".join([*pages.lines(data), *pages.further_lines(data)])
    assert not [words for words in said if words not in lines], lines
    if kind == "folders":
        found = sum(path.is_file() for path in (tmp_path / "it").rglob("*"))
        left = sum(count for reason, count in data.inventory.left_out.items() if "linked" not in reason)
        above = sum(path.is_file() for path in (tmp_path / "it" / "__MACOSX").rglob("*"))
        assert sum(counts) + left + above == found  # every file is read or counted
    if set(data.class_names) == {"cat", "dog"}:
        for split in (data.train, data.test):
            expected = np.array([COLOURS[data.class_names[label]] for label in split.labels])
            assert np.abs(split.pixels[:, 3, 3].astype(int) - expected).max() < 8
            assert split.pixels[:, 3, -3].max() < 8


REFUSED = {
    "nothing": (lambda f: f.mkdir(), "which has nothing. It may have the published files of MNIST"),
    "not there": (lambda f: None, "which is not a folder"),
    "parquet": (lambda f: (f.mkdir(), (f / "a.parquet").write_bytes(b"PAR1")), "which has 1 .parquet. It may have"),
    "a zip": (lambda f: (f.mkdir(), (f / "pets.zip").write_bytes(b"PK")), "'pets.zip' is not unpacked. Unpack it"),
    "a tar": (lambda f: (f.mkdir(), (f / "cifar-10-python.tar.gz").write_bytes(b"")), "is not unpacked"),
    "images alone": (lambda f: [image(f / f"{k}.png") for k in range(3)], "has 3 images and 0 folders with"),
    "train without classes": (
        lambda f: (image(f / "train" / "cat.0.png"), image(f / "test" / "0.png")), "train has 1 images and no folders"
    ),
    "test alone": (lambda f: tree(f, "test"), "has test/ and no train/. Add it"),
    "classes before splits": (
        lambda f: [image(f / n / s / "0.png") for n in ("cat", "dog") for s in ("train", "test")],
        "put the splits first: train/CLASS and test/CLASS",
    ),
    "several data sets": (lambda f: (tree(f / "pets"), tree(f / "cars")), "divided into test/, train/. Name it"),
    "one class": (lambda f: tree(f, ".", names=("cat",)), "cat has 5 images and 0 folders with images"),
    "two of one split": (lambda f: (tree(f, "Train", "test"), tree(f, "train")), "Train and train, which are one"),
    "an empty class": (
        lambda f: (tree(f), (f / "train/owl").mkdir()), "there are no images of 1 of its 3 classes: 'owl'. Put"
    ),
    "an empty class of no split": (lambda f: (tree(f, "."), (f / "owl").mkdir()), "1 without any in them: 'owl'"),
    "a class of the test split alone": (
        lambda f: (tree(f), image(f / "test/owl/0.png")), "'owl' is not one of the 2 classes"
    ),
    "capitals of a class": (
        lambda f: (tree(f, "train"), tree(f, "test", names=("Cat", "dog"))), "'Cat' is not one of the 2 classes"
    ),
    "a telephone's": (
        lambda f: [beside(f, f"train/cat/{k}.HEIC") for k in range(3)], "3 images are in formats that are not read: 3"
    ),
    "text for an image": (lambda f: beside(f, "train/cat/9.png"), "9.png is damaged: it cannot be decoded"),
    "several damaged": (
        lambda f: [beside(f, f"train/{n}/9.png") for n in ("cat", "dog")], "and so are 1 more: 9.png. Remove them"
    ),
    "one image a class": (lambda f: tree(f, ".", count=1), "no class of"),
    "half of MNIST": (
        lambda f: (files.mnist(f), (f / "t10k-labels-idx1-ubyte").unlink()), "The nearest: MNIST is incomplete"
    ),
    "two archives": (
        lambda f: (archive(f / "a.npz", **KERAS), archive(f / "b.npz", **KERAS)), "2 data sets: a.npz, b.npz"
    ),
    "label 255": (
        lambda f: archive(f / "a.npz", x_train=X, y_train=np.where(np.arange(10) == 9, 255, Y)),
        "labels go up to 255, but only",
    ),
    "labels of one and none": (
        lambda f: archive(f / "a.npz", x_train=X, y_train=np.eye(2, dtype=int)[Y]), "np.argmax(y, axis=1)"
    ),
    "a table of names": (
        lambda f: (f.mkdir(), (f / "a.csv").write_text("file,label\na.png,cat\nb.png,dog\n")), "no table of numbers"
    ),
    "a table without labels": (lambda f: table(f / "a.csv", header="a,b", columns=2, labels=False), "no table of"),
    "a table of names beside images": (
        lambda f: (image(f / "train" / "a.png"), (f / "a.csv").write_text("file,label\na.png,1\n")),
        "train has 1 images and no folders of classes. Sort them into train/CLASS",
    ),
    "a table with numbers of rows": (
        lambda f: table(f / "a.csv", columns=3, header="label,id,a,b"), "no table of numbers with a column `label`"
    ),
    "two tables": (
        lambda f: (table(f / "a.csv"), table(f / "b.csv")), "a.csv, b.csv, of which two are train data. Keep one"
    ),
}  # fmt: skip


def first_in(folder):
    """What a command reads of it, or why there is nothing."""
    names = datasets.found_in(folder)
    if not names:
        raise datasets.missing(folder)
    return datasets.load(names[0], folder)


@pytest.mark.parametrize("name", REFUSED)
def test_a_folder_is_refused_with_the_way_out(name, tmp_path):
    make, said = REFUSED[name]
    make(tmp_path / "it")
    with pytest.raises(MoeTheoryError, match=re.escape(said)) as refused:
        first_in(tmp_path / "it")
    assert "\n" not in str(refused.value)


def read(folder, frame=None):
    data = datasets.load("folders", folder, frame)
    return data.train.pixels, data.inventory


def add(folder, picture, form="PNG", **options):
    """Put an image into a tree in the place of its first."""
    tree(folder)
    picture.save(folder / "train/cat/0.png", form, **options)


RAMP = np.tile(np.arange(0, 256, 16, dtype=np.uint16), (16, 1))
DEEP = {  # image, format and the levels that it must have
    "16 bits": (RAMP * 257, "PNG", RAMP[0]),
    "12 bits in 16": (RAMP * 16, "PNG", RAMP[0]),
    "8 bits in 16": (RAMP, "PNG", RAMP[0]),
    "16 bits of a microscope": (RAMP * 257, "TIFF", RAMP[0]),
    "12 bits of a detector": (RAMP * 16, "TIFF", RAMP[0]),
    "16 bits of ASCII": (RAMP * 257, "PPM", RAMP[0]),
    "whole numbers of 32 bits": ((RAMP * 257).astype(np.int32), "TIFF", RAMP[0]),
}


@pytest.mark.parametrize("name", DEEP)
def test_deep_grey_keeps_its_levels(name, tmp_path):
    """Would catch Pillow's conversion, which makes all of more than 255 white, and a shift that makes 12 bits black."""
    levels, form, expected = DEEP[name]
    add(tmp_path, pillow.fromarray(levels), form)
    found, inventory = read(tmp_path)
    np.testing.assert_array_equal(found[0], np.broadcast_to(expected[None, :, None], SHAPE))
    assert any("16-bit grey, v >> " in each for each in inventory.converted)


def test_deep_images_of_a_folder_keep_one_scale(tmp_path):
    """Would catch each image made as bright as the brightest."""
    add(tmp_path, pillow.fromarray(RAMP * 257))
    pillow.fromarray(RAMP * 16).save(tmp_path / "train/cat/1.png")
    found, _ = read(tmp_path)
    np.testing.assert_array_equal(found[0, 0, :, 0], RAMP[0])
    np.testing.assert_array_equal(found[1, 0, :, 0], RAMP[0] // 16)


@pytest.mark.parametrize(
    "levels", [np.float32(RAMP) / 256, RAMP.astype(np.int32) * 65_537, RAMP.astype(np.int32) - 1000], ids=str
)
def test_grey_without_a_known_white_is_refused(levels, tmp_path):
    add(tmp_path, pillow.fromarray(levels), "TIFF")
    with pytest.raises(MoeTheoryError, match="none is known to be white"):
        read(tmp_path)


@pytest.mark.parametrize(("factor", "is_read"), [(257, True), (16, False)])
def test_colours_of_16_bits_are_read_or_refused(factor, is_read, tmp_path):
    """Of which Pillow gives the high byte alone: 12 bits would be black."""
    rows = b"".join(b"\0" + np.repeat(row * factor, 3).astype(">u2").tobytes() for row in RAMP)
    header = struct.pack(">IIBBBBB", 16, 16, 16, 2, 0, 0, 0)
    tree(tmp_path)
    data = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    (tmp_path / "train/cat/0.png").write_bytes(b"\x89PNG\r\n\x1a\n" + data)
    if not is_read:
        with pytest.raises(MoeTheoryError, match="would be nearly black"):
            read(tmp_path)
        return
    found, inventory = read(tmp_path)
    np.testing.assert_array_equal(found[0, 0, :, 0], RAMP[0])
    assert inventory.converted["the high byte of 16-bit colours"] == 1


def clear(mode):
    """Red, with hidden green below what is transparent on the left."""
    picture = pillow.new("RGBA", (16, 16), (*RED, 255))
    picture.paste((0, 255, 0, 0), (0, 0, 8, 16))
    return picture.quantize(16) if mode == "P" else picture.convert(mode)


KINDS = {
    "1": (lambda: pillow.new("1", (16, 16), 1), "PNG", (255,) * 3, ""),
    "L": (lambda: pillow.new("L", (16, 16), 99), "PNG", (99,) * 3, ""),
    "P": (lambda: pillow.new("RGB", (16, 16), RED).quantize(4), "PNG", RED, ""),
    "CMYK": (lambda: pillow.new("RGB", (16, 16), RED).convert("CMYK"), "JPEG", RED, "CMYK to RGB"),
    "RGBA": (lambda: clear("RGBA"), "PNG", (255,) * 3, "transparent pixels shown on white"),
    "LA": (lambda: clear("LA"), "PNG", (255,) * 3, "transparent pixels shown on white"),
    "a transparent palette": (lambda: clear("P"), "PNG", (255,) * 3, "transparent pixels shown on white"),
    "opaque": (lambda: pillow.new("RGBA", (16, 16), (*RED, 255)), "WEBP", RED, ""),
}


@pytest.mark.parametrize("name", KINDS)
def test_colours_are_as_a_viewer_shows_them(name, tmp_path):
    """Would catch colours that are hidden below transparent pixels, and black where bits or palettes are."""
    make, form, expected, said = KINDS[name]
    add(tmp_path, make(), form, **CAREFUL.get(form, {}))
    found, inventory = read(tmp_path)
    np.testing.assert_allclose(found[0, 4, 4].astype(int), expected, atol=6)
    assert [each for each in inventory.converted if said in each] if said else not inventory.converted


CAREFUL = {"WEBP": {"lossless": True}, "JPEG": {"quality": 95, "subsampling": 0}}


@pytest.mark.parametrize("form", ["JPEG", "PNG", "TIFF", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_images_are_turned_as_exif_says(orientation, form, tmp_path):
    """Written turned by NumPy's own means: the picture that a viewer shows has red above and is higher than wide."""
    upright = np.zeros((32, 16, 3), np.uint8)
    upright[:8] = RED
    upright[:, :4] = BLUE
    stored = {
        1: upright, 2: upright[:, ::-1], 3: upright[::-1, ::-1], 4: upright[::-1], 5: upright.swapaxes(0, 1),
        6: np.rot90(upright), 7: np.rot90(upright, 2).swapaxes(0, 1), 8: np.rot90(upright, -1),
    }[orientation]  # fmt: skip
    exif = pillow.Exif()
    exif[0x0112] = orientation
    for name in ("cat", "dog"):
        for number in range(2):
            path = tmp_path / name / f"{number}.{form.lower()}"
            path.parent.mkdir(exist_ok=True)
            options = (
                {"lossless": True} if form == "WEBP" else {"quality": 95, "subsampling": 0} if form == "JPEG" else {}
            )
            pillow.fromarray(np.ascontiguousarray(stored)).save(path, form, exif=exif, **options)
    found, inventory = read(tmp_path)
    np.testing.assert_allclose(found[0].astype(int), upright, atol=40)
    assert inventory.converted.get("turned upright, as EXIF says", 0) == (4 if orientation > 1 else 0)


@pytest.mark.parametrize("form", ["GIF", "WEBP", "TIFF", "PNG"])
def test_of_a_film_the_first_frame_is_read(form, tmp_path):
    frames = [pillow.new("RGB", (16, 16), colour) for colour in (RED, BLUE)]
    add(tmp_path, frames[0], form, save_all=True, append_images=frames[1:], **CAREFUL.get(form, {}))
    found, inventory = read(tmp_path)
    np.testing.assert_array_equal(found[0, 4, 4], RED)
    assert inventory.converted == {"the first frame or page of several": 1}


@pytest.mark.parametrize("odd", [(2, 400), (400, 2), (1, 1), (16, 15), (33, 32), (300, 200)])
@pytest.mark.parametrize("place", ["train/cat/0.png", "train/dog/4.png"], ids=["first", "last"])
def test_one_image_does_not_decide_the_size_of_all(odd, place, tmp_path):
    """Would catch the first image, the largest or a mean as the size, and a change that is not counted."""
    tree(tmp_path)
    image(tmp_path / place, size=odd)
    found, inventory = read(tmp_path)
    assert found.shape[1:] == SHAPE
    assert sum(count for words, count in inventory.converted.items() if "scaled" in words or "kept" in words) == 1
    others = [row for row in range(10) if row != (0 if "cat" in place else 9)]
    assert (found[others, 3, -3] < 8).all()


def test_without_a_common_size_the_median_is_taken(tmp_path):
    tree(tmp_path, ".", count=5)
    for number, side in enumerate((20, 24, 28, 32, 36)):
        image(tmp_path / "cat" / f"{number}.png", size=(side, side))
        image(tmp_path / "dog" / f"{number}.png", size=(side, side))
    found, inventory = read(tmp_path)
    assert found.shape[1:] == (28, 28, 3)
    assert {word.partition(",")[0] for word in inventory.converted} == {"scaled up", "scaled down"}


@pytest.mark.parametrize("resize", decoder.RESIZES)
def test_other_proportions_are_fitted_stretched_or_cropped(resize, tmp_path):
    """A strip, red at its ends and blue between: fitted it has all of these and black beside, cropped it has no red."""
    strip = pillow.new("RGB", (48, 16), BLUE)
    for left in (0, 36):
        strip.paste(RED, (left, 0, left + 12, 16))
    add(tmp_path, strip)
    found, inventory = read(tmp_path, datasets.Frame((16, 16), resize))
    is_red, is_blue = (np.abs(found[0].astype(int) - colour).max(-1) < 40 for colour in (RED, BLUE))
    is_black = found[0].max(-1) < 8
    assert bool(is_red.any()) == (resize != "crop")
    assert is_blue.any()
    assert bool(is_black[:4].all()) == (resize == "fit")
    words = {"fit": "with black beside it", "stretch": "stretched", "crop": "cut to its middle"}[resize]
    assert [count for each, count in inventory.converted.items() if words in each] == [1]


def test_a_size_is_asked_for_in_words(tmp_path, monkeypatch):
    tree(tmp_path, size=(32, 16))
    assert read(tmp_path, decoder.frame("8", None))[0].shape[1:] == (8, 8, 3)
    assert read(tmp_path, decoder.frame("8x16", None))[0].shape[1:] == (8, 16, 3)
    assert read(tmp_path, decoder.frame(None, "crop"))[0].shape[1:] == (16, 32, 3)
    assert decoder.frame(None, None) is None
    for size, resize in (("0", None), ("8x", None), ("8x8x8", None), ("4096", None), ("-1", None), ("8", "pad")):
        with pytest.raises(InvalidParamsError, match="Change it"):
            decoder.frame(size, resize)
    monkeypatch.setattr(decoder, "most_bytes", lambda: 10 * 16 * 16 * 3 - 1)
    with pytest.raises(InvalidDimsError, match="10 images of 16 x 16 pixels take 7,680 bytes"):
        read(tmp_path, decoder.frame("16", None))
    with pytest.raises(InvalidRunError, match="Drop --size"):
        datasets.load("mnist", tmp_path, datasets.Frame())


@pytest.mark.parametrize("ending", sorted(decoder.ENDINGS - {"", ".avif"}))
def test_every_ending_is_read(ending, tmp_path):
    """41 images of other endings beside three: all are read, whatever ending the others have."""
    tree(tmp_path, count=3)
    form = pillow.registered_extensions().get(ending, "PPM")
    buffer = io.BytesIO()
    pillow.new("1" if ending == ".pbm" else "L" if ending == ".pgm" else "RGB", (16, 16)).save(buffer, form)
    for number in range(41):
        (tmp_path / "train" / "cat" / f"more-{number}{ending.upper()}").write_bytes(buffer.getvalue())
    found, inventory = read(tmp_path)
    assert len(found) == 6 + 41
    assert inventory.kinds["ending"][ending] >= 41
    assert not inventory.left_out


def test_emnist_is_upright_and_its_letters_begin_with_a(tmp_path):
    """Would catch images that lie on their side, as the files have them, and letters that are one too far."""
    emnist(tmp_path, "letters")
    data = datasets.load("emnist-letters", tmp_path)
    for split in (data.train, data.test):
        assert set(zip(*np.nonzero(split.pixels[0, ..., 0]), strict=True)) == {(20, 3)}
        assert split.labels.tolist() == [row % 5 for row in range(len(split.labels))]
    assert data.class_names[0] == "a"


def test_axes_and_labels_are_arranged_as_they_were_meant(tmp_path):
    """Would catch PyTorch's channels that become rows, and images beside other labels."""
    plain, torch = tmp_path / "plain", tmp_path / "torch"
    archive(plain / "a.npz", x_train=X, y_train=Y, x_test=XT, y_test=YT)
    archive(torch / "a.npz", **(TORCH | {"y_train": Y[:, None]}))
    for split in ("train", "test"):
        ours, theirs = (getattr(datasets.load("arrays", place), split) for place in (plain, torch))
        np.testing.assert_array_equal(ours.pixels, theirs.pixels)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
    with pytest.raises(InvalidDimsError, match="moveaxis"):  # nothing would say it of arrays in memory
        datasets.from_arrays("a", TORCH["x_train"], Y, TORCH["x_test"], YT)


def test_a_table_keeps_its_pixels_and_labels(tmp_path):
    lines = [[*range(1, 65), 1], [*range(64), 0], [*range(64), 1], [*range(2, 66), 0]]
    header = ",".join([*(f"pixel{k}" for k in range(64)), "Label"])
    (tmp_path / "train.csv").write_text("\n".join([header, *(",".join(map(str, line)) for line in lines)]))
    data = datasets.load("arrays", tmp_path)
    held = {
        (int(label), *image.ravel().tolist())
        for split in (data.train, data.test)
        for label, image in zip(split.labels, split.pixels, strict=True)
    }
    assert held == {(line[-1], *line[:-1]) for line in lines}


def test_kmnist_is_told_by_the_digests_of_its_compressed_files(tmp_path, monkeypatch):
    """Would catch one of MNIST's relatives that is called MNIST, as they have the same names of files."""
    files.mnist(tmp_path, compressed=True)
    held = [path.read_bytes() for path in mnist.locate("", tmp_path, (mnist.KMNIST.layout,)).files]
    layout = mnist.KMNIST.layout._replace(packed_md5=tuple(hashlib.md5(data).hexdigest() for data in held))
    loader = datasets.DATASETS["kmnist"]._replace(layouts=(layout,))
    monkeypatch.setitem(datasets.DATASETS, "kmnist", loader)
    assert datasets.found_in(tmp_path) == ["kmnist"]


def test_the_contact_sheet_has_what_networks_see(tmp_path):
    """Would catch a sheet of the files, another class's images, and a blank one."""
    tree(tmp_path / "pets", count=3)
    data = datasets.load("folders", tmp_path / "pets")
    pages.picture(data).save(tmp_path / "sheet.png")
    sheet = np.asarray(pillow.open(tmp_path / "sheet.png").convert("RGB")).astype(int)
    rows = {name: np.flatnonzero((np.abs(sheet - colour).max(-1) < 12).any(1)) for name, colour in COLOURS.items()}
    assert rows["cat"].size
    assert rows["dog"].size
    assert rows["cat"].max() <= rows["dog"].min()
    features = datasets.from_arrays("f", np.eye(4), np.arange(4) % 2, np.eye(4), np.arange(4) % 2)
    with pytest.raises(InvalidDimsError, match="no picture"):
        pages.picture(features)
    assert pages.document(data).to_json()["classes"][1] == {"number": 1, "class": "dog", "training": 3, "test": 3}
    assert Path(tmp_path / "sheet.png").is_file()


@pytest.mark.parametrize("factor", [1 / 255, 255])
def test_splits_of_two_scales_are_refused(tmp_path, factor):
    """Would catch a test split in 0..1 beside training data in 0..255, or types that are converted without a word."""
    draws = np.random.default_rng(0)
    images = {name: draws.uniform(0, 1, (20, 6, 6)) for name in ("x_train", "x_test")}
    labels = {name: np.arange(20) % 2 for name in ("y_train", "y_test")}
    np.savez(tmp_path / "mine.npz", **images, **labels)
    inventory = datasets.load(datasets.found_in(tmp_path)[0], tmp_path).inventory
    assert inventory.converted["float64 to float32"] == 40
    assert any("in the training data and" in note for note in inventory.notes)
    np.savez(tmp_path / "mine.npz", **{**images, "x_test": factor * images["x_test"]}, **labels)
    with pytest.raises(InvalidParamsError, match="two scales"):
        datasets.load(datasets.found_in(tmp_path)[0], tmp_path)


def test_greys_that_one_bright_image_makes_black_are_counted(tmp_path):
    """Would catch images that keep a few greys, as one pixel of another one decides the scale of all."""
    from PIL import Image

    for name, images in {"dark": [600] * 6, "bright": [600] * 5 + [65535]}.items():
        (tmp_path / name).mkdir()
        for number, highest in enumerate(images):
            grey = np.linspace(0, highest, 64).reshape(8, 8).astype(np.uint16)
            Image.fromarray(grey).save(tmp_path / name / f"{number}.png")
    inventory = datasets.load(datasets.found_in(tmp_path)[0], tmp_path).inventory
    assert inventory.converted["to fewer than 64 of 256 greys, as all images keep one scale"] == 11
