"""`deep --data` on images of one's own, by the commands of the page.

Catches a page whose commands do not run, and a run that does not say what it has read.
"""

import dataclasses
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import moe_theory
from moe_theory.deep import presets
from moe_theory.deep import report as pages
from moe_theory.deep.params import Dims

PAGE = Path(moe_theory.__file__).parents[1] / "docs" / "pages" / "networks.md"


@pytest.fixture
def photographs(inside):
    """Of three classes, each with a colour of its own."""
    for place, name in enumerate(("apples", "birds", "cars")):
        for number in range(10):
            path = Path("photographs", name, f"{number}.jpg")
            path.parent.mkdir(parents=True, exist_ok=True)
            colour = tuple(int(200 * (place == channel)) + number for channel in range(3))
            Image.new("RGB", (12, 8), colour).save(path)


def commands():
    section = PAGE.read_text(encoding="utf-8").partition("## Your own images")[2]
    return [
        shlex.split(line)[1:] for line in re.findall(r"^moe-theory .*", section.partition("\n## ")[0], re.MULTILINE)
    ]


@pytest.mark.thorough
def test_the_page_leads_from_photographs_to_a_verdict(photographs, ran, monkeypatch):
    look, judge = commands()
    text = ran(*look).out
    for said in (
        "photographs: images in folders of ",
        "24 training and 6 test images of 3 classes, 8 x 12 x 3 (height, width, channels)",
        "note: every 5th image of a class is a test image",
    ):
        assert said in text
    name = judge[1]
    dims = Dims(7, 3, 4, num_samples=10, num_tests=4, num_epochs=1, batch_size=10, network="mlp")
    monkeypatch.setitem(presets.PRESETS, name, dataclasses.replace(presets.preset(name), dims=dims))
    monkeypatch.setattr(pages.Picture, "rendered", lambda picture: b"")  # drawing is what costs
    judge = judge[: judge.index("--replicates")]
    streams = ran(*judge, "--replicates", 2, "--out", "out")
    lines, first_lines = ([line.strip() for line in out.splitlines()[:3]] for out in (text, streams.out))
    assert lines == first_lines  # the same in short, before it runs
    document = json.loads(Path("out", "verdicts.json").read_text())
    assert document["verdicts"]
    assert {verdict["data"] for verdict in document["verdicts"]} == {"photographs"}


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
