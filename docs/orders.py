"""Writes docs/orders.csv: which statement holds at which orders in sigma_0 that Algorithm 1 leaves open, as runs found.

python docs/orders.py    # what `make orders` runs
"""

import csv
import sys

from gallery import ROOT

import moe_theory as mt

TABLE = ROOT / "docs" / "orders.csv"
COLUMNS = ("statement", "claim", "alpha", "gamma", "status")
ALPHA, GAMMA = "balance_weight_order", "termination_threshold_order"
AXES = [f"{ALPHA}=0.625,0.75,0.875"], [f"{ALPHA}=0.5,1", f"{GAMMA}=1.25,1.375,1.5,2"]
AS_RECORDED = {ALPHA: 0.5, GAMMA: 1.25}
CLAIMS = {
    "continual.lemma-5-exploration": "continual.lemma-5.exploration",
    "continual.lemma-8": "continual.lemma-8.learning-rate",
    "continual.lemma-11-more-experts": "continual.lemma-11.tasks",
    "continual.lemma-11-fewer-experts": "continual.lemma-11.clusters",
    "continual.proposition-1-more-experts-set": "continual.proposition-1.sets-tasks",
    "continual.proposition-1-fewer-experts-set": "continual.proposition-1.sets-clusters",
    "continual.lemma-13-more-experts": "continual.lemma-13.tasks",
    "continual.lemma-13-fewer-experts": "continual.lemma-13.clusters",
    "continual.proposition-1-more-experts-model": "continual.proposition-1.unchanged",
    "continual.proposition-3-termination": "continual.proposition-3.time",
    "continual.proposition-3-more-experts": "continual.proposition-3.inside-tasks",
}


def rows(statement: str, claim: str) -> list[tuple[str, ...]]:
    """The claim's statuses over the orders."""
    found = [mt.explore(claim, over, refine=0, seed=1) for over in AXES]
    places = [
        (AS_RECORDED | dict(zip((axis.name for axis in each.axes), point.coordinates, strict=True)), point.verdict)
        for each in found
        for point in each.points
    ]
    return [(statement, claim, f"{at[ALPHA]:g}", f"{at[GAMMA]:g}", str(verdict.status)) for at, verdict in places]


def main() -> None:
    """Write the table, a statement at a time."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(COLUMNS)
        for statement, claim in CLAIMS.items():
            table.writerows(rows(statement, claim))
            file.flush()
            print(statement, file=sys.stderr)


if __name__ == "__main__":
    main()
