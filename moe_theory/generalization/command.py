"""`moe-theory bound`."""

import contextlib
import functools
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from moe_theory.cli.options import PATH, Listed, examples, json_option, out_option
from moe_theory.cli.output import show_document
from moe_theory.core.errors import InvalidParamsError, shortened

PICTURE = "bounds.svg"


def _count(context: click.Context, option: click.Parameter, text: str | None) -> int | None:
    """A whole number, also written as 60_000 or 1e6. Raises: InvalidParamsError for anything else."""
    if text is None:
        return None
    try:
        number = float(text)
        if math.isfinite(number) and number == int(number):
            return int(number) if "e" in text.lower() or "." in text else int(text)
    except ValueError:
        pass
    raise InvalidParamsError(f"{option.opts[0]} {shortened(text)} must be a whole number, such as 8 or 1e6.")


count_option = functools.partial(click.option, callback=_count, metavar="INTEGER")


@click.command(
    epilog=examples(
        "moe-theory bound --experts 8 --active 1 --samples 1000000",
        "moe-theory bound --expert-width 64 --samples 1e9",
        "moe-theory bound --weights 46.7e9 --bits 16 --samples 1e12",
        "moe-theory bound --checkpoint model.safetensors --errors 150 --samples 1437",
    )
)
@count_option("--experts", "num_experts", default="8", help="T, number of experts.")
@count_option("--active", "num_active", default="2", help="k, experts active for an input.")
@count_option("--samples", "num_samples", default="60000", help="m, training samples, such as 60000 or 1e6.")
@count_option("--features", "num_features", default="784", help="d, entries of an input.")
@click.option(
    "--expert-norm",
    default=1.0,
    help="B: |w| <= B for each linear expert; the Frobenius norm of each layer of expert networks.",
)
@click.option(
    "--router-norm",
    default=1.0,
    help="W: |v| <= W for each row of a linear router, or of a network's last layer, whose others have it as Frobenius "
    "norm.",
)
@click.option("--feature-norm", default=1.0, help="c: |x| <= c for each input.")
@click.option(
    "--lipschitz",
    default=1.0,
    help="C, of the loss in the model's output; such as 0.5 for the ramp loss clip((1 - y f)/2, 0, 1).",
)
@click.option("--delta", default=0.05, help="Probability with which each bound may fail.")
@click.option(
    "--rademacher",
    metavar="R",
    help="Your own R_m(H), of experts of any kind: a number, measured at this m, or '2.5/sqrt(m)' where that bounds it "
    "on any m inputs, however they were picked.",
)
@click.option(
    "--expert-widths",
    "--expert-width",
    cls=Listed,
    type=int,
    help="Hidden units of expert networks (ReLU, no biases); one a layer, with commas between.",
)
@click.option(
    "--checkpoint",
    type=PATH,
    help="Weights in safetensors, a file or a folder, of which headers alone are read; with --errors the weights are "
    "coded, for a bound on the risk of this one model.",
)
@count_option("--errors", "num_errors", help="Samples, of the --samples it was trained on, that the model gets wrong.")
@count_option(
    "--weights", "num_weights", help="All weights of a classifier of which nothing else is assumed, such as 46.7e9."
)
@count_option("--bits", default="32", help="That a weight is stored in.")
@out_option("Folder for the picture, bounds.svg.", told="no picture")
@json_option(
    "schema, setting, known (what follows from it), notes and bounds, each with value, hypotheses, status and the like."
)
@click.pass_context
def bound(
    context: click.Context,
    checkpoint: Path | None,
    num_errors: int | None,
    out: Path | None,
    **values: Any,
) -> None:
    """Bounds on a sparse MoE's generalization error.

    Of each bound: its value, whether it is informative (the loss is in [0, 1], so a bound of 1 or more says nothing),
    from how many samples on, whether it holds or is refuted, and its hypotheses. Experts and router are linear by
    default. With --checkpoint and --errors the bound is on the risk of that model. Routers of other
    classes, your own d_N, other norms of each layer, losses in place of errors: `generalization.bound` in Python.
    """
    from moe_theory.generalization import calculator, from_files, report
    from moe_theory.runs.files import prepare_folder

    options = {option.name: option.opts[0] for option in context.command.params if option.name and option.opts}
    given = {name: options[name] for name in values if context.get_parameter_source(name) != ParameterSource.DEFAULT}
    notes = [] if "num_samples" in given else [f"m = {values['num_samples']:,} is the default of --samples."]
    there, said = from_files.fields(checkpoint, num_errors, None, {name: values[name] for name in given}, given)
    with _options_in_messages(options):
        setting = calculator.setting_of(**(values | there))
        found = calculator.calculate(setting)
    if setting.num_weights is not None and "num_experts" not in there:
        notes.append("T, k and d play no part in bounds on weights of which nothing else is known.")
    notes += said
    picture = None
    if out is not None:
        picture = prepare_folder(out, (PICTURE,)) / PICTURE
        report.picture(setting, found).save(picture)
    show_document(report.document(setting, found, notes, picture))


@contextlib.contextmanager
def _options_in_messages(options: dict[str, str]) -> Iterator[None]:
    """Errors that name fields of a setting name options instead."""
    try:
        yield
    except InvalidParamsError as error:
        known = sorted(options, key=len, reverse=True)
        names = "|".join(rf"{name}(?=\b)" if "_" in name else rf"{name}(?==)" for name in known)
        words = re.sub(rf"(?<![\w./-])({names})", lambda found: options[found[1]], str(error))
        raise InvalidParamsError(re.sub(r"(--[a-z-]+)=", r"\1 ", words)) from None
