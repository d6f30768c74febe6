"""Fig. 8: each arrival's expert under four thresholds, in the first run in which they differ."""

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory import plot
from moe_theory.continual import theory
from moe_theory.continual.experiments import FIGURE_8, HISTORY, PERTURBATION_POWER, THRESHOLD_POWERS, THRESHOLDS
from moe_theory.continual.figures.regimes import observe
from moe_theory.continual.params import SIGMA_0, Params
from moe_theory.core.errors import plural
from moe_theory.plot import roles
from moe_theory.runs import Cell

DIMS = HISTORY.dims
PERTURBATION = SIGMA_0**PERTURBATION_POWER
ROUNDS_DRAWN = 100
COLOURS = ("C0", "C3", "C2")  # one for each cluster
MARKERS = "os^"  # one for each cluster
# Relation of threshold to perturbation, by the sign of the difference of their powers of sigma_0 < 1.
RELATIONS = {-1: ">", 0: "=", 1: "<"}
LANE = 0.27  # vertical distance between the lanes of an expert's clusters
MARK = roles.ArtistStyle(linestyle="none", markersize=3.4, markeredgewidth=0.8)
EVEN = roles.ArtistStyle(color="0.3", linewidth=0.8, linestyle=roles.DASHED)


def settings_of(setup: plot.Setup) -> dict[str, Params]:
    return {name: setup.params(**overrides) for name, overrides in THRESHOLDS.items()}


def compute(setup: plot.Setup) -> xr.Dataset:
    """Return one replicate's arrivals under each threshold. Rounds, tasks, clusters and experts are numbered from 1."""
    settings = settings_of(setup)
    runs = setup.run(
        Cell(name, HISTORY.system, params, setup.rounds, record_every=1, observe=observe)
        for name, params in settings.items()
    )
    experts = np.stack([run.records.expert for run in runs.values()])
    differs = np.any(experts != experts[:1], axis=(0, 1))  # whether a replicate's routes depend on the threshold
    replicate = int(np.argmax(differs))
    first_params = settings[next(iter(settings))]
    runs_by_power = dict(zip(THRESHOLD_POWERS, runs.values(), strict=True))

    def arrivals(power: float) -> dict[str, np.ndarray]:
        records = runs_by_power[power].records
        return {
            "task": records.task[:, replicate] + 1,
            "cluster": records.task[:, replicate] % first_params.num_clusters + 1,
            "expert": records.expert[:, replicate] + 1,
            "terminated": records.terminated[:, replicate],
        }

    data = plot.over(arrivals, {"round": np.arange(1, setup.rounds + 1)}, threshold_power=THRESHOLD_POWERS)
    attributes = {"share_parting": float(np.mean(differs)), "learning_rate": float(first_params.learning_rate)}
    return data.assign_coords(replicate=replicate).assign_attrs(attributes)


def termination_round(run: xr.Dataset) -> int | None:
    if not run.terminated.any():
        return None
    return int(run["round"].values[np.argmax(run.terminated.values)])


def load_shares(run: xr.Dataset) -> Float[np.ndarray, "M K"]:
    last_excluded = termination_round(run) or explored_rounds(run)
    later = run.where(run["round"] > last_excluded, drop=True)
    counts = np.zeros((DIMS.max_experts, int(run.cluster.max())))
    np.add.at(counts, (later.expert.values.astype(int) - 1, later.cluster.values.astype(int) - 1), 1)
    return counts / max(counts.sum(), 1)


def explored_rounds(data: xr.Dataset) -> int:
    return int(theory.exploration_rounds(DIMS.max_experts, data.attrs["learning_rate"]))


def caption_words(data: xr.Dataset) -> dict[str, float | str]:
    which = "replicate 0; the four thresholds route alike in all of them"
    if data.attrs["share_parting"] > 0:
        number = int(data.replicate)
        which = f"the first replicate (number {number}) in which the four thresholds do not all route alike"
    return {"which": which, "drawn": min(ROUNDS_DRAWN, data.attrs["num_rounds"])}


@plot.figure(
    "continual.figure-8",
    compute,
    title="Arrivals and their experts under four termination thresholds",
    summary="Fig. 8: each arrival of one run and its expert, with the loads after termination.",
    words=caption_words,
    replicates=256,
    size=(7.2, 6.2),
    rounds=FIGURE_8.num_rounds,
    claims=("continual.figure-8.*", "continual.proposition-3.*"),
)
def picture(data: xr.Dataset, canvas: plot.Canvas) -> None:
    """Every arrival, at the expert it was routed to, under four termination thresholds: N = 6 tasks in K = 3 clusters
    {{1, 4}}, {{2, 5}}, {{3, 6}}, a lane of an expert's row each, M = 5 experts, perturbation λ = σ₀^1.25 =
    {PERTURBATION:.3f}. The first {drawn} rounds are drawn; bars: shares of all arrivals after termination (after T₁
    without one), by cluster. The paper expects uneven loads for Γ > λ, and for Γ ≤ λ even ones among the experts of a
    cluster. Drawn is {which}; they differ in {share_parting:.0%} of the replicates.
    """
    axes = canvas.subplots(
        data.sizes["threshold_power"], 2, sharex="col", sharey=True, squeeze=False, gridspec_kw={"width_ratios": (6, 1)}
    )
    for letter, power, (route_panel, share_panel) in zip("abcd", data.threshold_power.values, axes, strict=True):
        curves = data.sel(threshold_power=power)
        is_elsewhere = (curves.expert.values != data.expert.values[0]) & (curves["round"].values <= ROUNDS_DRAWN)
        elsewhere = curves.isel(round=is_elsewhere)
        _draw_routes(route_panel, curves, elsewhere)
        _draw_shares(share_panel, load_shares(curves))
        relation = RELATIONS[int(np.sign(power - PERTURBATION_POWER))]
        words = rf"$\Gamma = \sigma_0^{{{power:g}}}$ = {SIGMA_0**power:.3f} {relation} $\lambda$"
        route_panel.set_title(f"({letter}) threshold {words}", loc="left")
        ended = termination_round(curves)
        fixed = "gates never fixed"
        if ended:
            fixed = f"gates fixed from round {ended}"
        moved = elsewhere.sizes["round"]
        difference = "" if letter == "a" else f"; {moved} {plural(moved, 'arrival')} elsewhere than in (a)"
        route_panel.set_title(fixed + difference, loc="right")
        route_panel.set_ylabel("expert $m$")
    axes[-1, 0].set_xlabel("round $t$")
    axes[-1, 1].set_xlabel("share of later\narrivals")
    plot.legend(canvas, 6, columnspacing=1, handlelength=1.8)


def _draw_routes(panel: plot.Axes, run: xr.Dataset, elsewhere: xr.Dataset) -> None:
    rounds = run["round"].values
    num_clusters = int(run.cluster.max())
    for task in sorted(range(1, DIMS.num_tasks + 1), key=lambda task: (task - 1) % num_clusters):  # for the legend
        cluster = (task - 1) % num_clusters  # from 0 on
        is_first = task <= num_clusters
        is_drawn = (run.task.values == task) & (rounds <= ROUNDS_DRAWN)
        lanes = run.expert.values[is_drawn] + LANE * (cluster - 1)
        marker = MARKERS[cluster % 3]
        colour = COLOURS[cluster % 3]
        look = MARK(marker=marker, markeredgecolor=colour, markerfacecolor=colour if is_first else "white")
        look.plot(panel, rounds[is_drawn], lanes, label=f"task {task}")
    for expert in range(1, DIMS.max_experts):
        roles.GROUND.hline(panel, expert + 0.5)
    roles.REFERENCE.vline(panel, explored_rounds(run) + 0.5, label="$T_1$")
    ended = termination_round(run)
    if ended:
        roles.ENDED.vline(panel, ended - 0.5, label="termination")
    rounds_elsewhere = elsewhere["round"].values
    label = "elsewhere than in (a)" if len(rounds_elsewhere) else ""
    bottom = elsewhere.expert.values - 0.5
    panel.bar(rounds_elsewhere, height=1, width=1, bottom=bottom, color="0.86", linewidth=0, zorder=0, label=label)
    panel.set_xlim(0, min(ROUNDS_DRAWN, rounds[-1]) + 1)
    panel.set_ylim(DIMS.max_experts + 0.5, 0.5)
    panel.set_yticks(range(1, DIMS.max_experts + 1))
    panel.tick_params(axis="y", length=0)


def _draw_shares(panel: plot.Axes, shares: Float[np.ndarray, "M K"]) -> None:
    experts = np.arange(1, len(shares) + 1)
    starts = np.cumsum(shares, axis=1) - shares
    for cluster in range(shares.shape[1]):
        colour = COLOURS[cluster % 3]
        panel.barh(experts, shares[:, cluster], height=0.62, left=starts[:, cluster], color=colour, linewidth=0)
    EVEN.vline(panel, 1 / len(shares), label="even share $1/M$")
    panel.tick_params(axis="y", length=0)
