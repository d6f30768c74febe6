"""The one decoder of images: any format that Pillow reads safely, by content, as bytes of red, green and blue.

What it changes is counted: orientation, depth, transparency, colours, further frames and size. Nothing is clipped.
"""

import contextlib
import functools
import io
import logging
import re
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8

from moe_theory.core.errors import DamagedDataError, InvalidDimsError, InvalidParamsError, InvalidRunError, shortened
from moe_theory.core.fields import documented
from moe_theory.core.machine import available_cores
from moe_theory.deep.datasets.files import read_bounded, reading
from moe_theory.runs.arrays import most_bytes
from moe_theory.runs.reading import open_file

ENDINGS = frozenset(
    ".avif .bmp .gif .jfif .jpe .jpeg .jpg .pbm .pgm .png .pnm .ppm .tif .tiff .webp".split()
)  # of images, in any case; other files are images by their first bytes
UNREAD = frozenset(".cr2 .dcm .dng .heic .heif .jp2 .jxl .nef .nii .psd .raw .svg".split())  # images too, not read here
LARGEST = 64  # pixels a side, where no size is asked for
RESIZES = ("fit", "stretch", "crop")
_FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "GIF", "TIFF", "PPM", "AVIF")
_BEGINNING = re.compile(
    rb"\x89PNG\r\n|\xff\xd8\xff|GIF8[79]a|BM.{4}\0{4}|II\*\0|MM\0\*|RIFF.{4}WEBP|.{4}ftypavif", re.DOTALL
)
_MOST_BYTES = 1 << 26  # of a file
_MOST_PIXELS = 1 << 26  # a camera's largest images have 50 million
_MOST_SCANNED = 1 << 30  # pixels times scans: 16 of the largest image, some seconds
_MOST_SIDE = 1024  # that may be asked for
_SCAN = b"\xff\xda"  # begins a scan, and is nowhere in one
_ORIENTATION = 0x0112  # the tag of EXIF
_TURNED, _SIDEWAYS = range(2, 9), 5  # its values but for upright, and from which on width and height change places
_BITS_OF_PNG, _BITS_OF_TIFF = 24, 258  # a byte of the file, a tag
_NO_HANDLER = logging.NullHandler()
_LEAST_LEVELS = 64  # that 16-bit colours must take in their high bytes, which are all that Pillow reads


@documented
class Frame(NamedTuple):
    """The size that images get, and how those of other proportions do.

    `fit` keeps all of an image and its proportions, with black beside it; `crop` keeps its middle; `stretch` all of
    it, in other proportions.

    Examples:
        >>> from moe_theory.deep import datasets
        >>> datasets.Frame(size=(48, 64)).resize
        'fit'
    """

    size: tuple[int, int] | None = None  # height and width; the most frequent, at most 64 a side, unless given
    resize: str = RESIZES[0]

    def checked(self) -> "Frame":
        """The same. Raises: InvalidParamsError for an unknown way, or a size that is too small or too large."""
        if self.resize not in RESIZES:
            raise InvalidParamsError(f"resize={self.resize!r} must be one of {', '.join(RESIZES)}. Change it.")
        if self.size is not None and not all(1 <= side <= _MOST_SIDE for side in self.size):
            raise InvalidParamsError(
                f"size={self.size[0]}x{self.size[1]} must be 1 to {_MOST_SIDE} pixels a side. Change it."
            )
        return self


def frame(size: str | None, resize: str | None) -> Frame | None:
    """The frame of a size such as "64" or "48x64" and a way; none of neither. Raises: InvalidParamsError."""
    if size is None and resize is None:
        return None
    sides = re.fullmatch(r"(\d{1,6})(?:x(\d{1,6}))?", (size or "1").lower())
    if sides is None:
        raise InvalidParamsError(f"size={shortened(size)} must be a number of pixels, or HEIGHTxWIDTH. Change it.")
    wanted = None if size is None else (int(sides[1]), int(sides[2] or sides[1]))
    return Frame(wanted, resize or RESIZES[0]).checked()


class ImageHeader(NamedTuple):
    """Format and size of an image that is not decoded yet."""

    path: Path
    format: str
    mode: str  # Pillow's, with the bits of a channel where these are more than 8
    size: tuple[int, int]  # width and height, upright
    is_turned: bool
    has_frames: bool
    highest: int = 0  # pixel, of more than 8 bits; of colours in steps of 256


def headers(paths: Sequence[Path]) -> list[ImageHeader | None]:
    """Headers of all files, read in threads: Pillow releases the interpreter's lock. None for what is no image.

    Raises: DamagedDataError for a file with an image's ending or beginning that cannot be read.
    """

    def tried(path: Path) -> ImageHeader | DamagedDataError | None:
        try:
            return _header(path)
        except DamagedDataError as failure:
            return failure

    with _quietly(), ThreadPoolExecutor(available_cores()) as threads:
        found = list(threads.map(tried, paths))
    if damaged := [(path, each) for path, each in zip(paths, found, strict=True) if isinstance(each, DamagedDataError)]:
        (path, first), *others = damaged
        if not others:
            raise first
        few = ", ".join(other.name for other, _ in others[:4])
        reason = f"{first.reason}, and so are {len(others):,} more: {few}"
        raise DamagedDataError(path, reason, "Remove them, save them anew, or get them again.")
    return [each for each in found if not isinstance(each, DamagedDataError)]


def decode(
    found: Sequence[ImageHeader], resize: str, size: tuple[int, int], shift: int, converted: Counter[str]
) -> UInt8[np.ndarray, "n h w 3"]:
    """Images of one (height, width), and what was done to them, counted.

    Args:
        shift: bits that pixels of more than 8 bits lose, see `shift_of`.
    Raises: DamagedDataError; InvalidDimsError where they take more memory than there is.
    """
    needed, most = len(found) * size[0] * size[1] * 3, most_bytes()
    if needed > most:
        raise InvalidDimsError(
            f"{len(found):,} images of {size[0]} x {size[1]} pixels take {needed:,} bytes; at most {most:,}, half of "
            "the memory here, are used. Lower --size."
        )
    pixels = np.empty((len(found), *size, 3), np.uint8)

    def work(index: int) -> list[str]:
        with _opened(found[index].path) as image:
            if found[index].size[0] > 2 * size[1] and found[index].size[1] > 2 * size[0]:
                image.draft(None, (2 * max(size), 2 * max(size)))  # JPEG's own way to scale down
            image, done = _colours(_upright(image), shift)
            image, resized = _resized(image, found[index].size, size, resize)
            pixels[index] = np.asarray(image)
        if shift and found[index].highest > 0 and found[index].highest >> shift < _LEAST_LEVELS:
            done.append(f"to fewer than {_LEAST_LEVELS} of 256 greys, as all images keep one scale")
        return [*_seen(found[index]), *done, *resized]

    with _quietly(), ThreadPoolExecutor(available_cores()) as threads:
        for done in threads.map(work, range(len(found))):  # the first error cancels the rest
            converted.update(done)
    return pixels


def kinds_of(found: Sequence[ImageHeader]) -> dict[str, Counter[str]]:
    """Counts of endings, formats, modes and sizes."""
    return {
        "ending": Counter(each.path.suffix.lower() or "none" for each in found),
        "format": Counter(each.format for each in found),
        "mode": Counter(each.mode for each in found),
        "size": Counter(f"{each.size[1]} x {each.size[0]}" for each in found),
    }


def size_of(found: Sequence[ImageHeader], frame: Frame) -> tuple[int, int]:
    """Height and width for all: those asked for, or those of most images, or the medians, at most 64 a side."""
    if frame.size is not None:
        return frame.size
    (size, count), *_ = Counter(each.size for each in found).most_common(1)
    if 2 * count <= len(found):
        width, height = np.percentile([each.size for each in found], 50, axis=0, method="lower")
        size = int(width), int(height)
    scale = min(1.0, LARGEST / max(size))
    return max(round(size[1] * scale), 1), max(round(size[0] * scale), 1)


def shift_of(found: Sequence[ImageHeader]) -> int:
    """Bits by which pixels of more than 8 are shifted: as few as make the largest of them all a byte, so that 12 bits
    in a file of 16 do not become black, and all images keep one scale.

    Raises: DamagedDataError for 16-bit colours, of which Pillow keeps the high byte, that use too few of these.
    """
    deep = [each for each in found if each.highest]
    colours = [each for each in deep if not each.mode.startswith("I")]
    highest = max((each.highest for each in colours), default=1 << 16)
    if highest < 256 * _LEAST_LEVELS:
        raise DamagedDataError(
            colours[0].path,
            f"its colours have 16 bits, but the largest of {len(colours):,} such images is {highest}: what is read, "
            "the high byte, would be nearly black",
            "Save them with 8 bits a colour.",
        )
    grey = [each.highest for each in deep if each.mode.startswith("I")]
    return max(max(grey, default=0).bit_length() - 8, 0)


def _header(path: Path) -> ImageHeader | None:
    if path.suffix.lower() not in ENDINGS:
        with reading(path), open_file(path) as file:
            if not _BEGINNING.match(file.read(16)):
                return None
    with _opened(path) as image:
        bits = _bits(image)
        turned = image.getexif().get(_ORIENTATION) in _TURNED
        size, mode, highest = image.size, image.mode, 0
        if turned and image.format == "TIFF":  # whose size is upright in some versions of Pillow, before it is decoded
            size = _upright(image).size
        elif turned and image.getexif()[_ORIENTATION] >= _SIDEWAYS:
            size = size[::-1]
        frames, form = bool(getattr(image, "is_animated", False)), image.format
        if bits > 8 or mode.startswith(("I", "F")):
            values = np.asarray(image)
            if mode == "F" or values.min() < 0 or values.max() >= 1 << 16:
                reason = f"its pixels are from {values.min():g} to {values.max():g}, and none is known to be white"
                raise DamagedDataError(path, reason, "Save it with 8 or 16 bits, or as arrays in an .npz file.")
            highest = max(int(values.max()) * (1 if mode.startswith("I") else 256), 1)
            mode = f"{mode}, {bits if bits > 8 else 16} bits"
        return ImageHeader(path, form, mode, size, turned, frames, highest)


def _bits(image: Any) -> int:
    """Bits of a channel in the file: Pillow makes bytes of colours while it reads them."""
    if image.format == "PNG":
        return image.fp.getbuffer()[_BITS_OF_PNG]
    found = image.tag_v2.get(_BITS_OF_TIFF, 8) if image.format == "TIFF" else 8
    return max(found) if isinstance(found, tuple) else int(found)


def _seen(header: ImageHeader) -> list[str]:
    done = ["turned upright, as EXIF says"] if header.is_turned else []
    if header.has_frames:
        done.append("the first frame or page of several")
    if header.highest and not header.mode.startswith("I"):
        done.append("the high byte of 16-bit colours")
    return done


def _upright(image: Any) -> Any:
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def _colours(image: Any, shift: int) -> tuple[Any, list[str]]:
    pillow = _pillow()
    if image.mode.startswith("I"):
        grey = pillow.fromarray((np.asarray(image).astype(np.int64) >> shift).astype(np.uint8))
        return grey.convert("RGB"), [f"16-bit grey, v >> {shift}"]
    if image.has_transparency_data:
        image = image.convert("RGBA")
        if image.getextrema()[3][0] < 255:
            white = pillow.new("RGBA", image.size, "white")
            return pillow.alpha_composite(white, image).convert("RGB"), ["transparent pixels shown on white"]
    said = {"CMYK": "CMYK to RGB, without its colour profile", "LAB": "Lab to RGB"}.get(image.mode)
    return image.convert("RGB"), [said] if said else []


def _resized(image: Any, size: tuple[int, int], wanted: tuple[int, int], resize: str) -> tuple[Any, list[str]]:
    """Resize an image from (width, height) to (height, width), and say how."""
    (width, height), (high, wide) = size, wanted
    if (width, height) == (wide, high):
        return image, []
    across, down = wide / width, high / height
    scale = max(across, down) if resize == "crop" else min(across, down)
    inner = max(round(width * scale), 1), max(round(height * scale), 1)
    way = "scaled down" if scale < 1 else "scaled up" if scale > 1 else "kept at its size"
    if inner == (wide, high):
        return image.resize(inner), [way]
    if resize == "stretch":
        return image.resize((wide, high)), ["stretched to other proportions"]
    left, top = (wide - inner[0]) // 2, (high - inner[1]) // 2
    framed = _pillow().new("RGB", (wide, high))
    framed.paste(image.resize(inner), (left, top))  # what lies outside is cut off
    return framed, [f"{way}, with black beside it" if resize == "fit" else f"{way}, and cut to its middle"]


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """An image whose header has been read, and no pixel yet; whatever decoding it raises is a DamagedDataError.

    Raises: DamagedDataError for a file that is too large or in no format that is read, for too many pixels, and for so
        many scans of a JPEG, each of which goes over all pixels, that decoding would take minutes.
    """
    pillow = _pillow()
    data = read_bounded(path, _MOST_BYTES)
    try:
        with pillow.open(io.BytesIO(data), formats=_formats()) as image:
            width, height = image.size
            if width * height > _MOST_PIXELS:
                reason = f"it has {width:,} x {height:,} pixels, and at most {_MOST_PIXELS:,} are decoded"
                raise DamagedDataError(path, reason, "Scale it down.")
            has_scans = image.format in ("JPEG", "MPO") or image.info.get("compression") == "jpeg"
            if has_scans and data.count(_SCAN) * width * height > _MOST_SCANNED:
                reason = f"it has some {data.count(_SCAN):,} scans of {width:,} x {height:,} pixels"
                raise DamagedDataError(path, reason, "Scale it down, or save it again.")
            yield image
    except DamagedDataError:
        raise
    except Exception as failure:  # decoders do not document what they raise
        is_other = isinstance(failure, pillow.UnidentifiedImageError)  # says where the data are in memory
        said = "it is none" if is_other else " ".join(str(failure).split())[:200] or type(failure).__name__
        known = "JPEG, PNG, WebP, BMP, GIF or TIFF"
        way_out = "Remove it, save it in one of these formats, or get it again."
        raise DamagedDataError(path, f"it cannot be decoded as {known} ({said})", way_out) from None


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Without Pillow's warnings: what is wrong with an image is reported in one line, or does not concern its user."""
    logging.getLogger("PIL").addHandler(_NO_HANDLER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@functools.cache
def _formats() -> tuple[str, ...]:
    """Those that this Pillow has: AVIF and WebP depend on how it was built."""
    pillow = _pillow()
    pillow.init()
    return tuple(name for name in _FORMATS if name in pillow.OPEN)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError:
        raise InvalidRunError("Pillow is not installed: pip install 'moe-theory[images]'") from None
    return Image
