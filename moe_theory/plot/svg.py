"""SVG documents that every reader shows alike, a figure far below 100 kB.

Words stay text, which can be searched and selected. A formula is drawn as the outlines of its letters, with what it
says as a title: readers other than browsers put letters that each have a place of their own over one another.
"""

import codecs
import functools
import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from matplotlib.backends.backend_mixed import MixedModeRenderer
from matplotlib.backends.backend_svg import FigureCanvasSVG, RendererSVG

from moe_theory.plot.symbols import linear

if TYPE_CHECKING:
    from matplotlib.figure import Figure

NAMESPACES = {
    "": "http://www.w3.org/2000/svg",
    "xlink": "http://www.w3.org/1999/xlink",
    "dc": "http://purl.org/dc/elements/1.1/",
    "cc": "http://creativecommons.org/ns#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # the second is as wide as what was laid out
PLACES = ("x", "y", "width", "height")
POINTS = 72  # of an inch
PER_POINT = 100  # places are told apart so finely
COUNTED = re.compile(r"(?!axes|legend)[\w.]+_\d+")  # names of groups that nobody gave
PLACED = re.compile(r"(?<=translate\()[^)]+")
MOVED = re.compile(r"translate\((\S+) (\S+)\)(?: scale\(([\d.]+)\))?")
STILL = re.compile(r"rotate\(-?0(\.0*)? [^)]*\)|scale\(1\)")
NO_LETTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in no XML document
TICK = re.compile(r"M0 0l-?[.\d]+[ -][.\d]+")  # as `_shorter` writes it
LETTER, COARSER = "scale(0.015625)", 8  # letters have 6400 units, of which that many become one
STEP = re.compile(r"([MLQC])((?: [-+.\de]+)+)|z")
_G, _USE, _STYLE, _PATH = (f"{{{NAMESPACES['']}}}{name}" for name in ("g", "use", "style", "path"))
_XLINK = f"{{{NAMESPACES['xlink']}}}href"


def written(figure: "Figure", metadata: dict[str, str | None]) -> str:
    """A figure without a background as an SVG document, in the style that is in force."""
    document = io.BytesIO()
    figure.savefig(document, format="svg", backend=f"module://{__name__}", metadata=metadata, transparent=True)
    return compact(document.getvalue().decode())


class Renderer(RendererSVG):
    """Draws words as text, and formulas as outlines."""

    def draw_text(
        self, gc: Any, x: float, y: float, s: str, prop: Any, angle: float, ismath: Any = False, mtext: Any = None
    ) -> None:
        if not ismath:
            super().draw_text(gc, x, y, s, prop, angle, ismath, mtext)
            return
        self.writer.start("g", role="img")
        self.writer.element("title", said(s))
        self._draw_text_as_path(gc, x, y, s, prop, angle, ismath, mtext)  # pyright: ignore[reportAttributeAccessIssue]
        self.writer.end("g")


class FigureCanvas(FigureCanvasSVG):
    """What `Figure.savefig` asks this module for, as a backend of matplotlib's."""

    def print_svg(self, filename: Any, *, metadata: Any = None, **options: Any) -> None:
        del options
        dots = self.figure.dpi
        self.figure.dpi = POINTS
        width, height = self.figure.get_size_inches()
        document = codecs.getwriter("utf-8")(filename)
        letters = Renderer(POINTS * width, POINTS * height, document, image_dpi=round(dots), metadata=metadata)
        renderer = MixedModeRenderer(self.figure, width, height, dots, letters)
        self.figure.draw(renderer)  # pyright: ignore[reportArgumentType] - it has what a renderer has
        renderer.finalize()


@functools.cache
def said(words: str) -> str:
    """Words with their formulas in a line of Unicode."""
    return re.sub(r"\$([^$]*)\$", lambda found: linear(found[1]), words)


def compact(document: str) -> str:
    """The same picture with places to a hundredth of a point, each look said once, and no groups around one thing."""
    for prefix, address in NAMESPACES.items():
        ElementTree.register_namespace(prefix, address)
    root = ElementTree.fromstring(NO_LETTER.sub("\N{REPLACEMENT CHARACTER}", document))
    looks: dict[str, int] = {}
    wanted = set(re.findall(r"(?:url\(|\")#([\w-]+)", document))
    for at in root.iter():
        for name in PLACES if at is not root else ():
            if name in at.attrib:
                at.set(name, _number(round(PER_POINT * float(at.attrib[name]))))
        if "d" in at.attrib:
            is_letter = at.get("transform") == LETTER
            at.set("d", _shorter(at.attrib["d"], COARSER if is_letter else 1))
            if is_letter:
                at.set("transform", f"scale({COARSER / 64})")
        if at.tag == _USE and (moved := MOVED.fullmatch(at.get("transform", ""))):  # a letter of a formula
            across, up, size = moved.groups()
            for name, place in (("x", across), ("y", up)):
                at.set(name, _number(round(PER_POINT * float(place) / float(size or 1))))
            at.set("transform", f"scale({size or 1})")
        elif "transform" in at.attrib:
            at.set("transform", PLACED.sub(lambda found: _rounded(found[0]), at.attrib["transform"]))
        if STILL.fullmatch(at.get("transform", "")):
            del at.attrib["transform"]
        if at.tag == _G and at.get("id", "") not in wanted and COUNTED.fullmatch(at.get("id", "")):
            del at.attrib["id"]
        if look := at.get("style"):
            at.set("style", look := look.replace("'DejaVu Sans'", FONTS).replace(": ", ":").replace("; ", ";"))
            looks[look] = looks.get(look, 0) + 1
    shared = {look: f"s{place}" for place, look in enumerate(look for look, times in looks.items() if times > 1)}
    for at in root.iter():
        if at.get("style") in shared:
            at.set("class", shared[at.attrib.pop("style")])
    _rename(root, wanted)
    sheet = next(root.iter(_STYLE))
    rules = (f".{name}{{{look}}}" for look, name in shared.items())
    sheet.text = "\n".join(["*{stroke-linejoin:round;stroke-linecap:butt}", *rules])
    _unwrap(root)
    _join_ticks(root)
    _strip(root)
    return HEAD + ElementTree.tostring(root, encoding="unicode").replace(" />", "/>") + "\n"


def _number(hundredths: int) -> str:
    """A rounded number in as few letters as there can be."""
    whole, rest = divmod(abs(hundredths), PER_POINT)
    digits = f"{whole or ''}.{rest:02}".rstrip("0").rstrip(".") or "0"
    return f"-{digits}" if hundredths < 0 else digits


def _rounded(places: str) -> str:
    return " ".join(_number(round(PER_POINT * float(place))) for place in places.split())


def _shorter(path: str, coarser: int = 1) -> str:
    """Lines and curves from point to point by their rounded steps, which do not add up to more than the rounding.

    Args:
        coarser: the unit of the result, in that of `path`, where it is a letter's: its places become whole numbers.
    """
    exact = PER_POINT if coarser == 1 else 1
    words = " ".join(path.split())
    if STEP.sub("", words).strip():
        return words  # arcs, which matplotlib does not write
    made: list[str] = []
    at, before = (0, 0), ""
    for letter, numbers in STEP.findall(words):
        if not letter:
            made.append("z")
            before = ""
            continue
        places = [PER_POINT // exact * round(exact * float(number) / coarser) for number in numbers.split()]
        points = list(zip(places[::2], places[1::2], strict=True))
        steps = points if letter == "M" else [(x - at[0], y - at[1]) for x, y in points]
        at = points[-1]
        if letter == "L" and not any(steps[0]):
            continue
        written = " ".join(_number(number) for step in steps for number in step).replace(" -", "-")
        name = letter if letter == "M" else letter.lower()
        made += [name if name != before or name == "M" else "" if written.startswith("-") else " ", written]
        before = name
    return "".join(made)


def _rename(root: ElementTree.Element, wanted: set[str]) -> None:
    """Short names for what is drawn again and again, which keeps its own look."""
    named = {at.attrib["id"]: at for at in root.iter() if at.get("id") in wanted}
    names = {f"#{name}": f"#r{place}" for place, name in enumerate(named)}
    for at in root.iter(_USE):
        if at.attrib[_XLINK] in names and at.get("class") == named[at.attrib[_XLINK][1:]].get("class"):
            at.attrib.pop("class", None)
    for at in root.iter():
        if at.get("id") in named:
            at.set("id", names[f"#{at.attrib['id']}"][1:])
        for name, value in at.attrib.items():
            if "#" in value and name != "style":
                at.set(name, re.sub(r"#[\w-]+", lambda found: names.get(found[0], found[0]), value))


def _unwrap(parent: ElementTree.Element) -> None:
    """Groups without attributes replaced by what is in them."""
    for child in list(parent):
        _unwrap(child)
        if child.tag == _G and not child.attrib:
            place = list(parent).index(child)
            parent.remove(child)
            for shift, inner in enumerate(list(child)):
                parent.insert(place + shift, inner)


def _join_ticks(root: ElementTree.Element) -> None:
    """Ticks of one kind that follow each other as one path."""
    kinds = {f"#{at.attrib['id']}": at for at in root.iter(_PATH) if TICK.fullmatch(at.get("d", "")) and at.get("id")}
    for parent in list(root.iter()):
        last, before = None, ""
        for child in list(parent):
            name = child.get(_XLINK, "")
            if child.tag != _USE or name not in kinds or set(child.keys()) - {_XLINK, "x", "y"}:
                last = None
                continue
            ticks = f"M{child.get('x', '0')} {child.get('y', '0')}".replace(" -", "-") + kinds[name].get("d", "")[4:]
            if last is not None and name == before:
                last.set("d", last.get("d", "") + ticks)
                parent.remove(child)
                continue
            child.tag, last, before = _PATH, child, name
            child.attrib.clear()
            child.attrib.update({"d": ticks, "class": kinds[name].get("class", "")})


def _strip(root: ElementTree.Element) -> None:
    """Without the blanks that only indent."""
    for at in root.iter():
        if at.tail and not at.tail.strip():
            at.tail = "\n" if at.tag.endswith(("path", "}g", "text")) else None
        if len(at) and at.text and not at.text.strip():
            at.text = None
