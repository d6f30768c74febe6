"""Images as they are: 8-bit grey or RGB, all of one size. Anything else is refused, and nothing is changed.

Pillow decodes them. It is told which formats to try, because some others start programs: EPS starts Ghostscript.
"""

import io
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from moe_theory.core.errors import DataError, InvalidValueError, MoeTheoryError, shortened
from moe_theory.core.machine import available_cores
from moe_theory.deep.datasets.files import read_whole

FORMATS = ("BMP", "GIF", "JPEG", "PNG", "PPM", "TIFF", "WEBP")  # Pillow's names; formats with palettes are refused
ENDINGS = frozenset(".bmp .gif .jfif .jpe .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp".split())
_MODES = ("L", "RGB")
_TRANSPARENT = ("LA", "La", "PA", "RGBA", "RGBa")
_ORIENTATION = 0x0112  # the tag of EXIF
_UPRIGHT = (None, 1)


class DecodedImages(NamedTuple):
    """Images of one size, in the order of their files."""

    pixels: UInt8[np.ndarray, "n h w 3"]  # of grey images all three channels are the same
    modes: Counter[str]  # Pillow's, "L" or "RGB"


def read_images(paths: Sequence[Path]) -> DecodedImages:
    """Return the images in these files, at least one.

    Raises:
        DataError: For a file that cannot be decoded.
        InvalidValueError: For an image that is not 8-bit grey or RGB, or that its EXIF data turn.
        InvalidValueError: For images of more than one size.
    """
    pixels = np.empty(0, np.uint8)
    modes = Counter[str]()
    sizes: dict[tuple[int, ...], list[Path]] = {}
    with warnings.catch_warnings(), ThreadPoolExecutor(available_cores()) as threads:
        warnings.simplefilter("ignore")  # Pillow's, of metadata
        for row, (image, mode) in enumerate(threads.map(_decode, paths)):
            if row == 0:
                pixels = np.empty((len(paths), *image.shape), np.uint8)
            if image.shape == pixels.shape[1:]:
                pixels[row] = image
            modes[mode] += 1
            sizes.setdefault(image.shape, []).append(paths[row])
    if len(sizes) > 1:
        (height, width, _), *_ = ordered = sorted(sizes, key=lambda shape: -len(sizes[shape]))
        listed = ", ".join(f"{len(sizes[shape]):,} of {shape[0]} x {shape[1]}" for shape in ordered[:4])
        raise InvalidValueError(
            f"the images have {len(sizes)} sizes, and must have one: {listed} pixels, such as "
            f"{sizes[ordered[-1]][0]}. Resize them, as by PIL.Image.open(path).resize(({width}, {height})).save(path)."
        )
    return DecodedImages(pixels, modes)


def _decode(path: Path) -> tuple[UInt8[np.ndarray, "h w 3"], str]:
    data = read_whole(path)
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if fault := _fault(image):
                raise InvalidValueError(f"{path} {fault}")
            return np.asarray(image.convert("RGB")), image.mode
    except MoeTheoryError:
        raise
    except Exception as failure:  # decoders do not document what they raise
        is_unknown = isinstance(failure, Image.UnidentifiedImageError)  # whose message has an address in memory
        reason = "no known format" if is_unknown else shortened(str(failure) or type(failure).__name__)
        way_out = f"Remove it, or save it in one of the formats {', '.join(FORMATS)}."
        raise DataError(path, f"it cannot be decoded ({reason})", way_out) from None


def _fault(image: Image.Image) -> str:
    """Return what keeps an image from being read as it is, and how to convert it; empty if nothing does."""
    stored = _stored(image)  # before anything is decoded, which forgets it
    if getattr(image, "n_frames", 1) > 1:
        return "has several frames or pages. Save one of them in a file of its own."
    if image.getexif().get(_ORIENTATION) not in _UPRIGHT:
        return "is to be turned, as its EXIF data say. Save it turned, as by PIL.ImageOps.exif_transpose(image)."
    if image.mode in _TRANSPARENT or "transparency" in image.info:
        return f"has transparency (mode {image.mode}). Put it on a background, or save image.convert('RGB')."
    if image.mode.startswith(("I", "F")) or (image.mode in _MODES and stored != "8 bits"):
        return (
            f"has {stored} a channel, not 8 (mode {image.mode}). Scale its values to 0..255, and save these as bytes."
        )
    if image.mode not in _MODES:
        return f"is of mode {image.mode}, not grey or RGB. Save it as RGB, as by image.convert('RGB')."
    return ""


def _stored(image: Image.Image) -> str:
    """Return the depth of a channel in the file, which Pillow's mode hides: of some it makes bytes while it decodes."""
    for codec, _, _, arguments in getattr(image, "tile", ()):
        raw_mode = arguments if isinstance(arguments, str) else arguments[0]
        if codec == "ppm":  # of another maximum than 255
            return "another depth"
        _, _, depth = str(raw_mode).partition(";")
        if depth:
            return f"depth {depth}"
    return "8 bits"
