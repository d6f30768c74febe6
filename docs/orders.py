"""Writes docs/orders.csv: which statement holds at which orders in sigma_0 that Algorithm 1 leaves open, as runs found.

python docs/orders.py              # an hour of a core
python docs/orders.py STATEMENT    # its rows alone
"""

import dataclasses
import sys
from collections.abc import Sequence

import pandas as pd
from gallery import ROOT

import moe_theory as mt
import moe_theory.continual.statements  # which declares the claims
from moe_theory.continual.experiments import FREE_ETA
from moe_theory.verification import claim as claims

TABLE = ROOT / "docs" / "orders.csv"
COLUMNS = ["statement", "claim", "eta", "alpha", "gamma", "status"]
ETA, ALPHA, GAMMA = "learning_rate_order", "balance_weight_order", "termination_threshold_order"
AXES = [f"{ALPHA}=0.625,0.75,0.875"], [f"{ALPHA}=0.5,1", f"{GAMMA}=1.25,1.375,1.5,2"]
ETAS = [f"{ETA}=0.625,0.75", f"{ALPHA}=0.5,0.625,0.75,1"]
AS_RECORDED = {ETA: 0.5, ALPHA: 0.5, GAMMA: 1.25}
WITH_ETA = ("continual.lemma-5-exploration", "continual.lemma-8")  # whose runs may follow it
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
    axes = [*AXES, ETAS] if statement in WITH_ETA else AXES
    declared = claims.registered()[claim]
    if statement in WITH_ETA and FREE_ETA not in declared.free:  # of Lemma 8, whose search it slows tenfold
        claims._REGISTERED[claim] = dataclasses.replace(declared, free=(*declared.free, FREE_ETA))
    found = [mt.explore(claim, over, seed=1) for over in axes]
    table = []
    for each in found:
        for point in each.points:
            at = AS_RECORDED | dict(zip((axis.name for axis in each.search.axes), point.coordinates, strict=True))
            orders = (f"{at[name]:g}" for name in (ETA, ALPHA, GAMMA))
            table.append((statement, claim, *orders, str(point.verdict.status)))
    return table


def main(chosen: Sequence[str]) -> None:
    """Write the table, a statement at a time: all, or those chosen."""
    if unknown := set(chosen) - CLAIMS.keys():
        sys.exit(f"{', '.join(sorted(unknown))} is not on the map. Name some of: {', '.join(CLAIMS)}.")
    table = pd.read_csv(TABLE, dtype=str)
    table = table[table.statement.isin(CLAIMS)]
    for statement in chosen or CLAIMS:
        found = pd.DataFrame(rows(statement, CLAIMS[statement]), columns=COLUMNS)
        table = pd.concat([table[table.statement != statement], found])
        table = table.sort_values("statement", key=lambda names: names.map(list(CLAIMS).index), kind="stable")
        table.to_csv(TABLE, index=False, lineterminator="\n")
        print(statement, file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
