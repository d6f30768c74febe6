"""Click commands for functions of papers, made from the signatures."""

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from moe_theory.cli.options import PATH, Listed, WholeNumber, examples, json_option, out_option
from moe_theory.cli.output import command_line, open_console, print_lines, show_document, stop_at_once, stoppable
from moe_theory.core.errors import DeclarationError, shortened
from moe_theory.plot.commands import Interruption, Terminal, option_of
from moe_theory.plot.document import Content, Document
from moe_theory.runs.files import whole_set

_UNSET = (ParameterSource.DEFAULT, ParameterSource.DEFAULT_MAP)  # then the function's own default applies
_TYPES: dict[Any, click.ParamType] = {int: WholeNumber(), float: click.FLOAT, str: click.STRING, Path: PATH}
_ITEMS: dict[Any, click.ParamType] = {tuple[int, ...]: WholeNumber(), tuple[str, ...]: click.STRING}  # types of members


def command_of(paper: str, name: str, function: Callable[..., Any]) -> click.Command:
    """Return a command for a function that returns a `plot.document.Document`. Its docstring is the help."""
    place = f"paper {paper!r}: the command {name!r}"
    try:
        hints = typing.get_type_hints(function, include_extras=True)
    except NameError as failure:
        raise DeclarationError(f"{place} has a type that is not imported: {failure}. Import the type.") from None
    parameters = inspect.signature(function).parameters
    positional_keys = [key for key, parameter in parameters.items() if parameter.kind is parameter.POSITIONAL_ONLY]
    terminals = [key for key in parameters if hints.get(key) is Terminal]

    def run(**values: Any) -> None:
        context = click.get_current_context()
        chosen_values = {key: value for key, value in values.items() if context.get_parameter_source(key) not in _UNSET}
        console = open_console()
        terminal = Terminal(console, say=functools.partial(print_lines, console), command=command_line())
        chosen_values |= dict.fromkeys(terminals, terminal)
        arguments = [chosen_values.pop(key) for key in positional_keys if key in chosen_values]
        # Unless the function has its own `out`, the option is added below, and the files are written here.
        out = None if "out" in parameters else chosen_values.pop("out", None)
        with stoppable():
            try:
                document = function(*arguments, **chosen_values)
                if not isinstance(document, Document):
                    raise DeclarationError(f"{place} returned {shortened(document)}. Return a Document.")
                folder = out or document.folder
                if folder is not None:
                    _write(document.files, folder)
            except Interruption as interruption:
                stop_at_once(f"interrupted; {interruption}")
            show_document(document)
            if folder is not None:
                print_lines(console, *(f"wrote {folder / file}" for file in document.files))

    text, _, example_lines = (inspect.getdoc(function) or "").partition("\n\nExamples:\n")
    options = [
        _parameter(place, declared, hints.get(key)) for key, declared in parameters.items() if key not in terminals
    ]
    epilog = examples(*map(str.strip, example_lines.splitlines())) if example_lines else None
    command = click.Command(name, callback=run, params=options, help=text, epilog=epilog)
    if "out" not in parameters:
        command = out_option("Folder for the result's files.", default_words="no files")(command)
    return json_option(option_of(hints.get("return")).help)(command)


def _write(files: Mapping[str, Content], folder: Path) -> None:
    with whole_set(folder, files) as paths:
        for path, content in zip(paths.values(), files.values(), strict=True):
            if callable(content):
                content(path)
            else:
                from moe_theory.report import pages  # few documents need it

                path.write_text(pages.to_json(content))


def _parameter(place: str, parameter: inspect.Parameter, hint: Any) -> click.Parameter:
    option = option_of(hint)
    if hasattr(hint, "__metadata__"):
        hint = typing.get_args(hint)[0]
    kinds = [hint]
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        kinds = [part for part in typing.get_args(hint) if part is not types.NoneType]
    is_variadic = parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD)
    if is_variadic or len(kinds) != 1 or kinds[0] not in (bool, *_TYPES, *_ITEMS):
        raise DeclarationError(
            f"{place}: {parameter} has a type that options cannot have. Use bool, int, float, str, Path, tuple[int, "
            "...] or tuple[str, ...], or a union of one of these with None."
        )
    kind = kinds[0]
    is_required = parameter.default is parameter.empty
    if parameter.kind is parameter.POSITIONAL_ONLY:
        return click.Argument([parameter.name], type=_TYPES.get(kind), required=is_required, metavar=option.metavar)
    option_class = Listed if kind in _ITEMS else click.Option
    names = option.names or (f"--{parameter.name.replace('_', '-')}",)
    default = parameter.default
    if is_required or default is None:
        default = option.default
    return option_class(
        [*names, parameter.name],
        type=(_TYPES | _ITEMS).get(kind),
        is_flag=kind is bool,
        default=default,
        required=is_required,
        help=option.help,
        metavar=option.metavar,
        show_default=option.default_words or True,
    )
