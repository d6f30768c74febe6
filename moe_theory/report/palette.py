"""Colours of pictures that a page shows through: as of the roles of `plot.roles`, on a light and on a dark page."""

from collections.abc import Mapping
from typing import NamedTuple

from moe_theory.report.wording import BY_READING

PAGE, DARK_PAGE = "#fbfaf8", "#16171a"


class Theme(NamedTuple):
    """Colours on a light or on a dark page, which shows through; those of statuses are the report's."""

    ink: str
    soft: str
    measured: str
    printed: str
    statuses: Mapping[str, tuple[str, str]]  # of a badge and of the words on it


LIGHT = Theme(
    ink="#1c1d20",
    soft="#55585f",
    measured="#14457f",
    printed="#c24d00",
    statuses={
        "holds": ("#e0f0e5", "#14512c"),
        "holds amended": ("#e0f0e5", "#14512c"),
        "false": ("#9c1c22", "#ffffff"),
        "vacuous": ("#e3eaf5", "#1d3d6b"),
        "open": ("#fbefc8", "#624400"),
        BY_READING: ("#fbefc8", "#624400"),
        "not judged": ("#ffffff", "#55585f"),
        "not testable": ("#ffffff", "#55585f"),
    },
)
DARK = Theme(
    ink="#e9e8e5",
    soft="#b0b2b8",
    measured="#8fc0ff",
    printed="#ff9a4d",
    statuses={
        "holds": ("#17382a", "#a3e2bb"),
        "holds amended": ("#17382a", "#a3e2bb"),
        "false": ("#f08a8c", "#2a0406"),
        "vacuous": ("#1f2f4b", "#b5cff7"),
        "open": ("#3d3210", "#f3d680"),
        BY_READING: ("#3d3210", "#f3d680"),
        "not judged": ("#1e2024", "#b0b2b8"),
        "not testable": ("#1e2024", "#b0b2b8"),
    },
)
