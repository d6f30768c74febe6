"""Regret of Tanbr and its rivals over slots, on rewards with known best weights.

All policies receive the same tasks, requests and noise. Exponents are least-squares fits to log mean regret.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Float
from scipy import stats

from moe_theory import plot
from moe_theory.core.system import fields
from moe_theory.merging import corrected, experiments, policies, rewards
from moe_theory.merging.params import EFFECTIVE_SPLIT, RANDOM_SPLIT, Dims
from moe_theory.merging.system import system
from moe_theory.plot import roles
from moe_theory.verification.intervals import contrast_samples, slope_weights


class PolicyCurve(NamedTuple):
    policy: str
    label: str
    role: roles.ArtistStyle
    changes: Mapping[str, float] = MappingProxyType({})


_TREE = {"warm_start": False, "split_rule": RANDOM_SPLIT}
_EFFECTIVE = _TREE | {"split_rule": EFFECTIVE_SPLIT}
_WARM = _TREE | {"warm_start": True}
CURVES: dict[str, PolicyCurve] = {
    "random": PolicyCurve(policies.TANBR, "Tanbr", roles.MEASURED, _TREE),
    "effective": PolicyCurve(
        policies.TANBR, "Tanbr, effective splits", roles.MEASURED(linestyle=roles.DASHED), _EFFECTIVE
    ),
    "warm": PolicyCurve(policies.TANBR, r"Tanbr, warm start $x = \psi$", roles.MEASURED(linestyle=roles.DOTTED), _WARM),
    "nucb": PolicyCurve(policies.NUCB, "NUCB", roles.RIVAL),
    "gradient": PolicyCurve(policies.GRADIENT, "policy gradient", roles.RIVAL(linestyle=roles.DASHED)),
    "best-expert": PolicyCurve(policies.BEST_EXPERT, "UCB1 over experts", roles.OTHER_RIVAL),
    "mix": PolicyCurve(policies.MIX, r"task mix, $x = \psi$", roles.ArtistStyle(color=roles.INK, linewidth=1.1)),
    "average": PolicyCurve(policies.AVERAGE, "average", roles.BASELINE),
    "uniform": PolicyCurve(policies.UNIFORM, "random weights", roles.BASELINE(linestyle=roles.DOTTED)),
}
# The curves with exponents, by their names in the caption.
FITTED = {"random": "Tanbr", "effective": "effective", "warm": "warm", "nucb": "NUCB", "gradient": "gradient"}
REWARDS = {
    rewards.PEAKED: "(a) one peak for all tasks",
    rewards.FLAT: "(b) flat, a best for each task",
    rewards.SHARES: "(c) an expert for each task",
}
PEAK_WIDTH = rewards.PEAK_WIDTH
DIMS = Dims(max_rounds=1000)
DRIFT = 1.0
FIRST_SLOT = 10  # the first slot that is drawn
FITTED_SHARE = 8  # exponents are fitted to slots from T divided by this
CONFIDENCE = 0.95


def compute(setup: plot.Setup) -> xr.Dataset:
    cells = []
    observe = fields("info.cumulative_regret")
    for reward in REWARDS:
        for name, method in CURVES.items():
            params = {f"{reward}, {name}": setup.params(**{"mix_drift": DRIFT, **method.changes})}
            cells += plot.log_axis_cells(params, system(DIMS, reward, method.policy), observe, setup.rounds)
    runs = setup.run(cells)
    slots = cells[0].rounds

    def values_of(reward: str, name: str) -> plot.Values:
        regrets = np.asarray(runs[f"{reward}, {name}"].records.cumulative_regret, np.float64)
        exponent, error = fitted(regrets, slots, setup.rounds)
        return plot.across_replicates(regrets) | {"exponent": exponent, "exponent_error": error}

    data = plot.over(values_of, {"slot": slots}, reward=list(REWARDS), policy=list(CURVES))
    return data.assign_attrs(smoothness_ratio=float(setup.params().smoothness_ratio))


def fitted(regrets: Float[np.ndarray, "R B"], slots: np.ndarray, num_rounds: int) -> tuple[float, float]:
    """Return the growth exponent of the mean regret and half of its interval, NaN for one replicate."""
    is_fitted = slots >= num_rounds / FITTED_SHARE
    weights = slope_weights(slots[is_fitted].astype(float))
    samples = contrast_samples(regrets[is_fitted].T, weights[None])[:, 0]
    if len(samples) < 2:
        return float(samples.mean()), float("nan")
    error = samples.std(ddof=1) / np.sqrt(len(samples))
    quantile = stats.t.ppf((1 + CONFIDENCE) / 2, len(samples) - 1)
    return float(samples.mean()), float(error * quantile)


def caption_words(data: xr.Dataset) -> Mapping[str, str | float]:
    parts = []
    for place, reward in zip("abc", REWARDS, strict=True):
        curves = data.sel(reward=reward)
        exponents = {name: float(curves.exponent.sel(policy=name)) for name in FITTED}
        errors = {name: float(curves.exponent_error.sel(policy=name)) for name in FITTED}
        words = [f"{label} {exponents[name]:.2f} ± {errors[name]:.2f}" for name, label in FITTED.items()]
        parts.append(f"({place}) {', '.join(words)}")
    return {"exponents": "; ".join(parts), "power": corrected.regret_exponent(data.attrs["smoothness_ratio"])}


@plot.figure(
    "merging.regret",
    compute,
    title="Regret of Tanbr and of its rivals",
    summary="Cumulative regret over slots on three rewards with known best weights, and how fast it grows.",
    words=caption_words,
    replicates=10,
    size=(7.2, 3.4),
    rounds=DIMS.max_rounds,
    claims=(
        "merging.theorem-1.*",
        "merging.figure-4.*",
        "merging.abstract.sublinear*",
        "merging.remark.right-exponent",
    ),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Mean cumulative regret against the best weights, K = V = {DIMS.num_tasks}, a task mix that drifts with period 500
    and is known, B = K; the band is Tanbr's 10–90 % of replicates. (a) height_v exp(−|x − c|²/(2 s²)) with s =
    {PEAK_WIDTH:g}; (b) 1 − |x − c_v|²/2; (c) x_v^(1/2). Grey guides pass through Tanbr's last regret: √t log t, which
    the remark after Theorem 1 claims, and t^{power:.2f}, log(2/ρ)/log(2/ρ²) at ρ = {smoothness_ratio:g}, up to which
    leaf sizes can add. Exponents from T/{FITTED_SHARE} on, with {CONFIDENCE:.0%} intervals: {exponents}.
    """
    late = data.sel(slot=data.slot >= min(FIRST_SLOT, int(data.slot[-1])))
    slots = late.slot.values.astype(float)
    label = "regret $R_t$, rewards in [0, 1]"
    axes = plot.row(canvas, list(REWARDS.values()), ylabel=label, sharey=True, xlabel="slots $t$")
    for panel, reward in zip(axes, REWARDS, strict=True):
        panel.set(xscale="log", yscale="log", xlim=(slots[0], slots[-1]))
        curves = late.sel(reward=reward)
        for name, method in CURVES.items():
            method.role.plot(panel, slots, curves["mean"].sel(policy=name), label=method.label)
        tanbr = curves.sel(policy="random")
        roles.BAND.fill(panel, slots, tanbr.low, tanbr.high)
        _draw_guides(panel, slots, float(tanbr["mean"][-1]), data.attrs["smoothness_ratio"])
    plot.legend(canvas, 4)


def _draw_guides(panel: plot.Axes, slots: Float[np.ndarray, " R"], end: float, ratio: float) -> None:
    """Draw both orders through `end` in the last slot."""
    exponent = corrected.regret_exponent(ratio)
    printed = np.sqrt(slots) * np.log(np.maximum(slots, 2))  # log 1 = 0 has no place on a logarithmic axis
    right = slots**exponent
    label = r"$\propto \sqrt{t}\,\log t$"
    roles.PRINTED(linewidth=0.8, zorder=0).plot(panel, slots, end * printed / printed[-1], label=label)
    label = rf"$\propto t^{{{exponent:.2f}}}$"
    roles.RIGHT(linewidth=0.8, zorder=0).plot(panel, slots, end * right / right[-1], label=label)


OVERVIEW_RATIO = 0.9  # rho for the claims in the overview


def overview_curves(setup: plot.Setup) -> plot.Curves:
    """Return the sum of nu_1 rho^h over T slots, and both orders of T through the first point."""
    name = experiments.tree_cell("in-turn", OVERVIEW_RATIO)
    (cell,) = [cell for cell in experiments.GROWTH.cells_under(setup.reading) if cell.name == name]
    run = setup.run([cell])[cell.name]
    places = 2 ** np.arange(len(run.rounds).bit_length()) - 1  # of the records number 1, 2, 4, ...
    slots = run.rounds[places].astype(float)
    logarithms = np.log(slots)
    power = corrected.regret_exponent(OVERVIEW_RATIO)
    sums = plot.across_replicates(experiments.recorded(run, "cumulative_discretization")[places])
    printed = np.sqrt(slots) * logarithms
    right = slots**power * logarithms ** (1 - power)
    first = sums["mean"][0]
    printed = printed / printed[0] * first
    right = right / right[0] * first
    return plot.Curves(slots, sums["mean"], sums["low"], sums["high"], printed=printed, right=right)


OVERVIEW = plot.Panel(
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
