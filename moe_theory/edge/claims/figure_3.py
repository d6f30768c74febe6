"""Sentences about Fig. 3, raw and per coordinate: the paper's axis is not said to be either."""

from moe_theory.edge.experiments import (
    ADAPTIVE,
    ENOUGH,
    FASTEST,
    FIGURE_3_EXPERTS,
    NEAREST,
    by_servers,
    final_error,
    on,
)
from moe_theory.edge.params import SIGMA_0
from moe_theory.verify.claim import claim

VARIANCE = SIGMA_0**2


@claim(
    "edge.figure-3.below-variance",
    paper="edge",
    where="Sec. VI, Fig. 3 (a)",
    kind="upper_bound",
    replaced_by="edge.figure-3.below-variance-per-coordinate",
)
@on(ADAPTIVE, by_servers(*ENOUGH), final_error(*ENOUGH), VARIANCE)
class BelowVariance:
    """With M = 30, 50 or 70 servers the error ends below sigma_0^2 = 0.36, as a squared distance of models."""

    formula = r"\mathbb{E}[G_T] \le \sigma_0^2 = 0.36, \quad M \in \{30, 50, 70\}"


@claim(
    "edge.figure-3.below-variance-per-coordinate", paper="edge", where="Sec. VI, Fig. 3 (a), G / p", kind="upper_bound"
)
@on(ADAPTIVE, by_servers(*ENOUGH), final_error(*ENOUGH, per_coordinate=True), VARIANCE)
class BelowVariancePerCoordinate:
    """With M = 30, 50 or 70 servers the error per coordinate ends below sigma_0^2 = 0.36."""

    formula = r"\mathbb{E}\left[ \frac{G_T}{p} \right] \le \sigma_0^2 = 0.36, \quad M \in \{30, 50, 70\}"


@claim("edge.figure-3.too-few", paper="edge", where="Sec. VI, Fig. 3 (a), G / p", kind="lower_bound")
@on(ADAPTIVE, by_servers(10), final_error(10, per_coordinate=True), VARIANCE)
class TooFew:
    """With M = 10 servers the error per coordinate stays above sigma_0^2 = 0.36."""

    formula = r"\mathbb{E}\left[ \frac{G_T}{p} \right] \ge \sigma_0^2 = 0.36, \quad M = 10"


@claim("edge.figure-3.too-few-raw", paper="edge", where="Sec. VI, Fig. 3 (a)", kind="lower_bound")
@on(ADAPTIVE, by_servers(10), final_error(10), VARIANCE)
class TooFewRaw:
    """With M = 10 servers the error, as a squared distance of models, stays above sigma_0^2 = 0.36."""

    formula = r"\mathbb{E}[G_T] \ge \sigma_0^2 = 0.36, \quad M = 10"


@claim("edge.figure-3.decreases", paper="edge", where="Sec. VI, Fig. 3 (a)", kind="ordering")
@on(ADAPTIVE, by_servers(*ENOUGH), final_error(*ENOUGH), final_error(*ENOUGH, time=300))
class Decreases:
    """With M = 30, 50 or 70 servers the error is lower at the end than after 300 rounds."""

    formula = r"\mathbb{E}[G_T] < \mathbb{E}[G_{300}], \quad M \in \{30, 50, 70\}"


@claim("edge.figure-3.more-servers-are-slower", paper="edge", where="Sec. VI, Fig. 3 (a)", kind="ordering")
@on(ADAPTIVE, by_servers(70), final_error(50), final_error(70))
class MoreServersAreSlower:
    """Beyond sufficiency more servers worsen the error within the same horizon: M = 50 ends below M = 70."""

    formula = r"\mathbb{E}[G_T \mid M = 50] < \mathbb{E}[G_T \mid M = 70]"


@claim("edge.figure-3.nearest-exceeds", paper="edge", where="Sec. VI, Fig. 3 (b), G / p", kind="lower_bound")
@on(NEAREST, by_servers(*FIGURE_3_EXPERTS), final_error(*FIGURE_3_EXPERTS, per_coordinate=True), SIGMA_0)
class NearestExceeds:
    """Always choosing the nearest server ends with an error per coordinate above sigma_0 = 0.6, for every M."""

    formula = (
        r"\mathbb{E}\left[ \frac{G_T}{p} \,\middle|\, \text{nearest} \right] \ge \sigma_0 = 0.6, "
        r"\quad M \in \{10, 30, 50, 70\}"
    )


@claim("edge.figure-3.fastest-exceeds", paper="edge", where="Sec. VI, Fig. 3 (b), G / p", kind="lower_bound")
@on(FASTEST, by_servers(*FIGURE_3_EXPERTS), final_error(*FIGURE_3_EXPERTS, per_coordinate=True), SIGMA_0)
class FastestExceeds:
    """Always choosing the most powerful server ends with an error per coordinate above sigma_0 = 0.6, for every M."""

    formula = (
        r"\mathbb{E}\left[ \frac{G_T}{p} \,\middle|\, \text{most powerful} \right] \ge \sigma_0 = 0.6, "
        r"\quad M \in \{10, 30, 50, 70\}"
    )


@claim("edge.figure-3.nearest-exceeds-raw", paper="edge", where="Sec. VI, Fig. 3 (b)", kind="lower_bound")
@on(NEAREST, by_servers(*FIGURE_3_EXPERTS), final_error(*FIGURE_3_EXPERTS), SIGMA_0)
class NearestExceedsRaw:
    """Always choosing the nearest server ends with a squared distance of models above sigma_0 = 0.6, for every M."""

    formula = r"\mathbb{E}[G_T \mid \text{nearest}] \ge \sigma_0 = 0.6, \quad M \in \{10, 30, 50, 70\}"


@claim("edge.figure-3.fastest-exceeds-raw", paper="edge", where="Sec. VI, Fig. 3 (b)", kind="lower_bound")
@on(FASTEST, by_servers(*FIGURE_3_EXPERTS), final_error(*FIGURE_3_EXPERTS), SIGMA_0)
class FastestExceedsRaw:
    """Always choosing the most powerful server ends with a squared distance above sigma_0 = 0.6, for every M."""

    formula = r"\mathbb{E}[G_T \mid \text{most powerful}] \ge \sigma_0 = 0.6, \quad M \in \{10, 30, 50, 70\}"


@claim("edge.figure-3.nearest-increases", paper="edge", where="Sec. VI, Fig. 3 (b)", kind="ordering")
@on(NEAREST, by_servers(*FIGURE_3_EXPERTS), final_error(*FIGURE_3_EXPERTS, time=100), final_error(*FIGURE_3_EXPERTS))
class NearestIncreases:
    """Under the nearest-server strategy the error is higher at the end than after 100 rounds, for every M."""

    formula = (
        r"\mathbb{E}[G_{100} \mid \text{nearest}] < \mathbb{E}[G_T \mid \text{nearest}], \quad M \in \{10, 30, 50, 70\}"
    )


@claim("edge.figure-3.fastest-increases", paper="edge", where="Sec. VI, Fig. 3 (b)", kind="ordering")
@on(FASTEST, by_servers(*FIGURE_3_EXPERTS), final_error(*FIGURE_3_EXPERTS, time=100), final_error(*FIGURE_3_EXPERTS))
class FastestIncreases:
    """Under the most-powerful-server strategy the error is higher at the end than after 100 rounds, for every M."""

    formula = (
        r"\mathbb{E}[G_{100} \mid \text{most powerful}] < \mathbb{E}[G_T \mid \text{most powerful}], "
        r"\quad M \in \{10, 30, 50, 70\}"
    )
