"""(29) to (32): whether T experts behind a given router are as rich as one, and how rich they are instead."""

import numpy as np

from moe_theory.generalization import repaired
from moe_theory.generalization.claims.lemmas import CELLS
from moe_theory.generalization.claims.values import named, over, shown
from moe_theory.generalization.lemma_experiments import (
    FIXED_CELLS,
    LINEAR_ROUTER,
    ROUTER_ACTIVE,
    ROUTER_NORMS,
    SPARSE_EXPERTS,
    router_name,
)
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, claim


@claim(
    "generalization.equation-31.constant-experts",
    paper="generalization",
    where="Eqs. (29) to (32), k = 1",
    kind="upper_bound",
    replaced_by="generalization.equation-31.product-class",
)
class Equation31Constants:
    """A router of T cells, with an expert +1 or -1 for each, has the complexity of one such expert at most."""

    formula = r"\mathcal{R}_m(\mathcal{F}_\mu) \le \mathcal{R}_m(\mathcal{H})"
    experiment = FIXED_CELLS
    labels = named(*CELLS)
    observe = over(CELLS, lambda run: shown(run, "masked"))
    predict = over(CELLS, lambda run: shown(run, "lone"))


def _product_bound(run: Run) -> np.ndarray:
    bound = repaired.product_complexity(int(run.params.num_experts), int(run.params.num_samples))
    return np.full(len(run.replicates), bound)


@claim(
    "generalization.equation-31.product-class",
    paper="generalization",
    where="replaces Eqs. (29) to (32) at k = 1",
    kind="upper_bound",
)
class Equation31Product:
    """A router of T cells, with an expert +1 or -1 for each, has a complexity of sqrt(T/m) at most."""

    formula = r"\mathcal{R}_m(\mathcal{F}_\mu) \le B c \sqrt{\frac{\min(T, m)}{m}}"
    experiment = FIXED_CELLS
    labels = named(*CELLS)
    observe = over(CELLS, lambda run: shown(run, "masked"))
    predict = over(CELLS, _product_bound)
    trivial = staticmethod(lambda runs: 1.0)


def router_cells(active: tuple[int, ...]) -> tuple[str, ...]:
    """The cells at T = 8 with these k, at every norm of the router that makes a difference."""
    cells = [router_name(SPARSE_EXPERTS, count, norm) for norm in ROUTER_NORMS for count in active]
    return tuple(dict.fromkeys(cells))


SPARSE_CELLS = router_cells(ROUTER_ACTIVE[:-1])
ALL_CELLS = router_cells(ROUTER_ACTIVE)


@claim(
    "generalization.equation-31.linear-experts",
    paper="generalization",
    where="Eqs. (29) to (32)",
    kind="upper_bound",
    replaced_by="generalization.equation-31.fixed-router",
)
class Equation31Linear:
    """With a given linear router, k < T = 8 linear experts in a ball have the complexity of one of them at most."""

    formula = r"\mathcal{R}_m(\mathcal{F}_a) \le \mathcal{R}_m(\mathcal{H})"
    experiment = LINEAR_ROUTER
    labels = named(*SPARSE_CELLS)
    observe = over(SPARSE_CELLS, lambda run: shown(run, "routed"))
    predict = over(SPARSE_CELLS, lambda run: shown(run, "lone"))


def _routed_bound(run: Run) -> np.ndarray:
    sizes = int(run.params.num_experts), int(run.params.num_samples)
    gate, norm = shown(run, "mean_square_gate"), float(run.params.expert_norm)
    return np.asarray(repaired.fixed_router_complexity(*sizes, gate, norm))


ROUTER_CELLS = tuple(LINEAR_ROUTER.cells)


@claim(
    "generalization.equation-31.fixed-router",
    paper="generalization",
    where="replaces Eqs. (29) to (32) for a given router",
    kind="upper_bound",
)
class Equation31Fixed:
    """Linear experts in a ball with a given linear router, of mean square gate A, have at most B c sqrt(T A / m)."""

    formula = (
        r"\mathcal{R}_m(\mathcal{F}_a) \le B c \sqrt{\frac{T A}{m}}, \quad A = \frac{1}{m} \sum_{i=1}^{m} "
        r"\left\lVert a(\mathbf{x}_i) \right\rVert^2"
    )
    experiment = LINEAR_ROUTER
    labels = named(*ROUTER_CELLS)
    observe = over(ROUTER_CELLS, lambda run: shown(run, "routed"))
    predict = over(ROUTER_CELLS, _routed_bound)
    trivial = staticmethod(lambda runs: 1.0)


@claim(
    "generalization.equation-31.ratio",
    paper="generalization",
    where="replaces Eqs. (29) to (32) for a given router",
    kind="equality",
    margin=0.1,
)
class Equation31Ratio:
    """At T = 8, d = 8 and m = 128 that complexity is sqrt(T A) times one expert's but for 10 %, whatever k and W."""

    # Loads that differ, and inputs that a router has picked, are what it falls short by: both are of second order in
    # how far the T sums are from being of equal size and isotropic.

    formula = r"\mathcal{R}_m(\mathcal{F}_a) \approx \sqrt{T A}\; \mathcal{R}_m(\mathcal{H})"
    experiment = LINEAR_ROUTER
    labels = named(*ALL_CELLS)
    observe = over(ALL_CELLS, lambda run: shown(run, "routed"))

    @staticmethod
    def predict(runs: Runs) -> np.ndarray:
        def scaled(run: Run) -> np.ndarray:
            return np.sqrt(int(run.params.num_experts) * shown(run, "mean_square_gate")) * shown(run, "lone")

        return over(ALL_CELLS, scaled)(runs)
