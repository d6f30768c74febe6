"""Commands of `moe-theory` that the README and the pages print."""

import html
import itertools
import re
import shlex

from gallery import ROOT

_FENCE = re.compile(r"^(`{3,}|~{3,})[^\n]*\n(.*?)^\1", re.DOTALL | re.MULTILINE)
_LINE = re.compile(  # a line of a shell, what follows && in it, or what it hands to another command
    r"""(?:^(?:\$\ )?|&&\ (?:\S+/)?)(moe-theory\b.*)$ | "(moe-theory\ [^"]+)" | \((moe-theory\ [^)]+)\)""",
    re.MULTILINE | re.VERBOSE,
)
_INLINE = re.compile(r"(?<!`)`(moe-theory(?: [^`]+)?)`(?!`)|<code>(moe-theory(?: [^<]+)?)</code>")
_PLACEHOLDER = re.compile(r"(?<![\w-])(?:[A-Z]{2,}[A-Z_.]*|\.\.\.|…)(?![\w-])")


def printed() -> list[str]:
    """Return all commands of the README and of the hand-written pages of the site."""
    paths = [ROOT / "README.md", *(ROOT / "docs" / "pages").glob("*.md")]
    pages = [path.read_text(encoding="utf-8") for path in paths]
    return list(itertools.chain.from_iterable(map(commands_in, pages)))


def commands_in(markdown: str) -> list[str]:
    """Return the commands of a page: lines of fenced blocks, then whole spans of inline code."""
    code = "\n".join(block[2].replace("\\\n", " ") for block in _FENCE.finditer(markdown))
    lines = ["".join(groups) for groups in _LINE.findall(code)]
    spans = [html.unescape(" ".join("".join(groups).split())) for groups in _INLINE.findall(_FENCE.sub("", markdown))]
    return [*lines, *re.split(r"; (?=moe-theory\b)", "; ".join(spans))] if spans else lines


def words(command: str) -> list[str]:
    """Return the program's arguments, without what is the shell's."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    return list(itertools.takewhile(lambda word: not set(word) <= set("|&;<>"), lexer))[1:]


def is_template(command: str) -> bool:
    """Return whether a command says how commands look: `moe-theory COMMAND --help`."""
    return any(_PLACEHOLDER.search(word) for word in words(command))
