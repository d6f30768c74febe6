"""`moe-theory bound`."""

import functools
import math
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from moe_theory.cli.options import PATH, examples, json_option
from moe_theory.cli.output import open_console, print_json, print_lines
from moe_theory.core.errors import InvalidParamsError, shortened


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
        "moe-theory bound --expert-width 64 --router-width 32 --samples 1e9",
        "moe-theory bound --config config.json --samples 1e12",
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
@click.option("--threshold", default=1.0, help="A bound is informative below it.")
@click.option(
    "--router",
    metavar="CLASS",
    help="linear, network, fixed (chosen before the samples are seen) or free (any function).",
    show_default="as the other options say",
)
@click.option(
    "--dimension",
    metavar="READING",
    help="What d_N is the dimension of: masks (Definition 4) or router (Theorem 1).",
    show_default="both",
)
@click.option(
    "--natarajan", type=float, help="Your own d_N; without --router nothing else is assumed to be known of the router."
)
@click.option(
    "--rademacher",
    metavar="R",
    help="Your own R_m(H), of experts of any kind: a number, measured at this m, or '2.5/sqrt(m)' where that bounds it "
    "on any m inputs, however they were picked.",
)
@click.option(
    "--expert-widths",
    "--expert-width",
    multiple=True,
    type=int,
    help="Hidden units of expert networks (ReLU, no biases); repeat it for each layer.",
)
@click.option(
    "--router-widths",
    "--router-width",
    multiple=True,
    type=int,
    help="Hidden units of a router network (ReLU, no biases); repeat it for each layer.",
)
@click.option(
    "--operator-norms",
    multiple=True,
    type=float,
    help="Largest spectral norm of a layer of expert networks (K_i of Lemma 3); repeat it for each layer.",
    show_default="--expert-norm",
)
@click.option(
    "--row-norms",
    multiple=True,
    type=float,
    help="Largest sum of a layer's row norms (b_i of Lemma 3); repeat it for each layer.",
    show_default="what widths and norms allow",
)
@click.option(
    "--config",
    type=PATH,
    help="A published model's config.json, which has T, k, d, the number of weights and their bits.",
)
@count_option(
    "--weights", "num_weights", help="All weights of a classifier of which nothing else is assumed, such as 46.7e9."
)
@count_option("--bits", default="32", help="That a weight is stored in.")
@click.option("--picture", type=PATH, help="Where to draw the bounds over m, .svg or .png.")
@json_option("schema, setting, known (what follows from it) and bounds, each with value, status and the like.")
@click.pass_context
def bound(context: click.Context, config: Path | None, picture: Path | None, as_json: bool, **values: Any) -> None:
    """Bounds on a sparse MoE's generalization error.

    Of each bound: its value, whether it is informative (the loss is in [0, 1], so a bound of 1 or more says nothing),
    from how many samples on, and whether it holds or is refuted. Experts and router are linear by default.
    """
    from moe_theory.generalization import calculator, published
    from moe_theory.report import bounds

    if config is not None:
        found_there = published(config)
        given = [name for name in found_there if context.get_parameter_source(name) != ParameterSource.DEFAULT]
        if clash := [name for name in given if name != "bits"]:
            raise InvalidParamsError(f"{clash[0]} is what --config {config} says. Drop one of both.")
        values |= {name: value for name, value in found_there.items() if name not in given}
    setting = calculator.setting_of(**values)
    found = calculator.calculate(setting)
    console = open_console(to_stderr=as_json)
    if picture is not None:
        bounds.draw(setting, found, picture)
    if as_json:
        print_json(bounds.to_json(setting, found))
    else:
        console.print(bounds.shown(setting, found), highlight=False)
    if picture is not None:
        print_lines(console, f"picture: {picture}")
