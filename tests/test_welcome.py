"""The command line as a newcomer meets it: catches help that overflows a terminal, a mistake answered by a box, a
completion that a shell cannot use."""

import re
import shutil
import subprocess

import pytest

from moe_theory import __version__, cli, commands, welcome
from moe_theory.completion import script

COLUMNS = 80


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", str(COLUMNS))


def said(capsys, *arguments) -> str:
    """What a command that asks for nothing but words prints on standard output; nothing on standard error."""
    try:
        cli.main(arguments)
    except SystemExit as stop:
        assert not stop.code  # noqa: PT017
    streams = capsys.readouterr()
    assert not streams.err
    return streams.out


def complaint(capsys, *arguments) -> str:
    """The line on standard error of what is refused with exit code 2."""
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 2
    streams = capsys.readouterr()
    assert not streams.out
    (line,) = streams.err.splitlines()
    return line


def test_alone_it_says_what_it_is_and_what_to_do_next(capsys):
    page = said(capsys)
    assert len(page.splitlines()) <= 24
    assert max(map(len, page.splitlines())) <= COLUMNS
    assert len(welcome.NEXT) == 5
    for command in welcome.NEXT:
        cli.parse(command.partition(" > ")[0].split()[1:])
    assert "--help" in page


def test_help_has_a_line_for_every_command_and_every_exit_code(capsys):
    page = said(capsys, "--help")
    assert page == said(capsys, "-h")
    assert max(map(len, page.splitlines())) <= COLUMNS
    for name, title in cli.titles().items():
        assert re.search(rf"^  {name}  +{re.escape(title.split()[0])}", page, flags=re.MULTILINE)
    for code in (commands.DONE, commands.FAILED, commands.BAD_INPUT, commands.INTERRUPTED):
        assert re.search(rf"^ +{code}  \w", page, flags=re.MULTILINE)
    assert "--json" in page


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_a_command_s_help_fits_a_terminal(name, capsys):
    page = said(capsys, *name.split(), "--help")
    example = [line for line in page.splitlines() if line.startswith("  moe-theory")]
    assert example
    assert all(len(line) <= COLUMNS for line in page.splitlines() if line not in example)
    assert cli.COMMANDS[name].__doc__.split("\n\n")[0].split(" Example:")[0] in page
    if name != "completion":
        assert re.search(r"^│ --json  +Print JSON: \w", page, flags=re.MULTILINE)


def test_the_version(capsys):
    assert said(capsys, "--version") == f"moe-theory {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        ("verfy", ["unknown command 'verfy'", "Did you mean 'verify'"]),
        ("sweep shwo runs", ["sweep has no place for 'runs'"]),
        ("--verbose", ["no option '--verbose'", "come after its name"]),
        ("--json claims", ["no option '--json'", "come after its name"]),
        ("verify --seeed 3", ["verify has no option '--seeed'", "Did you mean --seed?"]),
        ("verify --seeed=3", ["verify has no option '--seeed'", "Did you mean --seed?"]),
        ("bench -x", ["bench has no option '-x'"]),
        ("bench --compile", ["Did you mean --no-compile?"]),
        ("verify --replicates many", ["--replicates 'many' must be a whole number"]),
        ("verify --replicates=2.5", ["--replicates '2.5' must be a whole number"]),
        ("verify --error small --seed -1", ["--error 'small' must be a number"]),
        ("bench --batch 1 two --quick", ["--batch '1 two' must be whole numbers"]),
        ("verify --out", ["--out needs a value"]),
        ("explore", ["explore needs CLAIM: The claim's id."]),
        ("sweep show", ["sweep show needs FOLDER"]),
        ("deep a b", ["deep has no place for 'b'"]),
        ("completion tcsh", ["unknown shell 'tcsh'", "bash, fish, zsh"]),
    ],
)
def test_what_cannot_be_parsed_is_one_line(arguments, parts, capsys):
    line = complaint(capsys, *arguments.split())
    assert line.startswith("moe-theory: ")
    for part in parts:
        assert part in line


def test_words_of_tyro_s_that_nobody_foresaw_are_told_in_a_line(capsys, monkeypatch):
    from moe_theory import arguments

    monkeypatch.setattr(arguments, "_COMPLAINTS", ())
    line = complaint(capsys, "verify", "--replicates", "many")
    assert "invalid literal" in line
    assert "│" not in line


@pytest.fixture(scope="module")
def bash_script(tmp_path_factory):
    if shutil.which("bash") is None:
        pytest.skip("no bash here")
    path = tmp_path_factory.mktemp("completion") / "moe-theory"
    flags = {name: cli.arguments.flags_of(kind) for name, kind in cli.COMMANDS.items()}
    path.write_text(script("bash", flags, cli.titles()))
    return path


def completed(path, line: str) -> list[str]:
    """What bash offers after the words of a line, the last of which is begun."""
    words = " ".join(f"'{word}'" for word in line.split(" "))
    code = (
        f"source {path}; complete -p moe-theory > /dev/null; COMP_WORDS=({words}); COMP_CWORD={line.count(' ')}; "
        '_moe_theory; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "--norc", "-c", code], capture_output=True, text=True, check=True)
    assert not done.stderr
    return done.stdout.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("moe-theory ver", ["verify"]),
        ("moe-theory verify --rep", ["--replicates"]),
        ("moe-theory verify continual --self", ["--self-test"]),
        ("moe-theory sweep sh", ["show"]),
        ("moe-theory sweep show --pic", ["--picture"]),
        ("moe-theory sweep --dr", ["--dry-run"]),
        ("moe-theory report ru", []),
    ],
)
def test_bash_completes_commands_and_options(line, offered, bash_script):
    assert completed(bash_script, line) == offered


def test_bash_offers_every_command(bash_script):
    assert set(completed(bash_script, "moe-theory ")) >= {name.split()[0] for name in cli.COMMANDS}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_every_shell_s_script_knows_all_options(shell, capsys):
    page = said(capsys, "completion", shell)
    for kind in cli.COMMANDS.values():
        for flag in cli.arguments.flags_of(kind):
            assert flag in page or f"-l {flag[2:]}" in page or f"-s {flag[1:]}" in page
