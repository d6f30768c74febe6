"""Roles of lines, bands and marks. Each role looks the same in all figures.

A role contains keywords for matplotlib's artists, as in `PRINTED.plot(panel, x, y, label="Theorem 1")`. Roles in one
panel differ in luminance, and printed claims are also dashed.
"""

from typing import Any


class ArtistStyle(dict[str, Any]):
    """Keywords of an artist. A call returns a copy with changes."""

    def __call__(self, **changes: Any) -> "ArtistStyle":
        return ArtistStyle(self | changes)

    def plot(self, panel: Any, x: Any, y: Any, label: str = "") -> None:
        panel.plot(x, y, label=label, **self)

    def fill(self, panel: Any, x: Any, low: Any, high: Any, label: str = "") -> None:
        panel.fill_between(x, low, high, label=label, **self)

    def hline(self, panel: Any, y: Any, label: str = "") -> None:
        panel.axhline(y, label=label, **self)

    def vline(self, panel: Any, x: Any, label: str = "") -> None:
        panel.axvline(x, label=label, **self)


INK = "#000000"
DASHED = (0, (4, 1.6))
DOTTED = (0, (1, 1.2))
DASH_DOTTED = (0, (4, 1.2, 1, 1.2))
LIGHTEST = 0.55  # place in viridis, from 0 to 1, above which it is too light for a line

MEASURED = ArtistStyle(color="C0", linewidth=1.6)
BAND = ArtistStyle(color="C0", alpha=0.16, linewidth=0)  # the spread of replicates
RIVAL = ArtistStyle(color="C2", linewidth=1.4)  # the measured rival in a comparison
OTHER_RIVAL = ArtistStyle(color="C3", linewidth=1.4)
BASELINE = ArtistStyle(color="0.45", linewidth=1.2, linestyle=DASHED)  # measured without the method
PRINTED = ArtistStyle(color="C1", linewidth=1.4, linestyle=DASHED)  # a bound or form as the paper prints it
PRINTED_TOO = PRINTED(linestyle=DOTTED)  # another of the paper's bounds or forms
PRINTED_MARK = ArtistStyle(color="C1", marker="D", markersize=4, markerfacecolor="white", linestyle="none")
RIGHT = ArtistStyle(  # the correction. It has circles, because it often lies on the measured line
    color=INK,
    linewidth=0.9,
    linestyle=DASH_DOTTED,
    marker="o",
    markersize=3,
    markerfacecolor="white",
    markeredgewidth=0.8,
    markevery=0.1,  # relative to the panel's diagonal
    zorder=3,
)
REFERENCE = ArtistStyle(color="0.5", linewidth=0.8, linestyle=DOTTED, zorder=0)  # a level or a time
ENDED = ArtistStyle(color="0.2", linewidth=1.0)  # early termination of the gates
HALF_ENDED = ArtistStyle(color="0.25", marker="v", markersize=4.5, linestyle="none")  # when half of the runs ended
ZERO = ArtistStyle(color="0.7", linewidth=0.6, zorder=0)
GROUND = ArtistStyle(color="0.89", linewidth=0.5, zorder=0)  # for rows and grids


def ramp(count: int) -> list[str]:
    """Return line colours for increasing numbers, from dark to light."""
    from matplotlib import colormaps
    from matplotlib.colors import to_hex

    places = [LIGHTEST * index / max(count - 1, 1) for index in range(count)]
    return [to_hex(colormaps["viridis"](place)) for place in places]
