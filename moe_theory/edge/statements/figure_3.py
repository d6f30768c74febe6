"""Sentences about Fig. 3. Its axis may be the squared distance of models (the literal reading) or this distance per
coordinate. The second reading decides, because most sentences can then be true.
"""

import numpy as np

from moe_theory.edge import experiments
from moe_theory.edge.experiments import ADAPTIVE, BY_ENOUGH, FASTEST, NEAREST, final_error
from moe_theory.edge.params import FIGURE_3_FEATURES, SIGMA_0
from moe_theory.edge.statements.setting import statement
from moe_theory.verification.statement import bound, ordering, probability, ranged

VARIANCE = SIGMA_0**2
TEN_SERVERS = ADAPTIVE.over("num_experts", 10)
CLEARLY = 1.1  # a ratio of errors that is visible in a figure


@ranged(low=0)
def per_coordinate(run) -> np.ndarray:
    return final_error(run) / FIGURE_3_FEATURES


BELOW_VARIANCE = statement("figure-3-below-variance", module=__name__)
BELOW_VARIANCE.cite("theorem-1.given-routes", role="corrected")
BELOW_VARIANCE.literal(
    "figure-3.below-variance", BY_ENOUGH, bound(at_most=VARIANCE), instead="figure-3.below-variance-per-coordinate"
)(final_error)
BELOW_VARIANCE.figure("figure-3.below-variance-per-coordinate", BY_ENOUGH, probability(at_least=0.5))(
    lambda run: per_coordinate(run) <= VARIANCE
)

TOO_FEW = statement("figure-3-too-few", module=__name__)


@ranged(low=0)
def error_of_ten(ten, thirty) -> np.ndarray:
    del thirty
    return final_error(ten)


above_thirty = bound(at_least=lambda ten, thirty: CLEARLY * final_error(thirty))
TOO_FEW.competitor("figure-3.too-few-blind", experiments.BLIND.together("M = 10", "M = 30"), above_thirty)(error_of_ten)
TOO_FEW.figure("figure-3.too-few-higher", ADAPTIVE.together("M = 10", "M = 30"), above_thirty)(error_of_ten)
TOO_FEW.literal("figure-3.too-few", TEN_SERVERS, bound(at_least=VARIANCE))(per_coordinate)
TOO_FEW.literal("figure-3.too-few-raw", TEN_SERVERS, bound(at_least=VARIANCE))(final_error)

DECREASES = statement("figure-3-decreases", module=__name__)
DECREASES.cite("theorem-1.given-routes", role="corrected")
BELOW_EARLY = ordering(below=experiments.error_at(300))


@DECREASES.competitor("figure-3-decreases.nearest", NEAREST.over("num_experts", *experiments.ENOUGH), BELOW_EARLY)
@DECREASES.figure("figure-3.decreases", BY_ENOUGH, BELOW_EARLY)
def error_at_end(run) -> np.ndarray:
    return final_error(run)


MORE_SERVERS = statement("figure-3-more-servers", module=__name__)
BELOW_MORE = ordering(below=lambda fewer, more: final_error(more))


@MORE_SERVERS.ours(
    "figure-3.more-servers-stronger-signals",
    experiments.STRONGER_SIGNALS.together("M = 50", "M = 70"),
    BELOW_MORE,
    labels=["M = 50 against M = 70"],
)
@MORE_SERVERS.figure(
    "figure-3.more-servers-are-slower",
    experiments.MORE_SERVERS.together("M = 50", "M = 70"),
    BELOW_MORE,
    labels=["M = 50 against M = 70"],
)
def error_of_fewer(fewer, more) -> np.ndarray:
    return final_error(fewer)


EXCEEDS = statement("figure-3-offloading-exceeds", module=__name__)
INCREASES = statement("figure-3-offloading-increases", module=__name__)
# Exact errors given pools and loads, which vary less than the errors of the runs.
EXACT_EARLY = experiments.exact_error_at(100)
EXACT_AT_END = experiments.exact_error_at(experiments.FIGURE_3_ROUNDS)
# The paper compares Fig. 3 (b) with sigma_0, and (a) with its square.
for policy, selection in (("nearest", NEAREST.over("num_experts")), ("fastest", FASTEST.over("num_experts"))):
    EXCEEDS.figure(f"figure-3.{policy}-exceeds", selection, bound(at_least=SIGMA_0))(per_coordinate)
    EXCEEDS.literal(f"figure-3.{policy}-exceeds-raw", selection, bound(at_least=SIGMA_0))(final_error)
    INCREASES.figure(f"figure-3.{policy}-increases", selection, ordering(below=EXACT_AT_END))(EXACT_EARLY)
