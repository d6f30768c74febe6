"""Number of leaves and depth of the tree under the worst rules to pick leaves, against Lemmas 1 and 2.

Splits are effective, so that every leaf is a candidate. The bounds at slot t are those of a run that ends there, T = t.
"""

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Int

from moe_theory.core.random import root_key
from moe_theory.core.system import recorded_rounds, simulate_batch
from moe_theory.merging import adversary, corrected, theory
from moe_theory.merging.params import EFFECTIVE_SPLIT, Dims, Params
from moe_theory.runs import Progress, quiet
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


class Case(NamedTuple):
    """One column: a threshold."""

    smoothness_ratio: float
    split_constant: float


CASES: dict[str, Case] = {"small": Case(0.5, 1.0), "usual": Case(0.9, 1.0), "large": Case(0.5, 30.0)}
NUM_ROUNDS = 20_000
NUM_RECORDS = 300  # slots drawn, evenly spread on a logarithmic axis
DIMS = Dims(max_experts=3, max_rounds=NUM_ROUNDS, max_leaves=1024)
RULES = ("in-turn", "deepest")
OBSERVED = ("leaves", "depth")
LEAF_BOUNDS = ("printed_leaves", "repaired_leaves")
DEPTH_BOUNDS = ("printed_depth", "intermediate_depth", "repaired_depth")
STYLES: dict[str, dict[str, Any]] = {
    "in-turn": {"color": "C0", "linewidth": 1.6, "drawstyle": "steps-post"},
    "deepest": {"color": "C2", "linewidth": 1.6, "drawstyle": "steps-post"},
    "printed": {"color": "C1", "linewidth": 1.4, "linestyle": (0, (4, 1.6))},
    "intermediate": {"color": "C1", "linewidth": 1.2, "linestyle": (0, (1, 1.2))},
    "repaired": {"color": "black", "linewidth": 1.0, "linestyle": (0, (4, 1.2, 1, 1.2)), "drawstyle": "steps-post"},
}
LEGEND = {
    "in-turn": "leaf after leaf, shallowest first",
    "deepest": "deepest leaf",
    "repaired": "what holds",
    "printed": "Lemma 1, (5); Lemma 2, (7)",
    "intermediate": r"Lemma 2 before $1/(2\,\log(1/\rho)) \leq 1/(1-\rho)$",
}


class Shown(NamedTuple):
    """Observables of a slot."""

    leaves: Int[Array, ""]
    depth: Int[Array, ""]
    left_out: Int[Array, ""]


def observe(state: adversary.State, info: adversary.Info) -> Shown:
    """All leaves and the depth of the tree after a slot."""
    del state
    return Shown(info.num_leaves, info.max_depth, info.left_out)


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """The most leaves and the largest depth over replicates, by case, rule and slot, with the bounds.

    Raises: InvalidRunError for replicates or rounds that cannot be run.
    """
    length = NUM_ROUNDS if num_rounds is None else num_rounds
    params = {name: params_of(reading, case) for name, case in CASES.items()}
    # Not a sweep, whose chunks are padded to many replicates: hardly anything here is random.
    root, runs = root_key(seed), {}
    progress.add_work(len(CASES) * len(RULES) * length)
    progress.running("leaves")
    for name in CASES:
        for rule in RULES:
            system = adversary.one_rule(DIMS, rule)
            runs[name, rule] = simulate_batch(system, root, replicates, params[name], length, observe=observe)[1]
            progress.advance(length)
    places = np.unique(np.rint(np.geomspace(1, length, NUM_RECORDS)).astype(int)) - 1
    times = recorded_rounds(length)[places]
    shape = (len(CASES), len(RULES), len(times))
    values = {name: np.zeros(shape, int) for name in (*OBSERVED, "left_out")}
    bounds = {name: np.zeros((len(CASES), len(times))) for name in (*LEAF_BOUNDS, *DEPTH_BOUNDS)}
    for row, name in enumerate(CASES):
        for column, rule in enumerate(RULES):
            shown = runs[name, rule]
            for key in values:
                values[key][row, column] = np.max(np.asarray(getattr(shown, key))[places], axis=1)
        for key, bound in bounds_of(times, params[name]).items():
            bounds[key][row] = bound
    return xr.Dataset(
        {name: (("case", "rule", "time"), value) for name, value in values.items()}
        | {name: (("case", "time"), value) for name, value in bounds.items()},
        {"case": list(CASES), "rule": list(RULES), "time": times},
        provenance("merging", "leaves", reading, replicates, seed, length, rounds=num_rounds),
    )


def params_of(reading: ReadingLike, case: Case) -> Params:
    """The reading's parameters with a case's threshold, three experts and effective splits."""
    return reading.params(num_experts=3, max_active=3, split_rule=EFFECTIVE_SPLIT, **case._asdict())


def bounds_of(times: Int[np.ndarray, " R"], params: Params) -> dict[str, Any]:
    """All bounds for runs that end in these slots; what is infinite at log(t/delta) = 0 is NaN."""
    printed = {
        "printed_leaves": theory.leaf_bound(times, params),
        "printed_depth": theory.depth_bound(times, params),
        "intermediate_depth": theory.intermediate_depth_bound(times, params),
    }
    return {name: np.where(np.isfinite(value), value, np.nan) for name, value in printed.items()} | {
        "repaired_leaves": np.array([corrected.leaf_bound(int(time), params) for time in times]),
        "repaired_depth": np.array([corrected.depth_bound(int(time), params) for time in times]),
    }


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """A column for each case: leaves above, depth below."""
    axes = figure.subplots(2, data.sizes["case"], sharex=True, squeeze=False)
    for column, (name, case) in enumerate(CASES.items()):
        here = data.sel(case=name)
        top, bottom = axes[0, column], axes[1, column]
        top.set_title(
            f"({'abc'[column]}) $\\rho$ = {case.smoothness_ratio:g}, $C$ = {case.split_constant:g}", loc="left"
        )
        top.set(xscale="log", yscale="log", xlim=(float(data.time[0]), float(data.time[-1])))
        for rule in RULES:
            top.plot(here.time, here.leaves.sel(rule=rule), **STYLES[rule])
            bottom.plot(here.time, here.depth.sel(rule=rule), **STYLES[rule])
        for panel, bounds in ((top, LEAF_BOUNDS), (bottom, DEPTH_BOUNDS)):
            for bound in bounds:
                panel.plot(here.time, here[bound], **STYLES[bound.split("_")[0]])
        _fit(top, bottom, here)
        bottom.set_xlabel("slot $t$")
    axes[0, 0].set_ylabel("leaves $N_t$")
    axes[1, 0].set_ylabel("depth $H(t)$")
    _draw_legend(figure)


def _fit(top: "Axes", bottom: "Axes", here: xr.Dataset) -> None:
    """Room for what is measured and for what is crossed; where (5) is far off, it leaves the picture."""
    most = float(here.repaired_leaves.max())
    top.set_ylim(0.3 if float(here.printed_leaves.min()) < 1 else 0.8, most * 8)
    lowest = min(0.0, float(here.printed_depth.min()))
    bottom.set_ylim(max(lowest, -6.0) - 0.3, float(here.repaired_depth.max()) * 1.9 + 1)


def _draw_legend(figure: "FigureBase") -> None:
    from matplotlib.lines import Line2D

    handles = [Line2D([], [], **STYLES[name], label=label) for name, label in LEGEND.items()]
    figure.legend(handles=handles, loc="outside upper center", ncols=3)


def caption(data: xr.Dataset) -> str:
    """What is drawn, and how to draw it again."""
    return (
        "The tree alone, three experts, ν₁ = 1, leaves picked by two rules: one leaf after another until it is split, "
        "the shallowest first, and the deepest leaf. Effective splits, so that all leaves are candidates. Above: "
        "leaves, (5) at T = t, and the bound that holds for every way to pick. Below: depth, (7) at T = t, the form in "
        "its proof (dotted), and the largest depth of all ways to pick, which the deepest leaf reaches. (5) grows as "
        "T / log T where leaves grow more slowly; for large C both lemmas are below what the root alone gives, and the "
        "form in the proof is exceeded by one where the depth of what is split is taken for the tree's.\n"
        + closing(data)
    )


FIGURE = FigureSpec(
    name="leaves",
    title="Leaves and depth of the tree against Lemmas 1 and 2",
    summary="Leaves and depth under the worst ways to pick, against (5), (7) and the bounds that hold.",
    replicates=1,
    size=(7.2, 3.8),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("merging.lemma-1.*", "merging.lemma-2.*"),
)
