"""The command line, made with Click. A command is imported on request. JAX is imported when a command runs."""

import ast
import functools
import gc
import importlib
import io
import os
import sys
import time
import types
from collections.abc import Sequence

import click

from moe_theory import __version__
from moe_theory.cli.output import EXITS, FAILED, UNREAD, brief, discard, refuse, stop
from moe_theory.core.errors import DeclarationError, MoeTheoryError, OutputError
from moe_theory.core.papers import declared_commands, import_command, parsed_source

_ONE_WORD = "statements why figures verify challenge explore report record new sweep".split()
_COMMANDS = (*_ONE_WORD, "sweep show")  # commands of this package. The last is `show` in sweep.py
ABOUT = """Test the theorems of Mixture-of-Experts papers by simulation, exact computation
and proof."""
COMPLETION = "_MOE_THEORY_COMPLETE"  # environment variable with which a shell requests completions


def main(arguments: Sequence[str] | None = None) -> None:
    """Run a command, by default the one in sys.argv. Raises SystemExit unless the exit code is 0."""
    start_time = time.monotonic()
    if isinstance(sys.stdout, io.TextIOWrapper):  # for terminals without Unicode, and paths with odd characters
        sys.stdout.reconfigure(errors="backslashreplace")
    gc.set_threshold(100_000, 20, 20)  # imports create millions of lasting objects. Scanning them takes 0.5 s
    if arguments is None:
        arguments = sys.argv[1:]
    try:
        _run(list(arguments), start_time)
    except click.ClickException as mistake:
        mistake.__dict__["message"] = brief(mistake.message)  # Click declares it final
        mistake.show()
        raise SystemExit(mistake.exit_code) from None
    except KeyboardInterrupt:
        stop("interrupted. Unfinished output is not written")
    except BrokenPipeError:  # the reader of a pipe has ended
        discard(sys.stdout, sys.stderr)
        raise SystemExit(UNREAD) from None
    except MoeTheoryError as failure:
        refuse(failure)
    except (EOFError, click.Abort):  # a paper's command asked, but the input has ended
        stop("the input ended before the question was answered", FAILED)
    except OSError as failure:  # such as a full disk, a name that is too long, or a folder without permission
        if failure.filename is None:
            discard(sys.stdout)
        refuse(OutputError(f"{failure.filename or 'standard output'}: {failure.strerror or failure}."))
    runner = sys.modules.get("moe_theory.runs.runner")
    if runner is not None and runner.has_abandoned():  # do not wait for calls that a budget cut off
        os._exit(0)


def _run(words: list[str], start_time: float) -> None:
    """Run a command. Click's own `main` has other messages and exit codes."""
    if COMPLETION in os.environ:
        app.main(words, "moe-theory")  # prints completions and exits
    try:
        with app.make_context("moe-theory", words, obj=start_time) as context:
            app.invoke(context)
    except click.exceptions.Exit as end:  # for example after --help, with code 0
        if end.exit_code:
            raise SystemExit(end.exit_code) from None
    if sys.stdout is not None:  # None if the caller closed it
        sys.stdout.flush()


class _App(click.Group):
    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _COMMANDS or cmd_name in commands():  # the second reads the papers' declarations
            return command(cmd_name)
        self.commands.update({name: click.Command(name) for name in commands()})  # Click can suggest these
        return None

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name in commands() if " " not in name]

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        first_words = " ".join(args[:2])
        if first_words in _COMMANDS:  # such as "sweep show"
            args = [first_words, *args[2:]]
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, commands()))
        with formatter.section("Commands"):
            summaries = {name: _summary(name, limit=200).rstrip(".") for name in commands()}
            formatter.write_dl([(f"{name:{width}}", summary) for name, summary in summaries.items()])

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Exit codes"):
            formatter.write_dl([(f"{code:3}", meaning) for code, meaning in EXITS.items()])
        formatter.write_paragraph()
        formatter.write_text("With --json a command prints one JSON document and nothing else. Its help describes it.")


@functools.cache
def commands() -> tuple[str, ...]:
    """Return all commands, including papers'. Raises: DeclarationError if a name is taken."""
    for name, (paper, _) in declared_commands().items():
        if name in _COMMANDS:
            raise DeclarationError(f"paper {paper!r}: moe-theory itself has a command {name!r}. Rename the paper's.")
    return (*_COMMANDS, *declared_commands())


def command(name: str) -> click.Command:
    """Import a command and return it. Raises: DeclarationError if a paper's command is broken."""
    if name not in _COMMANDS:
        from moe_theory.cli.papers import command_of  # its import takes longer than the help of all commands

        paper, _ = declared_commands()[name]
        function = import_command(name)
        if not isinstance(function, types.FunctionType):
            kind = type(function).__name__
            raise DeclarationError(f"paper {paper!r}: the command {name!r} is of type {kind}. Make it a function.")
        return command_of(paper, name, function)
    module, _, function = _place(name).partition(":")
    return getattr(importlib.import_module(module), function)


def _place(name: str) -> str:  # "module:function"
    if name not in _COMMANDS:
        _, place = declared_commands()[name]
        return place
    words = name.split()
    return f"moe_theory.cli.{words[0]}:{words[-1]}"


def _summary(name: str, limit: int) -> str:
    module, _, function = _place(name).partition(":")
    for node in parsed_source(module).body:
        if isinstance(node, ast.FunctionDef) and node.name == function:
            return click.Command(name, help=ast.get_docstring(node)).get_short_help_str(limit)
    return ""


@click.group(
    cls=_App,
    help=ABOUT,
    invoke_without_command=True,
    subcommand_metavar="COMMAND [ARGS]...",
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True, "max_content_width": 100},
)
@click.version_option(__version__, message="%(prog)s %(version)s")
@click.pass_context
def app(context: click.Context) -> None:
    """The program. Its commands are imported on request."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
