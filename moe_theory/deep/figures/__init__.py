"""Figures of deep experiments, made from small presets."""

from moe_theory import plot
from moe_theory.deep.figures import drive, edge_figure_4, figures_3_to_7
from moe_theory.deep.presets import EDGE, Preset, expert_cell
from moe_theory.verification.claim import Runs

FIGURES = plot.figures(*figures_3_to_7.FIGURES, edge_figure_4.picture, drive.picture)


def draw_runs(preset: Preset, title: str, runs: Runs, canvas: plot.Canvas) -> None:
    """Draw the runs of any preset in the layout of its paper's figures."""
    if preset.paper == EDGE:
        edge_figure_4.picture.draw(edge_figure_4.summarize(preset, runs), canvas)
        canvas.legends[0].set_title(title)  # a suptitle would cover a legend at the top
        return
    scales = preset.scales or (None,)
    parts = canvas.subfigures(len(scales), squeeze=False).flat if preset.scales else [canvas]
    for part, scale in zip(parts, scales, strict=True):
        prefix = expert_cell(1, gate_scale=scale).removesuffix(expert_cell(1))  # of the cells with this scale
        figure_runs = {cell.removeprefix(prefix): run for cell, run in runs.items() if cell.startswith(prefix)}
        figures_3_to_7.draw(
            figures_3_to_7.summarize(preset, figure_runs, tuple(figures_3_to_7.SYMBOLS), preset.experts), part
        )
        part.legends[0].set_title(title if scale is None else f"{title}, gate_scale {scale:g}")
        for place, metric in enumerate(figures_3_to_7.SYMBOLS):
            panel = part.axes[2 * place]  # the panel with termination, which a single network does not need
            for number, name in enumerate(preset.others):
                mean = plot.across_replicates(getattr(runs[name].records, metric))["mean"]
                color = f"C{3 + number}"  # numbers of experts have the first three
                panel.plot(runs[name].rounds, mean, color=color, linewidth=1.2, label=name)
            if preset.others and place == 0:
                panel.legend(loc="upper left")
