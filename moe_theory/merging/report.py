"""Reports of online merging: a live table, a figure, and the numbers."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console
from rich.live import Live
from rich.table import Table

from moe_theory.core.routes import num_late
from moe_theory.merging.online import Row
from moe_theory.plot.document import Content, Document, Picture, ruled, to_csv

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

NAMES, COMPARED = ("slots.csv", "merge.svg"), ("policies.csv", "policies.svg")
ROWS_SHOWN = 16  # latest rows, in the live table
LINES_LOGGED = 20  # evenly spread slots, without a terminal
BARS = " ▁▂▃▄▅▆▇█"
SMOOTHED = 20  # slots in the moving average
HEIGHT = 4.6  # inches of a picture


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
    columns = ("slot", "task mix, estimated", "weights", "largest", "reward", "mean", "candidates")
    cells = []
    for row in rows:
        shares = bars(row.estimated_mix), bars(row.weights), largest(row.weights)
        rewards = f"{row.reward:.3f}", f"{row.mean_reward:.3f}"
        cells.append((str(row.slot), *shares, *rewards, str(row.num_candidates)))
    return ruled(columns, cells, (columns[0], *columns[4:]), whole=columns, title=f"Merging with {policy}")


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


def document(
    rows: Sequence[Row], policy: str, equal: Sequence[float] | None, folder: Path, is_interrupted: bool = False
) -> Document:
    """Slots served by a policy, with numbers and a picture for the folder."""
    caption = summary(rows, policy, equal)
    title = f"Rewards and merging weights of {policy} over slots"
    picture = Picture(title, HEIGHT, lambda figure: _draw(figure, rows, equal), caption)
    paths = [str(folder / name) for name in NAMES]
    return Document(
        lambda: _body(rows, policy, equal) | {"files": paths},
        lambda _: [caption, *(f"wrote {path}" for path in paths)],
        folder=folder,
        files=_files(NAMES, [_slot(row) for row in rows], picture),
        is_interrupted=is_interrupted,
    )


def _files(names: Sequence[str], rows: Sequence[Mapping[str, Any]], picture: Picture) -> dict[str, Content]:
    """Return the contents of a table and a picture by the names of their files."""
    table, drawing = names
    return {table: lambda path: path.write_text(to_csv(rows), encoding="utf-8"), drawing: picture.write}


def _body(rows: Sequence[Row], policy: str, equal: Sequence[float] | None) -> dict[str, Any]:
    return {
        "policy": policy,
        "mean_reward": rows[-1].mean_reward,
        "equal_weights": None if equal is None else float(np.mean(equal)),
        "slots": [
            {
                "slot": row.slot,
                "reward": row.reward,
                "weights": row.weights,
                "estimated_mix": row.estimated_mix,
                "rewards": _earned(row),
                "counts": row.counts,
                "candidates": row.num_candidates,
                "seconds": row.seconds,
            }
            for row in rows
        ],
    }


def _earned(row: Row) -> list[float | None]:
    """Rewards by task, of those that had requests."""
    return [reward if count else None for reward, count in zip(row.rewards.tolist(), row.counts, strict=True)]


def compared(by_policy: Mapping[str, Sequence[Row]]) -> list[dict[str, Any]]:
    """A row a policy, all of the same slots, the best at the end first."""
    found = [
        {
            "policy": policy,
            "mean_reward": rows[-1].mean_reward,
            "late_reward": float(np.mean([row.reward for row in rows[-num_late(len(rows)) :]])),
            "seconds": float(np.median([row.seconds for row in rows[1:] or rows])),
        }
        for policy, rows in by_policy.items()
    ]
    return sorted(found, key=lambda row: -row["late_reward"])


def comparison(by_policy: Mapping[str, Sequence[Row]], folder: Path) -> Document:
    """Rewards of each policy on the same slots, with numbers and a picture for the folder."""
    rows = compared(by_policy)
    num_slots = len(next(iter(by_policy.values())))
    columns = ("policy", "mean reward", f"in the last {num_late(num_slots)}", "a choice, ms")
    cells = [
        (row["policy"], f"{row['mean_reward']:.3f}", f"{row['late_reward']:.3f}", f"{1000 * row['seconds']:.2f}")
        for row in rows
    ]
    table = ruled(columns, cells, columns[1:], whole=columns, title=f"The same {num_slots} slots by each policy")

    def draw(figure: "FigureBase") -> None:
        axes = figure.subplots()
        for row in rows:
            slots, means = _smoothed(by_policy[row["policy"]])
            axes.plot(slots, means, linewidth=1.4, label=row["policy"])
        axes.set(xlabel="slot", ylabel="reward, moving average")
        axes.legend(loc="lower right", ncols=2)

    title = "Rewards of every policy over the same slots"
    caption = f"{rows[0]['policy']} ends best, at {rows[0]['late_reward']:.3f}."
    paths = [str(folder / name) for name in COMPARED]
    return Document(
        lambda: {"policies": rows, "files": paths},
        lambda _: [table, *(f"wrote {path}" for path in paths)],
        folder=folder,
        files=_files(COMPARED, rows, Picture(title, HEIGHT, draw, caption)),
    )


def _over(rewards: Sequence[float]) -> str:
    late = rewards[-num_late(len(rewards)) :]
    return f"{np.mean(rewards):.3f} over {len(rewards)} slots, {np.mean(late):.3f} over the last {len(late)}"


def _smoothed(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """The moving average of rewards, and its slots."""
    means = _averaged([row.reward for row in rows])
    return np.array([row.slot for row in rows])[len(rows) - len(means) :], means


def _averaged(rewards: Sequence[float]) -> np.ndarray:
    width = min(SMOOTHED, len(rewards))
    return np.convolve(rewards, np.ones(width) / width, mode="valid")


def _slot(row: Row) -> dict[str, Any]:
    """A slot in the file of all."""
    own = {name: getattr(row, name) for name in ("slot", "reward", "mean_reward")}
    own |= {"candidates": row.num_candidates, "depth": row.depth, "seconds": row.seconds}
    by_place = {"weight": row.weights, "estimated_mix": row.estimated_mix, "reward": _earned(row), "count": row.counts}
    return own | {f"{name}_{place}": each for name, values in by_place.items() for place, each in enumerate(values)}


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
