"""`moe-theory data` and `deep --data` on images of one's own, by the commands of the page.

Catches a page whose commands do not run, and a run that does not say what it has read.
"""

import dataclasses
import json
import re
import shlex
from pathlib import Path

import numpy as np
import pytest

import moe_theory
from moe_theory.deep import presets
from moe_theory.deep import report as pages
from moe_theory.deep.params import Dims

pillow = pytest.importorskip("PIL.Image")

PAGE = Path(moe_theory.__file__).parents[1] / "docs" / "pages" / "networks.md"


@pytest.fixture
def photographs(tmp_path, monkeypatch):
    """Of three classes, of two proportions, each with a colour of its own; and a text."""
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(("apples", "birds", "cars")):
        for number in range(10):
            path = Path("photographs", name, f"{number}.jpg")
            path.parent.mkdir(parents=True, exist_ok=True)
            colour = tuple(int(200 * (place == channel)) + number for channel in range(3))
            pillow.new("RGB", (12, 8) if number % 4 else (8, 12), colour).save(path)
    Path("photographs", "apples", "notes.txt").write_text("mine")


def commands():
    section = PAGE.read_text(encoding="utf-8").partition("## Your own images")[2]
    return [
        shlex.split(line)[1:] for line in re.findall(r"^moe-theory .*", section.partition("\n## ")[0], re.MULTILINE)
    ]


def test_the_page_leads_from_photographs_to_a_verdict(photographs, ran, monkeypatch):
    look, judge = commands()
    text = ran(*look).out
    for said in (
        "photographs: images in folders, by 3 folders with images in ",
        "24 training and 6 test images of 3 classes, 24 x 24 pixels, 3 channels",
        "left out: 1 no image: .txt",
        "converted: 30 scaled up, with black beside it",
        "every 5th image of a class is a test image",
        "30 .jpg",
    ):
        assert said in text
    assert np.asarray(pillow.open("sheet.png")).std() > 30
    name = judge[1]
    dims = Dims(7, 3, 4, num_samples=10, num_tests=4, num_epochs=1, batch_size=10, network="mlp")
    monkeypatch.setitem(presets.PRESETS, name, dataclasses.replace(presets.preset(name), dims=dims))
    monkeypatch.setattr(pages.Picture, "rendered", lambda picture: b"")  # drawing is what costs
    judge = judge[: judge.index("--minutes")]
    streams = ran(*judge, "--seeds", 2, "--out", "out")
    assert text.splitlines()[:5] == streams.out.splitlines()[:5]  # the same in short, before it runs
    document = json.loads(Path("out", "verdicts.json").read_text())
    assert document["verdicts"]
    assert {verdict["data"] for verdict in document["verdicts"]} == {"photographs"}


def test_a_document_says_the_same(photographs, ran):
    streams = ran("data", "photographs", "--size", "6x6", "--resize", "crop", "--json")
    document = json.loads(streams.out)
    assert document["shape"] == [6, 6, 3]
    assert sum(each["training"] + each["test"] for each in document["classes"]) == 30
    assert document["left_out"] == {"no image: .txt": 1}
    assert document["converted"] == {"scaled down, and cut to its middle": 30}
    other = json.loads(ran("data", "photographs", "--size", "6x6", "--json").out)
    assert other["digest"] != document["digest"]


def test_what_cannot_be_read_is_a_line(photographs, refused):
    assert "Change it" in refused("data", "photographs", "--size", "none")
    assert "must end in .svg or .png" in refused("data", "photographs", "--picture", "sheet.jpg")
    assert "which is not a folder" in refused("data", "nowhere")
    assert "Name PRESET" in refused("deep", "--data", "photographs")
    Path("photographs", "apples", "0.jpg").write_bytes(b"text")
    assert "0.jpg is damaged" in refused("data", "photographs")
