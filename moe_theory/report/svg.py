"""SVG documents as matplotlib writes them, with what no eye sees left out: a figure keeps far below 100 kB."""

import re
from xml.etree import ElementTree

NAMESPACES = {
    "": "http://www.w3.org/2000/svg",
    "xlink": "http://www.w3.org/1999/xlink",
    "dc": "http://purl.org/dc/elements/1.1/",
    "cc": "http://creativecommons.org/ns#",
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
}
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # the second is as wide as what was laid out
PLACES = ("d", "x", "y", "transform", "points", "width", "height")
DIGITS = 2  # of a point
KEPT = re.compile(r"(axes|legend)_\d+")  # names of groups that say what they are
NUMBER = re.compile(r"-?\d+\.\d+(?!\d|e)")
_G, _USE, _STYLE = (f"{{{NAMESPACES['']}}}{name}" for name in ("g", "use", "style"))
_XLINK = f"{{{NAMESPACES['xlink']}}}href"

for prefix, address in NAMESPACES.items():
    ElementTree.register_namespace(prefix, address)


def compact(document: str) -> str:
    """The same picture with places to a hundredth of a point, each look said once, and no groups around one thing."""
    root = ElementTree.fromstring(document)
    looks: dict[str, int] = {}
    wanted = set(re.findall(r"(?:url\(|\")#([\w-]+)", document))
    for at in root.iter():
        for name in PLACES:
            if name in at.attrib and at is not root:
                at.set(name, _rounded(at.attrib[name]))
        if at.tag == _G and at.get("id", "") not in wanted and not KEPT.fullmatch(at.get("id", "")):
            at.attrib.pop("id", None)
        if look := at.get("style"):
            at.set("style", look := look.replace("'DejaVu Sans'", FONTS).replace(": ", ":").replace("; ", ";"))
            looks[look] = looks.get(look, 0) + 1
    shared = {look: f"s{place}" for place, look in enumerate(look for look, times in looks.items() if times > 1)}
    for at in root.iter():
        if at.get("style") in shared:
            at.set("class", shared[at.attrib.pop("style")])
    sheet = next(root.iter(_STYLE))
    rules = (f".{name}{{{look}}}" for look, name in shared.items())
    sheet.text = "\n".join(["*{stroke-linejoin:round;stroke-linecap:butt}", *rules])
    _unwrap(root)
    _strip(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def _rounded(text: str) -> str:
    def short(found: re.Match[str]) -> str:
        return f"{float(found[0]):.{DIGITS}f}".rstrip("0").rstrip(".").replace("-0.", "-.").removeprefix("0") or "0"

    return " ".join(NUMBER.sub(short, text).split()).replace(" -0 ", " 0 ")


def _unwrap(parent: ElementTree.Element) -> None:
    """Groups without attributes replaced by what is in them."""
    for child in list(parent):
        _unwrap(child)
        if child.tag == _G and not child.attrib:
            place = list(parent).index(child)
            parent.remove(child)
            for shift, inner in enumerate(list(child)):
                parent.insert(place + shift, inner)


def _strip(root: ElementTree.Element) -> None:
    """Without the blanks that only indent."""
    for at in root.iter():
        if at.tail and not at.tail.strip() and not at.tag.endswith("tspan"):
            at.tail = "\n" if at.tag.endswith(("path", "}g", "use", "text")) else None
        if len(at) and at.text and not at.text.strip():
            at.text = None
