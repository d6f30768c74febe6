"""The command line on hostile documents, files, modules, options and environments: does it end as promised?

python tests/hostile/commands.py --seconds 300     (--only CLASS for some of it, --seed S to repeat a run)

Of each input: no traceback; what is refused is told in a line or two and replaces nothing; it ends within 10 s of
processor time, or had begun to compute, and then ends within 10 s of Ctrl-C; nothing is written outside the places that
are named; no escape code from somebody else's text reaches the terminal; of a document that was changed by somebody who
does not know its digest, no other number is accepted. Prints counts by class, and of what breaks a promise the input, a
seed and the end of what was said. Exits 1 where something did.

Inputs run in forked children of one process that has imported everything and used nothing: some 30 ms each.
"""

import argparse
import contextlib
import faulthandler
import functools
import importlib
import io
import itertools
import json
import os
import random
import re
import resource
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import click
from stored import rows, run_statement

from moe_theory import cli
from moe_theory.deep import report as deep
from moe_theory.runs.files import SEAL, digest, sealed

SECONDS = 10.0  # of processor time that a command may take, and after Ctrl-C to end
WORK_SECONDS = 2.0  # of processor time after which what has begun to compute is interrupted
MOST_MEMORY = 6 << 30  # bytes of addresses for a child beyond those that its parent has
LONGEST_LINE = 4_000  # characters of a refusal
ENDS = (0, 1, 2, 130, 141)
PROGRESS = re.compile(r"compiling|running|reading|\S.*: [\d,]+ replicates|waiting")  # of work that had begun
UNSEEN = "\u061c\u200b\u2066\ufeff\xad\U000e0041"  # characters that turn a line, or are there without being seen
# Escape codes that set a title and clear the screen, markup, and those.
SAID = f"\x1b]0;hostile\x07\x1b[2J[/b] [red]{UNSEEN}"
WORK = (  # where computing begins
    "moe_theory.verification.session.carry_out",
    "moe_theory.verification.explore.carry_out_search",
    "moe_theory.sweep.runner.run",
    "moe_theory.sweep.estimate.estimate",
    "moe_theory.deep.runs.run_plan",
    "moe_theory.merging.testbed.training.trained",
    "moe_theory.report.plots.make_figures",
)


class Input(NamedTuple):
    """A command with all that it meets; `{here}` in its words is its folder."""

    words: Sequence[str]
    files: Mapping[str, bytes | Path] = {}  # by name in the folder; a path is a file or a folder to copy
    environment: Mapping[str, str] = {}
    stdout: str = "file"  # or "full", "closed": a pipe that nobody reads, "none": no such descriptor
    encoding: str = "utf-8"
    same_as: str = ""  # what it must print where it is accepted
    prepare: Callable[[Path], None] = lambda here: None


class Outcome(NamedTuple):
    code: int
    out: str
    err: str
    written: list[str]  # elsewhere than where it may
    replaced: list[str]  # that was there before
    seconds: float
    began: bool  # to compute
    is_stopped: bool  # by Ctrl-C or a signal


# ---------------------------------------------------------------- what is hostile

TEXTS = (
    "", " ", SAID, "a" * 300, "é\u202e\u0000", "\udcff", "../../x", "/", "-1", "nan", "1e999", "{here}", "%s{0}\\",
    "\\input{/etc/passwd}", "<script>", "[" * 2000, "'", "a\nb", "=", "0x10", "1_0", "٣", "x" * 100_000,
)  # fmt: skip
WHOLE = ("-1", "0", "1", "2", "3", "255", "4294967295", "4294967296", "9223372036854775808", "1" + "0" * 30, "9" * 5000)
REALS = ("-1", "0", "1e-320", "1e-30", "0.5", "1", "1e30", "1e308", "1e999", "-inf", "nan", "1_0", "0x1p4")
PATHS = (
    "{here}", "{here}/none", "/dev/full", "/dev/null", "/dev/null/x", "/proc/self/x", "{here}/file", "{here}/file/x",
    "{here}/" + "a" * 300, "{here}/" + "b/" * 3000, "{here}/\udcff", "{here}/folder", "{here}/link", "{here}/a\nb",
    "{here}/[/b]", "{here}/x.svg", "{here}/x.nc", "{here}/x.zarr", "{here}/-", "\0", "",
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 1, 2**63, -(2**63), 10**400, 1.5, -0.0, 1e308, 5e-324, "", SAID, "a" * 10_000, "\ud800",
    "NaN", "../../x", "\\text{</math><script>}", [], {}, [[]], {"": {}}, [None] * 1000, {SAID: SAID}, ["\udfff"],
)  # fmt: skip


def places(document: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Where the parts of a document are."""
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document) if isinstance(document, list) else ()
    )
    return [at, *(place for key, part in parts for place in places(part, (*at, key)))]


def changed(chance: random.Random, document: Any) -> Any:
    """The document with a part that is another, gone, or there twice."""
    document = json.loads(json.dumps(document))
    *within, last = chance.choice(places(document)[1:])
    parent = document
    for key in within:
        parent = parent[key]
    way = chance.randrange(6)
    if way == 0:
        del parent[last]
    elif way == 1 and isinstance(parent, list):
        parent.insert(last, parent[last])
    elif way == 2 and isinstance(parent, dict):
        parent[chance.choice(TEXTS)] = parent.pop(last)
    elif way == 3 and isinstance(parent[last], (int, float)):
        parent[last] = chance.choice([parent[last] + 1, -parent[last], str(parent[last]), [parent[last]]])
    else:
        parent[last] = chance.choice(VALUES)
    return document


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Bytes that no writer wrote."""
    at, number = chance.randrange(len(data) + 1), chance.randrange(1, 9)
    return chance.choice(
        [
            lambda: b"",
            lambda: data[:at],
            lambda: data + data[:at],
            lambda: data[:at] + bytes(chance.randrange(256) for _ in range(number)) + data[at + number :],
            lambda: b"\xef\xbb\xbf" + data,
            lambda: data.decode("latin-1").encode("utf-16"),
            lambda: b"[" * 100_000,
            lambda: b'{"a":' * 100_000,
            lambda: b'{"schema": ' + b"9" * 100_000 + b"}",
            lambda: data.replace(b"1", b"NaN", 1),
            lambda: data.replace(b"0", b"1e999", 1),
            lambda: b"\0" * 10_000,
        ]
    )()


def resealed(document: Any) -> bytes:
    """A document as its writer would have written it; left without a digest where there cannot be one."""
    if isinstance(document, dict) and SEAL in document:
        document = {name: part for name, part in document.items() if name != SEAL}
        with contextlib.suppress(ValueError):
            document[SEAL] = digest(document)
    return json.dumps(document).encode()


# ---------------------------------------------------------------- what there is to damage


FOLDERS = {  # the command that each is written by
    "verify": "verify generalization.theorem-1 continual.lemma-4 --reading quick --replicates 64",
    "explore": "explore generalization.theorem-1.fixed-router --over delta=0.05,0.5 --replicates 64",
    "sweep": "sweep {here}/grid.toml",
}
SIZES = """
[dims]
num_tasks = 2
num_features = 3
num_samples = 2
"""
GRID = f"""system = "continual"
rounds = 4
replicates = 4
chunk_width = 2
{SIZES}
[axes]
num_experts = [1, 2]
"""
EDGE = f"""system = "edge"
rounds = 4
replicates = 2
{SIZES}
[choices]
execution = "geometric"
policy = "fastest"
[params]
geometric_stop = 0.5
min_strength = 0.25
[axes]
num_experts = {{linspace = [1, 3], num = 2}}
"""
FORMULAS = (
    "2 ** 2 ** 2 ** 99", "1 / 0", "x" * 999, "(" * 999, "exp(9999)", "num_experts", "-" * 999 + "1", "1.", "9**9**9",
)  # fmt: skip


class Seeds:
    """Folders as commands write them, with what other commands print of them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.printed: dict[tuple[str, ...], str] = {}

    @functools.cached_property
    def folder(self) -> Path:
        folder = self._folder
        (folder / "grid.toml").write_text(GRID)
        for name, line in FOLDERS.items():
            words = [*line.format(here=folder).split(), "--out", str(folder / name)]
            done = subprocess.run([sys.executable, "-m", "moe_theory", *words], capture_output=True, text=True)
            if done.returncode:
                sys.exit(f"{' '.join(words)} failed: {done.stderr}")
            shutil.rmtree(folder / name / "programs", ignore_errors=True)
        (folder / "deep").mkdir()
        summary = {"preset": "continual-mnist-small", "data": "digits", "verdicts": [], "cells": []}
        (folder / "deep" / "summary.json").write_text(sealed({"schema": deep.SCHEMA, **summary}))
        return folder

    def documents(self) -> list[tuple[Path, list[list[str]]]]:
        """Files with JSON in them, and the commands that read them."""
        report = [["report", "{here}/run", "--json"], ["report", "{here}/run"], ["report", "{here}/run", "--cite"]]
        show = [["sweep", "show", "{here}/run"], ["sweep", "show", "{here}/run", "--json"]]
        return [(self.folder / "verify" / "verdicts.json", report), (self.folder / "sweep" / "sweep.json", show)]


# ---------------------------------------------------------------- inputs by class


def documents(chance: random.Random, seeds: Seeds) -> Input:
    """JSON documents, a field or some bytes of which somebody has changed, with a digest of it or without."""
    file, commands = chance.choice(seeds.documents())
    words, data = chance.choice(commands), file.read_bytes()
    run = next(parent for parent in file.parents if parent.parent == seeds.folder)
    same = ""
    if chance.random() < 0.2:
        new = damaged(chance, data)
    else:
        document = json.loads(data)
        for _ in range(chance.choice((1, 1, 1, 2, 5))):
            document = changed(chance, document)
        if chance.random() < 0.5:
            new = resealed(document)
        else:
            new = json.dumps(document).encode()
            is_sealed = isinstance(document, dict) and SEAL in json.loads(data) and SEAL in document
            same = expected(seeds, run, words) if is_sealed and "--json" in words else ""
    inside = file.relative_to(run)
    return Input(words, {"run": run, f"run/{inside}": new}, same_as=same)


def expected(seeds: Seeds, run: Path, words: Sequence[str]) -> str:
    """What a command prints of an undamaged folder."""
    known = (run.name, *words)
    if known not in seeds.printed:
        seeds.printed[known] = carried_out(Input(words, {"run": run})).out
    return seeds.printed[known]


def arrays(chance: random.Random, seeds: Seeds) -> Input:
    """Chunks of a sweep that somebody has replaced who does not know their digest."""
    whole = rows(seeds.folder / "sweep")
    key, other = (chance.choice(sorted(whole)) for _ in range(2))
    lie = chance.choice((damaged(chance, whole[key]), whole[other] + whole[key], bytes(2**20)))

    def prepare(here: Path) -> None:
        run_statement(here / "run", "UPDATE results SET data = ? WHERE key = ?", lie, key)

    words = ["sweep", "show", "{here}/run", *chance.choice(([], ["--json"], ["--to", "{here}/run/x.nc"]))]
    return Input(words, {"run": seeds.folder / "sweep"}, prepare=prepare)


def stores(chance: random.Random, seeds: Seeds) -> Input:
    """Files of a store whose bytes somebody has changed."""
    (file,) = (seeds.folder / "sweep").glob("results*.sqlite")
    words = chance.choice((["sweep", "show", "{here}/sweep"], ["sweep", "{here}/grid.toml", "--out", "{here}/sweep"]))
    changed = damaged(chance, file.read_bytes())
    files = {"grid.toml": GRID.encode(), "sweep": seeds.folder / "sweep", f"sweep/{file.name}": changed}
    return Input(words, files)


def checkpoints(chance: random.Random, seeds: Seeds) -> Input:
    """Safetensors whose header says anything; indices of shards."""
    numbers = {f"layers.{layer}.experts.{expert}.w_in": [2, 2] for layer in range(1) for expert in range(3)}
    header: dict[str, Any] = {
        name: {"dtype": "F32", "shape": shape, "data_offsets": [16 * place, 16 * place + 16]}
        for place, (name, shape) in enumerate(numbers.items())
    }
    size = 16 * len(header)
    way = chance.randrange(5)
    if way == 0:
        header = changed(chance, header)
    elif way == 1:
        name = chance.choice(sorted(header))
        other = chance.choice(
            ["layers.0.experts.00.w_in", f"layers.0.experts.{10**12}.w_in", f"layers.{'9' * 6000}.experts.1.w_in", SAID]
        )
        header[other] = header.pop(name)
    elif way == 2:
        part = header[chance.choice(sorted(header))]
        part["shape"] = chance.choice([[2**62, 4], [-2, -2], [], [1] * 70, [4], ["2", 2], [2.0, 2]])
        part["dtype"] = chance.choice(["F32", "F64", "I8", "BOOL", "F8_E4M3", "X", "", SAID])
    elif way == 3:
        header["__metadata__"] = chance.choice([{}, {"moe-theory.sha256": "0" * 64}, {SAID: SAID}, [], {"a": 1}])
    text = json.dumps(header).encode()
    text = b'{"a":' * 100_000 if way == 4 and chance.random() < 0.2 else damaged(chance, text) if way == 4 else text
    data = chance.choice((len(text), len(text), len(text), 2**62, 0)).to_bytes(8, "little") + text + bytes(size)
    files: dict[str, bytes | Path] = {"c/model.safetensors": data}
    place = chance.choice(("{here}/c", "{here}/c/model.safetensors"))
    if chance.random() < 0.3:
        index = {"metadata": {}, "weight_map": dict.fromkeys(numbers, "model.safetensors")}
        new = json.dumps(changed(chance, index)).encode()
        files["c/model.safetensors.index.json"] = chance.choice((new, new, damaged(chance, new)))
    words = ["bound", "--checkpoint", place, "--samples", "500"]
    words += chance.choice(([], ["--errors", "3"], ["--errors", SAID]))
    return Input(words, files)


def specifications(chance: random.Random, seeds: Seeds) -> Input:
    """Grids whose values and names are anything."""
    text = chance.choice((GRID, EDGE))
    lines: list[str] = [*text.splitlines()]
    for _ in range(chance.choice((1, 1, 2))):
        at = chance.randrange(len(lines))
        name, _, value = lines[at].partition("=")
        values = [json.dumps(each) for each in VALUES if each is not None and not isinstance(each, dict)]
        odd = chance.choice([*values, *WHOLE, *REALS])
        lines[at] = chance.choice(
            [
                f"{name}={odd}",
                f"{name}= [{odd}]",
                f'{name}= "{chance.choice(FORMULAS)}"',
                f"{name}= {{linspace = [{odd}, 2], num = {chance.choice(WHOLE)}}}",
                f"{name}= {{logspace = [1, {odd}], num = 3}}",
                f"{chance.choice(TEXTS[:12])} ={value}",
                lines[at] + "\n" + lines[at],
                "[[axes]]",
                "[zips.a]\nb = [1]",
                "",
            ]
        )
    data = "\n".join(lines).encode(errors="surrogatepass")
    data = damaged(chance, data) if chance.random() < 0.1 else data
    words = ["sweep", "{here}/grid.toml", "--out", "{here}/out", *chance.choice(([], ["--dry-run"], ["--json"]))]
    return Input(words, {"grid.toml": data})


BODIES = (
    "raise ValueError(SAID)", "raise SystemExit(0)", "raise KeyboardInterrupt", "return None", "return SAID",
    "return [float('nan')] * 64", "import os; os.write(1, b''); return run.nothing", "raise Exception('x' * 10**6)",
    "def f(): f()\n    f()", "return 10**400", "raise RecursionError", "raise MemoryError",
)  # fmt: skip
TOPS = (
    "raise SystemExit(0)", "raise SystemExit(SAID)", "import sys; sys.exit()", "raise KeyboardInterrupt", "1 / 0",
    "raise ValueError(SAID * 10**5)", "def f(): f()\nf()", "import nothing", "\0", "x = (",
    "raise type(SAID, (Exception,), {})", "class E(Exception):\n    def __str__(self): raise ValueError\nraise E", "",
    "raise OSError(28, SAID)", "raise BrokenPipeError", "# \udcff",
    "READINGS = SAID", "READINGS = {SAID: SAID}", "READINGS = {'a': 1}", "import signal; raise MemoryError(SAID)",
    "raise UnicodeDecodeError('x', b'', 0, 1, SAID)", "raise UnicodeError('\\ud800')",
    "raise ExceptionGroup(SAID, [ValueError(SAID)])",
)  # fmt: skip


def modules(chance: random.Random, seeds: Seeds) -> Input:
    """A user's own file, which does anything but what it should."""
    said = f"SAID = {SAID!r}\n"
    own = OWN.replace("WORDS", chance.choice(WORDS))
    if chance.random() < 0.4:
        text = said + chance.choice(TOPS) + "\n" + own
    else:
        text = said + own.replace("return run.records.update_norm[-1]", chance.choice(BODIES))
    run = "verify --reading quick --replicates 64 --out {here}/out"
    search = "explore mine.moves --over noise_scale=0.1,0.2 --replicates 64 --out {here}/out"
    command = chance.choice(("statements --claims", run, search, run))
    words = f"{command} --module {{here}}/own.py".split() + chance.choice(([], [], ["--json"]))
    return Input(words, {"own.py": text.encode(errors="surrogateescape")})


def systems(chance: random.Random, seeds: Seeds) -> Input:
    """Parts of an algorithm of a user's own, which are none, of another shape, or fail."""
    part = chance.choice(("router", "fit", "locality", "auxiliary", "optimizer", "stream", SAID))
    made = chance.choice(
        ("part", "part", "part", "locality.Locality(part)", "locality.Locality(part, part)", "SAID", "1")
    )
    top = chance.choice(TOPS) if chance.random() < 0.2 else ""
    body = chance.choice(
        (*BODIES, "return given[0]", "return given[1]", "return given[-1].nothing", "return 0 * given[0]")
    )
    text = f"""
from moe_theory.core import locality
SAID = {SAID!r}
{top}
def part(*given):
    {body}
mine = {{{part!r}: {made}}}
none, other = {{}}, {{1: part}}
"""
    name = chance.choice(("mine", "mine", "mine", "mine", "none", "other", "SAID", "nothing", "", SAID))
    claim = chance.choice(("continual.lemma-4", "edge.lemma-2", "merging.lemma-1", SAID))
    words = ["verify", claim, "--system", f"{{here}}/own.py:{name}", "--reading", "quick", "--replicates", "64"]
    words += ["--out", "{here}/out", *chance.choice(([], ["--json"]))]
    return Input(words, {"own.py": text.encode(errors="surrogateescape")})


OWN = """
from moe_theory import statement
from moe_theory.continual.experiments import HISTORY
from moe_theory.verification.statement import bound

MOVES = statement("moves", paper="continual", where=WORDS, claim=WORDS)

@MOVES.claim("mine.moves", HISTORY.at("M = 5"), bound(at_most=10.0), role="charitable",
    says="An expert moves by less than 10 a round.")
def last_move(run):
    return run.records.update_norm[-1]
"""
WORDS = ("'my notes'", "SAID", "'a' * 10**5", "'\\ud800'", "'$$x'", "''", "1")


def options(chance: random.Random, seeds: Seeds) -> Input:
    """Commands with options of any value, alone and together."""
    name = chance.choice(cli.commands())
    words, command = name.split(), cli.command(name)
    parameters = [each for each in command.params if each.name != "help"]
    given = [each for each in parameters if isinstance(each, click.Argument) and each.required]
    given += chance.sample(parameters, min(len(parameters), chance.choice((0, 1, 1, 2, 3))))
    for each in dict.fromkeys(given):
        kind = each.type.name
        if isinstance(each, click.Option) and each.is_flag:
            words.append(each.opts[-1])
            continue
        pool: tuple[str, ...] = TEXTS + WHOLE + REALS
        sound = SOUND.get(each.name or "", ())
        if kind == "integer":
            pool = WHOLE
        elif kind == "float":
            pool = REALS
        elif kind in ("path", "file", "directory"):
            pool = PATHS
        value = chance.choice(sound) if sound and chance.random() < 0.6 else chance.choice(pool)
        words += [value] if isinstance(each, click.Argument) else [each.opts[0], value]
    if any(each.name == "out" for each in parameters) and "--out" not in words:
        words += ["--out", "{here}/out"]
    if name == "verify" and "--replicates" not in words:
        words += ["--replicates", "16"]
    files: dict[str, bytes | Path] = {
        "run": chance.choice([seeds.folder / each for each in FOLDERS]),
        "grid.toml": GRID.encode(),
    }
    return Input(words, files)


SOUND = {
    "patterns": ("continual.lemma-4", "generalization.theorem-1", "edge", "*", "continual.lemma-[", "merging:tree"),
    "claim": ("continual.lemma-4", "generalization.theorem-1.fixed-router"),
    "name": ("continual.lemma-8", "generalization.theorem-1"),
    "names": ("figure-2",),
    "paper": ("continual", "edge", "overview"),
    "positional": ("continual-mnist-small",),
    "preset": ("continual-mnist-small", "edge-mnist-small"),
    "folder": ("{here}/run",),
    "folders": ("{here}/run",),
    "specification": ("{here}/grid.toml",),
    "over": ("noise_scale=0.05..0.2", "signal_scale=1,2", "num_clusters=1..3", "noise_scale=1..1e999"),
    "reading": ("unit-signal", "quick", "all"),
    "readings": ("unit-signal", "quick", "all"),
    "settings": ("noise_scale=1", "noise_scale=", "=1", "nothing=1", "num_experts=1e30"),
    "budget": ("1s", "0s", "-1s", "nan", "infs", "1e300h"),
    "policy": ("tanbr", "nosuch"),
    "dask": ("local:0", "local:-1", "local:1e9", "tcp://", "tcp://256.0.0.1:1", "nothing", "{here}/grid.toml"),
    "rademacher": ("0.1", "2/sqrt(m)", "nan/sqrt(m)", "-1"),
}  # fmt: skip

COMMANDS = (
    ["statements", "--claims", "continual.lemma-*"],
    ["statements", "continual"],
    ["why", "generalization.theorem-1"],
    ["bound", "--experts", "8"],
    ["report", "{here}/verify"],
    ["report", "{here}/verify", "--cite"],
    ["sweep", "show", "{here}/sweep"],
    ["figures", "--list"],
    ["deep", "--list"],
    FOLDERS["explore"].split(),
    [],
    ["--help"],
    ["verify", "--help"],
)  # fmt: skip
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    *({"COLUMNS": width} for width in ("0", "1", "2", "5", "19", "-3", "x", "99999999", "")),
    *({"LINES": lines} for lines in ("0", "1", "x", "-1")),
    {"TERM": "dumb"}, {"TERM": SAID}, {"TERM": "nosuch", "FORCE_COLOR": "1"}, {"NO_COLOR": "1"}, {"LC_ALL": "C"},
    {"HOME": "/nowhere"}, {"HOME": ""}, {"HOME": "relative"}, {"XDG_CACHE_HOME": ""}, {"XDG_CACHE_HOME": "{here}/file"},
    {"XDG_CACHE_HOME": "{here}/\udcff"}, {"XDG_CACHE_HOME": "/proc/x"}, {"TMPDIR": "/nowhere"},
    {"TMPDIR": "{here}/file"},
    {"MPLBACKEND": "nosuch"}, {"MPLBACKEND": "tkagg"}, {"MPLCONFIGDIR": "/proc/x"}, {"MATPLOTLIBRC": "{here}/file"},
    {"XLA_FLAGS": ""}, {"XLA_FLAGS": " \udcff"}, {"TZ": "nosuch"}, {"LANG": SAID}, {"PAGER": SAID}, {"USER": ""},
    *({"SOURCE_DATE_EPOCH": date} for date in ("x", "", "-1", "9" * 20, "1700000000")),
    {"FORCE_COLOR": "1"}, {"CLICOLOR_FORCE": "1"}, {"COLORTERM": SAID}, {"JUPYTER_COLUMNS": "x"},
    {"TTY_COMPATIBLE": "1"},
)  # fmt: skip


def environments(chance: random.Random, seeds: Seeds) -> Input:
    """Terminals, variables, folders and standard streams as odd machines have them."""
    words = list(chance.choice(COMMANDS))
    environment = chance.choice(ENVIRONMENTS)
    stdout = chance.choice(("file", "file", "file", "full", "closed", "none"))
    encoding = chance.choice(("utf-8", "utf-8", "ascii", "latin-1", "utf-16"))
    if words and words[0] in ("report", "explore") and chance.random() < 0.5:
        words += ["--out", chance.choice(PATHS)]
    if words and chance.random() < 0.3 and words[0] in ("statements", "why", "bound", "report", "sweep"):
        words.append("--json")
    return Input(
        words, {"verify": seeds.folder / "verify", "sweep": seeds.folder / "sweep"}, environment, stdout, encoding
    )


def special_files(chance: random.Random, seeds: Seeds) -> Input:
    """Named pipes, devices, sockets, links and folders in the place of a file that a command reads."""
    kinds: dict[str, Callable[[Path], object]] = {
        "pipe": os.mkfifo,
        "folder": os.mkdir,
        "socket": _bound,
        "device": lambda place: place.symlink_to(chance.choice(("/dev/zero", "/dev/full", "/dev/random", "/dev/tty"))),
        "dangling": lambda place: place.symlink_to("nowhere"),
        "loop": lambda place: place.symlink_to(place),
        "of the kernel": lambda place: place.symlink_to(chance.choice(("/proc/self/mem", "/proc/self/environ"))),
        "sparse": lambda place: place.touch() or os.truncate(place, 1 << 42),
    }
    made = kinds[chance.choice(sorted(kinds))]
    words, name = chance.choice(SPECIAL)
    files: dict[str, bytes | Path] = {"grid.toml": GRID.encode()}
    for kind in ("verify", "sweep"):
        if f"{{here}}/{kind}" in words.split():
            files[kind] = seeds.folder / kind

    def prepare(here: Path) -> None:
        place = here / name
        place.parent.mkdir(parents=True, exist_ok=True)
        if place.is_dir():
            shutil.rmtree(place)
        place.unlink(missing_ok=True)
        made(place)

    return Input(words.split(), files, prepare=prepare)


def _bound(place: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made, contextlib.suppress(OSError):  # a name may be too long for a socket
        made.bind(str(place))


SPECIAL = (  # commands, and what they read that is no file
    ("report {here}/x", "x"),
    ("report {here}/verify", "verify/verdicts.json"),
    ("report {here}/verify", "verify/.replacing"),
    ("sweep show {here}/sweep", "sweep/sweep.json"),
    ("sweep {here}/x", "x"),
    ("sweep show {here}/sweep", "sweep/results.sqlite"),
    ("sweep show {here}/sweep", "sweep/results-1-of-2.sqlite"),
    ("sweep {here}/grid.toml --out {here}/sweep", "sweep/results.sqlite"),
    ("sweep {here}/grid.toml --out {here}/sweep", "sweep/results-1-of-2.sqlite"),
    ("sweep {here}/grid.toml --out {here}/sweep", "sweep/.replacing"),
    ("bound --checkpoint {here}/x", "x"),
    ("bound --checkpoint {here}/c", "c/model.safetensors"),
    ("statements --claims --module {here}/x.py", "x.py"),
    ("deep continual-mnist-small --data {here}/x --replicates 1", "x"),
    ("deep continual-mnist-small --data {here}/data --replicates 1", "data/mine.npz"),
    ("deep continual-mnist-small --data {here}/data --replicates 1", "data/train-images-idx3-ubyte"),
)


CLASSES: dict[str, tuple[int, Callable[[random.Random, Seeds], Input]]] = {  # with how often, of all inputs
    "documents": (8, documents),
    "arrays": (3, arrays),
    "stores": (2, stores),
    "checkpoints": (3, checkpoints),
    "specifications": (4, specifications),
    "modules": (3, modules),
    "systems": (2, systems),
    "options": (8, options),
    "environments": (4, environments),
    "special files": (2, special_files),
}


# ---------------------------------------------------------------- running them


def preload() -> None:
    """Import what commands import, so that a child need not."""
    for name in cli.commands():
        cli.command(name)
    for path in sorted((Path(cli.__file__).parents[1]).rglob("*.py")):
        name = ".".join(path.relative_to(Path(cli.__file__).parents[2]).with_suffix("").parts)
        if not any(part in name for part in ("__main__", "counterexamples", ".proofs.", "cli.template")):
            importlib.import_module(name.removesuffix(".__init__"))
    for name in ("matplotlib.pyplot", "scipy.optimize", "scipy.stats", "jax.numpy", "rich.live"):
        importlib.import_module(name)


def carried_out(given: Input) -> Outcome:
    """Run an input in a folder of its own, in a forked child."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as made:
        root = Path(made)
        here = root / "here"
        here.mkdir()
        (here / "file").write_text("a file\n")
        (here / "folder").mkdir()
        (here / "link").symlink_to("nowhere")
        for name, content in given.files.items():
            place = here / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(content, Path):
                shutil.copytree(content, place) if content.is_dir() else shutil.copyfile(content, place)
            else:
                place.write_bytes(content)
        given.prepare(here)
        before = contents(here)
        words = [word.replace("{here}", str(here)).replace("\0", "") for word in given.words]  # a shell passes none on
        environment = {name: value.replace("{here}", str(here)) for name, value in given.environment.items()}
        child = os.fork()
        if not child:
            _child(root, here, words, environment, given)
        code, is_stopped, used = _wait(child, root)
        after = contents(here)
        replaced = [name for name, data in before.items() if after.get(name) != data and code == 2]
        written = (root / "written").read_text(errors="replace").splitlines() if (root / "written").exists() else []
        said = [(root / name).read_bytes() if (root / name).exists() else b"" for name in ("out", "err")]
        out, err = (text.decode(errors="replace").replace(str(here), "{here}") for text in said)
        return Outcome(code, out, err, written, replaced, used, (root / "began").exists(), is_stopped)


def contents(folder: Path) -> dict[str, bytes]:
    """Everything in a folder but what anybody may replace: compiled programs, and files of a store."""
    apart = ("programs",)
    found = {}
    for path in folder.rglob("*"):
        if (
            path.is_file()
            and not path.is_symlink()
            and path.stat().st_size < MOST_MEMORY  # a sparse one has terabytes
            and not any(part in apart for part in path.relative_to(folder).parts)
            and ".sqlite" not in path.name
        ):
            found[str(path.relative_to(folder))] = path.read_bytes()
    return found


def _wait(child: int, root: Path) -> tuple[int, bool, float]:
    """Until a child ends: its exit code, whether it had to be told to, and the processor time that it took."""
    is_stopped, began, step = False, time.monotonic(), 0.005
    clock, used = os.sysconf("SC_CLK_TCK"), 0.0
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status), is_stopped, usage.ru_utime + usage.ru_stime
        time.sleep(step)
        step = min(2 * step, 0.1)
        with contextlib.suppress(OSError, IndexError):
            used = sum(map(int, Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[11:13])) / clock
        waited, at_work = time.monotonic() - began, (root / "began").exists()
        if is_stopped and waited > 6 * SECONDS:
            os.kill(child, signal.SIGUSR1)  # tells where it hangs
            time.sleep(1)
            os.kill(child, signal.SIGKILL)
        elif not is_stopped and (used > WORK_SECONDS if at_work else used > SECONDS or waited > 6 * SECONDS):
            is_stopped, began = True, time.monotonic()
            os.kill(child, signal.SIGINT)


def _child(root: Path, here: Path, words: Sequence[str], environment: dict[str, str], given: Input) -> None:
    """Be the command; never returns."""
    code = 70
    try:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores interrupts
        os.chdir(here)
        size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + MOST_MEMORY, size + MOST_MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.environ.update(
            {"XDG_CACHE_HOME": str(root / "cache"), "TMPDIR": str(root / "tmp"), "HOME": str(root / "home")}
        )
        (root / "tmp").mkdir()
        tempfile.tempdir = None
        os.environ.update(environment)
        _open_streams(root, given)
        faulthandler.register(signal.SIGUSR1, 2)
        sys.argv = ["moe-theory", *words]
        sys.dont_write_bytecode = True
        _mark_work(root)
        allowed = [root / "began", root / "cache", root / "tmp", root / "home", Path("/dev"), Path("/proc/self")]
        allowed += [here / "runs", here / "figures", *(here / name for name in ("out", "run", "verify", "sweep"))]
        allowed += [Path(value) for value in environment.values() if value.startswith("/")]
        allowed += [Path(os.path.realpath(word)) for word in words if "/" in word and "\0" not in word]
        _watch(root, [os.path.normpath(each) for each in allowed])
        try:
            cli.main(words)
            code = 0
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        with contextlib.suppress(ValueError):
            sys.stdout.flush() if sys.stdout is not None else None
    except BaseException:
        code = 70
        _WATCHING.clear()
        text = traceback.format_exc()
        with contextlib.suppress(BaseException), open(root / "err", "a", errors="backslashreplace") as file:
            file.write(text)
    finally:
        with contextlib.suppress(BaseException):
            _WATCHING.clear()
            sys.stderr.flush()
        os._exit(code)


def _open_streams(root: Path, given: Input) -> None:
    """Standard streams as the input has them, in files that the parent reads."""
    out = os.open(root / "out", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    err = os.open(root / "err", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.dup2(err, 2)
    if given.stdout == "full":
        out = os.open("/dev/full", os.O_WRONLY)
    elif given.stdout == "closed":
        read, out = os.pipe()
        os.close(read)
    os.dup2(out, 1)
    strict = "strict" if given.encoding != "utf-8" else "surrogateescape"
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), given.encoding, strict)
    sys.stderr = io.TextIOWrapper(io.FileIO(2, "w", closefd=False), "utf-8", "backslashreplace", line_buffering=True)
    if given.stdout == "none":
        os.close(1)
        sys.stdout = None  # as Python has it  # pyright: ignore


def _mark_work(root: Path) -> None:
    """Leave a mark where computing begins."""
    for full in WORK:
        module, _, name = full.rpartition(".")
        own = sys.modules[module]
        function = getattr(own, name)

        def marked(*given: Any, _function: Any = function, **named: Any) -> Any:
            with contextlib.suppress(OSError):
                os.close(os.open(root / "began", os.O_CREAT | os.O_WRONLY))
            return _function(*given, **named)

        for other in list(sys.modules.values()):
            if getattr(other, "__name__", "").startswith("moe_theory.") and getattr(other, name, None) is function:
                setattr(other, name, marked)


_WATCHING: list[bool] = []
_WRITES = {  # of Python's audit events, which argument is written
    "os.mkdir": 0, "os.remove": 0, "os.rmdir": 0, "os.rename": 1, "os.link": 1, "os.symlink": 1, "os.truncate": 0,
    "shutil.rmtree": 0,
}  # fmt: skip


def _watch(root: Path, allowed: list[str]) -> None:
    """Note what is written elsewhere than at or below the `allowed` places."""
    log = os.open(root / "written", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    _WATCHING.append(True)

    def hook(event: str, given: tuple[Any, ...]) -> None:
        if not _WATCHING:
            return
        if event == "open":
            flags = given[2] or 0
            if not isinstance(flags, int) or not flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
                return
            path = given[0]
        elif event in _WRITES:
            path = given[_WRITES[event]]
        else:
            return
        if isinstance(path, int) or path is None:
            return
        _WATCHING.clear()
        try:
            whole = os.path.normpath(os.path.join(os.getcwd(), os.fsdecode(path)))
            if not any(_may(event, place, each) for each in allowed for place in (whole, os.path.realpath(whole))):
                os.write(log, f"{event} {whole!r}\n".encode(errors="backslashreplace"))
        finally:
            _WATCHING.append(True)

    sys.addaudithook(hook)


def _may(event: str, place: str, allowed: str) -> bool:
    """Whether a place is allowed: at or below one that is, or a temporary name of it; or a folder that it is in."""
    below, beside = allowed.rstrip("/") + "/", os.path.dirname(place) == os.path.dirname(allowed)
    is_above = event == "os.mkdir" and below.startswith(place.rstrip("/") + "/")
    return place == allowed or place.startswith(below) or is_above or (beside and os.path.basename(allowed) in place)


def broken(given: Input, found: Outcome) -> list[str]:
    """Which promises an outcome breaks."""
    told = []
    both = found.out + found.err
    is_lost = found.is_stopped and "_xla_gc_callback" in both  # Ctrl-C within JAX's own collecting: Python tells it so
    if not is_lost and ("Traceback (most recent call last)" in both or "Exception ignored" in both):
        told.append("a traceback")
    if found.code not in ENDS:
        told.append(f"ends with {found.code}")
    if found.is_stopped and (not found.began or found.code == -signal.SIGKILL):
        told.append("hangs")
    if found.written:
        told.append(f"writes {found.written[0]}")
    if found.replaced:
        told.append(f"refuses, and replaces {found.replaced[0]}")
    if found.code == 2:
        lines = found.err.strip().splitlines()
        if not lines and given.stdout == "file":
            told.append("refuses without a word")
        elif lines and not any(line.startswith("Usage:") for line in lines):  # Click's, of a mistyped option
            own = [line for line in lines if line.startswith("moe-theory: ")]
            progress = [line for line in lines[:-1] if PROGRESS.match(line)]
            if len(own) != 1 or lines[-1] != own[0] or len(lines) - 1 > len(progress):
                told.append("refuses in more than a line")
        if max(map(len, lines), default=0) > LONGEST_LINE:
            told.append("refuses at length")
    if "\x1b]" in both or "\x1b[2J" in both or "\x07" in both:
        told.append("passes on escape codes")
    if any(letter in both for letter in UNSEEN):
        told.append("passes on what is not seen")
    if given.same_as and found.code == 0 and found.out != given.same_as:
        told.append("accepts changed numbers")
    return told


def inputs(seed: int, only: str | None, first: int, seeds: Seeds) -> Iterator[tuple[str, int, Input]]:
    """Inputs without end, each by its own number, so that one can be had again."""
    names = [name for name, (often, _) in CLASSES.items() for _ in range(often)]
    for place in itertools.count(first):
        chance = random.Random(f"{seed} {place}")
        name = only or chance.choice(names)
        yield name, place, CLASSES[name][1](chance, seeds)


def fuzz(seconds: float, number: int | None, seed: int, only: str | None = None, first: int = 0) -> list[str]:
    """Run inputs for so long, or so many; what broke a promise. Prints counts."""
    preload()
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        seeds = Seeds(Path(folder))
        if only != "checkpoints":  # which needs none
            assert seeds.folder
        counts, wrong, began = Counter(), [], time.monotonic()
        for name, place, given in inputs(seed, only, first, seeds):
            if time.monotonic() - began > seconds or (number is not None and counts.total() >= number):
                break
            found = carried_out(given)
            end = {0: "accepted", 2: "refused"}.get(found.code, f"code {found.code}")
            counts[name, "interrupted" if found.is_stopped else end] += 1
            if told := broken(given, found):
                wrong.append(f"{name} {place}: {'; '.join(told)}")
                print(f"--- {wrong[-1]}")
                print(f"    {given.words} {dict(given.environment)} {given.stdout} {given.encoding}"[:500])
                for line in (found.err or found.out).splitlines()[-40 if "hangs" in told else -5 :]:
                    print(f"    {line[-200:]!a}", flush=True)
    for (name, what), count in sorted(counts.items()):
        print(f"{name}: {count:,} {what}")
    print(f"{counts.total():,} inputs in {time.monotonic() - began:.0f} s: {len(wrong)} broken promises")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300.0)
    parser.add_argument("--number", type=int, help="inputs at most")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="default: another each time")
    parser.add_argument("--only", choices=CLASSES)
    parser.add_argument("--first", type=int, default=0, help="number of the first input")
    asked = parser.parse_args()
    print(f"seed {asked.seed}", flush=True)
    sys.exit(bool(fuzz(asked.seconds, asked.number, asked.seed, asked.only, asked.first)))


if __name__ == "__main__":
    main()
