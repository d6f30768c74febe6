"""Leaves and depth of the tree under the worst rules for picking leaves, against Lemmas 1 and 2.

Splits are effective, so every leaf is a candidate. Bounds at slot t are for T = t.
"""

from typing import NamedTuple

import numpy as np
import xarray as xr
from jaxtyping import Int

from moe_theory import plot
from moe_theory.core.random import root_key
from moe_theory.core.system import fields, recorded_rounds, simulate_batch
from moe_theory.merging import adversary, corrected, theory
from moe_theory.merging.params import EFFECTIVE_SPLIT, Dims, Params
from moe_theory.plot import roles


class Column(NamedTuple):
    smoothness_ratio: float
    split_constant: float


CASES: dict[str, Column] = {"small": Column(0.5, 1.0), "usual": Column(0.9, 1.0), "large": Column(0.5, 30.0)}
NUM_ROUNDS = 20_000
NUM_RECORDS = 300  # slots drawn, evenly spaced on a logarithmic axis
DIMS = Dims(max_experts=3, max_rounds=NUM_ROUNDS, max_leaves=1024)
STEPS = "steps-post"  # matplotlib's name: a value holds until the next slot
RULES = {
    "in-turn": (roles.MEASURED(drawstyle=STEPS), "leaf after leaf, shallowest first"),
    "deepest": (roles.RIVAL(drawstyle=STEPS), "deepest leaf"),
}
BOUNDS = {
    "printed": (roles.PRINTED, "Lemma 1, (5); Lemma 2, (7)"),
    "intermediate": (roles.PRINTED_TOO, r"Lemma 2 before $1/(2\,\log(1/\rho)) \leq 1/(1-\rho)$"),
    "repaired": (roles.RIGHT(drawstyle=STEPS), "what holds"),
}


def compute(setup: plot.Setup) -> xr.Dataset:
    length = setup.rounds
    progress = setup.progress
    params = {name: params_of(setup, case) for name, case in CASES.items()}
    slots_drawn = np.unique(np.rint(np.geomspace(1, length, NUM_RECORDS)).astype(int))
    places = slots_drawn - 1
    times = recorded_rounds(length)[places]
    # We avoid a sweep, whose chunks are padded to many replicates, because hardly anything here is random.
    root = root_key(setup.seed)
    observe = fields(leaves="info.num_leaves", depth="info.max_depth", left_out="info.left_out")
    progress.add_work(len(CASES) * len(RULES) * length)
    progress.running(setup.name)

    def largest_values(case: str, rule: str) -> dict[str, Int[np.ndarray, " R"]]:
        system = adversary.one_rule(DIMS, rule)
        _, records = simulate_batch(system, root, setup.replicates, params[case], length, observe=observe)
        progress.advance(length)
        samples = {name: np.asarray(values)[places] for name, values in records._asdict().items()}
        return {name: np.max(values, axis=1).astype(int) for name, values in samples.items()}  # over replicates

    inner = {"time": times}
    data = plot.over(largest_values, inner, case=list(CASES), rule=list(RULES))
    return data.merge(plot.over(lambda case: bounds_of(times, params[case]), inner, case=list(CASES)))


def params_of(setup: plot.Setup, case: Column) -> Params:
    return setup.params(num_experts=3, max_active=3, split_rule=EFFECTIVE_SPLIT, **case._asdict())


def bounds_of(times: Int[np.ndarray, " R"], params: Params) -> plot.Values:
    bounds = {
        "printed_leaves": theory.leaf_bound(times, params),
        "repaired_leaves": np.array([corrected.leaf_bound(int(time), params) for time in times], float),
        "printed_depth": theory.depth_bound(times, params),
        "intermediate_depth": theory.intermediate_depth_bound(times, params),
        "repaired_depth": np.array([corrected.depth_bound(int(time), params) for time in times], float),
    }
    return {name: np.where(np.isfinite(value), value, np.nan) for name, value in bounds.items()}


@plot.figure(
    "merging.leaves",
    compute,
    title="Leaves and depth of the tree against Lemmas 1 and 2",
    summary="Leaves and depth under the worst ways to pick, against (5), (7) and the bounds that hold.",
    replicates=1,
    size=(7.2, 3.8),
    rounds=NUM_ROUNDS,
    claims=("merging.lemma-1.*", "merging.lemma-2.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """The tree alone, three experts, ν₁ = 1, leaves picked by two rules: one leaf after another until it is split, the
    shallowest first, and the deepest leaf. Effective splits, so that all leaves are candidates. Above: leaves, (5) at T
    = t, and the bound that holds for every way to pick. Below: depth, (7) at T = t, the form in its proof (dotted), and
    the largest depth of all ways to pick, which the deepest leaf reaches. (5) grows as T / log T where leaves grow more
    slowly; for large C both lemmas are below what the root alone gives, and the form in the proof is exceeded by one
    where the depth of what is split is taken for the tree's.
    """
    axes = canvas.subplots(2, data.sizes["case"], sharex=True, squeeze=False)
    for letter, (name, case), (top, bottom) in zip("abc", CASES.items(), axes.T, strict=True):
        selection = data.sel(case=name)
        title = f"({letter}) $\\rho$ = {case.smoothness_ratio:g}, $C$ = {case.split_constant:g}"
        top.set_title(title, loc="left")
        top.set(xscale="log", yscale="log", xlim=(float(data.time[0]), float(data.time[-1])))
        for panel, measure in ((top, "leaves"), (bottom, "depth")):
            for rule, (role, label) in RULES.items():
                role.plot(panel, selection.time, selection[measure].sel(rule=rule), label=label)
            for bound, (role, label) in BOUNDS.items():
                if f"{bound}_{measure}" in selection:
                    role.plot(panel, selection.time, selection[f"{bound}_{measure}"], label=label)
        # The printed bounds go far beyond what holds, and below what a tree can have, so they are cut there.
        most_leaves = float(selection.repaired_leaves.max())
        top.set_ylim(0.3 if float(selection.printed_leaves.min()) < 1 else 0.8, most_leaves * 8)
        lowest = min(0.0, float(selection.printed_depth.min()))
        bottom.set_ylim(max(lowest, -6.0) - 0.3, float(selection.repaired_depth.max()) * 1.9 + 1)
        bottom.set_xlabel("slot $t$")
    axes[0, 0].set_ylabel("leaves $N_t$")
    axes[1, 0].set_ylabel("depth $H(t)$")
    plot.legend(canvas, 3)
