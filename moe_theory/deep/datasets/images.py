"""Images in BMP, JPEG or PNG, 8-bit grey or RGB and of one size, which are not resized or rotated."""

import io
import warnings
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image

from moe_theory.core.errors import DataError, InvalidValueError, MoeTheoryError, shortened
from moe_theory.core.machine import available_cores
from moe_theory.deep.datasets.files import read_whole

FORMATS = ("BMP", "JPEG", "PNG")  # Pillow's names
ENDINGS = frozenset((".bmp", ".jfif", ".jpe", ".jpeg", ".jpg", ".png"))
_MODES = ("L", "RGB")
_ORIENTATION = 0x0112  # an EXIF tag
_UPRIGHT = (None, 1)  # without the tag, or with the value for no rotation


def read_images(paths: Sequence[Path]) -> tuple[UInt8[np.ndarray, "n h w 3"], int]:
    """Return the images of one or more files, in the order of `paths`, and the number of grey images."""
    with warnings.catch_warnings(), ThreadPoolExecutor(available_cores()) as threads:
        warnings.simplefilter("ignore")  # Pillow warns of metadata
        images = list(threads.map(_decode, paths))
    counts = Counter(pixels.shape for pixels, _ in images)
    if len(counts) > 1:
        shapes = [shape for shape, _ in counts.most_common()]
        height, width, _ = shapes[0]
        odd = next(path for path, (pixels, _) in zip(paths, images, strict=True) if pixels.shape == shapes[-1])
        listed = ", ".join(f"{counts[shape]:,} of {shape[0]} x {shape[1]}" for shape in shapes[:4])
        raise InvalidValueError(
            f"the images must all have the same size, but have {len(counts)} sizes: {listed} pixels, such as {odd}. "
            f"Resize them, for example with PIL.Image.open(path).resize(({width}, {height})).save(path)."
        )
    return np.stack([pixels for pixels, _ in images]), sum(is_grey for _, is_grey in images)


def _decode(path: Path) -> tuple[UInt8[np.ndarray, "h w 3"], bool]:
    data = read_whole(path)
    try:
        with Image.open(io.BytesIO(data), formats=FORMATS) as image:
            if not _is_plain(image):
                raise InvalidValueError(
                    f"{path} (mode {image.mode}) must be a single frame of 8-bit grey or RGB, without transparency or "
                    "a rotation in its EXIF data. Convert it, for example with PIL's "
                    "exif_transpose(image).convert('RGB')."
                )
            return np.asarray(image.convert("RGB")), image.mode == "L"
    except MoeTheoryError:
        raise
    except Exception as failure:  # decoders do not document what they raise
        reason = shortened(str(failure) or type(failure).__name__)
        if isinstance(failure, Image.UnidentifiedImageError):  # its message has a memory address
            reason = "its format is unknown"
        way_out = f"Remove it, or save it in one of the formats {', '.join(FORMATS)}."
        raise DataError(path, f"it cannot be decoded ({reason})", way_out) from None


def _is_plain(image: Image.Image) -> bool:
    """Return whether the stored pixels are 8-bit grey or RGB, without transparency, in one upright frame."""
    for _, _, _, arguments in getattr(image, "tile", ()):  # before decoding, which loses the depth
        raw_mode = arguments if isinstance(arguments, str) else arguments[0]
        if ";" in str(raw_mode):  # such as "I;16" or "L;4", which are not 8-bit
            return False
    is_upright = image.getexif().get(_ORIENTATION) in _UPRIGHT
    is_single = getattr(image, "n_frames", 1) == 1
    return image.mode in _MODES and is_upright and is_single and "transparency" not in image.info
