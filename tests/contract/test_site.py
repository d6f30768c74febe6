"""The site: builds without complaint, its links lead somewhere, it loads nothing from others, nothing is missing."""

import contextlib
import dataclasses
import io
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urljoin, urlsplit

import content
import pytest
from gallery import ROOT, entries
from jinja2 import meta
from public import page_of, public_names
from sphinx.cmd.build import build_main

pytestmark = pytest.mark.usefixtures("much_room")

LOADING = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "video": "src"}
# Tags without an id, a name or an address, such as those of colours in code, which are most of all.
PLAIN_TAGS = re.compile(r'<(?:span class="[\w -]*"|(?!script|style)\w+)>|</(?!script|style)\w+>')
GIVEN = {"all", "each", "id", "name", "modules", "paper", "about", "source", "cards", "left"}  # values that pages pass
NO_RESOURCE = {"canonical", "next", "prev", "alternate", "edit"}  # links in a page's head that load nothing


class Seen(HTMLParser):
    """A built page's references, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(PLAIN_TAGS.sub("", text))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.anchors |= {given[name] for name in ("id", "name") if name in given}
        if tag == "a" and "href" in given:
            self.links.add(given["href"])
        if tag in LOADING and LOADING[tag] in given and given.get("rel", "") not in NO_RESOURCE:
            self.loads.add(given[LOADING[tag]])


@dataclasses.dataclass
class Site:
    """The built pages by their paths."""

    folder: Path
    pages: dict[str, Seen]


def test_pages_use_only_names_that_exist():
    """Catches a function that was renamed, which a template still calls, without building the site."""
    environment = content._TEMPLATES
    for name in environment.list_templates():
        parsed = environment.parse(environment.loader.get_source(environment, name)[0])
        assert meta.find_undeclared_variables(parsed) - environment.globals.keys() <= GIVEN, name


@pytest.mark.thorough
def test_the_site(tmp_path):
    """One test, so that the site is built once however the tests are shared out among processes."""
    folder, said = tmp_path / "site", io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        options = ["-c", str(ROOT / "docs"), "-b", "html", "-d", str(tmp_path / "doctrees"), "-q", "-W", "--keep-going"]
        code = build_main([*options, str(ROOT / "docs" / "pages"), str(folder)])
    assert (code, said.getvalue()) == (0, "")
    paths = sorted(path for path in folder.rglob("*.html") if "_static" not in path.parts)
    site = Site(folder, {str(path.relative_to(folder)): Seen(path.read_text(encoding="utf-8")) for path in paths})
    assert [name for name, page in site.pages.items() if "``````" in page.text or "{raw}" in page.text] == []
    checks = (broken_links, loaded_from_elsewhere, undescribed_names, missing_figures)
    assert [problem for check in checks for problem in check(site)] == []


def broken_links(site: Site) -> Iterator[str]:
    for name, page in site.pages.items():
        for link in page.links | page.loads:
            address = urlsplit(link)
            if address.scheme or address.netloc or name == "404.html":  # which is shown at any address
                continue
            path = unquote(urljoin(name, address.path)) if address.path else name
            anchor = unquote(address.fragment)
            if not (site.folder / path).is_file():
                yield f"{name}: no file for {link}"
            elif anchor and path in site.pages and anchor not in site.pages[path].anchors:
                yield f"{name}: no anchor for {link}"


def loaded_from_elsewhere(site: Site) -> Iterator[str]:
    for name, page in site.pages.items():
        yield from (f"{name} loads {load}" for load in page.loads if urlsplit(load).netloc)
    for path in site.folder.rglob("*.css"):
        if re.search(r"(?:url\(|@import)\s*[\"']?(?:https?:)?//", path.read_text(encoding="utf-8")):
            yield f"{path.name} loads what lies elsewhere"


def undescribed_names(site: Site) -> Iterator[str]:
    for name in public_names():
        anchors = site.pages[f"api/{page_of(name)}.html"].anchors
        if name != "moe_theory.__version__" and not {name, f"module-{name}"} & anchors:
            yield f"{name} has no anchor"


def missing_figures(site: Site) -> Iterator[str]:
    shown = site.pages["gallery.html"]
    drawn = {path.relative_to(ROOT) for path in (ROOT / "figures").rglob("*.svg") if path.parent.name != "overview"}
    yield from (f"{path} is of no entry" for path in drawn - {entry.svg for entry in entries()})
    for entry in entries():
        wanted = {str(path) for path in (entry.svg, entry.csv) if path}
        if not wanted <= shown.loads | shown.links or f"{entry.paper}-{entry.name}" not in shown.anchors:
            yield f"{entry.paper} {entry.name} is not in the gallery"
        if (site.folder / entry.svg).read_bytes() != (ROOT / entry.svg).read_bytes():
            yield f"{entry.svg} is another picture on the site"
