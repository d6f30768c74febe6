"""Sphinx's settings. Pages are generated before Sphinx looks for pages, parts of written ones as it reads them."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import content
from docutils import nodes
from gallery import FIGURES
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

from moe_theory.core.fields import fields_of
from moe_theory.report.rendering import mathml

project, author, copyright = "moe_theory", "The moe_theory developers", "The moe_theory developers"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
exclude_patterns = ["style"]
default_role = "py:obj"  # what stands between backquotes in a docstring: a link where there is one, else code
suppress_warnings = ["config.cache", "myst.xref_missing"]  # anchors in HTML, which a test of the built pages looks up
nb_execution_mode = "off"
html_math_renderer = "mathml"  # no page loads anything from elsewhere
viewcode_line_numbers = True
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
autodoc_typehints_format = "short"
napoleon_use_ivar = True
napoleon_attr_annotations = False  # the signature of a class has them
python_maximum_signature_line_length = 90
myst_heading_anchors = 3
html_theme = "pydata_sphinx_theme"
html_title = "moe_theory"
html_static_path = ["pages/style"]
html_css_files = ["status.css", "site.css"]
html_js_files = ["site.js"]
html_copy_source = html_show_sourcelink = False
html_sidebars = {"index": [], "gallery": [], "commands": [], "papers/*": [], "live": []}
html_theme_options = {
    "navbar_align": "left",
    "header_links_before_dropdown": 7,
    "show_prev_next": False,
    "footer_start": [],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
_SECTION = re.compile(r"^(Source|Returns?|Raises|Yields|Args|Example): +(?=\S)")
_INSIDE = re.compile(r"(?<=[.!)\"]) +(?=(?:Source|Returns|Raises): )")
_LITERAL = re.compile(r"(^\s*[\w, *]+(?= \()|^\s*(?:>>>|\.\.\.).*|`[^`]*`)|([|*])")  # else these two are markup
# Links back take one prefix a module, while re-exports have another; and built-in functions have no source.
_NOWHERE = re.compile(r'<a class="viewcode-back".*?</a>|<li><a href="builtins.html">.*?</li>')
_STEP = re.compile(r"(?:\d+\.|-) ")  # of a list


def setup(app: Sphinx) -> None:
    """Ask Sphinx to call what follows."""
    app.add_html_math_renderer("mathml", inline_renderers=(typeset, None), block_renderers=(typeset, None))
    app.connect("builder-inited", write_pages)
    app.connect("env-get-outdated", with_generated_parts)
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", with_fields, priority=50)
    app.connect("autodoc-process-docstring", in_paragraphs, priority=100)  # before Napoleon
    app.connect("autodoc-process-signature", with_short_types)
    app.connect("doctree-read", without_guesses)
    app.connect("html-page-context", finish)
    app.connect("build-finished", copy_files)


def typeset(writer: Any, node: nodes.Node) -> None:
    """Write a formula as reports do, within a sentence or on lines of its own."""
    is_inline = isinstance(node, nodes.math)
    shown = mathml(node.astext(), display="inline" if is_inline else "block")
    if not shown:
        raise ValueError(f"a formula that cannot be typeset: {node.astext()}")
    writer.body.append(shown if is_inline else f'<div class="mt-formula" tabindex="0">{shown}</div>')
    raise nodes.SkipNode


def write_pages(app: Sphinx) -> None:
    """Write the papers' and the API's pages beside the written ones, where they have changed."""
    pages = {Path(app.srcdir, path): text for path, text in content.pages()}
    for path in {*Path(app.srcdir).glob("papers/*"), *Path(app.srcdir).glob("api/*")} - {*pages}:
        path.unlink()
    for path, text in pages.items():
        path.parent.mkdir(exist_ok=True)
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def with_generated_parts(app: Sphinx, env: BuildEnvironment, *_: object) -> list[str]:
    """Pages to read again although their files are as they were."""
    pages = Path(app.srcdir).glob("*.md")
    return [page.stem for page in pages if content.has_fragments(page.read_text(encoding="utf-8"))]


def fill_in(app: Sphinx, name: str, text: list[str]) -> None:
    """Make the parts that a page's marks name."""
    text[0] = content.with_fragments(text[0])


def with_fields(app: Sphinx, what: str, name: str, value: Any, options: object, lines: list[str]) -> None:
    """Add what the comments beside a class's fields say of them."""
    fields = [field for field in fields_of(value) if field.comment] if what == "class" else []
    if fields:
        lines += ["", "Attributes:", *(f"    {field.name}: {field.comment}" for field in fields)]


def in_paragraphs(app: Sphinx, what: str, name: str, value: object, options: object, lines: list[str]) -> None:
    """Make paragraphs of lists, and of sections of one line each, which this project sets off by no empty lines."""
    made: list[str] = []
    is_inside = is_list = False
    for line in _INSIDE.sub("\n", "\n".join(lines)).split("\n"):
        line = _LITERAL.sub(lambda found: found[1] or f"\\{found[2]}", line)
        is_new, is_step = _SECTION.match(line) is not None, _STEP.match(line) is not None
        is_flush = line[:1] not in ("", " ")
        made += [""] * (is_new or (is_flush and (is_inside or is_step != is_list)))
        is_list = is_step or (is_list and not is_flush)
        is_inside = is_new or (is_inside and line.startswith("    "))
        made.append(_SECTION.sub(r"**\1:** ", line).strip() if is_inside else line)
    lines[:] = made


def with_short_types(
    app: Sphinx, what: str, name: str, value: object, options: object, given: str | None, returned: str | None
) -> tuple[str | None, ...]:
    """Write `Array`, as the source does, where Python knows a class by the module that has it."""
    return tuple(text and text.replace("jaxlib._jax.Array", "Array") for text in (given, returned))


def without_guesses(app: Sphinx, document: nodes.document) -> None:
    """Link a name to what it names where it stands, not to whatever ends in it: `Params` may be a type variable."""
    for reference in document.findall(addnodes.pending_xref):
        reference.attributes.pop("refspecific", None)


def finish(app: Sphinx, page: str, template: str, context: dict[str, Any], document: nodes.document | None) -> None:
    """Load the live page's script and style there alone; drop links of sources that lead nowhere."""
    if page == "live":
        app.add_css_file("live.css")
        app.add_js_file("live.js")
    if page.startswith("_modules/"):
        context["body"] = _NOWHERE.sub("", context["body"])


def copy_files(app: Sphinx, error: Exception | None) -> None:
    """The figures under their own names, and the reports' colours: a status looks the same everywhere."""
    if error is None:
        shutil.copytree(FIGURES, app.outdir / "figures", ignore=shutil.ignore_patterns("*.md"), dirs_exist_ok=True)
        Path(app.outdir, "_static", "status.css").write_text(content.statement_style(), encoding="utf-8")
