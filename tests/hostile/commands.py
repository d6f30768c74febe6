"""The command line on hostile documents, specifications, modules, options and environments: does it end as promised?

python tests/hostile/commands.py --number 300     (--seed S to repeat a run)

Of each input: no traceback, an expected exit code, and a refusal in words.
Inputs run in forked children of one process that has imported everything.
"""

import argparse
import itertools
import json
import os
import random
import secrets
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import click

from moe_theory import cli
from moe_theory.runs.files import SEAL, digest

ENDS = (0, 1, 2, 130, 141)
WORK_SECONDS = 4  # after which a command is interrupted, as it may have begun to compute
MOST_SECONDS = 60  # after which it hangs
SAID = "\x1b]0;hostile\x07\x1b[2J[/b] [red]\u061c\u200b\u2066"
TEXTS = (
    "",
    " ",
    SAID,
    "a" * 300,
    "é\u202e",
    "../../x",
    "/",
    "-1",
    "nan",
    "1e999",
    "%s{0}\\",
    "[" * 2000,
    "a\nb",
    "0x10",
)
NUMBERS = (
    "-1",
    "0",
    "1",
    "2",
    "255",
    "4294967296",
    "1" + "0" * 30,
    "9" * 5000,
    "1e-320",
    "0.5",
    "1e308",
    "-inf",
    "nan",
)
PATHS = ("{here}", "{here}/none", "/dev/full", "/dev/null/x", "{here}/" + "a" * 300, "{here}/[/b]", "{here}/x.nc", "")
VALUES = (None, True, -1, 2**63, 10**400, 1.5, 1e308, "", SAID, "a" * 10_000, "\ud800", [], {}, [[]], {SAID: SAID})
SOUND = (
    "continual.lemma-4",
    "generalization.theorem-1",
    "{here}/run",
    "{here}/grid.toml",
    "unit-signal",
    "quick",
    "1s",
)
GRID = """system = "continual"
rounds = 4
replicates = 4
[dims]
num_tasks = 2
num_features = 3
num_samples = 2
[axes]
num_experts = [1, 2]
"""
BODIES = (
    "raise ValueError(SAID)",
    "raise SystemExit(0)",
    "raise KeyboardInterrupt",
    "1 / 0",
    "x = (",
    "import nothing",
)
ENVIRONMENTS: tuple[dict[str, str], ...] = (
    *({"COLUMNS": width} for width in ("0", "1", "19", "-3", "x", "99999999")),
    {"TERM": SAID},
    {"HOME": ""},
    {"XDG_CACHE_HOME": "/proc/x"},
    {"TMPDIR": "/nowhere"},
    {"LANG": SAID},
    {"SOURCE_DATE_EPOCH": "x"},
    {"FORCE_COLOR": "1"},
)


class Input(NamedTuple):
    """A command with the files and variables that it meets; `{here}` in its words is its folder."""

    words: list[str]
    files: Mapping[str, str] = {}
    environment: Mapping[str, str] = {}


class Outcome(NamedTuple):
    code: int
    text: str


def places(document: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return where the parts of a document are."""
    parts = (
        document.items() if isinstance(document, dict) else enumerate(document if isinstance(document, list) else [])
    )
    below = [places(part, (*at, key)) for key, part in parts]
    return [at, *itertools.chain(*below)]


def document(chance: random.Random, run: str) -> Input:
    """Return a report of a run, a part of which somebody has changed, with a digest of it or without."""
    changed = json.loads(run)
    *within, last = chance.choice(places(changed)[1:])
    parent = changed
    for key in within:
        parent = parent[key]
    parent[last] = chance.choice(VALUES)
    if chance.random() < 0.5 and SEAL in changed:
        del changed[SEAL]
        changed[SEAL] = digest(changed)
    options = chance.choice(([], ["--json"], ["--cite"]))
    return Input(["report", "{here}/run", *options], {"run/verdicts.json": json.dumps(changed)})


def specification(chance: random.Random, run: str) -> Input:
    """Return a grid, a line of which is anything."""
    lines = GRID.splitlines()
    place = chance.randrange(len(lines))
    name = lines[place].partition("=")[0]
    odd = chance.choice((*NUMBERS, json.dumps(SAID), "[]", "{}"))
    lines[place] = chance.choice((f"{name}={odd}", f"{name}= [{odd}]", f"{odd} = 1", "[[axes]]", ""))
    return Input(["sweep", "{here}/grid.toml", "--out", "{here}/out"], {"grid.toml": "\n".join(lines)})


def module(chance: random.Random, run: str) -> Input:
    """Return a file of a user's own, which does anything but what it should."""
    return Input(
        ["statements", "--claims", "--module", "{here}/own.py"], {"own.py": f"SAID = {SAID!r}\n{chance.choice(BODIES)}"}
    )


def options(chance: random.Random, run: str) -> Input:
    """Return a command with options of any value."""
    name = chance.choice([name for name in cli.commands() if name not in ("deep", "figures")])
    parameters = [parameter for parameter in cli.command(name).params if parameter.name != "help"]
    words = name.split()
    for parameter in chance.sample(parameters, min(len(parameters), chance.randrange(4))):
        value = chance.choice(chance.choice((TEXTS, NUMBERS, PATHS, SOUND)))
        is_flag = isinstance(parameter, click.Option) and parameter.is_flag
        words += [] if isinstance(parameter, click.Argument) else [parameter.opts[0]]
        words += [] if is_flag else [value]
    return Input(words, {"grid.toml": GRID, "run/verdicts.json": run})


def environment(chance: random.Random, run: str) -> Input:
    """Return a terminal or a folder as odd machines have them."""
    words = chance.choice(("statements continual", "why generalization.theorem-1", "report {here}/run", "--help"))
    return Input(words.split(), {"run/verdicts.json": run}, chance.choice(ENVIRONMENTS))


CLASSES = (document, specification, module, options, environment)


def carry_out(case: Input) -> Outcome:
    """Run an input in a folder of its own, in a forked child."""
    with tempfile.TemporaryDirectory(prefix="fuzz-") as folder:
        for name, text in case.files.items():
            path = Path(folder, name)
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, errors="surrogatepass")
        words = [word.replace("{here}", folder) for word in case.words]
        child = os.fork()
        if not child:
            be_command(Path(folder), words, case.environment)
        code = wait(child)
        return Outcome(code, Path(folder, "text").read_text(errors="replace"))


def wait(child: int) -> int:
    """Return the exit code of a child, which is interrupted once it works for long."""
    for pause, stop in ((WORK_SECONDS, signal.SIGINT), (MOST_SECONDS, signal.SIGKILL)):
        end = time.monotonic() + pause
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            time.sleep(0.01)
        os.kill(child, stop)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def be_command(folder: Path, words: list[str], variables: Mapping[str, str]) -> None:
    """Run the command, and end the process."""
    code = 70
    text = (folder / "text").open("w", errors="backslashreplace")
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.chdir(folder)
        os.environ.update({"XDG_CACHE_HOME": f"{folder}/cache", **variables})
        sys.argv = ["moe-theory", *words]
        sys.stdout = text
        sys.stderr = text
        cli.main(words)
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc(file=text)
    finally:
        text.flush()
        os._exit(code)


def broken(outcome: Outcome) -> list[str]:
    """Return which promises an outcome breaks."""
    promises = {
        "a traceback": "Traceback (most recent call last)" in outcome.text,
        f"ends with {outcome.code}": outcome.code not in ENDS,
        "refuses without a word": outcome.code == 2 and not outcome.text.strip(),
    }
    return [promise for promise, is_broken in promises.items() if is_broken]


def recorded_run() -> str:
    """Return the document of a small run."""
    with tempfile.TemporaryDirectory() as folder:
        words = ["verify", "generalization.theorem-1.fixed-router", "--replicates", "64", "--out", folder]
        subprocess.run([sys.executable, "-m", "moe_theory", *words], capture_output=True, check=False)
        return Path(folder, "verdicts.json").read_text()


def fuzz(number: int, seed: int) -> int:
    """Run so many inputs; return how many break a promise, which are printed."""
    run = recorded_run()
    num_wrong = 0
    for place in range(number):
        chance = random.Random(f"{seed} {place}")
        case = chance.choice(CLASSES)(chance, run)
        outcome = carry_out(case)
        promises = broken(outcome)
        if promises:
            num_wrong += 1
            print(f"{place}: {promises} {case.words} {case.environment}\n{outcome.text[-500:]!a}", flush=True)
    return num_wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6), help="default: another each time")
    options = parser.parse_args()
    print(f"seed {options.seed}", flush=True)
    num_wrong = fuzz(options.number, options.seed)
    print(f"{options.number} inputs: {num_wrong} broken promises")
    sys.exit(num_wrong > 0)


if __name__ == "__main__":
    main()
