"""Sentences about Fig. 3. Its axis is not said to be the squared distance of models or that per coordinate.

Per coordinate is the reading in which most of them can be true, and decides; the raw distance is the literal one.
"""

import numpy as np

from moe_theory.edge import experiments
from moe_theory.edge.params import FIGURE_3_FEATURES, SIGMA_0
from moe_theory.verify.statement import bound, ordering, probability, ranged, statement

VARIANCE = SIGMA_0**2
BLIND = """The paper leaves open how large signals and strengths beta are, and that decides how far one gate step moves
the outputs: the gate drive kappa = eta E|w| E|v|^2 E[beta^2] / M. Far below 1, as with beta = 1 here, no router
specialises within T = 3000."""
ALONG_ROUTES = """Given which tasks came and who had them, with M = 30 Algorithm 1's mean error follows a recursion, to
1 % under every reading: `edge.theorem-1.given-routes`."""
TEN = experiments.ADAPTIVE.over("num_experts", 10)
CLEARLY = 1.1  # times another error, which is to be seen in a figure
BY_NEAREST, BY_FASTEST = experiments.NEAREST.over("num_experts"), experiments.FASTEST.over("num_experts")


@ranged(0)
def per_coordinate(run) -> np.ndarray:
    """The final error over the number of features (B,)."""
    return experiments.final_error(run) / FIGURE_3_FEATURES


BELOW_VARIANCE = statement(
    "figure-3-below-variance",
    where="Sec. VI, Fig. 3 (a)",
    says="For 30, 50 and 70 servers that error gets below sigma_0^2 = 0.36.",
    why=BLIND,
    instance="v = w, M = 30: kappa is <0.09>, and the error ends at 11.895, per coordinate <0.79>.",
    corrected=ALONG_ROUTES,
    note="Curves of a figure: what is asked is that most runs end there, as their mean is at the mercy of a few.",
    witness="figure_3.py",
    amendment="per coordinate, and with a gate drive kappa of order 1",
)
BELOW_VARIANCE.also("theorem-1.given-routes", role="corrected")
BELOW_VARIANCE.literal(
    "figure-3.below-variance",
    experiments.BY_ENOUGH,
    bound(at_most=VARIANCE),
    instead="figure-3.below-variance-per-coordinate",
).says(r"""With M = 30, 50 or 70 servers the error ends below sigma_0^2 = 0.36, as a squared distance of models.
    $$\mathbb{E}[G_T] \le \sigma_0^2 = 0.36, \quad M \in \{30, 50, 70\}$$""")(experiments.final_error)
BELOW_VARIANCE.figure(
    "figure-3.below-variance-per-coordinate",
    experiments.BY_ENOUGH,
    probability(at_least=0.5),
    where="Sec. VI, Fig. 3 (a), G / p",
).says(r"""With M = 30, 50 or 70 servers the error per coordinate ends below sigma_0^2 = 0.36 in most runs.
    $$\mathbb{P}\left[ \frac{G_T}{p} \le \sigma_0^2 = 0.36 \right] \ge \frac{1}{2}, \quad M \in \{30, 50, 70\}$$""")(
    lambda run: per_coordinate(run) <= VARIANCE
)

TOO_FEW = statement(
    "figure-3-too-few",
    where="Sec. VI, Fig. 3 (a)",
    says="Ten servers are too few to keep an idle one of the right kind, and the error stays higher.",
    why=BLIND + " Then ten servers do not end clearly above thirty.",
)
above_thirty = bound(at_least=lambda ten, thirty: CLEARLY * experiments.final_error(thirty))
TOO_FEW.competitor("figure-3.too-few-blind", experiments.BLIND.together("M = 10", "M = 30"), above_thirty).says(
    r"""With a router that looks at nothing, too, it ends at least a tenth higher with M = 10 servers than with M = 30.
    $$\mathbb{E}[G_T \mid M = 10] \ge 1.1 \, \mathbb{E}[G_T \mid M = 30]$$"""
)(error_of_ten := ranged(0)(lambda ten, thirty: experiments.final_error(ten)))
TOO_FEW.figure("figure-3.too-few-higher", experiments.ADAPTIVE.together("M = 10", "M = 30"), above_thirty).says(
    r"""With M = 10 servers the error ends at least a tenth higher than with M = 30.
    $$\mathbb{E}[G_T \mid M = 10] \ge 1.1 \, \mathbb{E}[G_T \mid M = 30]$$"""
)(error_of_ten)
TOO_FEW.literal(
    "figure-3.too-few", TEN, bound(at_least=VARIANCE), where="Sec. VI, Fig. 3 (a), G / p"
).says(r"""With M = 10 servers the error per coordinate stays above sigma_0^2 = 0.36.
    $$\mathbb{E}\left[ \frac{G_T}{p} \right] \ge \sigma_0^2 = 0.36, \quad M = 10$$""")(per_coordinate)
TOO_FEW.literal(
    "figure-3.too-few-raw", TEN, bound(at_least=VARIANCE)
).says(r"""With M = 10 servers the error, as a squared distance of models, stays above sigma_0^2 = 0.36.
    $$\mathbb{E}[G_T] \ge \sigma_0^2 = 0.36, \quad M = 10$$""")(experiments.final_error)


DECREASES = statement(
    "figure-3-decreases",
    where="Sec. VI, Fig. 3 (a)",
    says="For 30, 50 and 70 servers the error of Algorithm 1 goes down over time.",
    why=BLIND,
    instance="v = w, M = 70: kappa is 0.04, and the error is 10.2 after 300 rounds and 12.0 after 3000.",
    corrected=ALONG_ROUTES,
    witness="figure_3.py",
)
DECREASES.also("theorem-1.given-routes", role="corrected")


@DECREASES.competitor(
    "figure-3-decreases.nearest",
    experiments.NEAREST.over("num_experts", *experiments.ENOUGH),
    ordering(below=experiments.error_at(300)),
).says(
    r"""Always choosing the nearest of 30, 50 or 70 servers, too, the error is lower at the end than after 300 rounds.
    $$\mathbb{E}[G_T \mid \text{nearest}] < \mathbb{E}[G_{300} \mid \text{nearest}], \quad M \in \{30, 50, 70\}$$"""
)
@DECREASES.figure("figure-3.decreases", experiments.BY_ENOUGH, ordering(below=experiments.error_at(300)))
def error_decreases(run) -> np.ndarray:
    r"""With M = 30, 50 or 70 servers the error is lower at the end than after 300 rounds.
    $$\mathbb{E}[G_T] < \mathbb{E}[G_{300}], \quad M \in \{30, 50, 70\}$$"""
    return experiments.final_error(run)


@statement(
    "figure-3-more-servers",
    where="Sec. VI, Fig. 3 (a), M = 50 against M = 70",
    says="Servers beyond those needed for convergence delay it and leave a larger error at the same horizon.",
    why=BLIND + " Then more servers mean fewer tasks each, and a slightly smaller error.",
    instance="Signals apart from the truths: kappa is <0.01>; M = 50 ends at 9.880 and M = 70 at 9.819.",
    note="Where the router does not specialise the two differ by less than 1 %, the other way round.",
).figure(
    "figure-3.more-servers-are-slower",
    experiments.MORE_SERVERS.together("M = 50", "M = 70"),
    ordering(below=lambda fewer, more: experiments.final_error(more)),
    where="Sec. VI, Fig. 3 (a)",
    labels=["M = 70"],
)
def error_of_fewer(fewer, more) -> np.ndarray:
    r"""Beyond sufficiency more servers worsen the error within the same horizon: M = 50 ends below M = 70.
    $$\mathbb{E}[G_T \mid M = 50] < \mathbb{E}[G_T \mid M = 70]$$"""
    return experiments.final_error(fewer)


EXCEEDS = statement(
    "figure-3-offloading-exceeds",
    where="Sec. VI, Fig. 3 (b)",
    says="Offloading to the nearest or the most powerful server has errors clearly above sigma_0 = 0.6.",
    note="Tried: M = 70, where few tasks a server leave the least error, and the larger number that a distance is.",
)
INCREASES = statement(
    "figure-3-offloading-increases",
    where="Sec. VI, Fig. 3 (b)",
    says="Without specialists the error of those strategies grows over time.",
    note="""By the exact expected error given pools and loads, which scatters less than the runs do, of the strategy
    that takes the nearest server.""",
    why="""Truths have mean 0 in our runs. A part that all have in common is learned first, and then the error
    falls.""",
    disproof="common_part_offloading.py",
    amendment="truths no larger, in mean square, than they are apart",
)


EXACT_AT_END = experiments.exact_error_at(experiments.FIGURE_3_ROUNDS)
for server, cells, condition, models in (
    ("nearest", BY_NEAREST, "nearest", "a squared distance of models"),
    ("fastest", BY_FASTEST, "most powerful", "a squared distance"),
):
    given, grid = rf"\text{{{condition}}}", r"\quad M \in \{10, 30, 50, 70\}"
    EXCEEDS.figure(
        f"figure-3.{server}-exceeds", cells, bound(at_least=SIGMA_0), where="Sec. VI, Fig. 3 (b), G / p"
    ).says(
        f"Always choosing the {condition} server ends with an error per coordinate above sigma_0 = 0.6, for every "
        rf"M.$$\mathbb{{E}}\left[ \frac{{G_T}}{{p}} \,\middle|\, {given} \right] \ge \sigma_0 = 0.6, {grid}$$"
    )(per_coordinate)
    EXCEEDS.literal(f"figure-3.{server}-exceeds-raw", cells, bound(at_least=SIGMA_0)).says(
        f"Always choosing the {condition} server ends with {models} above sigma_0 = 0.6, for every M."
        rf"$$\mathbb{{E}}[G_T \mid {given}] \ge \sigma_0 = 0.6, {grid}$$"
    )(experiments.final_error)
    INCREASES.figure(f"figure-3.{server}-increases", cells, ordering(below=EXACT_AT_END)).says(
        f"Under the {condition.replace(' ', '-')}-server strategy the exact expected error is higher at the end than "
        rf"after 100 rounds, for every M.$$\mathbb{{E}}[G_{{100}} \mid {given}] < \mathbb{{E}}[G_T \mid {given}], "
        rf"{grid}$$"
    )(experiments.exact_error_at(100))
