"""No data file runs code: catches a pickle that is loaded, and a decoder that starts a program."""

import pickle

import pytest

from moe_theory.core.errors import MoeTheoryError
from moe_theory.deep import datasets
from moe_theory.deep.datasets.images import FORMATS

from . import dataset_files as files


class Writes:
    """Pickles as a call that writes a file."""

    def __init__(self, sentinel):
        self.sentinel = sentinel

    def __reduce__(self):
        return exec, (f"open({str(self.sentinel)!r}, 'w').close()",)


@pytest.fixture
def payload(tmp_path):
    """A pickle, and the file that it would write; which it does where it is loaded."""
    sentinel = tmp_path / "ran"
    data = pickle.dumps(Writes(sentinel))
    pickle.loads(data)
    assert sentinel.exists()
    sentinel.unlink()
    return data, sentinel


@pytest.mark.parametrize("name", ["train-images-idx3-ubyte", "data_batch_1.bin", "train/a/0.png"])
def test_a_pickle_in_the_place_of_another_file_is_not_loaded(name, payload, tmp_path):
    data, sentinel = payload
    folder = tmp_path / "held"
    files.mnist(folder)
    files.cifar10(folder / "cifar-10-batches-bin")
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    for kind in ("mnist", "cifar10", "folders", "tiny-imagenet"):
        try:
            datasets.load(kind, folder)
        except MoeTheoryError:
            continue
    assert not sentinel.exists()


def test_no_format_starts_a_program():
    """Pillow's EPS starts Ghostscript."""
    assert not {"EPS", "PDF", "WMF", "EMF"} & {*FORMATS}
