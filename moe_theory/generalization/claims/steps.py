"""Steps of the proofs of Theorem 1 and Lemma 5: (10), (13) to (16), (20), (22), (23) and (29) to (32).

Formulas are evaluated over all their sizes in float64; their experiment is any cheap one, whose draws they ignore.
"""

import functools
import math

import numpy as np
from scipy import stats

from moe_theory.generalization import corrected, experiments, theory
from moe_theory.generalization.claims.lemmas import (
    CELL_GAPS,
    CLASS_CELLS,
    FEW_CELL_NAMES,
    TOLERANCE,
    is_beyond,
    over_gaps,
    phi,
)
from moe_theory.generalization.claims.values import claim, shown, sizes_of
from moe_theory.generalization.experiments import cell_name, router_name
from moe_theory.generalization.instances import NUM_INPUTS, NUM_LONE
from moe_theory.runs import Run
from moe_theory.verify.claim import computed, excess, named, over

MOST_DOUBT = 1 / 4  # what (10) supposes exp(-eps^2 m / 2) to be at most
GHOST_GAPS = tuple(
    (experts, gap)
    for experts, gap in CELL_GAPS
    if theory.ghost_factor(experiments.FEW_CELL_SAMPLES, gap) >= 1 - 2 * MOST_DOUBT
)
EXACT = 1e-9  # of logarithms in float64
NUM_LONE_MASKS = sum(
    math.comb(2 * experiments.LONE_SAMPLES, chosen) for chosen in range(NUM_LONE + 1)
)  # Gamma of lone points


@claim("generalization.equation-10.ghost-sampling", where="Eq. (10)", kind="upper_bound")
class Equation10:
    """Where exp(-eps^2 m/2) <= 1/4 a gap to the true risk is at most twice as likely as half of it to a ghost's."""

    formula = (
        r"\mathbb{P}\left( \sup_f \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert \ge "
        r"\epsilon \right) \le 2\, \mathbb{P}\left( \sup_f \left\lvert L_{\mathcal{S}}(f) - "
        r"L_{\mathcal{S}'}(f) \right\rvert \ge \frac{\epsilon}{2} \right)"
    )
    experiment = experiments.FEW_CELLS
    labels = named(*(f"T = {experts}, gap {gap}" for experts, gap in GHOST_GAPS))
    observe = over_gaps("T", GHOST_GAPS, lambda run, gap: is_beyond(run, "gap", gap))
    predict = over_gaps("T", GHOST_GAPS, lambda run, gap: 2 * is_beyond(run, "paired_absolute", gap / 2))


@claim(
    "generalization.equation-15.sample-dependent-masks",
    where="Eqs. (13) to (15), as (17) to (20) read them",
    kind="probability",
    replaced_by="generalization.equation-15.centred-massart",
)
class Equation15:
    """With Gamma masks on 2m samples a gap is at most 2 Gamma times as likely as for one mask chosen beforehand."""

    # A mask sends 4 inputs of 2^32 to an expert of their own. Chosen beforehand, it makes no gap unless one of them is
    # among the 2m drawn, which has a probability of at most 8m / 2^32; but the sample has 2m of them to choose from.
    # The gap asked for is one that (10) allows: exp(-eps^2 m / 2) is at most 1/4.

    formula = (
        r"\mathbb{P}\left( \sup_{\mu} \sup_{h} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{S}'}(f) \right\rvert \ge "
        r"\frac{\epsilon}{2} \right) \le 2\, \Gamma\, \sup_{\mu^*} \mathbb{P}\left( \sup_h L_{\mathcal{S}}(f) - "
        r"L_{\mathcal{S}'}(f) \ge \frac{\epsilon}{2} \right), \quad \epsilon = \frac{8}{m}"
    )
    experiment = experiments.LONE_POINT
    side = "at_most"
    labels = named(experiments.LONE_CELL)
    observe = over((experiments.LONE_CELL,), lambda run: shown(run, "gap") >= NUM_LONE / experiments.LONE_SAMPLES)
    predict = staticmethod(lambda runs: 2 * NUM_LONE_MASKS * 2 * experiments.LONE_SAMPLES * NUM_LONE / NUM_INPUTS)


def _massart_excess(run: Run) -> np.ndarray:
    masks, _, samples = sizes_of(run)
    spread = math.sqrt(math.log(masks) / (2 * samples))
    return excess(shown(run, "composed"), shown(run, "largest_part") + spread)


@claim(
    "generalization.equation-15.centred-massart", where="replaces Eqs. (13) to (15)", kind="identity", margin=TOLERANCE
)
class Equation15Massart:
    """A random union of Gamma finite classes of losses exceeds its largest part by at most sqrt(log Gamma / (2m))."""

    formula = (
        r"\mathbb{E}_\sigma \underset{\mu}{\max}\, Z_\mu \le \underset{\mu}{\max}\, \mathbb{E}_\sigma Z_\mu + "
        r"\sqrt{\frac{\log \Gamma}{2m}}, \quad Z_\mu = \sup_{f \in \mathcal{F}_\mu} \frac{1}{m} \sum_{i=1}^{m} "
        r"\sigma_i \ell_i(f)"
    )
    experiment = experiments.CLASSES
    labels = named(*CLASS_CELLS)
    observe = over(CLASS_CELLS, _massart_excess)


MASK_CELLS = tuple(experiments.LABELINGS.cells)


def _mask_excess(run: Run) -> np.ndarray:
    """The largest excess of drawn routers' masks on 2m = 2 and 4 points over (16) (B,)."""
    experts, active, _ = sizes_of(run)
    halves = np.arange(1, experiments.LABELING_DIMS.max_samples // 2 + 1)
    bound = theory.equation_16(experts, active, halves[:, None], shown(run, "masks", "natarajan"))
    return excess(shown(run, "masks", "log_growth")[1::2], np.asarray(bound)).max(axis=0)


@claim("generalization.equation-16.masks", where="Eq. (16)", kind="identity", margin=TOLERANCE)
class Equation16:
    """The masks of 256 linear routers on up to 4 points are no more than (16) allows, for their own d_N."""

    formula = r"\Gamma \le \binom{T}{k}^{2 d_N} \cdot (2m)^{d_N}"
    experiment = experiments.LABELINGS
    labels = named(*MASK_CELLS)
    observe = over(MASK_CELLS, _mask_excess)


def cover_count(num_points: int, num_features: int) -> int:
    """In how many ways linear routers split points in general position between two experts.

    Source: T. Cover, 1965: 2 sum_{i<d} binom(n - 1, i), of half-spaces through the origin.
    """
    return 2 * sum(math.comb(num_points - 1, index) for index in range(num_features))


@functools.cache
def _cover_excesses() -> tuple[float, float]:
    """The largest excess of log counts over (16), with d_N = d, and over the corrected count."""
    printed, holding = [], []
    for samples in (1, 2, 5, 10, 30, 100, 1000):
        for features in range(1, 17):
            count = math.log(cover_count(2 * samples, features))
            printed.append(count - float(theory.equation_16(2, 1, samples, features)))
            holding.append(count - float(corrected.log_mask_patterns(2, 1, 2 * samples, features)))
    return max(*printed, 0.0), max(*holding, 0.0)


@claim("generalization.equation-16.cover-count", where="Eq. (16)", kind="identity", margin=EXACT)
class Equation16Cover:
    """All masks of linear routers of two experts, which can be counted, are no more than (16) allows with d_N = d."""

    formula = r"2 \sum_{i=0}^{d-1} \binom{2m - 1}{i} \le 2^{2d} \cdot (2m)^{d}"
    experiment = experiments.LONE_POINT
    labels = named("T = 2, k = 1")
    observe = computed(experiments.LONE_CELL, lambda: _cover_excesses()[0])


def _signs_excess(run: Run) -> np.ndarray:
    points = np.arange(1, experiments.LABELING_DIMS.max_samples + 1)
    experts, active, _ = sizes_of(run)
    bound = np.asarray(corrected.log_mask_patterns(experts, active, points, experiments.LABELING_DIMS.num_features))
    return excess(shown(run, "masks", "log_growth"), bound[:, None]).max(axis=0)


_all_masks_excess = computed(MASK_CELLS[0], lambda: _cover_excesses()[1])


@claim("generalization.equation-16.signs-of-forms", where="replaces Eq. (16)", kind="identity", margin=TOLERANCE)
class Equation16Signs:
    """Linear routers have no more masks than Sauer and Shelah count of the signs that differences of logits have."""

    formula = r"\log \Gamma(m) \le (T - 1)\, d\, \log \frac{e\, m\, T}{2 d}"
    experiment = experiments.LABELINGS
    labels = named(*MASK_CELLS, "all masks at T = 2")
    observe = staticmethod(lambda runs: np.hstack([over(MASK_CELLS, _signs_excess)(runs), _all_masks_excess(runs)]))


TAIL_SAMPLES = experiments.COIN_SAMPLES[-1]
TAIL_CELL = cell_name(m=TAIL_SAMPLES)
TAIL_EXCESS = 2.5 / math.sqrt(2 * TAIL_SAMPLES)  # x


def exact_tail(num_samples: int, successes: np.ndarray) -> np.ndarray:
    """P(L_S - L_S' >= s/m) of a fair coin: a binomial of 2m, since m - m L_S' has the same law as m L_S'."""
    return stats.binom.sf(num_samples + np.asarray(successes) - 1, 2 * num_samples, 0.5)


@functools.cache
def _tail_ratios() -> tuple[float, float]:
    """The largest log of the exact tail over the printed one and over the corrected, over m and all x."""
    printed, holding = [], []
    for samples in (5, 10, 25, 100):
        successes = np.arange(samples + 1)
        logs = np.log(exact_tail(samples, successes))
        printed.append(np.max(logs - np.log(theory.tail_printed(samples, successes / samples))))
        holding.append(np.max(logs - np.log(corrected.tail(samples, successes / samples))))
    return max(*printed, 0.0), max(*holding, 0.0)


TAIL = r"\mathbb{P}\left( \phi(\mathcal{S}, \mathcal{S}') - \mathbb{E}\, \phi(\mathcal{S}, \mathcal{S}') \ge x \right) "


@claim(
    "generalization.equation-20.tail",
    where="Eqs. (18) to (20)",
    kind="probability",
    replaced_by="generalization.equation-20.mcdiarmid",
)
class Equation20:
    """For one function whose loss is a fair coin phi exceeds its mean by x with probability at most exp(-2 m x^2)."""

    formula = TAIL + r"\le e^{-2 m x^2}, \quad x = \frac{2.5}{\sqrt{2m}}"
    experiment = experiments.COIN
    side = "at_most"
    labels = named(TAIL_CELL)
    observe = over((TAIL_CELL,), lambda run: phi(run) >= TAIL_EXCESS)
    predict = staticmethod(lambda runs: theory.tail_printed(TAIL_SAMPLES, TAIL_EXCESS))


@claim(
    "generalization.equation-20.exact-tail",
    where="Eqs. (18) to (20)",
    kind="identity",
    margin=EXACT,
    replaced_by="generalization.equation-20.mcdiarmid-exact-tail",
)
class Equation20Exact:
    """That tail, exactly and for every x, is at most exp(-2 m x^2): no logarithm of their ratio is above 0."""

    formula = r"2^{-2m} \sum_{i = m + m x}^{2m} \binom{2m}{i} \le e^{-2 m x^2}"
    experiment = experiments.LONE_POINT
    labels = named("m up to 100")
    observe = computed(experiments.LONE_CELL, lambda: _tail_ratios()[0])


@claim("generalization.equation-20.mcdiarmid", where="replaces Eq. (20)", kind="probability")
class Equation20Corrected:
    """For one function whose loss is a fair coin phi exceeds its mean by x with probability at most exp(-m x^2)."""

    formula = TAIL + r"\le e^{-m x^2}, \quad x = \frac{2.5}{\sqrt{2m}}"
    experiment = experiments.COIN
    side = "at_most"
    labels = named(TAIL_CELL)
    observe = over((TAIL_CELL,), lambda run: phi(run) >= TAIL_EXCESS)
    predict = staticmethod(lambda runs: corrected.tail(TAIL_SAMPLES, TAIL_EXCESS))


@claim("generalization.equation-20.mcdiarmid-exact-tail", where="replaces Eq. (20)", kind="identity", margin=EXACT)
class Equation20CorrectedExact:
    """That tail, exactly and for every x, is at most exp(-m x^2): no logarithm of their ratio is above 0."""

    formula = r"2^{-2m} \sum_{i = m + m x}^{2m} \binom{2m}{i} \le e^{-m x^2}"
    experiment = experiments.LONE_POINT
    labels = named("m up to 100")
    observe = computed(experiments.LONE_CELL, lambda: _tail_ratios()[1])


@functools.cache
def _sparsity_grid() -> dict[str, np.ndarray]:
    """(22) and (23) over all k <= T <= 64, m and d_N, with what (22) is solved for: arrays (sizes, m, d_N)."""
    pairs = np.array([(experts, active) for experts in range(1, 65) for active in range(1, experts + 1)])
    experts, active = pairs.T[:, :, None, None]
    samples, dimensions = np.array([10, 1000, 10**6])[:, None], np.array([1, 10, 1000])
    values = {
        form: np.asarray(theory.theorem_1(experts, active, samples, 0.1, dimensions, form=form))
        for form in theory.FORMS
    }
    patterns = np.asarray(theory.equation_16(experts, active, samples, dimensions))
    return {**values, "pairs": pairs, "patterns": patterns, "samples": np.broadcast_to(samples, patterns.shape)}


def _binomial_excess() -> float:
    grid = _sparsity_grid()
    return float(np.max(grid["binomial"] - grid["printed"]).clip(0))


def _inversion_error() -> float:
    """log of 4 Gamma exp(-2 m (eps/2 - E phi)^2) against log delta, relative to log(4 Gamma / delta)."""
    grid, mean, delta = _sparsity_grid(), 2 * 0.1, 0.05
    exponent = 2 * grid["samples"] * (grid["binomial"] / 2 - mean) ** 2
    needed = np.log(4 / delta) + grid["patterns"]
    return float(np.max(np.abs(needed - exponent) / needed))


def _largest_drop(most: float) -> float:
    """The largest fall of (22) from k - 1 to k, over all k up to `most` T, relative to what it falls from."""
    grid = _sparsity_grid()
    experts, active = grid["pairs"].T
    before, after = grid["binomial"][:-1], grid["binomial"][1:]
    is_next = (experts[1:] == experts[:-1]) & (active[1:] <= most * experts[1:])
    return float(np.max(np.where(is_next[:, None, None], (before - after) / before, 0)))


@claim("generalization.equation-22.inversion", where="Eq. (22)", kind="identity", margin=EXACT)
class Equation22:
    """(22) is what (10), (15), (16) and (20) give together, as the gap at which they leave a chance of delta."""

    formula = (
        r"4\, \Gamma\, e^{-2m \left( \frac{\epsilon}{2} - \mathbb{E} \phi \right)^2} = \delta "
        r"\quad \text{at } \epsilon = 2\, \mathbb{E} \phi + 2 \sqrt{\frac{\log \Gamma + \log(4 / \delta)}{2m}}"
    )
    experiment = experiments.LONE_POINT
    labels = named("T up to 64")
    observe = computed(experiments.LONE_CELL, _inversion_error)


@claim("generalization.equation-23.binomial", where="Eqs. (22) and (23)", kind="identity", margin=EXACT)
class Equation23:
    """Bounding the binomial coefficient only raises the bound: (22) is at most (23), for every k up to T = 64."""

    formula = r"\log \binom{T}{k} \le k \left( 1 + \log \frac{T}{k} \right)"
    experiment = experiments.LONE_POINT
    labels = named("T up to 64")
    observe = computed(experiments.LONE_CELL, _binomial_excess)


@claim(
    "generalization.equation-22.grows-with-k",
    where="Eq. (22), read as the remark reads (23)",
    kind="identity",
    margin=EXACT,
    replaced_by="generalization.equation-22.grows-to-half",
)
class Equation22Grows:
    """(22) grows with k up to T: the largest share of itself that it loses with one more active expert is 0."""

    formula = r"k \mapsto 2 \sqrt{\frac{2 d_N \log \binom{T}{k} + d_N \log(2m) + \log(4/\delta)}{2m}} \text{ increases}"
    experiment = experiments.LONE_POINT
    labels = named("T up to 64")
    observe = computed(experiments.LONE_CELL, lambda: _largest_drop(1))


@claim(
    "generalization.equation-22.grows-to-half", where="replaces the remark on Eq. (22)", kind="identity", margin=EXACT
)
class Equation22GrowsToHalf:
    """(22) grows with k up to T/2, where a mask is most of a choice."""

    formula = r"\binom{T}{k - 1} \le \binom{T}{k}, \quad k \le \frac{T}{2}"
    experiment = experiments.LONE_POINT
    labels = named("T up to 64")
    observe = computed(experiments.LONE_CELL, lambda: _largest_drop(0.5))


@claim(
    "generalization.equation-31.constant-experts",
    where="Eqs. (29) to (32), k = 1",
    kind="upper_bound",
    replaced_by="generalization.equation-31.product-class",
)
class Equation31Constants:
    """A router of T cells, with an expert +1 or -1 for each, has the complexity of one such expert at most."""

    formula = r"\mathcal{R}_m(\mathcal{F}_\mu) \le \mathcal{R}_m(\mathcal{H})"
    experiment = experiments.FEW_CELLS
    labels = named(*FEW_CELL_NAMES)
    observe = over(FEW_CELL_NAMES, lambda run: shown(run, "masked"))
    predict = over(FEW_CELL_NAMES, lambda run: shown(run, "lone"))


def _product_bound(run: Run) -> np.ndarray:
    experts, _, samples = sizes_of(run)
    return np.full(len(run.replicates), corrected.product_complexity(experts, samples))


@claim("generalization.equation-31.product-class", where="replaces Eqs. (29) to (32) at k = 1", kind="upper_bound")
class Equation31Product:
    """A router of T cells, with an expert +1 or -1 for each, has a complexity of sqrt(T/m) at most."""

    formula = r"\mathcal{R}_m(\mathcal{F}_\mu) \le B c \sqrt{\frac{\min(T, m)}{m}}"
    experiment = experiments.FEW_CELLS
    labels = named(*FEW_CELL_NAMES)
    observe = over(FEW_CELL_NAMES, lambda run: shown(run, "masked"))
    predict = over(FEW_CELL_NAMES, _product_bound)
    trivial = staticmethod(lambda runs: 1.0)


def router_cells(active: tuple[int, ...]) -> tuple[str, ...]:
    """The cells at T = 8 with these k, at every norm of the router that makes a difference."""
    cells = [
        router_name(experiments.SPARSE_EXPERTS, count, norm) for norm in experiments.ROUTER_NORMS for count in active
    ]
    return tuple(dict.fromkeys(cells))


SPARSE_CELLS = router_cells(experiments.ROUTER_ACTIVE[:-1])
ALL_CELLS = router_cells(experiments.ROUTER_ACTIVE)


@claim(
    "generalization.equation-31.linear-experts",
    where="Eqs. (29) to (32)",
    kind="upper_bound",
    replaced_by="generalization.equation-31.fixed-router",
)
class Equation31Linear:
    """With a given linear router, k < T = 8 linear experts in a ball have the complexity of one of them at most."""

    formula = r"\mathcal{R}_m(\mathcal{F}_a) \le \mathcal{R}_m(\mathcal{H})"
    experiment = experiments.LINEAR_ROUTER
    labels = named(*SPARSE_CELLS)
    observe = over(SPARSE_CELLS, lambda run: shown(run, "routed"))
    predict = over(SPARSE_CELLS, lambda run: shown(run, "lone"))


def _routed_bound(run: Run) -> np.ndarray:
    experts, _, samples = sizes_of(run)
    gate, norm = shown(run, "mean_square_gate"), float(run.params.expert_norm)
    return np.asarray(corrected.fixed_router_complexity(experts, samples, gate, norm))


ROUTER_CELLS = tuple(experiments.LINEAR_ROUTER.cells)


@claim(
    "generalization.equation-31.fixed-router", where="replaces Eqs. (29) to (32) for a given router", kind="upper_bound"
)
class Equation31Fixed:
    """Linear experts in a ball with a given linear router, of mean square gate A, have at most B c sqrt(T A / m)."""

    formula = (
        r"\mathcal{R}_m(\mathcal{F}_a) \le B c \sqrt{\frac{T A}{m}}, \quad A = \frac{1}{m} \sum_{i=1}^{m} "
        r"\left\lVert a(\mathbf{x}_i) \right\rVert^2"
    )
    experiment = experiments.LINEAR_ROUTER
    labels = named(*ROUTER_CELLS)
    observe = over(ROUTER_CELLS, lambda run: shown(run, "routed"))
    predict = over(ROUTER_CELLS, _routed_bound)
    trivial = staticmethod(lambda runs: 1.0)


def _scaled(run: Run) -> np.ndarray:
    return np.sqrt(int(run.params.num_experts) * shown(run, "mean_square_gate")) * shown(run, "lone")


@claim(
    "generalization.equation-31.ratio",
    where="replaces Eqs. (29) to (32) for a given router",
    kind="equality",
    margin=0.1,
)
class Equation31Ratio:
    """At T = 8, d = 8 and m = 128 that complexity is sqrt(T A) times one expert's but for 10 %, whatever k and W."""

    # Loads that differ, and inputs that a router has picked, are what it falls short by: both are of second order in
    # how far the T sums are from being of equal size and isotropic.

    formula = r"\mathcal{R}_m(\mathcal{F}_a) \approx \sqrt{T A}\; \mathcal{R}_m(\mathcal{H})"
    experiment = experiments.LINEAR_ROUTER
    labels = named(*ALL_CELLS)
    observe = over(ALL_CELLS, lambda run: shown(run, "routed"))
    predict = over(ALL_CELLS, _scaled)
