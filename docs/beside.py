"""Writes docs/beside.csv: statements of a paper as printed and for Algorithm 1 against a baseline, as runs found them.

For each of the papers continual and edge, up to 25 minutes of a core:

    moe-theory verify PAPER --system examples/repaired.py:repaired --reading orthogonal-signal --out runs/beside/PAPER
    python docs/beside.py runs/beside/continual runs/beside/edge
"""

import csv
import sys
from pathlib import Path

from gallery import ROOT

from moe_theory.report.comparison import compared, numbers_of
from moe_theory.report.pages import read_reports

TABLE = ROOT / "docs" / "beside.csv"
COLUMNS = ("statement", "differs", "printed", "own", "printed_numbers", "own_numbers", "does_not_apply")


def main(folders: list[str]) -> None:
    """Write the table of these runs."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(COLUMNS)
        for folder in folders:
            for pair in compared(read_reports([Path(folder)])):
                numbers = map(numbers_of, pair.verdicts)
                reasons = "; ".join(dict.fromkeys(pair.inapplicable.values()))
                rows.writerow([pair.name, int(pair.differs), pair.printed, pair.own, *numbers, reasons])


if __name__ == "__main__":
    main(sys.argv[1:])
