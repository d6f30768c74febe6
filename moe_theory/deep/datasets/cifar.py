"""CIFAR-10 and CIFAR-100 as published, in the binary or the Python version; CIFAR-100 by superclass too."""

import io
import math
import pickle
import pickletools
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.errors import DamagedDataError, shortened
from moe_theory.deep.datasets.files import DataSet, Images, Layout, checked_labels, locate, read_bounded

_SIDE, _CHANNELS = 32, 3
_PIXELS = _CHANNELS * _SIDE**2  # bytes of an image: all of red, then green, then blue, row by row


class Cifar(NamedTuple):
    name: str
    title: str
    class_names: tuple[str, ...]  # as published
    max_bytes: int  # of a file: about twice the published ones
    binary: Layout  # the last file is the test split
    num_labels: int  # bytes before an image's pixels
    label: int  # which of these is its label
    python: Layout
    labels_key: str

    @property
    def layouts(self) -> tuple[Layout, ...]:
        return self.binary, self.python


CIFAR10 = Cifar(
    name="cifar10",
    title="CIFAR-10",
    class_names=tuple("airplane automobile bird cat deer dog frog horse ship truck".split()),
    max_bytes=1 << 26,
    binary=Layout((*(f"data_batch_{k}.bin" for k in range(1, 6)), "test_batch.bin"), ("cifar-10-batches-bin",)),
    num_labels=1,
    label=0,
    python=Layout(
        (*(f"data_batch_{k}" for k in range(1, 6)), "test_batch"),
        ("cifar-10-batches-py",),
        md5=(
            "c99cafc152244af753f735de768cd75f",
            "d4bba439e000b95fd0a9bffe97cbabec",
            "54ebc095f3ab1f0389bbae665268c751",
            "634d18415352ddfa80567beed471001a",
            "482c414d41f54cd18b22e5b47cb7c3cb",
            "40351d587109b95175f43aff81a1287e",
        ),
    ),
    labels_key="labels",
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
    num_labels=2,  # coarse, fine
    label=1,
    python=Layout(
        ("train", "test"),
        ("cifar-100-python",),
        md5=("16019d7e3df5f24257cddd939b257f8d", "f0ef6b0ae62326f3e7ffdfab6717acfc"),
    ),
    labels_key="fine_labels",
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
    label=0,
    labels_key="coarse_labels",
)


def load_cifar(cifar: Cifar, folder: Path) -> DataSet:
    found = locate(cifar.title, folder, cifar.layouts)
    read = _read_binary if found.layout == cifar.binary else _read_python
    parts = [read(cifar, path) for path in found.files]
    train, test = Images(*map(np.concatenate, zip(*parts[:-1], strict=True))), parts[-1]
    inventory = found.inventory(cifar.title, (50_000, 10_000), (len(train.labels), len(test.labels)))
    return DataSet(cifar.name, found.title(cifar.title), train, test, cifar.class_names, inventory)


def _read_binary(cifar: Cifar, path: Path) -> Images:
    data = np.frombuffer(read_bounded(path, cifar.max_bytes), np.uint8)
    record = cifar.num_labels + _PIXELS
    if not len(data) or len(data) % record:
        raise DamagedDataError(path, f"its {len(data):,} bytes are not a whole number of images of {record:,} bytes")
    records = data.reshape(-1, record)
    labels = checked_labels(path, records[:, cifar.label], len(cifar.class_names))
    return Images(_pixels(records[:, cifar.num_labels :]), labels)


def _read_python(cifar: Cifar, path: Path) -> Images:
    content = read_pickle(path, cifar.max_bytes)
    data, labels = _entry(path, content, "data"), _entry(path, content, cifar.labels_key)
    if not isinstance(data, np.ndarray) or data.ndim != 2 or data.shape[1] != _PIXELS or not len(data):
        what = f"has shape {data.shape}" if isinstance(data, np.ndarray) else f"is a {type(data).__name__}"
        raise DamagedDataError(path, f"its data {what}, not an array of bytes (images, {_PIXELS})")
    if isinstance(labels, np.ndarray) and labels.ndim == 1:  # of bytes, from a file that was saved again
        labels = labels.tolist()
    if type(labels) is not list or not all(type(label) is int for label in labels):
        raise DamagedDataError(path, f"its {cifar.labels_key} are not a list of whole numbers")
    if len(labels) != len(data):
        raise DamagedDataError(path, f"it has {len(labels)} {cifar.labels_key} for {len(data)} images")
    return Images(_pixels(data), checked_labels(path, np.array(labels, object), len(cifar.class_names)))


def _pixels(rows: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(rows.reshape(-1, _CHANNELS, _SIDE, _SIDE).transpose(0, 2, 3, 1))


def _entry(path: Path, content: dict[str, Any], key: str) -> Any:
    if key not in content:
        raise DamagedDataError(path, f"it has no {key}, only {shortened(sorted(content))}")
    return content[key]


_INSTRUCTIONS = frozenset(
    "PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE BININT BININT1 BININT2 LONG1 BINSTRING SHORT_BINSTRING BINBYTES "
    "SHORT_BINBYTES BINUNICODE SHORT_BINUNICODE EMPTY_LIST APPEND APPENDS EMPTY_DICT SETITEM SETITEMS EMPTY_TUPLE "
    "TUPLE TUPLE1 TUPLE2 TUPLE3 BINPUT LONG_BINPUT MEMOIZE BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD".split()
)
_MAX_INSTRUCTIONS = 1_000_000  # CIFAR-100 needs half of them in the most verbose protocol
_ARRAYS = ("numpy.core.multiarray", "numpy._core.multiarray")  # before and since NumPy 2
_PICKLE_WAY_OUT = "Nothing in it was run. Get it again from where it was published, or use the binary version."


def read_pickle(path: Path, max_bytes: int) -> dict[str, Any]:
    """The dictionary in a pickle, with arrays of bytes as NumPy's, read without running anything that it names.

    Its instructions must be among the few that arrays, numbers, strings and plain containers need, and not too many;
    the functions that NumPy's pickles name are replaced by inert ones that only keep bytes. Keys become strings.

    Raises: DamagedDataError for anything else, and for names of functions or classes other than those of an array.
    """
    data = read_bounded(path, max_bytes)
    _check_instructions(path, data)
    try:
        loaded = _ArraysOnly(path, data).load()
    except DamagedDataError:
        raise
    except Exception as failure:  # a damaged pickle may raise almost anything
        raise DamagedDataError(path, f"it cannot be unpickled ({_brief(failure)})", _PICKLE_WAY_OUT) from None
    if type(loaded) is not dict:
        raise DamagedDataError(path, f"it holds a {type(loaded).__name__}, not a dictionary", _PICKLE_WAY_OUT)
    if not all(isinstance(key, str | bytes) for key in loaded):
        raise DamagedDataError(path, "its dictionary has keys that are not strings", _PICKLE_WAY_OUT)
    return {_text(key): value.array if isinstance(value, _Array) else value for key, value in loaded.items()}


def _check_instructions(path: Path, data: bytes) -> None:
    end = 0
    try:
        for count, (code, argument, position) in enumerate(pickletools.genops(data)):
            if code.name not in _INSTRUCTIONS:
                reason = f"its instruction {code.name} at byte {position} is not needed by arrays and plain containers"
                raise DamagedDataError(path, reason, _PICKLE_WAY_OUT)
            # The unpickler allocates as many objects as the largest index to store one under.
            if count >= _MAX_INSTRUCTIONS or (code.name == "LONG_BINPUT" and int(argument or 0) > count):
                reason = f"its instructions at byte {position} ask for more memory than arrays and lists need"
                raise DamagedDataError(path, reason, _PICKLE_WAY_OUT)
            end = position or 0
    except DamagedDataError:
        raise
    except ValueError as failure:
        raise DamagedDataError(path, f"it is not a complete pickle ({_brief(failure)})", _PICKLE_WAY_OUT) from None
    if end + 1 != len(data):
        raise DamagedDataError(path, f"it has {len(data) - end - 1:,} bytes after its end", _PICKLE_WAY_OUT)


class _ArraysOnly(pickle.Unpickler):
    def __init__(self, path: Path, data: bytes) -> None:
        super().__init__(io.BytesIO(data), encoding="bytes")
        self._path = path
        self._num_encoded = len(data)  # limit of characters, as one string may be encoded repeatedly

    def find_class(self, module: str, name: str, /) -> Any:
        if name == "_reconstruct" and module in _ARRAYS:
            return _Callable(lambda *_: _Array())
        if (module, name) == ("numpy", "ndarray"):
            return _NDARRAY
        if (module, name) == ("numpy", "dtype"):
            return _Callable(_Type)
        if (module, name) == ("_codecs", "encode"):
            return _Callable(self._encode)
        reason = f"it names {shortened(f'{module}.{name}')}, which arrays and plain containers do not need"
        raise DamagedDataError(self._path, reason, _PICKLE_WAY_OUT)

    def _encode(self, text: str, encoding: str) -> bytes:
        """Byte strings, as Python 3 writes them for Python 2."""
        self._num_encoded -= len(text)
        if type(text) is not str or encoding != "latin1" or self._num_encoded < 0:
            raise pickle.UnpicklingError("strings are encoded as byte strings never are")
        return text.encode("latin1")


class _Inert:
    """Takes no state from a pickle, and has no attributes to set."""

    __slots__ = ()

    def __setstate__(self, state: Any) -> None:
        raise pickle.UnpicklingError("a state is set where arrays have none")


class _Callable(_Inert):
    __slots__ = ("_call",)

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def __call__(self, *arguments: Any) -> Any:
        return self._call(*arguments)


_NDARRAY = _Inert()


class _Type(_Inert):
    """Stands in for `numpy.dtype`."""

    __slots__ = ("name",)

    def __init__(self, name: str | bytes, *_: Any) -> None:
        self.name = _text(name) if isinstance(name, str | bytes) else "no type"

    def __setstate__(self, state: Any) -> None:
        """Ignores byte order and alignment, which bytes do not have."""


class _Array(_Inert):
    __slots__ = ("array",)

    def __init__(self) -> None:
        self.array = np.empty(0, np.uint8)

    def __setstate__(self, state: Any) -> None:
        _, shape, kind, is_fortran, data = state
        if not isinstance(kind, _Type) or kind.name not in ("u1", "|u1", "uint8"):
            other = kind.name if isinstance(kind, _Type) else kind
            raise pickle.UnpicklingError(f"an array of {shortened(other)}, not of bytes (u1)")
        is_shape = type(shape) is tuple and len(shape) <= 4 and all(type(size) is int and size >= 0 for size in shape)
        if not is_shape or type(data) is not bytes or math.prod(shape) != len(data):
            size = f"{len(data):,} bytes" if type(data) is bytes else shortened(data)
            raise pickle.UnpicklingError(f"an array of shape {shortened(shape)} with {size}")
        self.array = np.frombuffer(data, np.uint8).reshape(shape, order="F" if is_fortran else "C")


def _text(value: str | bytes) -> str:
    return value.decode("latin1") if isinstance(value, bytes) else value


def _brief(failure: Exception) -> str:
    text = " ".join(str(failure).split()) or type(failure).__name__
    return text if len(text) <= 100 else shortened(text)
