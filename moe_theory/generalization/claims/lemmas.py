"""Lemmas 2, 3 and 5 to 10. For finite classes a lemma is checked on every draw, exactly."""

from collections.abc import Callable, Iterable

import numpy as np

from moe_theory.generalization import complexity, experiments, theory
from moe_theory.generalization.claims.values import claim, shown
from moe_theory.generalization.experiments import cell_name, router_name
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, Values, computed, excess, named, over

TOLERANCE = 1e-5  # of sums in float32 of numbers that are below 100
FEW_CELL_NAMES = tuple(experiments.FEW_CELLS.cells)
CLASS_CELLS = tuple(experiments.CLASSES.cells)
LONE_EXPERT = router_name(2, 1, 1.0)  # the cell whose `lone` expert is Lemma 3's
NUM_FEATURES = (2, 4, 8, 16)
# T and a gap, near the middle of the distribution of gaps, where neither side of ghost sampling is 0 or 1.
CELL_GAPS = ((16, 0.1), (16, 0.12), (64, 0.15), (64, 0.2))
COIN_GAPS = ((25, 0.28), (100, 0.13), (100, 0.17))  # m and a gap


@claim("generalization.lemma-2.linear-router", where="Lemma 2", kind="rate", margin=0.01)
class Lemma2:
    """Linear routers of two experts, p = 2d parameters and d_N = d, have a d_N that grows no faster than p squared."""

    formula = r"d_N = d = \frac{p}{2} = \mathcal{O}(p^2)"
    experiment = experiments.LONE_POINT
    side = "at_most"
    abscissa = tuple(2 * features for features in NUM_FEATURES)
    labels = named(*(f"d = {features}" for features in NUM_FEATURES))
    observe = computed(
        experiments.LONE_CELL, lambda: [complexity.natarajan("linear", 2, 1, features) for features in NUM_FEATURES]
    )
    predict = staticmethod(lambda runs: 2.0)


def _ball_bound(runs: Runs) -> float:
    norm = float(runs[LONE_EXPERT].params.expert_norm)
    return float(theory.lemma_3(experiments.ROUTER_SAMPLES, 1.0, [norm], [norm]))


@claim("generalization.lemma-3.one-layer", where="Lemma 3", kind="upper_bound")
class Lemma3:
    """A network of one layer, which is a ball of linear functions, has at most the Rademacher complexity of Lemma 3."""

    formula = r"\mathcal{R}_m(\mathcal{H}) \le \frac{c}{\sqrt{m}}\, K_1 \cdot \frac{b_1}{K_1}, \quad r = 1"
    experiment = experiments.LINEAR_ROUTER
    labels = named(cell_name(m=experiments.ROUTER_SAMPLES))
    observe = over((LONE_EXPERT,), lambda run: shown(run, "lone"))
    predict = _ball_bound


@claim("generalization.lemma-3.one-layer-is-tight", where="Lemma 3", kind="equality", margin=0.05)
class Lemma3Tight:
    """For one layer of 8 inputs uniform on the sphere Lemma 3 is that complexity but for 5 %."""

    formula = r"\mathcal{R}_m(\mathcal{H}) \approx \frac{c}{\sqrt{m}}\, b_1, \quad r = 1"
    experiment = experiments.LINEAR_ROUTER
    labels = named(cell_name(m=experiments.ROUTER_SAMPLES))
    observe = over((LONE_EXPERT,), lambda run: shown(run, "lone"))
    predict = _ball_bound


NETWORK_CELLS = tuple(experiments.NETWORKS.cells)


def _network_bound(run: Run) -> np.ndarray:
    """Lemma 3 for two layers with Frobenius norms of at most B: row norms of the first sum to sqrt(width) B at most."""
    norm = float(run.params.expert_norm)
    row_norms = [experiments.NETWORK_WIDTH**0.5 * norm, norm]
    bound = theory.lemma_3(int(run.params.num_samples), 1.0, [norm, norm], row_norms)
    return np.full(len(run.replicates), bound)


@claim("generalization.lemma-3.two-layers", where="Lemma 3", kind="upper_bound")
class Lemma3Networks:
    """What training reaches of the Rademacher complexity of networks of two layers is at most Lemma 3's bound."""

    formula = (
        r"\mathcal{R}_m(\mathcal{H}) \le \frac{c}{\sqrt{m}}\, K_1 K_2 \left( \frac{b_1^{2/3}}{K_1^{2/3}} + "
        r"\frac{b_2^{2/3}}{K_2^{2/3}} \right)^{3/2}, \quad r = 2"
    )
    experiment = experiments.NETWORKS
    labels = named(*NETWORK_CELLS)
    # Training minimises the mean of -y f / 2: minus twice it is reached by some network of the class.
    observe = over(NETWORK_CELLS, lambda run: -2 * run.records.loss.min(axis=0).astype(np.float64))
    predict = over(NETWORK_CELLS, _network_bound)


@claim(
    "generalization.lemma-5.lone-expert",
    where="Lemma 5, Eq. (24)",
    kind="upper_bound",
    replaced_by="generalization.lemma-5.masked-class",
)
class Lemma5:
    """With a router that is given the mean of phi is at most 2 C times the complexity of one expert."""

    formula = r"\mathbb{E}\, \phi_\mu(\mathcal{S}, \mathcal{S}') \le 2 C\, \mathcal{R}_m(\mathcal{H})"
    experiment = experiments.FEW_CELLS
    labels = named(*FEW_CELL_NAMES)
    observe = over(FEW_CELL_NAMES, lambda run: shown(run, "paired_gap"))
    predict = over(FEW_CELL_NAMES, lambda run: 2 * LIPSCHITZ * shown(run, "lone"))


@claim("generalization.lemma-5.masked-class", where="replaces Lemma 5", kind="upper_bound")
class Lemma5Masked:
    """With a router that is given the mean of phi is at most 2 C times the complexity of all models with it."""

    formula = r"\mathbb{E}\, \phi_\mu(\mathcal{S}, \mathcal{S}') \le 2 C\, \mathcal{R}_m(\mathcal{F}_\mu)"
    experiment = experiments.FEW_CELLS
    labels = named(*FEW_CELL_NAMES)
    observe = over(FEW_CELL_NAMES, lambda run: shown(run, "paired_gap"))
    predict = over(FEW_CELL_NAMES, lambda run: 2 * LIPSCHITZ * shown(run, "masked"))


LABEL_COUNTS = tuple(experts for experts, active in experiments.LABELING_SIZES if active == 1)
LABEL_CELLS = tuple(cell_name(T=experts, k=1) for experts in LABEL_COUNTS)


def _growth_excess(run: Run) -> np.ndarray:
    """The largest excess over Lemma 6 at 1, ..., n points (B,)."""
    points = np.arange(1, experiments.LABELING_DIMS.max_samples + 1)[:, None]
    bound = theory.lemma_6(points, int(run.params.num_experts), shown(run, "random", "natarajan"))
    return excess(shown(run, "random", "log_growth"), np.asarray(bound)).max(axis=0)


@claim("generalization.lemma-6.growth", where="Lemma 6, Eq. (33)", kind="identity", margin=TOLERANCE)
class Lemma6:
    """No random class of functions from m <= 4 points to k = 2 or 3 labels exceeds m^d k^(2d), d its d_N."""

    formula = r"\tau_{\mathcal{H}}(m) \le m^{d_N} \cdot k^{2 d_N}"
    experiment = experiments.LABELINGS
    labels = named(*(f"{count} labels" for count in LABEL_COUNTS))
    observe = over(LABEL_CELLS, _growth_excess)


def is_beyond(run: Run, name: str, gap: float) -> np.ndarray:
    """Whether a gap of `cells` is above a number, as 0 and 1 (B,)."""
    return (shown(run, name) > gap).astype(np.float64)


def over_gaps(symbol: str, gaps: Iterable[tuple[int, float]], value: Callable[[Run, float], np.ndarray]) -> Values:
    """What `value` says of a cell and a gap (B,), one component for each size that names a cell and gap."""
    return lambda runs: np.stack([value(runs[cell_name(**{symbol: size})], gap) for size, gap in gaps], axis=1)


def _weighted(run: Run, name: str, gap: float) -> np.ndarray:
    return theory.ghost_factor(experiments.FEW_CELL_SAMPLES, gap) * is_beyond(run, name, gap)


def _is_beyond_half(run: Run, gap: float) -> np.ndarray:
    return is_beyond(run, "paired_absolute", gap / 2)


@claim("generalization.lemma-7.as-printed", where="Lemma 7, Eqs. (34) and (35)", kind="identity")
class Lemma7Printed:
    """With S' on both sides ghost sampling holds draw by draw, as it says no more than that eps is above eps/2."""

    formula = (
        r"\left(1 - 2 e^{-\epsilon^2 m / 2}\right) \mathbb{P}\left[ \sup_h \left\lvert L_{\mathcal{S}}(h) - "
        r"L_{\mathcal{S}'}(h) \right\rvert > \epsilon \right] \le \mathbb{P}\left[ \sup_h \left\lvert "
        r"L_{\mathcal{S}}(h) - L_{\mathcal{S}'}(h) \right\rvert > \frac{\epsilon}{2} \right]"
    )
    experiment = experiments.FEW_CELLS
    labels = named(*(f"T = {experts}, gap {gap}" for experts, gap in CELL_GAPS))
    observe = over_gaps(
        "T", CELL_GAPS, lambda run, gap: excess(_weighted(run, "paired_absolute", gap), _is_beyond_half(run, gap))
    )


GHOST_SAMPLING = (
    r"\left(1 - 2 e^{-\epsilon^2 m / 2}\right) \mathbb{P}\left[ \sup_h \left\lvert L_{\mathcal{S}}(h) - "
    r"L_{\mathcal{D}}(h) \right\rvert > \epsilon \right] \le \mathbb{P}\left[ \sup_h \left\lvert "
    r"L_{\mathcal{S}}(h) - L_{\mathcal{S}'}(h) \right\rvert > \frac{\epsilon}{2} \right]"
)


@claim("generalization.lemma-7.as-meant", where="Lemma 7, with the true risk in Eq. (34)", kind="upper_bound")
class Lemma7:
    """Ghost sampling holds with the true risk on its left, for a router of T cells and experts +1 or -1."""

    formula = GHOST_SAMPLING
    experiment = experiments.FEW_CELLS
    labels = named(*(f"T = {experts}, gap {gap}" for experts, gap in CELL_GAPS))
    observe = over_gaps("T", CELL_GAPS, lambda run, gap: _weighted(run, "gap", gap))
    predict = over_gaps("T", CELL_GAPS, _is_beyond_half)


@claim("generalization.lemma-7.one-function", where="Lemma 7, with the true risk in Eq. (34)", kind="upper_bound")
class Lemma7OneFunction:
    """Ghost sampling holds with the true risk on its left, for a class of one function whose loss is a fair coin."""

    formula = GHOST_SAMPLING
    experiment = experiments.COIN
    labels = named(*(f"m = {samples}, gap {gap}" for samples, gap in COIN_GAPS))
    observe = over_gaps(
        "m",
        COIN_GAPS,
        lambda run, gap: (
            theory.ghost_factor(int(run.params.num_samples), gap) * (np.abs(shown(run, "risk") - 0.5) > gap)
        ),
    )
    predict = over_gaps("m", COIN_GAPS, lambda run, gap: np.abs(phi(run)) > gap / 2)


def phi(run: Run) -> np.ndarray:
    """L_S - L_S' of the one function of `coin` (B,)."""
    return shown(run, "risk") - shown(run, "ghost")


@claim("generalization.lemma-8.symmetrization", where="Lemma 8, Eq. (36)", kind="identity", margin=TOLERANCE)
class Lemma8:
    """For random finite classes sup (L_S - L_S'), averaged over exchanges, is at most the complexities on S and S'."""

    formula = (
        r"\mathbb{E}_\sigma \sup_{f \in \mathcal{F}} \frac{1}{m} \sum_{i=1}^{m} \sigma_i \left( f(\mathbf{x}_i) - "
        r"f(\mathbf{x}'_i) \right) \le \mathcal{R}_{\mathcal{S}}(\mathcal{F}) + \mathcal{R}_{\mathcal{S}'}(\mathcal{F})"
    )
    experiment = experiments.CLASSES
    labels = named(*CLASS_CELLS)
    observe = over(
        CLASS_CELLS,
        lambda run: excess(shown(run, "swapped"), shown(run, "complexity") + shown(run, "ghost_complexity")),
    )


FAIR_CELLS = tuple(experiments.COIN.cells)


@claim(
    "generalization.lemma-8.absolute-values",
    where="Lemma 8, proof, Eqs. (37) and (38)",
    kind="equality",
    margin=0.05,
    replaced_by="generalization.lemma-8.symmetrization",
)
class Lemma8Absolute:
    """The mean of sup (L_S - L_S') is that of sup |L_S - L_S'|, for a single function whose loss is a fair coin."""

    formula = (
        r"\mathbb{E} \sup_{f} \left( L_{\mathcal{S}}(f) - L_{\mathcal{S}'}(f) \right) = "
        r"\mathbb{E} \sup_{f} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{S}'}(f) \right\rvert"
    )
    experiment = experiments.COIN
    labels = named(*FAIR_CELLS)
    observe = over(FAIR_CELLS, phi)
    predict = over(FAIR_CELLS, lambda run: np.abs(phi(run)))


@claim("generalization.lemma-9.contraction", where="Lemma 9", kind="identity", margin=TOLERANCE)
class Lemma9:
    """For random finite classes and random labels the ramp loss at least halves the empirical Rademacher complexity."""

    formula = (
        r"\mathcal{R}_{\mathcal{S}}(\ell \circ \mathcal{H}) \le C\, \mathcal{R}_{\mathcal{S}}(\mathcal{H}), "
        r"\quad C = \frac{1}{2}"
    )
    experiment = experiments.CLASSES
    labels = named(*CLASS_CELLS)
    observe = over(CLASS_CELLS, lambda run: excess(shown(run, "composed"), LIPSCHITZ * shown(run, "complexity")))


_beyond_best = over(CLASS_CELLS, lambda run: excess(shown(run, "mixtures"), shown(run, "complexity")))
_short_of_best = over(CLASS_CELLS, lambda run: shown(run, "vertex") - shown(run, "complexity"))


@claim("generalization.lemma-10.hull", where="Lemma 10, Eq. (42)", kind="identity", margin=TOLERANCE)
class Lemma10:
    """A convex combination that is the same for all inputs adds nothing: none is beyond the best of its functions."""

    formula = (
        r"\mathbb{E}_\sigma \sup_{\lambda \in \Delta,\, h_j \in \mathcal{H}} \frac{1}{m} \sum_{i=1}^{m} \sigma_i "
        r"\sum_{j=1}^{T} \lambda_j h_j(\mathbf{x}_i) = \mathcal{R}_{\mathcal{S}}(\mathcal{H})"
    )
    experiment = experiments.CLASSES
    labels = named(*(f"{cell}, {part}" for part in ("random", "best") for cell in CLASS_CELLS))
    observe = staticmethod(lambda runs: np.hstack([_beyond_best(runs), _short_of_best(runs)]))
