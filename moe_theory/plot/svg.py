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
HEAD = '<?xml version="1.0" encoding="utf-8"?>\n'
FONTS = "'DejaVu Sans', Verdana, sans-serif"  # the second is as wide as what was laid out
PLACES = ("x", "y", "width", "height")
PER_POINT = 100  # places are told apart so finely
COUNTED = re.compile(r"(?!axes|legend)[\w.]+_\d+")  # names of groups that nobody gave
UNTURNED = re.compile(r"rotate\(-?0(\.0*)? [^)]*\)")
NO_LETTER = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")  # in no XML document
TICK = re.compile(r"M0 0l-?[.\d]+[ -][.\d]+")  # as `_shorter` writes it
STRAIGHT = re.compile(r"([ML]) (\S+) (\S+)|z")
_G, _USE, _STYLE, _PATH, _TEXT = (f"{{{NAMESPACES['']}}}{name}" for name in ("g", "use", "style", "path", "text"))
_XLINK = f"{{{NAMESPACES['xlink']}}}href"


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
            at.set("d", _shorter(at.attrib["d"]))
        if UNTURNED.fullmatch(at.get("transform", "")):
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
    for at in root.iter(_TEXT):
        _join_letters(at)
    _strip(root)
    return HEAD + ElementTree.tostring(root, encoding="unicode").replace(" />", "/>") + "\n"


def _number(hundredths: int) -> str:
    """A rounded number in as few letters as there can be."""
    whole, rest = divmod(abs(hundredths), PER_POINT)
    digits = f"{whole or ''}.{rest:02}".rstrip("0").rstrip(".") or "0"
    return f"-{digits}" if hundredths < 0 else digits


def _shorter(path: str) -> str:
    """Straight lines from point to point by their rounded steps, which do not add up to more than the rounding."""
    parts = STRAIGHT.findall(" ".join(path.split()))
    if STRAIGHT.sub("", path).strip():
        return " ".join(path.split())  # curves, such as outlines of letters
    made: list[str] = []
    at, before = (0, 0), ""
    for command, x, y in parts:
        if not command:
            made.append("z")
            before = ""
            continue
        to = round(PER_POINT * float(x)), round(PER_POINT * float(y))
        step = (to[0] - at[0], to[1] - at[1]) if command == "L" else to
        if command == "M" or any(step):
            numbers = f"{_number(step[0])} {_number(step[1])}".replace(" -", "-")
            letter = {"M": "M", "L": "l"}[command] if command != before or command == "M" else ""
            made.append(letter or ("" if numbers.startswith("-") else " "))
            made.append(numbers)
            before = command
        at = to
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


def _join_letters(text: ElementTree.Element) -> None:
    """Letters of a formula that follow each other on a line, in words that can be searched, each at its own place."""
    for parent in (text, *text):
        last, before = None, {}
        for child in list(parent):
            child.tail = None
            look = {name: value for name, value in child.attrib.items() if name != "x"}
            if last is not None and last.text and child.text and not len(child) and look == before:
                last.set("x", f"{last.attrib['x']} {child.attrib['x']}")
                last.text += child.text
                parent.remove(child)
                continue
            last, before = child, look


def _strip(root: ElementTree.Element) -> None:
    """Without the blanks that only indent."""
    for at in root.iter():
        if at.tail and not at.tail.strip():
            at.tail = "\n" if at.tag.endswith(("path", "}g", "use", "text")) else None
        if len(at) and at.text and not at.text.strip():
            at.text = None
