"""CIFAR-10 and CIFAR-100 as published, each in the binary and in the Python version; the latter by superclass too."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedDataError, shortened
from moe_theory.deep.datasets.files import Layout, checked_labels, locate, read_bounded, read_lines
from moe_theory.deep.datasets.images import DataSet, Images
from moe_theory.deep.datasets.unpickling import read_pickle

_SIDE, _CHANNELS = 32, 3
_PIXELS = _CHANNELS * _SIDE**2  # bytes of an image: all of red, then green, then blue, row by row
_MAX_NAMES_BYTES = 1 << 16


class Cifar(NamedTuple):
    """What one of them is called, and where its versions keep what."""

    name: str
    title: str
    class_names: tuple[str, ...]  # as published, where no file says so
    max_bytes: int  # of a file: about twice the published ones
    binary: Layout  # the last file is the test split
    binary_names: str  # file with the names of classes
    num_labels: int  # bytes before an image's pixels
    label: int  # which of these is its label
    python: Layout
    python_names: str
    labels_key: str
    names_key: str

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return self.binary, self.python


CIFAR10 = Cifar(
    name="cifar10",
    title="CIFAR-10",
    class_names=tuple("airplane automobile bird cat deer dog frog horse ship truck".split()),
    max_bytes=1 << 26,
    binary=Layout((*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"), ("cifar-10-batches-bin",)),
    binary_names="batches.meta.txt",
    num_labels=1,
    label=0,
    python=Layout((*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"), ("cifar-10-batches-py",)),
    python_names="batches.meta",
    labels_key="labels",
    names_key="label_names",
)
CIFAR100 = Cifar(
    name="cifar100",
    title="CIFAR-100",
    class_names=tuple(
        "apple aquarium_fish baby bear beaver bed bee beetle bicycle bottle bowl boy bridge bus butterfly camel can "
        "castle caterpillar cattle chair chimpanzee clock cloud cockroach couch crab crocodile cup dinosaur dolphin "
        "elephant flatfish forest fox girl hamster house kangaroo keyboard lamp lawn_mower leopard lion lizard lobster "
        "man maple_tree motorcycle mountain mouse mushroom oak_tree orange orchid otter palm_tree pear pickup_truck "
        "pine_tree plain plate poppy porcupine possum rabbit raccoon ray road rocket rose sea seal shark shrew skunk "
        "skyscraper snail snake spider squirrel streetcar sunflower sweet_pepper table tank telephone television tiger "
        "tractor train trout tulip turtle wardrobe whale willow_tree wolf woman worm".split()
    ),
    max_bytes=5 << 26,
    binary=Layout(("train.bin", "test.bin"), ("cifar-100-binary",)),
    binary_names="fine_label_names.txt",
    num_labels=2,  # coarse, fine
    label=1,
    python=Layout(("train", "test"), ("cifar-100-python",)),
    python_names="meta",
    labels_key="fine_labels",
    names_key="fine_label_names",
)
CIFAR100_SUPERCLASSES = CIFAR100._replace(
    name="cifar100-superclasses",
    title="CIFAR-100 by superclass",
    class_names=tuple(
        "aquatic_mammals fish flowers food_containers fruit_and_vegetables household_electrical_devices "
        "household_furniture insects large_carnivores large_man-made_outdoor_things large_natural_outdoor_scenes "
        "large_omnivores_and_herbivores medium_mammals non-insect_invertebrates people reptiles small_mammals trees "
        "vehicles_1 vehicles_2".split()
    ),
    binary_names="coarse_label_names.txt",
    label=0,
    labels_key="coarse_labels",
    names_key="coarse_label_names",
)


def load_cifar10(folder: Path) -> DataSet:
    """CIFAR-10: five batches to train with, one to test. Raises: MissingDataError; DamagedDataError."""
    return _load(CIFAR10, folder)


def load_cifar100(folder: Path) -> DataSet:
    """CIFAR-100 with its 100 fine labels. Raises: MissingDataError; DamagedDataError."""
    return _load(CIFAR100, folder)


def load_cifar100_superclasses(folder: Path) -> DataSet:
    """CIFAR-100 with its 20 coarse labels, of five classes each. Raises: MissingDataError; DamagedDataError."""
    return _load(CIFAR100_SUPERCLASSES, folder)


def _load(cifar: Cifar, folder: Path) -> DataSet:
    found = locate(cifar.title, folder, cifar.layouts)
    read = _read_binary if found.layout == cifar.binary else _read_python
    parts = [read(cifar, path) for path in found.files]
    return DataSet(
        name=cifar.name,
        title=cifar.title,
        train=Images(*map(np.concatenate, zip(*parts[:-1], strict=True))),
        test=parts[-1],
        class_names=_class_names(cifar, found.folder, found.layout == cifar.binary),
    )


def _read_binary(cifar: Cifar, path: Path) -> Images:
    data = np.frombuffer(read_bounded(path, cifar.max_bytes), np.uint8)
    record = cifar.num_labels + _PIXELS
    if not len(data) or len(data) % record:
        raise DamagedDataError(path, f"its {len(data):,} bytes are no whole number of images of {record:,} bytes")
    records = data.reshape(-1, record)
    labels = checked_labels(path, records[:, cifar.label], len(cifar.class_names))
    return Images(_pixels(records[:, cifar.num_labels :]), labels)


def _read_python(cifar: Cifar, path: Path) -> Images:
    content = read_pickle(path, cifar.max_bytes)
    data, labels = _entry(path, content, "data"), _entry(path, content, cifar.labels_key)
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != _PIXELS or not len(data):
        what = f"has shape {data.shape}" if isinstance(data, np.ndarray) else f"is a {type(data).__name__}"
        raise DamagedDataError(path, f"its data {what}, and an array of bytes (images, {_PIXELS}) is expected")
    if type(labels) is not list or not all(type(label) is int for label in labels):
        raise DamagedDataError(path, f"its {cifar.labels_key} are no list of whole numbers")
    if len(labels) != len(data):
        raise DamagedDataError(path, f"it has {len(labels)} {cifar.labels_key} for {len(data)} images")
    return Images(_pixels(data), checked_labels(path, np.array(labels, object), len(cifar.class_names)))


def _pixels(rows: np.ndarray) -> np.ndarray:
    """Rows of pixels, channel after channel, as images with the channels last."""
    return np.ascontiguousarray(rows.reshape(-1, _CHANNELS, _SIDE, _SIDE).transpose(0, 2, 3, 1))


def _class_names(cifar: Cifar, folder: Path, is_binary: bool) -> tuple[str, ...]:
    path = folder / (cifar.binary_names if is_binary else cifar.python_names)
    if not path.is_file():
        return cifar.class_names
    if is_binary:
        names = read_lines(path, _MAX_NAMES_BYTES)
    else:
        names = _entry(path, read_pickle(path, _MAX_NAMES_BYTES), cifar.names_key)
        if type(names) is not list or not all(isinstance(name, str | bytes) for name in names):
            raise DamagedDataError(path, f"its {cifar.names_key} are no list of strings")
        names = [name if isinstance(name, str) else name.decode("latin1") for name in names]
    if len(names) != len(cifar.class_names):
        raise DamagedDataError(path, f"it names {len(names)} classes, and {cifar.title} has {len(cifar.class_names)}")
    return tuple(names)


def _entry(path: Path, content: dict[str, Any], key: str) -> Any:
    if key not in content:
        raise DamagedDataError(path, f"it has no {key}, but {shortened(sorted(content))}")
    return content[key]
