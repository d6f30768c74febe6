"""`deep --data` on images of one's own: what is read, or why not."""

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image


@pytest.fixture
def photographs(inside):
    """Of three classes, each with a colour of its own."""
    for place, name in enumerate(("apples", "birds", "cars")):
        for number in range(10):
            path = Path("photographs", name, f"{number}.jpg")
            path.parent.mkdir(parents=True, exist_ok=True)
            colour = tuple(int(200 * (place == channel)) + number for channel in range(3))
            Image.new("RGB", (12, 8), colour).save(path)


def test_a_document_says_the_same(photographs, ran):
    document = json.loads(ran("deep", "--data", "photographs", "--list", "--json").out)
    assert document["shape"] == [8, 12, 3]
    assert sum(row["training"] + row["test"] for row in document["classes"]) == 30
    assert len(document["notes"]) == 1
    Image.new("RGB", (12, 8), (1, 2, 3)).save("photographs/cars/9.jpg")
    other = json.loads(ran("deep", "--data", "photographs", "--list", "--json").out)
    assert other["digest"] != document["digest"]


def test_what_cannot_be_read_is_a_line(photographs, refused, tmp_path):
    assert "which is not a folder" in refused("deep", "--data", "nowhere", "--list")
    (tmp_path / "empty").mkdir()
    assert "which has nothing. It may have" in refused("deep", "--data", "empty", "--list")
    assert "Name PRESET" in refused("deep", "--data", "photographs")
    Image.fromarray(np.zeros((8, 12), np.uint16)).save("photographs/cars/0.png")
    assert "0.png has depth 16B a channel, not 8" in refused("deep", "--data", "photographs", "--list")
    Path("photographs", "cars", "0.png").unlink()
    Path("photographs", "apples", "0.jpg").write_bytes(b"text")
    assert "0.jpg is damaged" in refused("deep", "--data", "photographs", "--list")
