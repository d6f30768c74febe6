"""Images are read as they are, or refused in a line that says what was found and how to convert it."""

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image
from refusals import refusal

from moe_theory.core.errors import DataError, InvalidValueError
from moe_theory.deep.datasets.images import ENDINGS, read_images

RED = (250, 10, 20)
PIXELS = np.random.default_rng(0).integers(0, 256, (6, 8, 3), np.uint8)
RAMP = np.arange(256, dtype=np.uint16).reshape(16, 16)


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(bits, colour, row, side=2):
    """A PNG of so many bits a channel, of which all rows are the same."""
    header = struct.pack(">IIBBBBB", side, side, bits, colour, 0, 0, 0)
    rows = zlib.compress((b"\0" + row) * side)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def saved(image, form="PNG", **options):
    image = image if isinstance(image, Image.Image) else Image.fromarray(image)
    file = io.BytesIO()
    image.save(file, form, **options)
    return file.getvalue()


def turned(orientation):
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


@pytest.mark.parametrize("ending", sorted(ENDINGS))
@pytest.mark.parametrize("is_grey", [False, True])
def test_bytes_are_read_as_they_are(ending, is_grey, tmp_path):
    """Would catch a format that is not read, and channels in another order."""
    form = Image.registered_extensions()[ending]
    held = PIXELS[..., 0] if is_grey else PIXELS
    options = {"quality": 100, "subsampling": 0} if form == "JPEG" else {}
    path = tmp_path / f"image{ending}"
    path.write_bytes(saved(held, form, **options))
    pixels, num_grey = read_images([path, path])
    assert num_grey == 2 * is_grey
    tolerance = 8 if form == "JPEG" else 0
    expected = np.broadcast_to(held[..., None] if is_grey else held, PIXELS.shape)
    np.testing.assert_allclose(pixels[1].astype(int), expected, atol=tolerance)


FRAMES = {"save_all": True, "append_images": [Image.new("RGB", (8, 6), (9, 9, 9))]}
REFUSED = {
    "16 bits of grey": saved(RAMP * 257),
    "16 bits of colour": png(16, 2, bytes(12)),
    "a palette": saved(Image.new("RGB", (8, 6), RED).quantize(4)),
    "CMYK": saved(Image.new("CMYK", (8, 6)), "JPEG"),
    "transparent": saved(Image.new("RGBA", (8, 6))),
    "a transparent colour": saved(Image.new("RGB", (8, 6), RED), transparency=RED),
    "two frames": saved(PIXELS, "PNG", **FRAMES),
    "turned": saved(PIXELS, "JPEG", exif=turned(6)),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_have_to_be_changed_is_refused(name, tmp_path, recwarn):
    path = tmp_path / "image.png"  # Pillow goes by content
    path.write_bytes(REFUSED[name])
    told = str(refusal(InvalidValueError, read_images, [path]))
    assert told.startswith(f"{path} (mode ")
    assert not recwarn.list


def test_upright_is_no_turn(tmp_path):
    (tmp_path / "image.jpg").write_bytes(saved(PIXELS, "JPEG", exif=turned(1)))
    assert read_images([tmp_path / "image.jpg"])[0].shape == (1, 6, 8, 3)


DAMAGED = {
    "a bomb": png(8, 2, b"", side=60_000),
    "no pixel": png(8, 2, b"", side=0),
    "a cut": saved(PIXELS, "JPEG")[:300],
    "a GIF": saved(Image.new("RGB", (8, 6), RED), "GIF"),
    "nothing": b"",
    "text": b"an image\n",
}


@pytest.mark.parametrize("place", [0, 1], ids=["first", "last"])
@pytest.mark.parametrize("name", DAMAGED)
def test_a_damaged_image_is_a_line(name, place, tmp_path, recwarn):
    paths = [tmp_path / "0.png", tmp_path / "1.png"]
    for path in paths:
        path.write_bytes(saved(PIXELS))
    paths[place].write_bytes(DAMAGED[name])
    told = str(refusal(DataError, read_images, paths))
    assert told.startswith(f"{paths[place]} is damaged: it cannot be decoded (")
    assert "0x" not in told  # where something is in memory
    assert not recwarn.list


@pytest.mark.parametrize("odd", [0, 4])
def test_images_of_two_sizes_are_counted(odd, tmp_path):
    """Would catch the first image as the size of all, and images that are left out."""
    paths = [tmp_path / f"{number}.png" for number in range(5)]
    for number, path in enumerate(paths):
        path.write_bytes(saved(PIXELS if number != odd else PIXELS.swapaxes(0, 1)))
    told = str(refusal(InvalidValueError, read_images, paths))
    assert "4 of 6 x 8, 1 of 8 x 6 pixels" in told
    assert f"such as {paths[odd]}. Resize them" in told
    assert "resize((8, 6))" in told  # Pillow's order is width and height
