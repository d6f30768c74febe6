"""`deep --data` on images of one's own: what is read, or why not."""

import itertools
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def photographs(inside):
    """Of three classes, each with a colour of its own."""
    for place, name in enumerate(("apples", "birds", "cars")):
        for split, number in itertools.product(("train", "test"), range(5)):
            path = Path("photographs", split, name, f"{number}.jpg")
            path.parent.mkdir(parents=True, exist_ok=True)
            colour = tuple(int(200 * (place == channel)) + number for channel in range(3))
            Image.new("RGB", (12, 8), colour).save(path)


def test_what_cannot_be_read_is_a_line(photographs, refused, tmp_path):
    small = ("deep", "continual-mnist-small", "--data")
    assert "no data set in" in refused(*small, "nowhere")
    (tmp_path / "empty").mkdir()
    assert "no data set in" in refused(*small, "empty")
    assert "a run needs a preset" in refused("deep", "--data", "photographs")
    Image.fromarray(np.zeros((8, 12), np.uint16)).save("photographs/train/cars/0.png")
    assert "0.png (mode I;16) must be" in refused(*small, "photographs")
    Path("photographs", "train", "cars", "0.png").unlink()
    Path("photographs", "test", "apples", "0.jpg").write_bytes(b"text")
    assert "0.jpg is damaged" in refused(*small, "photographs")
