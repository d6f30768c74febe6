"""Figures, with their data under any reading, their drawing and their provenance."""

import dataclasses
import re
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from moe_theory.core.errors import InvalidValueError, plural
from moe_theory.core.random import root_key
from moe_theory.core.system import check_replicates, check_run
from moe_theory.runs import Cell, Progress, Run, quiet, run_cells
from moe_theory.verification.claim import ReadingLike
from moe_theory.verification.settings import adjusted, name_and_settings

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import FigureBase


@dataclasses.dataclass(frozen=True)
class Setup:
    """Choices for one computation of a figure's data."""

    name: str  # the figure's name
    reading: ReadingLike
    replicates: int
    seed: int
    progress: Progress
    rounds: Any  # by default the figure's own number
    experts: tuple[int, ...]  # numbers of experts to draw, if the figure allows a choice
    dims: Any  # static sizes with room for these experts, if the figure allows a choice
    command: str  # the command that draws the figure
    overrides: list[set[str]] = dataclasses.field(default_factory=list)  # names of overrides, for each call of `params`

    def params(self, **overrides: Any) -> Any:
        if overrides:
            self.overrides.append(set(overrides))
        return self.reading.params(**overrides)

    def run(self, cells: Iterable[Cell]) -> Mapping[str, Run]:
        listed = list(cells)
        self.require_settings_used()
        return run_cells(listed, self.replicates, seed=self.seed, progress=self.progress, what=self.name)

    def require_settings_used(self) -> None:
        always_overridden = set.intersection(*self.overrides) if self.overrides else set()
        _, user_settings = name_and_settings(self.reading)
        for name in user_settings:
            if name in always_overridden:
                alternative = "experts" if name == "num_experts" and self.experts else "another parameter"
                raise InvalidValueError(
                    f"{name} cannot be set, because the figure {self.name} always sets it. Set {alternative}.",
                    argument=name,
                )


Compute = Callable[[Setup], "xr.Dataset"]
Draw = Callable[["xr.Dataset", "FigureBase"], None]


@dataclasses.dataclass(frozen=True)
class FigureSpec:
    """One figure, with its data under any reading, its drawing and its caption."""

    paper: str
    name: str
    title: str
    summary: str  # one sentence on what it shows
    data: Compute  # such as `over_rounds(...)`, for an experiment's records
    draw: Draw
    text: str  # the caption. Words in braces come from `words`, the data's attributes, or the module
    words: Callable[["xr.Dataset"], Mapping[str, Any]] = lambda data: {}
    runs: str = "{count}, {num_rounds} rounds"  # the runs, in the caption's last lines
    closing: str = "Reading {reading} ({choices}); {runs}.\n{command}"  # last lines of the caption
    replicates: int = 64  # default number
    size: tuple[float, float] = (3.5, 2.5)  # size of the drawing without caption, in inches
    rounds: int | None = None  # default number, or None if there is no choice
    experts: tuple[int, ...] = ()  # default numbers of experts to draw, or () if there is no choice
    dims: Any = None  # static sizes, if experts can be chosen
    claims: tuple[str, ...] = ()  # globs over the ids of related claims

    def compute(self, setup: Setup) -> "xr.Dataset":
        """Return the figure's data with provenance in attributes. Raises: InvalidValueError."""
        data = self.data(setup)
        setup.require_settings_used()
        facts = {
            "figure": self.name,
            "reading": setup.reading.name,
            "reading_summary": setup.reading.summary,
            "replicates": setup.replicates,
            "seed": setup.seed,
            "num_rounds": setup.rounds or 0,
            "command": setup.command,
        }
        data.attrs = facts | data.attrs
        return data

    def setup(
        self,
        reading: ReadingLike,
        replicates: int,
        seed: int,
        progress: Progress = quiet,
        rounds: int | None = None,
        experts: Sequence[int] | None = None,
    ) -> Setup:
        """Return the input of `compute`, by default with the figure's own rounds and numbers of experts."""
        check_replicates(replicates)
        root_key(seed)  # refuses impossible seeds
        command = f"moe-theory figures {self.paper} {self.name} {adjusted(reading).options}"
        command += f" --replicates {replicates} --seed {seed}"
        if rounds is not None:
            check_run(rounds, 1)
            command += f" --rounds {rounds}"
        numbers = self.experts
        dims = self.dims
        if experts is not None:
            numbers = checked_experts(experts)
            command += f" --experts {','.join(map(str, numbers))}"
            if dims is not None:
                dims = dataclasses.replace(dims, max_experts=max(numbers))
        return Setup(
            name=self.name,
            reading=reading,
            replicates=replicates,
            seed=seed,
            progress=progress,
            rounds=rounds or self.rounds,
            experts=numbers,
            dims=dims,
            command=command,
        )

    def caption(self, data: "xr.Dataset") -> str:
        attributes = data.attrs
        replicates = attributes["replicates"]
        facts = {
            "count": f"{replicates} {plural(replicates, 'replicate')}, seed {attributes['seed']}",
            "choices": attributes["reading_summary"].replace("sigma_0", "σ₀"),
        }
        module_names = getattr(self.draw, "__globals__", {})
        words: Any = ChainMap({**self.words(data)}, facts, attributes, module_names)  # the first that has a name counts
        return f"{self.text}\n{self.closing.replace('{runs}', self.runs)}".format_map(words)


def figure(name: str, data: Compute, /, *, title: str, summary: str, **about: Any) -> Callable[[Draw], FigureSpec]:
    """Make the figure called "PAPER.FIGURE" from its drawing function, whose docstring is the caption."""
    paper, _, figure_name = name.partition(".")

    def decorate(draw: Draw) -> FigureSpec:
        text = re.sub(r"\s*\n\s*", " ", (draw.__doc__ or "").strip())  # in one line
        return FigureSpec(
            paper, figure_name, title, summary, data=data, draw=draw, text=text, **{"claims": (f"{paper}.*",), **about}
        )

    return decorate


def figures(*specs: FigureSpec) -> dict[str, FigureSpec]:
    return {spec.name: spec for spec in specs}


class Curves(NamedTuple):  # in a panel of the overview
    x: Float[np.ndarray, " R"]
    mean: Float[np.ndarray, " R"]  # measured mean
    low: Float[np.ndarray, " R"]  # 10 % quantile of replicates, NaN if there is no band
    high: Float[np.ndarray, " R"]  # 90 % quantile
    printed: Float[np.ndarray, " R"]
    right: Float[np.ndarray, " R"]


@dataclasses.dataclass(frozen=True)
class Panel:  # of the overview: what was measured, against a printed and a corrected claim
    title: str
    note: str  # a sentence for the caption
    printed: str  # id of the printed claim
    printed_words: str
    right: str  # id of the corrected claim
    right_words: str
    x_label: str
    y_label: str
    log_axes: str  # which of "x" and "y" are logarithmic
    curves: Callable[[Setup], Curves]


def checked_experts(experts: Sequence[int]) -> tuple[int, ...]:
    """Return the numbers of experts. Raises: InvalidValueError unless they are whole and different."""
    for number in experts:
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)) or number < 1:
            raise InvalidValueError(
                f"experts={number!r} must be a whole number of at least 1, such as 2 in 2,4,8.", argument="experts"
            )
    if not experts or len(set(experts)) < len(experts):
        raise InvalidValueError(
            f"experts={','.join(map(str, experts))} must be different numbers, such as 2,4,8.", argument="experts"
        )
    return tuple(map(int, experts))
