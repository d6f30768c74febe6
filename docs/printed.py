"""Commands of `moe-theory` that the README and the pages print."""

import dataclasses
import html
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = "moe-theory"
_FENCE = re.compile(
    r"^(?P<fence>`{3,}|~{3,})(?P<language>[\w-]*)[^\n]*\n(?P<code>.*?)^(?P=fence)", re.DOTALL | re.MULTILINE
)
_LINE = re.compile(  # a line of a shell, what follows && in it, or what it hands to another command
    rf"""^(?:\$\ )?(?P<line>{PROGRAM}\b.*)$|&&\ (?:\S+/)?(?P<later>{PROGRAM}\b.*)$
    |"(?P<quoted>{PROGRAM}\ [^"]+)\"|[<$]\((?P<nested>{PROGRAM}\ [^)]+)\)""",
    re.MULTILINE | re.VERBOSE,
)
_INLINE = re.compile(rf"(?<!`)`(?P<code>{PROGRAM}(?: [^`]+)?)`(?!`)|<code>(?P<element>{PROGRAM}(?: [^<]+)?)</code>")
_PLACEHOLDER = re.compile(r"(?<![\w-])(?:[A-Z]{2,}[A-Z_.]*|\.\.\.|…)(?![\w-])")


@dataclasses.dataclass(frozen=True)
class Printed:
    """A command as a page prints it."""

    page: str  # from the repository's root
    line: int
    text: str  # as printed, comment and redirection included

    @property
    def words(self) -> list[str]:
        """The program's arguments, without what is the shell's."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words = list(lexer)
        ends = [place for place, word in enumerate(words) if set(word) <= set("|&;<>")]
        return words[1 : ends[0] if ends else None]

    @property
    def is_template(self) -> bool:
        """Whether it says how commands look rather than being one: `moe-theory COMMAND --help`."""
        return any(_PLACEHOLDER.search(word) for word in self.words)


def pages() -> list[Path]:
    """The README and the hand-written pages of the site."""
    return [ROOT / "README.md", *sorted((ROOT / "docs" / "pages").glob("*.md"))]


def commands_in(markdown: str, page: str) -> Iterator[Printed]:
    """The commands of a page in order: lines of fenced blocks, and whole spans of inline code."""
    found: list[tuple[int, str]] = []
    for block in _FENCE.finditer(markdown):
        code = block["code"].replace("\\\n", " ")
        for line in _LINE.finditer(code):
            text = next(filter(None, line.groups()))
            found.append((block.start("code") + block["code"].find(text.split("  ")[0]), text))
    prose = _FENCE.sub(lambda block: re.sub(r"[^\n]", " ", block[0]), markdown)
    for span in _INLINE.finditer(prose):
        text = span["code"] or html.unescape(span["element"])
        found += [(span.start(), " ".join(each.split())) for each in re.split(rf"; (?={PROGRAM} )", text)]
    for start, text in sorted(found, key=lambda each: each[0]):
        yield Printed(page, markdown.count("\n", 0, start) + 1, text.strip())


def printed() -> list[Printed]:
    """All commands of all pages."""
    return [
        each for page in pages() for each in commands_in(page.read_text(encoding="utf-8"), str(page.relative_to(ROOT)))
    ]
