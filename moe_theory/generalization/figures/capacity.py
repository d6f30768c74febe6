"""Capacity over the number of active experts, against the paper's sqrt(k (1 + log(T/k))).

In (a) the supremum over linear experts is exact, for a given linear router. In (b) both are fitted to random labels.
Values are in units of R_m(H), which bounds (a) by Eq. (32).
"""

import itertools

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory import plot
from moe_theory.generalization import theory
from moe_theory.generalization.experiments import FIT_RATE, best_gaps, cell_name, shown
from moe_theory.generalization.instances import linear_router
from moe_theory.generalization.model import Dims
from moe_theory.plot import roles
from moe_theory.runs import Cell, run_cells

DIMS = Dims(max_experts=16, num_features=10, max_samples=256)
ACTIVE = (1, 2, 3, 4, 6, 8, 12, 16)
NORMS = (1.0, 4.0, 16.0, 64.0)  # W of the router
INSTANCES = 16  # instances of (a) for each replicate of (b), because they are cheap
PANELS = {"fixed": "(a) router given: exact", "learned": "(b) router learned: lower estimates"}
MARKERS = "os^D"  # one for each norm


def compute(setup: plot.Setup) -> xr.Dataset:
    params = {}
    for norm, active in itertools.product(NORMS, ACTIVE):
        params[norm, active] = setup.params(
            num_experts=DIMS.max_experts,
            num_active=active,
            num_samples=DIMS.max_samples,
            router_norm=norm,
            learning_rate=FIT_RATE,
        )
    names = {(norm, active): cell_name(W=norm, k=active) for norm, active in params}
    settings = {names[place]: (DIMS, values) for place, values in params.items()}
    gaps = best_gaps(settings, setup.rounds, setup.replicates, setup.seed, progress=setup.progress, words=setup.name)
    router = linear_router(DIMS)
    cells = [Cell(names[place], router, values, num_rounds=1) for place, values in params.items()]
    runs = run_cells(cells, INSTANCES * setup.replicates, seed=setup.seed, progress=setup.progress, what=setup.name)
    any_run = next(iter(runs.values()))  # one expert's capacity depends on neither W nor k
    lone = float(np.mean(shown(any_run, "lone")))
    fitted = by_inclusion(np.array([[gaps[names[norm, active]] for active in ACTIVE] for norm in NORMS]))
    routed = np.array([[shown(runs[names[norm, active]], "routed") for active in ACTIVE] for norm in NORMS])
    squares = [[np.mean(shown(runs[names[norm, active]], "mean_square_gate")) for active in ACTIVE] for norm in NORMS]
    growth = np.asarray(theory.sparsity_term(DIMS.max_experts, np.array(ACTIVE)))
    growth = growth / theory.sparsity_term(DIMS.max_experts, 1)
    variables = roles.ArtistStyle()
    for name, samples in (("fixed", routed / lone), ("learned", 2 * fitted / lone)):  # twice: see `best_gaps`
        across = plot.across_replicates(samples)
        variables |= {
            name: (("norm", "active"), across["mean"]),
            f"{name}_error": (("norm", "active"), across["error"]),
        }
        variables[f"{name}_paper"] = ("active", samples[..., 0, :].mean() * growth / growth[0])
    variables["fixed_theory"] = (("norm", "active"), np.sqrt(DIMS.max_experts * np.array(squares)))
    return xr.Dataset(variables, {"norm": list(NORMS), "active": list(ACTIVE)})


def by_inclusion(gaps: Float[np.ndarray, "W k B"]) -> Float[np.ndarray, "W k B"]:
    """Return the best of each class and the classes of smaller norms inside it.

    At k = 1 the norm is irrelevant, because a mask depends only on the order of the logits.
    """
    best = np.maximum.accumulate(gaps, axis=0)
    best[:, 0] = best[-1, 0]
    return best


@plot.figure(
    "generalization.capacity",
    compute,
    title="Capacity over the number of active experts",
    summary="Exact and fitted capacities over k at several router norms against the paper's sqrt(k(1+log(T/k))).",
    runs="{count}, {num_rounds} steps",
    replicates=16,
    size=(7.2, 3.3),
    rounds=400,
    claims=("generalization.remark.*-learned-*", "generalization.equation-31.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Rademacher complexity of T = {DIMS.max_experts} linear experts (|w| ≤ 1), k of them active, on m =
    {DIMS.max_samples} inputs from the unit sphere in d = {DIMS.num_features} dimensions; 95 % intervals over
    replicates, mostly within the marks. (a) A random linear router with rows of norm W: for given signs the supremum
    over the experts is exact; {INSTANCES} instances a replicate. It falls with k, the faster the smaller W, as √(T
    E|a|²) predicts; by Eq. (32) it would be at most that of one expert (dotted level). (b) Router rows with |v| ≤ W and
    experts both fitted to random labels: lower estimates, each the best fit known to be in its class (classes grow with
    W; at k = 1 they do not depend on W). As W → ∞ every k comes to contain k = 1. Dashed: the remark's growth with k,
    scaled to agree at k = 1. No d_N enters.
    """
    ylabel = "capacity, in units of one expert's, $R_m(H)$"
    axes = plot.row(canvas, list(PANELS.values()), xscale="log", xlabel="active experts $k$", ylabel=ylabel)
    for panel, name in zip(axes, PANELS, strict=True):
        plot.name_values(panel.xaxis, data.active.values)
        roles.REFERENCE.hline(panel, 1)
        for norm, colour, marker in zip(data.norm.values, plot.ramp(len(MARKERS)), MARKERS, strict=False):
            selection = data.sel(norm=norm)
            look = {"color": colour, "marker": marker, "markersize": 3.5, "linewidth": 1.5}
            plot.intervals(
                panel, selection.active, selection[name], selection[f"{name}_error"], f"$W$ = {norm:g}", **look
            )
        paper = data[f"{name}_paper"]
        roles.PRINTED.plot(panel, data.active, paper, label=r"$\propto\sqrt{k(1+\log(T/k))}$, the paper")
        panel.set_ylim(0, 1.05 * float(paper.max()))
    for norm in data.norm.values:
        exact = data.fixed_theory.sel(norm=norm)
        roles.RIGHT.plot(axes[0], data.active, exact, label=r"(a) $\sqrt{T\,E|a|^2}$")
    plot.legend(canvas, 6, columnspacing=1.1, handlelength=2.0)
