"""Images that nobody made honestly, by the one decoder that opens them: the first one and the others alike."""

import io
import os
import struct
import zlib

import numpy as np
import pytest

from moe_theory.core.errors import DamagedDataError
from moe_theory.deep import datasets
from moe_theory.deep.datasets import decoder

pillow = pytest.importorskip("PIL.Image")


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, extra=b"", pixels=b"\0" * 999):
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    parts = chunk(b"IHDR", header) + extra + chunk(b"IDAT", zlib.compress(pixels)) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


def saved(side, form="PNG", **options):
    buffer = io.BytesIO()
    pillow.fromarray(np.full((side, side, 3), 7, np.uint8)).save(buffer, form, **options)
    return buffer.getvalue()


def scans(side, number):
    """A progressive JPEG whose last scan comes many times over."""
    data = saved(side, "JPEG", progressive=True)
    last = data[data.rindex(b"\xff\xda") : -2]
    return data[:-2] + last * number + data[-2:]


TEXT = zlib.compress(b"a" * (1 << 24))  # 16 MB in 16 kB
HOSTILE = {
    "a bomb": png(60_000, 60_000),
    "the largest size": png(2**31 - 1, 2**31 - 1),
    "more than is decoded": png(9_000, 9_000),
    "no pixel": png(0, 0),
    "text that expands": png(16, 16, chunk(b"zTXt", b"Comment\0\0" + TEXT)),
    "a profile that expands": png(16, 16, chunk(b"iCCP", b"name\0\0" + TEXT)),
    "many scans": scans(2048, 300),
    "a cut": saved(64, "JPEG")[:300],
    "nothing": b"",
    "text": b"an image\n",
    "no chunk": b"\x89PNG\r\n\x1a\n" + b"x" * 99,
    "another format": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 16 16\n",
    "a bomb of Windows": saved(16, "BMP")[:18] + struct.pack("<ii", 40_000, 40_000) + saved(16, "BMP")[26:],
    "a bomb that moves": b"GIF89a" + struct.pack("<HH", 60_000, 60_000) + saved(16, "GIF")[10:],
    "a bomb in tags": saved(16, "TIFF").replace(struct.pack("<HHIHxx", 256, 4, 1, 16), b"")[:60],
    "a cut of WebP": saved(64, "WEBP")[:40],
    "of the web, which is not read": b"\0\0\0\x18ftypheic" + bytes(99),
}


def tree(folder):
    for split in ("train", "test"):
        for name in ("cat", "dog"):
            (folder / split / name).mkdir(parents=True)
            (folder / split / name / "5.png").write_bytes(saved(16))
    return folder


@pytest.mark.parametrize("place", ["train/cat/0.png", "test/dog/9.jpg"], ids=["first", "last"])
@pytest.mark.parametrize("data", HOSTILE.values(), ids=HOSTILE)
def test_a_hostile_image_is_refused_in_a_line(data, place, tmp_path, recwarn):
    """Would catch an image that another decoder opens than the careful one, and a warning beside the line."""
    (tree(tmp_path) / place).write_bytes(data)
    with pytest.raises(DamagedDataError) as refused:
        datasets.load("folders", tmp_path)
    assert str(refused.value).startswith(f"{tmp_path / place} is damaged: it ")
    assert "\n" not in str(refused.value)
    assert "0x" not in str(refused.value)  # where something is in memory
    assert not recwarn.list


def test_sizes_are_refused_before_pixels_are_decoded(tmp_path, monkeypatch):
    """Would catch a limit that is applied to decoded pixels, and a file read whatever its size."""
    place = tree(tmp_path) / "train" / "dog" / "6.png"
    place.write_bytes(png(9_000, 9_000))
    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", lambda image: pytest.fail("decoded"))
    with pytest.raises(DamagedDataError, match="9,000 x 9,000 pixels"):
        decoder.headers([place])
    with place.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DamagedDataError, match="it has 1,099,511,627,776 bytes"):
        decoder.headers([place])
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(DamagedDataError, match="it is a named pipe"):
        decoder.headers([place])


def test_as_many_scans_as_cameras_write_are_read(tmp_path):
    (tree(tmp_path) / "train" / "cat" / "0.jpg").write_bytes(scans(512, 20))
    assert datasets.load("folders", tmp_path).train.pixels.shape == (3, 16, 16, 3)
