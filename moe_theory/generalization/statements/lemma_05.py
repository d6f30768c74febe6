"""Lemma 5, by which T experts cost no more than one, and (31), the step of its proof that is wrong."""

import numpy as np

from moe_theory.generalization import corrected, experiments
from moe_theory.generalization.experiments import LINEAR_ROUTER, SPARSE_EXPERTS, every, shown, shows
from moe_theory.generalization.model import LIPSCHITZ
from moe_theory.verify.statement import bound, equality, statement

BY_CELLS = experiments.FEW_CELLS.over("num_experts")
# T = 8 with these k, at every norm of the router that makes a difference.
SIZES = [(count, norm) for norm in experiments.ROUTER_NORMS for count in experiments.ROUTER_ACTIVE]
ALL = tuple(dict.fromkeys(experiments.router_name(SPARSE_EXPERTS, *size) for size in SIZES))
SPARSE = tuple(name for name in ALL if LINEAR_ROUTER.cells[name]["num_active"] < SPARSE_EXPERTS)
EQUATION_24 = r"$$\mathbb{E}\, \phi_\mu(\mathcal{S}, \mathcal{S}') \le 2 C\, \mathcal{R}_m(\mathcal{H})$$"
HOLDS_24 = r"$$\mathbb{E}\, \phi_\mu(\mathcal{S}, \mathcal{S}') \le 2 C\, \mathcal{R}_m(\mathcal{F}_\mu)$$"

LEMMA_5 = statement(
    "lemma-5",
    where="Lemma 5, Eq. (24)",
    says=f"Given the mask, the mean of phi is at most 2 C times the Rademacher complexity of one expert.{EQUATION_24}",
    why="""Its proof takes gates that depend on the input for one convex combination of the experts, in (31), and so
    loses all experts but one. With k = 1 the class of all models with a given mask is a product over the experts,
    each with its own inputs, and up to T times as complex as one, sqrt(T) times for +1 and -1; at k = T = 2 no factor
    will do, see Theorem 1.""",
    instance="""Two cells of probability 1/2, each with an expert +1 or -1, and two samples with labels of fair coins:
    over all draws the mean of phi is 35/64, and 2 C R_2(H) is 1/2. At T = 64 and m = 256 it is .28 against .05.""",
    corrected=f"The complexity is that of all models with this mask, not of one expert.{HOLDS_24}",
    disproof="two_cells_lemma_05.py",
    derivation="lemma_05_instead.py",
)
LEMMA_5.charitable(
    "lemma-5.lone-expert",
    BY_CELLS,
    bound(at_most=lambda run: 2 * LIPSCHITZ * shown(run, "lone")),
    instead="lemma-5.masked-class",
).says("With a router that is given the mean of phi is at most 2 C times the complexity of one expert.")(
    shows("paired_gap")
)
LEMMA_5.replacement(
    "lemma-5.masked-class",
    BY_CELLS,
    bound(at_most=lambda run: 2 * LIPSCHITZ * shown(run, "masked")),
    where="replaces Lemma 5",
).says("With a router that is given the mean of phi is at most 2 C times the complexity of all models with it.")(
    shows("paired_gap")
)

FIXED_ROUTER = (
    r"\mathcal{R}_m(\mathcal{F}_a) \le B c \sqrt{\frac{T A}{m}}, \quad A = \frac{1}{m} \sum_{i=1}^{m} "
    r"\left\lVert a(\mathbf{x}_i) \right\rVert^2"
)
EQUATION_31 = statement(
    "equation-31",
    where="Lemma 5, proof, Eqs. (29) to (32)",
    says="Gates that depend on the input can be replaced by the worst single point of the simplex, so that all T "
    r"experts are no richer than one.$$\mathcal{R}_m(\mathcal{F}_\mu) \le \mathcal{R}_m(\mathcal{H})$$",
    why="""The gates of (30) are a point of the simplex for each input, and (31) takes the supremum over one point for
    all inputs. Gates that differ let the sample be divided among the experts, each of which then fits its own part.""",
    instance="""Two cells of probability 1/2, each with an expert +1 or -1, and two samples: the complexity is 3/4, and
    1/2 for one expert. 8 linear experts behind a given linear router, one of them active: .239 against .085.""",
    corrected="Given the router, with A the mean of |a(x)|^2 over the sample, linear experts |w| <= B with |x| <= c "
    "have at most B c sqrt(T A / m), where A = 1 at k = 1; it falls as more experts share an input."
    f"$${FIXED_ROUTER}$$",
    disproof="two_cells_equation_31.py",
    derivation="fixed_router.py",
)


def product_bound(run) -> float:
    experts, _, samples = experiments.sizes_of(run.params)
    return float(corrected.product_complexity(experts, samples))


def fixed_router_bound(run) -> np.ndarray:
    experts, _, samples = experiments.sizes_of(run.params)
    gate, norm = shown(run, "mean_square_gate"), float(run.params.expert_norm)
    return np.asarray(corrected.fixed_router_complexity(experts, samples, gate, norm))


def scaled(run) -> np.ndarray:
    """sqrt(T A) times one expert's complexity. Loads that differ, and inputs that a router has picked, are what it is
    too large by: both are of second order in how far the T sums are from being of equal size and isotropic.
    """
    return np.sqrt(int(run.params.num_experts) * shown(run, "mean_square_gate")) * shown(run, "lone")


EQUATION_31.charitable(
    "equation-31.constant-experts",
    BY_CELLS,
    bound(at_most=shows("lone")),
    where="Eqs. (29) to (32), k = 1",
    instead="equation-31.product-class",
).says("A router of T cells, with an expert +1 or -1 for each, has the complexity of one such expert at most.")(
    shows("masked")
)
EQUATION_31.replacement(
    "equation-31.product-class",
    BY_CELLS,
    bound(at_most=product_bound, trivial=1.0),
    where="replaces Eqs. (29) to (32) at k = 1",
).says(
    "A router of T cells, with an expert +1 or -1 for each, has a complexity of sqrt(T/m) at most."
    r"$$\mathcal{R}_m(\mathcal{F}_\mu) \le B c \sqrt{\frac{\min(T, m)}{m}}$$"
)(shows("masked"))
EQUATION_31.charitable(
    "equation-31.linear-experts",
    LINEAR_ROUTER.over(SPARSE),
    bound(at_most=shows("lone")),
    where="Eqs. (29) to (32)",
    instead="equation-31.fixed-router",
).says(
    "With a given linear router, k < T = 8 linear experts in a ball have the complexity of one of them at most."
    r"$$\mathcal{R}_m(\mathcal{F}_a) \le \mathcal{R}_m(\mathcal{H})$$"
)(shows("routed"))
EQUATION_31.replacement(
    "equation-31.fixed-router",
    every(LINEAR_ROUTER),
    bound(at_most=fixed_router_bound, trivial=1.0),
    where="replaces Eqs. (29) to (32) for a given router",
).says("Linear experts in a ball with a given linear router, of mean square gate A, have at most B c sqrt(T A / m).")(
    shows("routed")
)
EQUATION_31.replacement(
    "equation-31.ratio",
    LINEAR_ROUTER.over(ALL),
    equality(scaled, margin=0.1),
    where="replaces Eqs. (29) to (32) for a given router",
).says(
    "At T = 8, d = 8 and m = 128 that complexity is sqrt(T A) times one expert's but for 10 %, whatever k and W."
    r"$$\mathcal{R}_m(\mathcal{F}_a) \approx \sqrt{T A}\; \mathcal{R}_m(\mathcal{H})$$"
)(shows("routed"))
