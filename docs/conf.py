"""Sphinx's settings. Pages are generated before Sphinx looks for pages, parts of written ones as it reads them."""

import re
import shutil
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import content
from docutils import nodes
from gallery import FIGURES, ROOT
from sphinx.application import Sphinx

from moe_theory.core.fields import fields_of
from moe_theory.report.rendering import mathml

project = "moe_theory"
author = copyright = "The moe_theory developers"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.viewcode"]
default_role = "py:obj"  # what stands between backquotes in a docstring: a link where there is one, else code
suppress_warnings = ["myst.xref_missing"]  # anchors in HTML, which a test of the built pages looks up
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
_SECTION = re.compile(r"^(Source|Returns?|Raises|Yields|Args|Example): +(\S.*(?:\n    .*)*)", re.MULTILINE)
_INSIDE = re.compile(r"(?<=[.!)\"]) +(?=(?:Source|Returns|Raises): )")
_STEPS = re.compile(r"(?:^(?:\d+\.|-) .*\n?(?:^ .*\n?)*)+", re.MULTILINE)
# Which characters are no markup, but for those in the first group.
_LITERAL = re.compile(r"(^ *[\w, *]+(?= \()|^ *(?:>>>|\.\.\.).*|`[^`\n]*`)|([|*])", re.MULTILINE)
# Links back take one prefix a module, while re-exports have another; and built-in functions have no source.
_NOWHERE = re.compile(r'<a class="viewcode-back".*?</a>|<li><a href="builtins.html">.*?</li>')
_DARK = re.compile(r"@media screen and \(prefers-color-scheme: dark\) \{\s*:root (\{.*?\})\s*\}", re.DOTALL)


def setup(app: Sphinx) -> None:
    """Connect the functions below to Sphinx."""
    app.add_html_math_renderer("mathml", inline_renderers=(typeset, None), block_renderers=(typeset, None))
    app.connect("builder-inited", write_pages)
    app.connect("source-read", fill_in)
    app.connect("autodoc-process-docstring", edit_docstring, priority=100)  # before Napoleon
    app.connect("autodoc-process-signature", with_short_types)
    app.connect("html-page-context", finish)
    app.connect("build-finished", copy_files)


def typeset(writer: Any, node: nodes.Node) -> None:
    """Write a formula as reports do, within a sentence or on lines of its own."""
    display = "inline" if isinstance(node, nodes.math) else "block"
    formula = mathml(node.astext(), display)
    if not formula:
        raise ValueError(f"a formula that cannot be typeset: {node.astext()}")
    if display == "block":
        formula = f'<div class="mt-formula" tabindex="0">{formula}</div>'
    writer.body.append(formula)
    raise nodes.SkipNode


def write_pages(app: Sphinx) -> None:
    """Write the papers' and the API's pages beside the written ones, where they have changed."""
    for path, text in content.pages():
        page = Path(app.srcdir, path)
        page.parent.mkdir(exist_ok=True)
        if not page.is_file() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")


def fill_in(app: Sphinx, name: str, text: list[str]) -> None:
    """Make the parts that a page's marks name, in every build."""
    filled = content.with_fragments(text[0])
    if filled != text[0]:
        app.env.note_reread()
    text[0] = filled


def edit_docstring(app: Sphinx, kind: str, name: str, value: Any, options: object, lines: list[str]) -> None:
    """Add the comments beside a class's fields, and set off lists and sections of one line by empty lines."""
    fields = fields_of(value) if kind == "class" else []
    comments = [f"    {field.name}: {field.comment}" for field in fields if field.comment]
    if comments:
        lines += ["", "Attributes:", *comments]
    text = _INSIDE.sub("\n", "\n".join(lines))
    text = _LITERAL.sub(lambda match: match[1] or f"\\{match[2]}", text)
    text = _STEPS.sub(r"\n\g<0>\n", text)
    text = _SECTION.sub(lambda match: f"\n**{match[1]}:** {' '.join(match[2].split())}\n", text)
    lines[:] = text.split("\n")


def with_short_types(*details: Any) -> tuple[str | None, ...]:
    """Write `Array`, as the source does, where Python knows a class by the module that has it."""
    return tuple(text and text.replace("jaxlib._jax.Array", "Array") for text in details[-2:])


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
        style = (ROOT / "moe_theory" / "report" / "templates" / "statement.css").read_text(encoding="utf-8")
        style = _DARK.sub(r'[data-theme="dark"] \1', style)
        Path(app.outdir, "_static", "status.css").write_text(style, encoding="utf-8")
