"""Every `moe-theory` command that the README and the site print: listed in order, or run as it is printed.

`python docs/printed.py` lists them with their places. With --run each is run in a folder of its own, after what its
page says to do before it, and stopped after --limit seconds; ends with code 1 if any failed.
"""

import argparse
import dataclasses
import html
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PROGRAM = "moe-theory"
PATIENCE = 60  # seconds in which an interrupted command is to end
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
_NEEDS = {  # what a command needs that a scratch folder has not, by what it contains
    "--accelerator": "an accelerator",
    "record ": "a record that may be changed",
    "tcp://": "a scheduler that runs",
    "file:scheduler.json": "a scheduler that runs",
    "--data ": "a data set's files",
}


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


def main() -> None:
    """List the commands, or run them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--run", action="store_true", help="run each in a folder of its own")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds after which one is stopped (default: 120)")
    parser.add_argument("--only", default="", help="only commands that contain this")
    options = parser.parse_args()
    chosen = [each for each in printed() if options.only in each.text and not each.is_template]
    failed = 0
    once = {tuple(each.words): each for each in reversed(chosen)}  # the first place of each
    for each in [each for each in chosen if not options.run or once[tuple(each.words)] is each]:
        outcome = _outcome(each, options.limit) if options.run else ""
        failed += outcome.startswith("FAILED")
        print(f"{each.page}:{each.line}: {each.text}{f'  ->  {outcome}' if outcome else ''}", flush=True)
    sys.exit(1 if failed else 0)


def _outcome(each: Printed, limit: float) -> str:
    for part, what in _NEEDS.items():
        if part in " ".join(each.words):
            return f"left out: it needs {what}"
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for step in _before(each, folder):
            subprocess.run(step, shell=True, cwd=folder, env=_environment(), check=True, capture_output=True)
        began = time.monotonic()
        process = subprocess.Popen(
            each.text,
            shell=True,
            cwd=folder,
            env=_environment(),
            text=True,
            executable="/bin/bash",
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
            preexec_fn=_interruptible,
        )
        try:
            said = process.communicate(timeout=limit)[1]
        except subprocess.TimeoutExpired:
            return _stopped(process, limit)
    seconds = time.monotonic() - began
    if process.returncode:
        return f"FAILED with code {process.returncode}: {_end(said)}"
    return f"passed in {seconds:.0f} s"


def _interruptible() -> None:
    """Restore interrupts, which processes started in a shell's background ignore."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _stopped(process: subprocess.Popen, limit: float) -> str:
    """Interrupt a command, and kill one that does not end: how it took it."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        said = process.communicate(timeout=PATIENCE)[1]
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        return f"FAILED to end within {PATIENCE} s of an interrupt"
    if "Traceback" in said:
        return f"FAILED when stopped: {_end(said)}"
    return f"stopped after {limit:g} s, no error"


def _end(said: str) -> str:
    return " ".join(said.split())[-300:]


def _before(each: Printed, folder: Path) -> list[str]:
    """The steps that a command's page tells to take before it; files that the pages print are written at once."""
    words = each.words
    for name in words:
        if name.endswith(".py"):
            (folder / name).write_text(_file(name, each.page))
    if words[:1] == ["report"]:
        return [f"{PROGRAM} verify continual.lemma-4 --reading unit-signal"]
    if words[:2] == ["sweep", "show"]:
        return [f"{PROGRAM} sweep --example > grid.toml", f"{PROGRAM} sweep grid.toml --out {words[2]}"]
    if words[:1] == ["sweep"] and words[1:2] and words[1].endswith(".toml"):
        return [f"{PROGRAM} sweep --example > {words[1]}"]
    return []


def _file(name: str, page: str) -> str:
    """The first block of Python after a page names a file: this page, or else another. Raises: LookupError for none."""
    for path in [ROOT / page, *pages()]:
        text = path.read_text(encoding="utf-8")
        for mention in re.finditer(re.escape(f"`{name}`"), text):
            block = _FENCE.search(text, mention.end())
            if block and block["language"] == "python" and "claim(" in block["code"]:
                return block["code"]
    raise LookupError(f"{page} runs {name}, and no page prints it")


def _environment() -> dict[str, str]:
    """The program of this Python first on the path."""
    return os.environ | {"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"}


if __name__ == "__main__":
    main()
