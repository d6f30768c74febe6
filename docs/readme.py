"""Fills the generated parts of README.md and of the paper on this package, and draws the README's picture.

    python docs/readme.py            # what `make readme` runs, from the repository's root
    python docs/readme.py --check    # exits 1 if either is not what the checked-in data make of it

A part stands between `<!-- generated: NAME, by `make readme` -->` and `<!-- end of NAME -->`. Statuses come from the
recorded runs, the picture's curves from figures/overview/overview.csv, speed from figures/bench.
"""

import functools
import hashlib
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # for `benchmarks`

import found
import pandas as pd
import xarray as xr
from gallery import FIGURES, ROOT

from benchmarks.report import CORES, cost, peer_name, read, times_engine
from moe_theory.core.papers import all_papers
from moe_theory.plot import style, svg
from moe_theory.report import overview

OURS = {name: paper for name, paper in all_papers().items() if paper.package.startswith("moe_theory.")}
RIVALS = {
    "NumPy loop": "a NumPy loop takes {}",
    "textbook vmap(scan)": "a textbook `vmap(scan)` {}",
    "C++ limit": "hand-written C++ with cheaper random numbers {}",
}
DATA = FIGURES / "overview" / "overview.csv"
WIDE = (10.4, 3.0)  # inches, with all panels in one row
FONTS = "system-ui, 'Segoe UI', Helvetica, Arial, 'DejaVu Sans', sans-serif"  # as narrow as what was laid out, or more
DARK = overview.Theme(
    ink="#e9e8e5",
    soft="#b0b2b8",
    measured="#8fc0ff",
    printed="#ff9a4d",
    neutral=("#1e2024", "#b0b2b8"),
    badges={
        "holds": ("#17382a", "#a3e2bb"),
        "holds amended": ("#43220f", "#ffc3a0"),
        "false": ("#f08a8c", "#2a0406"),
        "vacuous": ("#1f2f4b", "#b5cff7"),
        **dict.fromkeys(("open", overview.BY_READING), ("#3d3210", "#f3d680")),
    },
)
PICTURES = {  # by their files' names: a narrow one for phones, each for light and for dark pages
    "overview": (overview.LIGHT, overview.NARROW),
    "overview-dark": (DARK, overview.NARROW),
    "overview-wide": (overview.LIGHT, WIDE),
    "overview-wide-dark": (DARK, WIDE),
}
STALE = "{} is not what the checked-in data make of it: run `make readme`, and commit what it changes"


def main(arguments: list[str]) -> None:
    """Write texts and pictures, or only compare them. A part without a place, or the other way, is an error."""
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: python docs/readme.py [--check]")
    for path, parts in TEXTS.items():
        before = path.read_text(encoding="utf-8")
        after = filled(before, parts)
        if not arguments:
            path.write_text(after, encoding="utf-8")
        elif after != before:
            raise SystemExit(STALE.format(path.name))
    data = read_data(DATA)
    note = drawn_from()
    for name, (theme, size) in PICTURES.items():
        path = DATA.with_name(f"{name}.svg")
        if not arguments:
            path.write_text(picture(data, theme, size, note), encoding="utf-8")
        elif note not in path.read_text(encoding="utf-8"):
            raise SystemExit(STALE.format(path.name))


def read_data(path: Path) -> xr.Dataset:
    """Return what the overview draws, from its CSV."""
    table = pd.read_csv(path)
    facts = {name: table.pop(name)[0] for name in ("reading", "replicates", "seed")}
    data = table.set_index(["panel", "place"]).to_xarray().sel(panel=list(dict.fromkeys(table.panel)))
    facts["command"] = overview.command(facts["replicates"], facts["seed"])
    facts["reading_summary"] = overview.FIRST_DEFAULTS.summary
    return data.assign_attrs(facts)


def picture(data: xr.Dataset, theme: overview.Theme, size: tuple[float, float], note: str) -> str:
    """The overview as an SVG without a background, its words as text, with a note in its description."""
    columns = len(overview.panels()) if size is WIDE else 2
    (spec,) = overview.figures().values()
    description = f"{spec.caption(data)}\n{note}"
    draw = functools.partial(overview.draw, data, theme=theme, columns=columns)
    text = style.render_as("svg", spec.title, size, draw, description).decode()
    return text.replace(svg.FONTS, FONTS)


def drawn_from() -> str:
    """Descriptions of the pictures, which are compared, as bytes differ between versions of matplotlib."""
    panels = overview.panels().values()
    statuses = ", ".join(f"{panel.printed} {overview.status_of(panel)}" for panel in panels)
    replacements = ", ".join(panel.right for panel in panels if overview.replacement_holds(panel))
    digest = hashlib.sha256(DATA.read_bytes()).hexdigest()
    return f"Statuses: {statuses}. Drawn: {replacements}. {DATA.name}: {digest}."


def filled(text: str, parts: dict[str, Callable[[], str]]) -> str:
    """A text with its generated parts made anew. Raises: ValueError for a part that it has not exactly once."""
    for name, make in parts.items():
        start = f"<!-- generated: {name}, by `make readme` -->\n"
        end = f"<!-- end of {name} -->"
        if text.count(start) != 1 or text.count(end) != 1:
            raise ValueError(f"the text must have {start.strip()} and {end} once each.")
        before, rest = text.split(start)
        _, after = rest.split(end)
        text = f"{before}{start}{make().rstrip()}\n{end}{after}"
    return text


def speed() -> str:
    """Return a sentence on the cost of a round, and on the cost of others that were timed with it on one core."""
    ((title, cores), (engine, *peers)), *_ = read([FIGURES / "bench" / "bench.json"]).peers().items()
    words = []
    for peer in peers:
        ratio = times_engine(peer)
        if ratio and peer_name(peer) in RIVALS:
            decimals = 0 if ratio[0] >= 10 else 1
            words.append(RIVALS[peer_name(peer)].format(f"{ratio[0]:.{decimals}f}"))
    system, _, rest = title.partition(",")
    return (
        f"One round of one replicate takes {cost(engine):,.0f} ns (`{system}`,{rest}, {CORES[cores]}). "
        f"In units of that time, {', '.join(words[:-1])} and {words[-1]}."
    )


TEXTS: dict[Path, dict[str, Callable[[], str]]] = {
    ROOT / "README.md": {
        "counts": lambda: found.counts(OURS),
        "found": lambda: f"{found.sentences(OURS)}\n\n{found.proved(OURS)}",
        "speed": speed,
    },
    ROOT / "paper" / "paper.md": {
        "counts": lambda: f"{found.counts(OURS)}\n\n{found.proved(OURS)}",
        "speed": speed,
    },
}


if __name__ == "__main__":
    main(sys.argv[1:])
