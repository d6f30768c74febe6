"""Figures of papers and the overview, also as files."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import xarray as xr

from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.core.papers import find_paper, paper_names
from moe_theory.plot import FigureSpec, Setup
from moe_theory.plot.style import FORMS, Form, font_sizes, inches, our_style, saved
from moe_theory.report import overview
from moe_theory.runs import Progress, automatic, quiet, shown
from moe_theory.runs.files import prepare_folder, write_together
from moe_theory.verification.catalog import OVERVIEW
from moe_theory.verification.claim import ReadingLike
from moe_theory.verification.registry import SPECIAL_NAMES, select_readings
from moe_theory.verification.settings import with_settings

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figures_of(paper: str) -> Mapping[str, FigureSpec]:
    """Return a paper's figures by name, or the overview. Raises: UnknownNameError."""
    if paper == OVERVIEW:
        return overview.figures()
    if paper not in paper_names():
        raise unknown_name("paper", paper, [*paper_names(), OVERVIEW])
    return find_paper(paper).import_figures()


def figure(
    name: str,
    *,
    reading: str | None = None,
    replicates: int | None = None,
    seed: int = 0,
    rounds: int | None = None,
    experts: Sequence[int] | None = None,
    settings: Mapping[str, float | str] | None = None,
    width: float | str | None = None,
    progress: Progress = automatic,
) -> tuple[xr.Dataset, "Figure"]:
    """Compute and draw a figure of a paper, like `moe-theory figures`.

    Args:
        name: "PAPER.FIGURE", as in `moe-theory figures --list`, or "overview.overview".
        reading: the reading's name, by default the paper's first default.
        replicates: number of replicates, by default the figure's own number.
        rounds: number of rounds (for some figures slots, steps or repetitions), by default the figure's own number.
        experts: numbers of experts M to draw.
        settings: parameters by name that change the reading, such as {"truth_scale": 0.2}.
        width: width in inches, or a text such as "8cm", by default the figure's own. The height follows.
    Returns: the data, whose attributes have the command, and the figure.
    Raises: UnknownNameError or InvalidValueError for an impossible figure.

    Examples:
        >>> import moe_theory as mt
        >>> asked = {"experts": [2, 4], "settings": {"truth_scale": 0.2}}
        >>> data, drawn = mt.figure("continual.figure-2", replicates=4, rounds=20, **asked)
        >>> data.experts.values.tolist()
        [2, 4]
    """
    from moe_theory.plot import layout  # imports matplotlib

    paper, _, figure_name = name.partition(".")
    if figure_name not in figures_of(paper):
        raise unknown_name("figure", name, [f"{paper}.{declared}" for declared in figures_of(paper)])
    wide = inches(width)
    ((spec, setup),) = _plan_figures(
        paper,
        [figure_name],
        reading=reading,
        replicates=replicates,
        seed=seed,
        settings=settings,
        rounds=rounds,
        experts=experts,
    )
    with shown(progress) as listener:
        data = _with_width(spec.compute(dataclasses.replace(setup, progress=listener)), width)
    with our_style(font_sizes(wide)):
        return data, layout.drawn(spec, data, wide)


def make_figures(
    paper: str,
    names: Sequence[str] = (),
    *,
    forms: Sequence[Form] = ("svg",),
    width: float | str | None = None,
    out: str | Path = "figures",
    progress: Progress = quiet,
    **asked: Any,
) -> list[Path]:
    """Draw figures to `out`/`paper`/NAME.svg, with their data in NAME.csv."""
    from moe_theory.plot import layout

    forms = list(dict.fromkeys(forms))
    for form in forms:
        if form not in FORMS:
            raise unknown_name("format", form, FORMS)
    wide = inches(width)
    planned = _plan_figures(paper, names, **asked)
    names_and_suffixes = itertools.product([spec.name for spec, _ in planned], [*forms, "csv"])
    folder = prepare_folder(Path(out) / paper, [f"{name}.{suffix}" for name, suffix in names_and_suffixes])
    paths = []
    for spec, setup in planned:
        data = _with_width(spec.compute(dataclasses.replace(setup, progress=progress)), width)
        contents: dict[str, str | bytes] = {}
        with our_style(font_sizes(wide)):
            picture = layout.drawn(spec, data, wide)
            for form in forms:
                contents[f"{spec.name}.{form}"] = saved(picture, form, spec.title, spec.caption(data))
        paths += write_together(folder, contents | {f"{spec.name}.csv": to_csv(data)})
    return paths


def _plan_figures(
    paper: str,
    names: Sequence[str],
    *,
    reading: str | None = None,
    replicates: int | None = None,
    seed: int = 0,
    settings: Mapping[str, float | str] | None = None,
    rounds: int | None = None,
    experts: Sequence[int] | None = None,
) -> list[tuple[FigureSpec, Setup]]:
    specs = _select_specs(paper, names)
    chosen_reading = _reading_of(paper, reading, settings)
    options = {"rounds": rounds, "experts": experts}
    for name, number in (("replicates", replicates), ("rounds", rounds)):
        if number is not None and number < 1:
            raise InvalidValueError(f"{name}={number} must be at least 1. Raise {name}.", argument=name)
    planned = []
    for spec in specs:
        count = replicates or spec.replicates
        for option, value in options.items():
            if value is not None and getattr(spec, option) in (None, ()):  # the figure allows no choice
                raise InvalidValueError(f"the figure {paper} {spec.name} sets its {option} itself. Leave {option} out.")
        planned.append((spec, spec.setup(chosen_reading, count, seed, rounds=rounds, experts=experts)))
    return planned


def _reading_of(paper: str, name: str | None, settings: Mapping[str, float | str] | None) -> ReadingLike:
    if paper == OVERVIEW:
        if name is not None or settings:
            subject = "settings are" if name is None else f"reading={name!r} is"
            raise InvalidValueError(
                f"{subject} of one paper, but {OVERVIEW} shows each under its first default. Name the paper."
            )
        return overview.FIRST_DEFAULTS
    if name in SPECIAL_NAMES:
        raise unknown_name("reading", name, [choice.name for choice in select_readings(paper, ["all"])])
    names = None if name is None else [name]
    return with_settings(select_readings(paper, names)[0], settings or {})


def _select_specs(paper: str, names: Sequence[str]) -> list[FigureSpec]:
    figures = figures_of(paper)
    for name in names:
        if name != "all" and name not in figures:
            raise unknown_name("figure", name, [*figures, "all"])
    if not names or "all" in names:
        return list(figures.values())
    return [figure for name, figure in figures.items() if name in names]


def _with_width(data: xr.Dataset, width: float | str | None) -> xr.Dataset:
    if width is None:
        return data
    if not isinstance(width, str):
        width = f"{width:g}in"
    return data.assign_attrs(command=f"{data.attrs['command']} --width {width}")


def to_csv(data: xr.Dataset) -> str:
    table = data.to_dataframe().reset_index()
    for column in ("seed", "replicates", "reading"):
        table.insert(0, column, data.attrs[column])
    return table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
