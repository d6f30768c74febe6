"""Folders as people have them: each is read as what it is, with everything left out counted, or refused with the
nearest layout and the way out. Catches images that are dropped or given another label without a word, and a data set
that is called by the name of another.
"""

import hashlib
import re

import numpy as np
import pytest
from PIL import Image

from moe_theory.core.errors import InvalidValueError, MissingError, MoeTheoryError
from moe_theory.deep import datasets
from moe_theory.deep.datasets import mnist
from moe_theory.deep.datasets import report as pages

from . import dataset_files as files

RED, BLUE = (250, 10, 20), (10, 20, 250)
COLOURS = {"cat": RED, "dog": BLUE}


def image(path, colour=RED, size=(16, 16), form=None, **options):
    """Of one colour; its half on the right is black."""
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = Image.new("RGB", size, colour)
    picture.paste((0, 0, 0), (size[0] // 2, 0, *size))
    picture.save(path, form, **options)


def tree(folder, *splits, count=5, names=("cat", "dog"), ending="png", size=(16, 16)):
    for split in splits or ("train", "test"):
        for name in names:
            for number in range(count):
                image(folder / split / name / f"{number}.{ending}", COLOURS.get(name.lower(), RED), size)


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


def pickled_cifar(folder):
    """As the Python version has it: `test_no_code.py` has pickles that run."""
    (folder / "cifar-10-batches-py").mkdir(parents=True)
    for name in files.CIFAR10_FILES:
        (folder / "cifar-10-batches-py" / name).write_bytes(b"\x80\x02}.")


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
        lambda f: tree(f, "train", "val", "test"), "folders", TWO, 2, SHAPE, ("10 .png in val/",)
    ),
    "test without labels": (
        lambda f: (tree(f, "train", "val"), image(f / "test" / "0.png")), "folders", TWO, 2, SHAPE,
        ("1 .png in test/", "val/CLASS"),
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
        "folders", TWO, 2, SHAPE, ("1 .png in train/",),
    ),
    "system files": (lambda f: beside(f, "train/Thumbs.db"), "folders", TWO, 2, SHAPE, ("1 .db in train/",)),
    "no image": (lambda f: beside(f, "train/cat/notes.txt", b"BMW"), "folders", TWO, 2, SHAPE, ("1 .txt in train/",)),
    "a film": (lambda f: beside(f, "test/cat/a.avi", b"RIFF0000"), "folders", TWO, 2, SHAPE, ("1 .avi in test/",)),
    "no ending": (
        lambda f: (tree(f), image(f / "train/cat/scan", form="PNG")), "folders", TWO, 2, SHAPE,
        ("1 without ending in train/",),
    ),
    "another ending": (
        lambda f: (tree(f), image(f / "train/cat/a.jpg", form="PNG")), "folders", (11, 10), 2, SHAPE, ("1 .jpg",)
    ),
    "beside the classes": (
        lambda f: (beside(f, "README.md"), image(f / "train" / "9.png")), "folders", TWO, 2, SHAPE,
        ("1 .png in train/", "1 .md beside the folders"),
    ),
    "another folder": (
        lambda f: (tree(f), image(f / "masks" / "0.png")), "folders", TWO, 2, SHAPE, ("1 .png in masks/",)
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
        (60, 80, 3), (),
    ),
    "Imagenette": (
        lambda f: tree(f, "train", "val", names=("n01440764", "n02102040"), size=(64, 64)), "folders", TWO, 2,
        (64, 64, 3), (),
    ),
    "Tiny ImageNet": (
        lambda f: files.tiny_imagenet(f / "tiny-imagenet-200", "published"), "tiny-imagenet", (9, 9), 3, (64, 64, 3),
        ("by its list of classes", "100,000 + 10,000 of 200 were published", "6 grey to three equal channels"),
    ),
    "Tiny ImageNet with sorted validation images": (
        lambda f: files.tiny_imagenet(f, "sorted"), "tiny-imagenet", (9, 9), 3, (64, 64, 3), ("val/ is the test split",)
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
    "CIFAR-10": (
        lambda f: files.cifar10(f / "cifar-10-batches-bin"), "cifar10", (20, 4), 10, (32, 32, 3),
        ("no MD5 of CIFAR-10 in this form is known",),
    ),
    "Keras": (
        lambda f: archive(f / "a.npz", **KERAS), "arrays", (10, 4), 2, (8, 8, 3), ("14 labels (n, 1) to (n,)",)
    ),
    "MedMNIST": (
        lambda f: archive(f / "pathmnist.npz", val_images=XT, val_labels=YT, **MEDICAL), "arrays", (10, 4), 2,
        (8, 8, 3), ("1 array 'val_images'", "pathmnist"),
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
        left = sum(data.inventory.left_out.values())
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
    "a tar": (lambda f: (f.mkdir(), (f / "cifar-10-python.tar.gz").write_bytes(b"")), "(cifar-10-binary.tar.gz)"),
    "images alone": (lambda f: [image(f / f"{k}.png") for k in range(3)], "has 3 images and no folders with"),
    "train without classes": (
        lambda f: (image(f / "train" / "cat.0.png"), image(f / "test" / "0.png")), "train has 1 images and no folders"
    ),
    "test alone": (lambda f: tree(f, "test"), "has test/ and no train/. Add it"),
    "classes before splits": (
        lambda f: [image(f / n / s / "0.png") for n in ("cat", "dog") for s in ("train", "test")],
        "put the splits first: train/CLASS and test/CLASS",
    ),
    "several data sets": (lambda f: (tree(f / "pets"), tree(f / "cars")), "divided into test/, train/. Name it"),
    "one class": (lambda f: tree(f, ".", names=("cat",)), "it has one class, 'cat'. Two are needed."),
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
    "subfolders of a class": (
        lambda f: (tree(f), image(f / "train/cat/indoors/9.png")),
        "cat is damaged: it is the folder of a class and has folders inside: indoors. Move their images up",
    ),
    "images of two sizes": (
        lambda f: (tree(f), image(f / "test/dog/0.png", size=(8, 16))),
        "test/dog/0.png. Resize them, as by PIL.Image.open(path).resize((16, 16))",
    ),
    "pickles": (pickled_cifar, "CIFAR-10 in its Python version, whose files are pickles and may run code. Get"),
    "a table": (
        lambda f: (f.mkdir(), (f / "a.csv").write_text("label,pixel0\n1,2\n")),
        "'a.csv' is a table. Images are read from an .npz file or from folders of images. If",
    ),
    "a text called train": (
        lambda f: (f.mkdir(), (f / "train").write_text("1,2\n")), "which has 1 of no ending. It may have"
    ),
    "PyTorch's axes": (lambda f: archive(f / "a.npz", **TORCH), "Use np.moveaxis(images, 1, -1)"),
    "a telephone's": (
        lambda f: [beside(f, f"train/cat/{k}.HEIC") for k in range(3)], "3 images are in formats that are not read: 3"
    ),
    "text for an image": (lambda f: beside(f, "train/cat/9.png"), "9.png is damaged: it cannot be decoded"),
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
    "a table of names beside images": (
        lambda f: (image(f / "train" / "a.png"), (f / "a.csv").write_text("file,label\na.png,1\n")),
        "train has 1 images and no folders of classes. Sort them into train/CLASS",
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


@pytest.mark.parametrize(
    ("folder", "name", "title"),
    [
        ("cifar-10-batches-py", "data_batch_1", "CIFAR-10"),
        ("cifar-10-batches-py", "batches.meta", "CIFAR-10"),
        ("cifar-100-python", "train", "CIFAR-100"),
        ("cifar-100-python", "meta", "CIFAR-100"),
    ],
)
def test_one_pickle_is_refused_as_all_are(folder, name, title, tmp_path):
    """Would catch a list of layouts where half of an archive was unpacked."""
    (tmp_path / folder).mkdir()
    (tmp_path / folder / name).write_bytes(b"\x80\x02}.")
    with pytest.raises(MissingError, match=f"{folder} has {title} in its Python version, whose files are pickles"):
        first_in(tmp_path)


@pytest.mark.parametrize(
    ("name", "binary"),
    [
        ("cifar-10-python.tar.gz", "cifar-10-binary.tar.gz"),
        ("cifar-100-python.tar", "cifar-100-binary.tar.gz"),
    ],
)
def test_the_archive_of_pickles_leads_to_the_other(name, binary, tmp_path):
    """Would catch advice to unpack an archive whose files are then refused."""
    (tmp_path / name).write_bytes(b"")
    refusal = f"{name!r} is the pickled version, which could run code. Take the binary version ({binary})."
    for place in (tmp_path, tmp_path / name):
        with pytest.raises(MissingError, match=re.escape(refusal)):
            first_in(place)


def test_the_line_that_converts_a_table_does(tmp_path, monkeypatch):
    """Would catch advice that fails, mixes up labels and pixels, or is about the smaller of two tables."""
    (tmp_path / "a.csv").write_text("label,left,right\n1,20,30\n0,50,60\n1,70,80\n")
    (tmp_path / "b.csv").write_text("left,right\n1,2\n")
    message = str(datasets.missing(tmp_path))
    assert message.partition(" Images")[0] == f"no data set in {tmp_path}: 'a.csv' is a table."
    monkeypatch.chdir(tmp_path)
    exec(message.split("`")[1], {"np": np})
    with np.load("a.npz") as arrays:
        np.testing.assert_array_equal(arrays["x_train"], [[20, 30], [50, 60], [70, 80]])
        np.testing.assert_array_equal(arrays["y_train"], [1, 0, 1])
    assert datasets.found_in(tmp_path) == ["arrays"]


def test_emnist_is_upright_and_its_letters_begin_with_a(tmp_path):
    """Would catch images that lie on their side, as the files have them, and letters that are one too far."""
    emnist(tmp_path, "letters")
    data = datasets.load("emnist-letters", tmp_path)
    for split in (data.train, data.test):
        assert set(zip(*np.nonzero(split.pixels[0, ..., 0]), strict=True)) == {(20, 3)}
        assert split.labels.tolist() == [row % 5 for row in range(len(split.labels))]
    assert data.class_names[0] == "a"


def test_labels_are_arranged_as_they_were_meant(tmp_path):
    """Would catch images beside other labels."""
    plain, keras = tmp_path / "plain", tmp_path / "keras"
    archive(plain / "a.npz", x_train=X, y_train=Y, x_test=XT, y_test=YT)
    archive(keras / "a.npz", **KERAS)
    for split in ("train", "test"):
        ours, theirs = (getattr(datasets.load("arrays", place), split) for place in (plain, keras))
        np.testing.assert_array_equal(ours.pixels, theirs.pixels)
        np.testing.assert_array_equal(ours.labels, theirs.labels)
    with pytest.raises(InvalidValueError, match="moveaxis"):
        datasets.from_arrays("a", TORCH["x_train"], Y, TORCH["x_test"], YT)


def test_kmnist_is_told_by_the_digests_of_its_compressed_files(tmp_path, monkeypatch):
    """Would catch one of MNIST's relatives that is called MNIST, as they have the same names of files."""
    files.mnist(tmp_path, compressed=True)
    held = [path.read_bytes() for path in mnist.locate("", tmp_path, (mnist.KMNIST.layout,)).files]
    layout = mnist.KMNIST.layout._replace(packed_md5=tuple(hashlib.md5(data).hexdigest() for data in held))
    loader = datasets.DATASETS["kmnist"]._replace(layouts=(layout,))
    monkeypatch.setitem(datasets.DATASETS, "kmnist", loader)
    assert datasets.found_in(tmp_path) == ["kmnist"]


def test_a_document_counts_the_images_of_a_class(tmp_path):
    tree(tmp_path / "pets", count=3)
    found = pages.document(datasets.load("folders", tmp_path / "pets"), ("arrays",)).to_json()
    assert found["classes"][1] == {"number": 1, "class": "dog", "training": 3, "test": 3}
    assert found["others"] == ["arrays"]


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
    with pytest.raises(InvalidValueError, match="two scales"):
        datasets.load(datasets.found_in(tmp_path)[0], tmp_path)
