"""Regret of Tanbr and of its rivals over slots, on rewards whose best weights are known.

All policies meet the same tasks, requests and noise. Exponents are least-squares fits to the logarithm of the mean
regret, as in claims about rates.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Array, Float
from scipy import stats

from moe_theory.merging import corrected, policies, rewards
from moe_theory.merging.params import EFFECTIVE_SPLIT, RANDOM_SPLIT, Dims
from moe_theory.merging.system import Info, State, system
from moe_theory.runs import Progress, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import (
    Curves,
    FigureSpec,
    Panel,
    across_replicates,
    closing,
    log_axis_cells,
    panel_row,
    provenance,
)
from moe_theory.verify.intervals import slope_samples

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase


class Curve(NamedTuple):
    """A line: a policy with parameters of its own."""

    policy: str
    label: str
    changes: dict[str, Any]
    style: dict[str, Any]


_TREE = {"warm_start": False, "split_rule": RANDOM_SPLIT}
CURVES: dict[str, Curve] = {
    "random": Curve(policies.TANBR, "Tanbr", _TREE, {"color": "C0", "linewidth": 1.8}),
    "effective": Curve(
        policies.TANBR,
        "Tanbr, effective splits",
        _TREE | {"split_rule": EFFECTIVE_SPLIT},
        {"color": "C0", "linestyle": (0, (4, 1.4)), "linewidth": 1.4},
    ),
    "warm": Curve(
        policies.TANBR,
        r"Tanbr, warm start $x = \psi$",
        _TREE | {"warm_start": True},
        {"color": "C0", "linestyle": (0, (1, 1.1)), "linewidth": 1.6},
    ),
    "nucb": Curve(policies.NUCB, "NUCB", {}, {"color": "C2", "linewidth": 1.6}),
    "gradient": Curve(
        policies.GRADIENT, "policy gradient", {}, {"color": "C2", "linestyle": (0, (4, 1.4)), "linewidth": 1.4}
    ),
    "best-expert": Curve(policies.BEST_EXPERT, "UCB1 over experts", {}, {"color": "C3", "linewidth": 1.6}),
    "mix": Curve(policies.MIX, r"task mix, $x = \psi$", {}, {"color": "black", "linewidth": 1.1}),
    "average": Curve(policies.AVERAGE, "average", {}, {"color": "0.45", "linestyle": (0, (4, 1.4)), "linewidth": 1.1}),
    "uniform": Curve(
        policies.UNIFORM, "random weights", {}, {"color": "0.45", "linestyle": (0, (1, 1.2)), "linewidth": 1.1}
    ),
}
GUIDES: dict[str, dict[str, Any]] = {
    "root": {"color": "C1", "linewidth": 0.8, "linestyle": (0, (4, 1.6)), "zorder": 0},
    "power": {"color": "black", "linewidth": 0.8, "linestyle": (0, (4, 1.2, 1, 1.2)), "zorder": 0},
}
REWARDS = {
    rewards.PEAKED: "(a) one peak for all tasks",
    rewards.FLAT: "(b) flat, a best for each task",
    rewards.SHARES: "(c) an expert for each task",
}
DIMS = Dims(max_rounds=1000)
DRIFT = 1.0
FIRST_SLOT = 10  # that is drawn
FITTED_SHARE = 8  # exponents are fitted to slots from T over this
CONFIDENCE = 0.95


def observe(state: State, info: Info) -> Float[Array, ""]:
    """R_t."""
    del state
    return info.cumulative_regret


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Mean regret with its band, and fitted exponents with their intervals, by reward, method and slot.

    Raises: InvalidRunError for replicates or rounds that cannot be run.
    """
    length = DIMS.max_rounds if num_rounds is None else num_rounds
    parts = []
    for reward in REWARDS:
        for name, method in CURVES.items():
            params = reading.params(**{"mix_drift": DRIFT, **method.changes})
            own = system(DIMS, reward, method.policy)
            parts += log_axis_cells({f"{reward}, {name}": params}, own, observe, length)
    runs = run_cells(parts, replicates, seed=seed, progress=progress, what="regret")
    slots = parts[0].rounds
    shape = (len(REWARDS), len(CURVES), len(slots))
    values = {name: np.full(shape, np.nan) for name in ("mean", "low", "high", "error")}
    fits = {name: np.full(shape[:2], np.nan) for name in ("exponent", "exponent_error")}
    for row, reward in enumerate(REWARDS):
        for column, name in enumerate(CURVES):
            found = np.asarray(runs[f"{reward}, {name}"].records, np.float64)
            for measure, value in across_replicates(found).items():
                values[measure][row, column] = value
            fits["exponent"][row, column], fits["exponent_error"][row, column] = fitted(found, slots, length)
    return xr.Dataset(
        {name: (("reward", "policy", "slot"), value) for name, value in values.items()}
        | {name: (("reward", "policy"), value) for name, value in fits.items()},
        {"reward": list(REWARDS), "policy": list(CURVES), "slot": slots},
        provenance("merging", "regret", reading, replicates, seed, length, rounds=num_rounds)
        | {"smoothness_ratio": float(reading.params().smoothness_ratio)},
    )


def fitted(regrets: Float[np.ndarray, "R B"], slots: np.ndarray, num_rounds: int) -> tuple[float, float]:
    """The exponent of the mean regret's growth and half the length of its interval, NaN for one replicate."""
    late = slots >= num_rounds / FITTED_SHARE
    samples = slope_samples(regrets[late].T, slots[late].astype(float))[:, 0]
    if len(samples) < 2:
        return float(samples.mean()), float("nan")
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    return float(samples.mean()), float(error * stats.t.ppf((1 + CONFIDENCE) / 2, len(samples) - 1))


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    """A panel for each reward, with what sqrt(T) log T and T^a look like beside Tanbr's last regret."""
    axes = panel_row(figure, data.sizes["reward"], sharey=True)
    lines = []
    for panel, (reward, title) in zip(axes, REWARDS.items(), strict=True):
        here = data.sel(reward=reward).sel(slot=data.slot >= min(FIRST_SLOT, int(data.slot[-1])))
        panel.set(xscale="log", yscale="log", xlabel="slots $t$", xlim=(int(here.slot[0]), int(here.slot[-1])))
        panel.set_title(title, loc="left")
        band = here.sel(policy="random")
        panel.fill_between(here.slot, band.low, band.high, color="C0", alpha=0.15, linewidth=0)
        lines = [
            panel.plot(here.slot, here["mean"].sel(policy=name), label=method.label, **method.style)[0]
            for name, method in CURVES.items()
        ]
        lines += _draw_guides(panel, here.slot.values.astype(float), float(band["mean"][-1]), data)
    axes[0].set_ylabel("regret $R_t$, rewards in [0, 1]")
    figure.legend(handles=lines, loc="outside upper center", ncols=4)


def _draw_guides(panel: "Axes", slots: Float[np.ndarray, " R"], end: float, data: xr.Dataset) -> list[Any]:
    """Both rates, through Tanbr's last regret."""
    exponent = corrected.regret_exponent(data.attrs["smoothness_ratio"])
    logs = np.log(np.maximum(slots, 2))
    rates = {"root": np.sqrt(slots) * logs, "power": slots**exponent}
    labels = {"root": r"$\propto \sqrt{t}\,\log t$", "power": rf"$\propto t^{{{exponent:.2f}}}$"}
    return [
        panel.plot(slots, end * rate / rate[-1], label=labels[name], **GUIDES[name])[0] for name, rate in rates.items()
    ]


def caption(data: xr.Dataset) -> str:
    """What is drawn, the exponents, and how to draw it again."""
    exponent = corrected.regret_exponent(data.attrs["smoothness_ratio"])
    return (
        f"Mean cumulative regret against the best weights, K = V = {DIMS.num_tasks}, a task mix that drifts with "
        "period 500 and is known, B = K; the band is Tanbr's 10–90 % of replicates. (a) height_v exp(−|x − c|²/(2 s²)) "
        f"with s = {rewards.PEAK_WIDTH:g}; (b) 1 − |x − c_v|²/2; (c) x_v^(1/2). Grey guides pass through Tanbr's last "
        f"regret: √t log t, which the remark after Theorem 1 claims, and t^{exponent:.2f}, log(2/ρ)/log(2/ρ²) at ρ = "
        f"{data.attrs['smoothness_ratio']:g}, up to which leaf sizes can add. Exponents from T/{FITTED_SHARE} on, "
        f"with {CONFIDENCE:.0%} intervals: {_exponents(data)}.\n" + closing(data)
    )


def _exponents(data: xr.Dataset) -> str:
    names = {"random": "Tanbr", "effective": "effective", "warm": "warm", "nucb": "NUCB", "gradient": "gradient"}
    parts = []
    for place, reward in zip("abc", REWARDS, strict=True):
        here = data.sel(reward=reward)
        said = [
            f"{label} {float(here.exponent.sel(policy=name)):.2f} ± {float(here.exponent_error.sel(policy=name)):.2f}"
            for name, label in names.items()
        ]
        parts.append(f"({place}) {', '.join(said)}")
    return "; ".join(parts)


FIGURE = FigureSpec(
    name="regret",
    title="Regret of Tanbr and of its rivals",
    summary="Cumulative regret over slots on three rewards with known best weights, and how fast it grows.",
    replicates=10,
    size=(7.2, 3.4),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=(
        "merging.theorem-1.*",
        "merging.figure-4.*",
        "merging.abstract.sublinear*",
        "merging.remark.right-exponent",
    ),
)


OVERVIEW_RATIO = 0.9  # rho of the claims in the overview


def overview_curves(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress, verdicts: Mapping[str, Any]
) -> Curves:
    """The sum of nu_1 rho^h over T slots, as its claim observed it, and both orders through the first point."""
    del reading, replicates, seed, progress
    curve = verdicts["merging.remark.boxes"].curve
    if curve is None or curve.abscissa is None:
        raise RuntimeError("a rate has a curve with an abscissa")
    slots = np.array(curve.abscissa)
    logarithms, power = np.log(slots), corrected.regret_exponent(OVERVIEW_RATIO)
    total = np.array(curve.observed) * logarithms  # the claim observes it over log T
    orders = (np.sqrt(slots) * logarithms, slots**power * logarithms ** (1 - power))
    none = np.full(len(slots), np.nan)
    return Curves(slots, total, none, none, *(order / order[0] * total[0] for order in orders))


OVERVIEW = Panel(
    title="Expert merging: sum of box sizes, $\\rho = 0.9$",
    note="Leaves picked in turn; both orders are drawn through the first point.",
    printed="merging.remark.boxes",
    printed_words="Remark, √T log T",
    right="merging.remark.right-exponent",
    right_words="$T^a (\\log T)^{1-a}$, $a$ = 0.88",
    x_label="slots $T$",
    y_label="$\\Sigma\\, \\nu_1 \\rho^h$",
    log_axes="xy",
    curves=overview_curves,
)
