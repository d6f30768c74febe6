"""Reports of online merging: a live table, a figure, and the numbers."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from moe_theory.merging.online import Row
from moe_theory.plot.style import PAGE_WIDTH, render_as
from moe_theory.report.tables import ruled
from moe_theory.runs.files import write_together

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

NAMES, COMPARED = ("slots.csv", "merge.svg"), ("policies.csv", "policies.svg")
ROWS_SHOWN = 16  # latest rows, in the live table
LINES_LOGGED = 20  # evenly spread slots, without a terminal
BARS = " ▁▂▃▄▅▆▇█"
SMOOTHED = 20  # slots in the moving average
_Each = TypeVar("_Each")
SIZE = (PAGE_WIDTH, 4.6)  # inches


def shown_live(rows: Iterator[Row], console: Console, num_slots: int, policy: str) -> tuple[list[Row], bool]:
    """Show rows as they come; returns them, and whether an interrupt ended the run."""
    served: list[Row] = []
    try:
        if console.is_terminal:
            with Live(console=console, refresh_per_second=8) as live:
                for row in rows:
                    served.append(row)
                    live.update(table(served[-ROWS_SHOWN:], policy))
        else:
            stride = max(1, num_slots // LINES_LOGGED)
            for row in rows:
                served.append(row)
                if row.slot == 1 or row.slot % stride == 0:
                    console.print(line(row), highlight=False, markup=False)
    except KeyboardInterrupt:
        return served, True
    return served, False


def table(rows: Sequence[Row], policy: str) -> Table:
    found = ruled(title=f"Merging with {policy}")
    words = ("task mix, estimated", "weights", "largest")
    for name in ("slot", *words, "reward", "mean", "candidates"):
        found.add_column(name, justify="left" if name in words else "right", no_wrap=True)
    for row in rows:
        shares = bars(row.estimated_mix), bars(row.weights), largest(row.weights)
        rewards = f"{row.reward:.3f}", f"{row.mean_reward:.3f}"
        found.add_row(str(row.slot), *shares, *rewards, str(row.num_candidates))
    return found


def line(row: Row) -> str:
    return (
        f"slot {row.slot:5d}  mix {bars(row.estimated_mix)}  weights {bars(row.weights)} {largest(row.weights)}  "
        f"reward {row.reward:.3f}  mean {row.mean_reward:.3f}  candidates {row.num_candidates}"
    )


def bars(shares: np.ndarray) -> str:
    top = max(float(np.max(shares)), 1e-12)
    return "".join(BARS[round(float(share) / top * (len(BARS) - 1))] for share in shares)


def largest(weights: np.ndarray, count: int = 3) -> str:
    order = np.argsort(-weights, kind="stable")[:count]
    return " ".join(f"{place}:{weights[place]:.2f}" for place in order)


def summary(rows: Sequence[Row], policy: str, equal: Sequence[float] | None) -> str:
    """What the policy earned over all and over the last slots, beside equal weights' `equal` in the same slots."""
    seconds = 1000 * float(np.median([row.seconds for row in rows[1:] or rows]))
    own = f"mean reward {_over([row.reward for row in rows])}"
    beside = "" if equal is None else f" Equal weights: {_over(equal)}."
    return f"{policy}: {own}.{beside} A choice took {seconds:.2f} ms (median)."


def to_json(rows: Sequence[Row], policy: str, equal: Sequence[float] | None, paths: Sequence[Path]) -> dict[str, Any]:
    return {
        "policy": policy,
        "mean_reward": rows[-1].mean_reward,
        "equal_weights": None if equal is None else float(np.mean(equal)),
        "slots": [
            {
                "slot": row.slot,
                "reward": row.reward,
                "weights": row.weights.tolist(),
                "estimated_mix": row.estimated_mix.tolist(),
                "rewards": [
                    reward if count else None for reward, count in zip(row.rewards.tolist(), row.counts, strict=True)
                ],
                "counts": row.counts.tolist(),
                "candidates": row.num_candidates,
                "seconds": row.seconds,
            }
            for row in rows
        ],
        "files": [str(path) for path in paths],
    }


def write(rows: Sequence[Row], policy: str, equal: Sequence[float] | None, folder: Path) -> list[Path]:
    """Write numbers and figure into the folder; returns their paths. Raises: OutputError if they cannot be written."""
    title = f"Rewards and merging weights of {policy} over slots"
    caption = summary(rows, policy, equal)
    picture = render_as("svg", title, SIZE, lambda figure: _draw(figure, rows, equal), caption)
    return write_together(folder, dict(zip(NAMES, (_csv(rows), picture), strict=True)))


def compared(by_policy: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """A row a policy, all of the same slots, the best at the end first."""
    found = [
        {
            "policy": policy,
            "mean_reward": rows[-1].mean_reward,
            "late_reward": float(np.mean([row.reward for row in _late(rows)])),
            "seconds": float(np.median([row.seconds for row in rows[1:] or rows])),
        }
        for policy, rows in by_policy.items()
    ]
    return sorted(found, key=lambda row: -row["late_reward"])


def comparison(by_policy: Mapping[str, Sequence[Row]]) -> Table:
    rows = next(iter(by_policy.values()))
    found = ruled(title=f"The same {len(rows)} slots by each policy")
    for name in ("policy", "mean reward", f"in the last {len(_late(rows))}", "a choice, ms"):
        found.add_column(name, justify="left" if name == "policy" else "right", no_wrap=True)
    for row in compared(by_policy):
        rewards = f"{row['mean_reward']:.3f}", f"{row['late_reward']:.3f}"
        found.add_row(row["policy"], *rewards, f"{1000 * row['seconds']:.2f}")
    return found


def write_comparison(by_policy: Mapping[str, Sequence[Row]], folder: Path) -> list[Path]:
    """Write the table and the picture into the folder. Raises: OutputError if they cannot be written."""
    buffer, rows = io.StringIO(), compared(by_policy)
    writer = csv.DictWriter(buffer, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)

    def draw(figure: "FigureBase") -> None:
        axes = figure.subplots()
        for row in rows:
            slots, means = _smoothed(by_policy[row["policy"]])
            axes.plot(slots, means, linewidth=1.4, label=row["policy"])
        axes.set(xlabel="slot", ylabel="reward, moving average")
        axes.legend(loc="lower right", ncols=2)

    title = "Rewards of every policy over the same slots"
    caption = f"{rows[0]['policy']} ends best, at {rows[0]['late_reward']:.3f}."
    picture = render_as("svg", title, SIZE, draw, caption)
    return write_together(folder, dict(zip(COMPARED, (buffer.getvalue(), picture), strict=True)))


def _late(rows: Sequence[_Each]) -> Sequence[_Each]:
    return rows[-max(1, len(rows) // 4) :]


def _over(rewards: Sequence[float]) -> str:
    late = _late(rewards)
    return f"{np.mean(rewards):.3f} over {len(rewards)} slots, {np.mean(late):.3f} over the last {len(late)}"


def _smoothed(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """The moving average of rewards, and its slots."""
    means = _averaged([row.reward for row in rows])
    return np.array([row.slot for row in rows])[len(rows) - len(means) :], means


def _averaged(rewards: Sequence[float]) -> np.ndarray:
    width = min(SMOOTHED, len(rewards))
    return np.convolve(rewards, np.ones(width) / width, mode="valid")


def _csv(rows: Sequence[Row]) -> str:
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    experts, tasks = range(len(rows[0].weights)), range(len(rows[0].counts))
    writer.writerow(
        ["slot", "reward", "mean_reward", "candidates", "depth", "seconds"]
        + [f"weight_{expert}" for expert in experts]
        + [f"{name}_{task}" for name in ("estimated_mix", "reward", "count") for task in tasks]
    )
    for row in rows:
        rewards = [reward if count else "" for reward, count in zip(row.rewards.tolist(), row.counts, strict=True)]
        head = [row.slot, row.reward, row.mean_reward, row.num_candidates, row.depth, row.seconds]
        writer.writerow(head + row.weights.tolist() + row.estimated_mix.tolist() + rewards + row.counts.tolist())
    return buffer.getvalue()


def _draw(figure: "FigureBase", rows: Sequence[Row], equal: Sequence[float] | None) -> None:
    from matplotlib import colormaps

    above, below = figure.subplots(2, 1, sharex=True)
    slots = np.array([row.slot for row in rows])
    rewards = np.array([row.reward for row in rows])
    averaged, means = _smoothed(rows)
    above.plot(slots, rewards, ".", color="C0", alpha=0.25, markersize=3, label="a slot")
    above.plot(averaged, means, color="C0", linewidth=1.6, label=f"mean of {min(SMOOTHED, len(rows))}")
    if equal is not None:
        above.plot(averaged, _averaged(equal), color="0.3", linewidth=1.0, linestyle=(0, (4, 2)), label="equal weights")
    above.set_ylabel("reward")
    above.legend(loc="lower right", ncols=3)
    weights = np.array([row.weights for row in rows]).T
    count = len(weights)
    names = [str(expert) for expert in range(count)]
    # Neighbours in the stack are told apart.
    many = [colormaps["viridis"](place / max(count - 1, 1)) for place in range(count)]
    colours = [colormaps["tab10"](place) for place in range(count)] if count <= 10 else many
    below.stackplot(slots, weights, labels=names, colors=colours, linewidth=0, step="mid")
    below.set(xlabel="slot", ylabel="merging weights", ylim=(0, 1), xlim=(slots[0], max(slots[-1], slots[0] + 1)))
    if len(weights) <= 12:
        below.legend(title="expert", loc="center left", bbox_to_anchor=(1.0, 0.5), reverse=True)
