"""Reports of online merging: a table, a picture, and the numbers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from moe_theory.core.routes import num_late
from moe_theory.merging.online import Row
from moe_theory.plot.document import Document, Picture, to_csv
from moe_theory.plot.markdown import filled

if TYPE_CHECKING:
    from matplotlib.figure import FigureBase

TABLE = "slots.csv"
PICTURE = "merge.svg"
SMOOTHED = 20  # slots in the moving average
HEIGHT = 3.4  # inches of the picture

Policies = Mapping[str, Sequence[Row]]  # all policies have the same slots


class PolicySummary(NamedTuple):
    policy: str
    mean_reward: float
    late_reward: float  # mean over the last slots
    seconds: float  # median time of a choice


def document(by_policy: Policies, body: Mapping[str, object], folder: Path) -> Document:
    """Return each policy's rewards on the same slots, with a table and a picture as files."""
    summaries = summarized(by_policy)  # the best first
    num_slots = len(next(iter(by_policy.values())))
    columns = ("policy", "mean reward", f"in the last {num_late(num_slots)}", "a choice, ms")
    cells = [
        (row.policy, f"{row.mean_reward:.3f}", f"{row.late_reward:.3f}", f"{1000 * row.seconds:.2f}")
        for row in summaries
    ]
    caption = f"{summaries[0].policy} ends best, at {summaries[0].late_reward:.3f}."
    picture = Picture("Rewards over slots", HEIGHT, lambda figure: _draw(figure, by_policy), caption)
    slots = []
    for policy, rows in by_policy.items():
        slots += [{"policy": policy} | _columns_of(row) for row in rows]
    paths = [str(folder / name) for name in (TABLE, PICTURE)]
    return Document(
        body=lambda: {**body, "files": paths},
        text=lambda _: filled(Path(__file__).with_name("merge.md"), num_slots=num_slots, columns=columns, rows=cells),
        folder=folder,
        files={TABLE: lambda path: path.write_text(to_csv(slots), encoding="utf-8"), PICTURE: picture.write},
    )


def summarized(by_policy: Policies) -> list[PolicySummary]:
    summaries = []
    for policy, rows in by_policy.items():
        late = [row.reward for row in rows[-num_late(len(rows)) :]]
        seconds = [row.seconds for row in rows[1:] or rows]  # the first slot compiles
        summaries.append(PolicySummary(policy, rows[-1].mean_reward, float(np.mean(late)), float(np.median(seconds))))
    return sorted(summaries, key=lambda summary: -summary.late_reward)


def served(rows: Sequence[Row], equal_rows: Sequence[Row]) -> dict[str, object]:
    """Return the JSON fields of one policy's slots, beside the mean reward of equal weights."""
    slots = [
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
    ]
    equal_reward = float(np.mean([row.reward for row in equal_rows]))
    return {"mean_reward": rows[-1].mean_reward, "equal_weights": equal_reward, "slots": slots}


def _earned(row: Row) -> list[float | None]:
    """Return the rewards by task, None for a task without requests."""
    return [reward if count else None for reward, count in zip(row.rewards.tolist(), row.counts, strict=True)]


def _columns_of(row: Row) -> dict[str, float | None]:
    columns = {name: getattr(row, name) for name in ("slot", "reward", "mean_reward", "num_candidates", "depth")}
    arrays = {"weight": row.weights, "estimated_mix": row.estimated_mix, "reward": _earned(row), "count": row.counts}
    for name, values in arrays.items():
        columns |= {f"{name}_{place}": value for place, value in enumerate(values)}
    return columns


def _draw(figure: "FigureBase", by_policy: Policies) -> None:
    axes = figure.subplots()
    for policy, rows in by_policy.items():
        rewards = np.array([row.reward for row in rows])
        width = min(SMOOTHED, len(rewards))
        means = np.convolve(rewards, np.ones(width) / width, mode="valid")
        axes.plot(np.arange(width, len(rewards) + 1), means, linewidth=1.4, label=policy)
    axes.set(xlabel="slot", ylabel=f"reward, mean of {SMOOTHED} slots")
    axes.legend(loc="lower right", ncols=2)
