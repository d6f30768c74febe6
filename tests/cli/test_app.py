"""The command line as a newcomer meets it: catches help that overflows a terminal or takes long, a mistake that is not
explained, completion that a shell cannot use, and an end that is not as declared."""

import os
import re
import subprocess
import sys

import click
import pytest

from moe_theory import cli
from moe_theory.cli import output
from moe_theory.cli.options import Listed
from moe_theory.core.errors import InvalidValueError

COLUMNS = 80


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


@pytest.fixture
def printed(ran):
    """Standard output of a command that prints nothing on standard error."""

    def run(*arguments) -> str:
        streams = ran(*arguments)
        assert not streams.err
        return streams.out

    return run


def test_help_has_a_line_for_every_command_and_every_exit_code(printed):
    page = printed("--help")
    assert page == printed("-h")
    assert max(map(len, page.splitlines())) <= COLUMNS
    for name in cli.commands():
        assert re.search(rf"^  {name}  +{cli.command(name).get_short_help_str(20)[:6]}", page, flags=re.MULTILINE)
    for code in (output.DONE, output.FAILED, output.BAD_INPUT, output.INTERRUPTED):
        assert re.search(rf"^ +{code}  [`\w]", page, flags=re.MULTILINE)
    assert "--json" in page


def test_a_command_s_help_fits_a_terminal(printed):
    for name in cli.commands():
        page = printed(*name.split(), "--help")
        assert page.startswith(f"Usage: moe-theory {name} ")
        assert re.search(rf"^    moe-theory {name.split()[0]}\b", page, flags=re.MULTILINE), name
        assert max(map(len, page.splitlines())) <= COLUMNS, name
        assert "None" not in page, name
        assert re.search(r"^  --json  +Print JSON: \w", page, flags=re.MULTILINE), name


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from moe_theory import cli; cli.main(['--help']); cli.main(['verify', '--help']);"
        "sys.exit(bool({'jax', 'matplotlib', 'scipy', 'xarray'} & sys.modules.keys()))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)


def test_what_cannot_be_parsed_is_explained(capsys):
    for arguments, said in (
        ("verfy", "No such command 'verfy'"),
        ("sweep shwo runs", "unexpected extra argument (runs)"),
        ("--json statements", "No such option"),
        ("verify --seeed=3", "'--seed'"),
        ("verify --replicates 2.5", "'2.5' is not a valid integer"),
        ("verify --error small", "'small' is not a valid float"),
        ("verify --out", "requires an argument"),
        ("explore", "Missing argument 'CLAIM'"),
        ("sweep show", "Missing argument 'FOLDER'"),
        ("deep a b", "unexpected extra argument (b)"),
    ):
        with pytest.raises(SystemExit) as stop:
            cli.main(arguments.split())
        assert stop.value.code == output.BAD_INPUT
        streams = capsys.readouterr()
        assert not streams.out
        assert said in streams.err


def test_options_may_be_repeated():
    given = "--reading unit-signal --readings weak-signal --set noise_scale=1 --set learning_rate=0.4".split()
    asked = cli.command("verify").make_context("verify", given).params
    assert list(asked["readings"]) == ["unit-signal", "weak-signal"]
    assert list(asked["settings"]) == ["noise_scale=1", "learning_rate=0.4"]


ENDS = (EOFError(), click.Abort())  # of a question that standard input does not answer


@pytest.fixture
def failing(monkeypatch):
    """A command that ends with an error."""

    def fail_with(error):
        def fail(context):
            raise error

        monkeypatch.setattr(cli.command("statements"), "invoke", fail)

    return fail_with


def test_an_end_is_one_line(failing, refused):
    for raised, code, said in (
        (InvalidValueError("no [such] run"), output.BAD_INPUT, "no [such] run"),
        (KeyboardInterrupt(), output.INTERRUPTED, "interrupted. Unfinished output is not written"),
        *((end, 1, "the input ended before the question was answered") for end in ENDS),
    ):
        failing(raised)
        assert refused("statements", code=code) == f"moe-theory: {said}"


def test_a_refusal_is_one_short_line(failing, refused, capsys):
    """Would catch a megabyte that a user's own file raises."""
    failing(InvalidValueError("long\n" * 10**6))
    assert len(refused("statements")) < 2 * output.LONGEST_LINE
    with pytest.raises(SystemExit):
        cli.main(["verify", "--seed", "9" * 10**5])
    assert len(capsys.readouterr().err) < 2 * output.LONGEST_LINE


@pytest.mark.parametrize(
    "command",
    [pytest.param(["statements", "--claims", "continual.lemma-4"], marks=pytest.mark.thorough), ["--version"]],
)
def test_a_full_disk_is_one_line(command):
    """Would catch a traceback, or an exit code of 0, where standard output cannot be written."""
    with open("/dev/full", "w") as full:
        code = "import sys; from moe_theory.cli import main; main(sys.argv[1:])"
        done = subprocess.run([sys.executable, "-c", code, *command], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2
    assert re.fullmatch(r"moe-theory: standard output.*: No space left on device\.\n", done.stderr)


@pytest.mark.parametrize(
    ("command", "reads"),
    [
        ("--version", 0),
        ("statements --json", 1),
        pytest.param("why generalization.theorem-1", 1, marks=pytest.mark.thorough),
        pytest.param("statements", 0, marks=pytest.mark.thorough),
    ],
)  # what Click prints itself, a page by Rich, a long table, plain lines; before or after the first letter
def test_an_output_that_nobody_reads_ends_it_quietly(command, reads):
    """Would catch a traceback, and exit codes of Click's or Rich's that depend on how much was to be written."""
    process = subprocess.Popen(
        [sys.executable, "-m", "moe_theory", *command.split()],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    )
    with process:
        assert len(process.stdout.read(reads)) == reads
        process.stdout.close()
        assert not process.stderr.read()
    # What fits into the pipe at once may be written to its end.
    assert process.returncode == 141 or (reads and process.returncode == 0)


@pytest.mark.parametrize(("is_terminal", "default"), [(True, {}), (False, {"": 160, "x": 160})])
def test_the_width_is_what_columns_says(is_terminal, default, monkeypatch):
    """Would catch a card of 160 columns for whoever asked for 80."""
    monkeypatch.setattr("rich.console.Console.is_terminal", is_terminal)
    for columns, width in {"20": 20, "80": 80, **default}.items():
        monkeypatch.setenv("COLUMNS", columns)
        assert output.open_console().width == width, columns


def test_an_empty_path_is_none(capsys):
    """Would catch `--out ''`, a variable that is not set in a script, which would write into the present folder."""
    with pytest.raises(SystemExit) as exit:
        cli.main(["verify", "continual.lemma-4", "--out", ""])
    assert exit.value.code == 2
    assert "Invalid value for '--out': is empty. Name a path." in capsys.readouterr().err


def test_values_are_the_same_by_commas_and_by_repetition():
    made = click.Command("made", params=[Listed(["--width"], multiple=True, type=int)])
    for words in (["--width", "64,32"], ["--width", "64", "--width", "32"], ["--width", "64, 32"]):
        assert made.make_context("made", words).params["width"] == (64, 32)
    assert made.make_context("made", []).params["width"] == ()


def test_bash_completes_options():
    code = "import sys; from moe_theory.cli import main; main(sys.argv[1:])"
    asked = {"_MOE_THEORY_COMPLETE": "bash_complete", "COMP_WORDS": "moe-theory sweep show --pic", "COMP_CWORD": "3"}
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | asked, capture_output=True, text=True)
    assert done.stdout == "plain,--picture\n"


def test_commands_that_print_texts_import_neither_jax_nor_scipy_nor_a_paper():
    program = """
import contextlib, io, sys
from moe_theory import cli
commands = ("--help", "why edge.lemma-1", "statements", "figures --list", "report --cite", "nothing")
for command in commands:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        with contextlib.suppress(SystemExit):
            cli.main(command.split())
    heavy = {"jax", "scipy", "matplotlib", "xarray", "moe_theory.edge"} & sys.modules.keys()
    assert not heavy, (command, heavy)
"""
    outcome = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert outcome.returncode == 0, outcome.stderr
