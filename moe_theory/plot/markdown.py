"""Markdown of documents, with templates, words and tables."""

import html
import itertools
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode
from markupsafe import Markup
from rich import box
from rich.table import Table
from rich.text import Text

from moe_theory.plot import symbols
from moe_theory.verification.verdict import Status

if TYPE_CHECKING:
    import jinja2

STYLES: dict[str, str] = {  # styles of table cells, by their first words
    Status.SUPPORTED: "green",
    Status.REFUTED: "bold red",
    Status.INCONCLUSIVE: "yellow",
    Status.VACUOUS: "cyan",
    Status.INAPPLICABLE: "dim",
    Status.ERROR: "bold white on red",
    "TRUE": "green",
    "FALSE AS PRINTED": "red",
    "FALSE": "bold red",
    "UNDECIDED": "yellow",
    "NOT RUN": "dim",
    "NOT TESTABLE": "dim",
    "DEPENDS": "magenta",
    "refuted": "red",
}
_STYLED = re.compile(rf"(?:{'|'.join(STYLES)})\b")


def environment(**options: Any) -> "jinja2.Environment":
    import jinja2

    templates = jinja2.Environment(
        autoescape=True,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        **options,
    )
    templates.filters.update(code=code, plain=symbols.plain, quoted=shlex.quote)
    templates.globals.update(table=table)
    return templates


def filled(template: Path, **values: Any) -> str:
    text = template.read_text(encoding="utf-8")
    return environment(finalize=words).from_string(text).render(values)


def paragraphs(lines: Iterable[object]) -> str:
    return "\n\n".join(words(line) for line in lines)


def table(columns: Sequence[str], rows: Iterable[Sequence[object]], numbers: Sequence[str] = ()) -> Markup:
    """Return a table. Columns in `numbers` are aligned on the right."""
    rules = ["---:" if name in numbers else "---" for name in columns]
    lines = [[words(name) for name in columns], rules]
    lines += [[words(cell) for cell in row] for row in rows]
    return Markup("\n".join(f"| {' | '.join(line)} |" for line in lines))


def table_width(columns: Mapping[str, Sequence[str]]) -> int:
    """Return the characters in a line of a table of cells by column name, as `terminal` prints it."""
    return sum(max(map(len, (name, *cells))) + 2 for name, cells in columns.items())


def words(value: object) -> Markup:
    """Return a value in one line of Markdown. The line is escaped unless the value is `Markup`."""
    if isinstance(value, Markup):
        return value
    return escaped(re.sub(r"<|&(?=#?\w+;)", lambda sign: html.escape(sign[0]), str(value)))


def escaped(text: str) -> Markup:
    line = _one_line(text)
    # Characters of escapes, code, emphasis, cells, fences, mathematics and links, and below starts of blocks.
    line = re.sub(r"[\\`*|~$]|(?<![^\W_])_|_(?![^\W_])|(?<=\])[(:]", r"\\\g<0>", line)
    line = re.sub(r"^(?:[#>]|[-+=](?=[-+= ]|$))", r"\\\g<0>", line)
    return Markup(re.sub(r"^(\d{1,9})(?=[.)](?: |$))", r"\1\\", line))


def code(text: str) -> Markup:
    line = _one_line(text)
    longest_run = max((len(run) for run in re.findall("`+", line)), default=0)
    fence = "`" * (1 + longest_run)
    if "`" in line:
        line = f" {line} "
    return Markup(f"{fence}{line}{fence}")


def shell_path(path: Path | str) -> str:
    """Return a path for a shell, quoted if needed, which cannot be read as an option."""
    text = str(path)
    if text.startswith("-"):
        text = f"./{text}"
    return shlex.quote(text)


def _one_line(text: str) -> str:
    return re.sub(r"\s*\n\s*", " ", text.strip())


def terminal(text: str) -> list[Text | Table]:
    """Return Markdown as Rich prints it. Paragraphs that begin with bold words become grids."""
    blocks: list[Text | Table] = []
    grid: Table | None = None
    tokens = MarkdownIt("commonmark").enable("table").parse(text)
    for node, depth in _flatten(SyntaxTreeNode(tokens)):
        heading = _heading_of(node)
        line = _words_of(node)
        if heading and grid is None:
            grid = Table.grid(padding=(0, 2, 0, 0))
            grid.add_column(no_wrap=True, style="bold")
            grid.add_column(overflow="fold")
            blocks.append(grid)
        if grid and (heading or node.type == "paragraph"):
            grid.add_row(Text(heading.removesuffix(".")), Text(line.removeprefix(heading).strip()))
            continue
        grid = None
        if blocks and node.type == "heading":
            blocks.append(Text())
        block = _rich_table(node) if node.type == "table" else _text_line(node, depth)
        blocks.append(block)
    return blocks


def _flatten(root: SyntaxTreeNode, depth: int = 0) -> Iterator[tuple[SyntaxTreeNode, int]]:
    for node in root.children:
        if node.type in ("bullet_list", "list_item"):
            yield from _flatten(node, depth + (node.type == "list_item"))
        else:
            yield node, depth


def _heading_of(node: SyntaxTreeNode) -> str:
    """Return the bold words at the start of a paragraph, or nothing."""
    if node.type == "blockquote":
        node = node.children[0]
    if node.type != "paragraph":
        return ""
    parts = [part for part in node.children[0].children if part.type != "text" or part.content]
    if len(parts) > 1 and parts[0].type == "strong":
        return _words_of(parts[0])
    return ""


def _words_of(node: SyntaxTreeNode) -> str:
    if node.type == "softbreak":
        return "\n"
    if not node.children:
        return node.content
    separator = "\n" if node.type == "blockquote" else ""
    return separator.join(map(_words_of, node.children))


def _text_line(node: SyntaxTreeNode, depth: int) -> Text:
    line = _words_of(node).rstrip()
    style = ""
    if node.type == "heading":
        style = "bold"
    elif line.startswith("WARNING"):
        style = "yellow"
    has_code = any(part.type in ("code_inline", "fence") for part in node.walk())
    return Text("  " * depth + line, style, no_wrap=has_code)


def _rich_table(node: SyntaxTreeNode) -> Table:
    rich_table = Table(header_style="bold", box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True)
    head, *body = itertools.chain.from_iterable(part.children for part in node.children)
    for place, cell in enumerate(head.children):
        rich_table.add_column(
            Text(_words_of(cell)),
            justify="right" if "right" in str(cell.attrs.get("style")) else "left",
            no_wrap=place == 0,
            overflow="fold",
        )
    for row in body:
        cells = []
        for cell in map(_words_of, row.children):
            match = _STYLED.match(cell)
            style = STYLES[match[0]] if match else ""
            cells.append(Text(cell, style))
        rich_table.add_row(*cells)
    return rich_table
