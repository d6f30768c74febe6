"""Fig. 8: which expert each arrival goes to under four thresholds, in the first run in which they differ."""

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from jaxtyping import Float

from moe_theory.continual import theory
from moe_theory.continual.experiments import FIGURE_8, HISTORY, PERTURBATION_POWER, THRESHOLD_POWERS, THRESHOLDS
from moe_theory.continual.figures.regimes import observe
from moe_theory.continual.params import SIGMA_0, Params
from moe_theory.runs import Cell, Progress, quiet, run_cells
from moe_theory.verify.claim import ReadingLike
from moe_theory.verify.figures import FigureSpec, closing, provenance

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import FigureBase

DIMS = HISTORY.dims
ROUNDS_DRAWN = 100
MARKERS = "os^"
LANE = 0.27  # vertical distance between the lanes of an expert's clusters


def settings_of(reading: ReadingLike) -> dict[str, Params]:
    return {name: reading.params(**overrides) for name, overrides in THRESHOLDS.items()}


COLOURS = ("C0", "C3", "C2")  # of the clusters, with `MARKERS`
ELSEWHERE: dict[str, Any] = {"color": "0.86", "linewidth": 0}


def compute(
    reading: ReadingLike, replicates: int, seed: int, progress: Progress = quiet, *, num_rounds: int | None = None
) -> xr.Dataset:
    """Every arrival of one replicate under the four thresholds; tasks, clusters and experts count from 1."""
    length = FIGURE_8.num_rounds if num_rounds is None else num_rounds
    settings = settings_of(reading)
    cells = [Cell(name, HISTORY.system, params, length, 1, observe) for name, params in settings.items()]
    runs = run_cells(cells, replicates, seed=seed, progress=progress)
    tasks, experts, terminated = (
        np.stack([getattr(runs[name].records, field) for name in settings])
        for field in ("task", "expert", "terminated")
    )
    parts = np.any(experts != experts[:1], axis=(0, 1))
    shown = int(np.argmax(parts))
    num_clusters = next(iter(settings.values())).num_clusters
    dimensions = ("threshold_power", "round")
    return xr.Dataset(
        {
            "task": (dimensions, tasks[..., shown] + 1),
            "cluster": (dimensions, tasks[..., shown] % num_clusters + 1),
            "expert": (dimensions, experts[..., shown] + 1),
            "terminated": (dimensions, terminated[..., shown]),
        },
        {"threshold_power": list(THRESHOLD_POWERS), "round": np.arange(1, length + 1), "replicate": shown},
        provenance("continual", "figure-8", reading, replicates, seed, length, rounds=num_rounds)
        | {"share_parting": float(np.mean(parts)), "learning_rate": float(next(iter(settings.values())).learning_rate)},
    )


def termination_round(here: xr.Dataset) -> int | None:
    return int(here["round"].values[np.argmax(here.terminated.values)]) if bool(here.terminated.any()) else None


def load_shares(here: xr.Dataset) -> Float[np.ndarray, "M K"]:
    begin = termination_round(here) or explored_rounds(here)
    after = here.where(here["round"] > begin, drop=True)
    counts = np.zeros((DIMS.max_experts, int(here.cluster.max())))
    np.add.at(counts, (after.expert.values.astype(int) - 1, after.cluster.values.astype(int) - 1), 1)
    return counts / max(counts.sum(), 1)


def explored_rounds(data: xr.Dataset) -> int:
    return int(theory.exploration_rounds(DIMS.max_experts, data.attrs["learning_rate"]))


def draw(data: xr.Dataset, figure: "FigureBase") -> None:
    axes = figure.subplots(
        data.sizes["threshold_power"], 2, sharex="col", sharey=True, squeeze=False, gridspec_kw={"width_ratios": (6, 1)}
    )
    for letter, power, (routes, shares) in zip("abcd", data.threshold_power.values, axes, strict=True):
        here = data.sel(threshold_power=power)
        is_elsewhere = (here.expert.values != data.expert.values[0]) & (here["round"].values <= ROUNDS_DRAWN)
        elsewhere = here.isel(round=is_elsewhere)
        _draw_routes(routes, here, elsewhere)
        _draw_shares(shares, load_shares(here))
        relation = ">" if power < PERTURBATION_POWER else "=" if power == PERTURBATION_POWER else "<"
        routes.set_title(
            rf"({letter}) threshold $\Gamma = \sigma_0^{{{power:g}}}$ = {SIGMA_0**power:.3f} {relation} $\lambda$",
            loc="left",
        )
        ended = termination_round(here)
        fixed = f"gates fixed from round {ended}" if ended else "gates never fixed"
        moved = elsewhere.sizes["round"]
        apart = f"; {moved} {'arrival' if moved == 1 else 'arrivals'} elsewhere than in (a)" if letter != "a" else ""
        routes.set_title(fixed + apart, loc="right")
        routes.set_ylabel("expert $m$")
    axes[-1, 0].set_xlabel("round $t$")
    axes[-1, 1].set_xlabel("share of later\narrivals")
    _draw_legend(figure, data)


def _draw_routes(panel: "Axes", here: xr.Dataset, elsewhere: xr.Dataset) -> None:
    panel.bar(elsewhere["round"].values, 1, 1, elsewhere.expert.values - 0.5, zorder=0, **ELSEWHERE)
    rounds = here["round"].values
    clusters, first_tasks = here.cluster.values, here.task.values <= here.cluster.values.max()
    for cluster in np.unique(clusters):
        for is_first in (True, False):
            chosen = (clusters == cluster) & (first_tasks == is_first) & (rounds <= ROUNDS_DRAWN)
            lanes = here.expert.values[chosen] + LANE * (cluster - 2)
            panel.plot(rounds[chosen], lanes, **_mark(cluster, is_first), markersize=3.4, markeredgewidth=0.8)
    for expert in range(1, DIMS.max_experts):
        panel.axhline(expert + 0.5, color="0.85", linewidth=0.5, zorder=0)
    panel.axvline(explored_rounds(here) + 0.5, color="0.3", linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    ended = termination_round(here)
    if ended:
        panel.axvline(ended - 0.5, color="0.3", linewidth=0.8, zorder=0)
    panel.set_xlim(0, min(ROUNDS_DRAWN, rounds[-1]) + 1)
    panel.set_ylim(DIMS.max_experts + 0.5, 0.5)
    panel.set_yticks(range(1, DIMS.max_experts + 1))
    panel.tick_params(axis="y", length=0)


def _mark(cluster: int, is_first: bool) -> dict[str, Any]:
    colour = COLOURS[(cluster - 1) % 3]
    face = colour if is_first else "white"
    marker = MARKERS[(cluster - 1) % 3]
    return {"linestyle": "none", "marker": marker, "markeredgecolor": colour, "markerfacecolor": face}


def _draw_shares(panel: "Axes", shares: Float[np.ndarray, "M K"]) -> None:
    experts = np.arange(1, len(shares) + 1)
    starts = np.cumsum(shares, axis=1) - shares
    for cluster in range(shares.shape[1]):
        panel.barh(experts, shares[:, cluster], 0.62, starts[:, cluster], color=COLOURS[cluster % 3], linewidth=0)
    panel.axvline(1 / len(shares), color="0.3", linewidth=0.8, linestyle=(0, (4, 2)))
    panel.tick_params(axis="y", length=0)


def _draw_legend(figure: "FigureBase", data: xr.Dataset) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    num_clusters = int(data.cluster.max())

    def mark(task: int) -> Line2D:
        style = _mark((task - 1) % num_clusters + 1, task <= num_clusters)
        return Line2D([], [], **style, markersize=4, label=f"task {task}")

    order = [
        task for cluster in range(1, num_clusters + 1) for task in range(cluster, DIMS.num_tasks + 1, num_clusters)
    ]
    lines = [
        Line2D([], [], color="0.3", linewidth=0.8, linestyle=(0, (1, 2)), label="$T_1$"),
        Line2D([], [], color="0.3", linewidth=0.8, label="termination"),
        Line2D([], [], color="0.3", linewidth=0.8, linestyle=(0, (4, 2)), label="even share $1/M$"),
        Patch(**ELSEWHERE, label="elsewhere than in (a)"),
    ]
    figure.legend(
        handles=[*map(mark, order), *lines], loc="outside upper center", ncols=6, columnspacing=1, handlelength=1.8
    )


def caption(data: xr.Dataset) -> str:
    parting = data.attrs["share_parting"]
    which = (
        f"the first replicate (number {int(data.replicate)}) in which the four thresholds do not all route alike"
        if parting > 0
        else "replicate 0; the four thresholds route alike in all of them"
    )
    return (
        "Every arrival, at the expert it was routed to, under four termination thresholds: N = 6 tasks in K = 3 "
        "clusters {1, 4}, {2, 5}, {3, 6}, a lane of an expert's row each, M = 5 experts, perturbation "
        f"λ = σ₀^1.25 = {SIGMA_0**PERTURBATION_POWER:.3f}. The first {min(ROUNDS_DRAWN, data.attrs['num_rounds'])} "
        "rounds are drawn; bars: shares of all arrivals after termination (after T₁ without one), by cluster. The "
        "paper expects uneven loads for Γ > λ, and for Γ ≤ λ even ones among the experts of a cluster. "
        f"Drawn is {which}; they differ in {parting:.0%} of the replicates.\n" + closing(data)
    )


FIGURE = FigureSpec(
    name="figure-8",
    title="Arrivals and their experts under four termination thresholds",
    summary="Fig. 8: each arrival of one run and its expert, with the loads after termination.",
    replicates=256,
    size=(7.2, 6.2),
    compute=compute,
    draw=draw,
    caption=caption,
    claims=("continual.figure-8.*", "continual.proposition-3.*"),
)
