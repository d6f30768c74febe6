"""Options shared by several commands."""

import contextlib
import decimal
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from moe_theory.cli.output import JSON
from moe_theory.core.errors import InvalidValueError, plural, shortened

Command = TypeVar("Command", bound=Callable[..., Any])
Decorator = Callable[[Command], Command]


class _Path(click.Path):
    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not str(value):
            self.fail("is empty. Name a path.", param, ctx)
        return super().convert(value, param, ctx)


class Listed(click.Option):
    """An option that can be repeated, or given once with commas between values."""

    def __init__(self, *names: Any, **attributes: Any) -> None:
        super().__init__(*names, **attributes | {"multiple": True})

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        parts = itertools.chain.from_iterable(str(text).split(",") for text in value or ())
        return super().type_cast_value(ctx, [part.strip() for part in parts])


class WholeNumber(click.ParamType):
    """A whole number, which can be written as 60_000 or 1e6. Raises: InvalidValueError for anything else."""

    name = "integer"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        with contextlib.suppress(decimal.InvalidOperation):
            number = decimal.Decimal(str(value))
            if number.is_finite() and number.adjusted() < LONGEST_NUMBER and number == int(number):
                return int(number)
        option = param.opts[0] if param else ""
        raise InvalidValueError(f"{option} {shortened(value)} must be a whole number, such as 8 or 1e6.")


LONGEST_NUMBER = 309  # digits of the largest float. To convert 1e999999999 would take forever
PATH = _Path(path_type=Path)
LAST_RUN = "runs/verify"  # default folder of `verify`, which other commands read
OWN_RUN = "runs/system"  # default folder of `verify --system`

seed_option: Decorator = click.option("--seed", default=0, help="Seed of all random numbers.")
from_option: Decorator = click.option(
    "--from", "folder", type=PATH, help="Folder of a run whose results are shown.", show_default="published results"
)
module_option: Decorator = click.option("--module", type=PATH, help="A Python file that declares your own claims.")
system_option: Decorator = click.option(
    "--system",
    metavar="FILE:NAME",
    help="Your own algorithm, as NAME = dict(router=...) in a Python file, with parts of the paper's `system`.",
)


def cluster_option(action: str) -> Decorator:
    """Return --dask, the address of a cluster for an `action`, such as "Take samples"."""
    words = (
        f"{action} on a Dask cluster. Give a scheduler's address such as tcp://host:8786, or local:N for N processes. "
        "Anyone who controls the scheduler can run any code here and on its workers."
    )
    return click.option("--dask", metavar="ADDRESS", help=words)


def set_option(target: str) -> Decorator:
    words = f"Set a parameter in addition to {target}. Repeat the option, or separate parameters by commas."
    return click.option("--set", "settings", cls=Listed, metavar="NAME=VALUE", help=words)


def out_option(content: str, default: str | None = None, default_words: str | None = None) -> Decorator:
    """Return --out for `content`, whose default is `default` or described by `default_words`."""
    return click.option("--out", type=PATH, default=default, help=content, show_default=default_words or True)


def json_option(document: str) -> Decorator:
    def note(context: click.Context, option: click.Parameter, value: bool) -> None:
        context.meta[JSON] = value

    return click.option("--json", is_flag=True, expose_value=False, callback=note, help=f"Print JSON: {document}")


def examples(*commands: str) -> str:
    heading = f"{plural(len(commands), 'Example')}:"
    lines = [f"  {command}" for command in commands]
    return "\n".join(["\b", heading, *lines])  # after \b, Click does not wrap lines
