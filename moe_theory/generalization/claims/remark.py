"""The remark on sparsity awareness: how its term grows, and how the capacity of sparse MoE does."""

import itertools
from collections.abc import Callable

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.claims.values import claim, shown
from moe_theory.generalization.experiments import cell_name, gaps_of, router_name
from moe_theory.verify.claim import Values, computed, named, over

LARGEST = 64  # largest T at which the term is evaluated
MANY, FEW_OF_MANY = 4096, (1, 2, 4, 8, 16, 32, 64)  # T, and k
_TERM = r"\sqrt{k \left( 1 + \log \frac{T}{k} \right)}"
FIT_ACTIVE = (1, 2, 4, 8)
FIT_SAMPLES, FIT_EXPERTS = 128, 8


def _terms() -> list[np.ndarray]:
    """The term over all k, for every T."""
    sizes = (np.arange(1, experts + 1) for experts in range(2, LARGEST + 1))
    return [np.asarray(theory.sparsity_term(active[-1], active)) for active in sizes]


def _largest_fall() -> float:
    """Of the term from one k to the next."""
    return max(float(np.max(-np.diff(term), initial=0.0)) for term in _terms())


def _largest_excess() -> float:
    """Of the term at k over sqrt(k) times the term at 1."""
    return max(float(np.max(term - np.sqrt(np.arange(1, len(term) + 1)) * term[0], initial=0.0)) for term in _terms())


def _routed(active: tuple[int, ...]) -> Values:
    """Capacity of a given router with so many active experts, one component a number and a norm."""
    names = [
        router_name(experiments.SPARSE_EXPERTS, number, norm) for norm in experiments.ROUTER_NORMS for number in active
    ]
    return over(names, lambda run: shown(run, "routed"))


_STEPS = named(
    *(
        f"k = {fewer} and {more}, W = {norm:g}"
        for norm in experiments.ROUTER_NORMS
        for fewer, more in itertools.pairwise(experiments.ROUTER_ACTIVE)
    )
)


def _learned(norm: float, active: tuple[int, ...]) -> Values:
    names = [cell_name(T=FIT_EXPERTS, k=number, m=FIT_SAMPLES, W=norm) for number in active]
    return lambda runs: gaps_of(runs, names)


_LEARNED_STEPS = named(*(f"k = {few} and {more}" for few, more in itertools.pairwise(FIT_ACTIVE)))


def _growth(scale: Callable[[np.ndarray], np.ndarray]) -> Values:
    """Capacity at T cells, over `scale` of T."""
    masked = over(
        [cell_name(T=number, m=experiments.GROWING_SAMPLES[-1]) for number in experiments.GROWING_EXPERTS],
        lambda run: shown(run, "masked"),
    )
    return lambda runs: masked(runs) / scale(np.array(experiments.GROWING_EXPERTS))


@claim("generalization.remark.monotone", where="Remark on sparsity awareness", kind="identity", margin=1e-12)
class Monotone:
    """The term that is to explain sparsity never falls as k grows, for every T up to 64."""

    formula = _TERM + r" \le \sqrt{(k + 1) \left( 1 + \log \frac{T}{k + 1} \right)}, \quad 1 \le k < T"
    experiment = experiments.COIN
    labels = named("largest fall")
    observe = computed(cell_name(m=experiments.COIN_SAMPLES[0]), _largest_fall)


@claim(
    "generalization.remark.factor-k",
    where="Remark on sparsity awareness, last sentence, read as a gain of order k",
    kind="rate",
    margin=0.1,
    replaced_by="generalization.remark.factor-root-k",
)
class FactorK:
    """Of 4096 experts, the term with k of them active is k times that with one, up to a constant."""

    formula = _TERM + r" = \Omega(k)"
    experiment = experiments.COIN
    side = "at_least"
    abscissa = FEW_OF_MANY
    observe = computed(
        cell_name(m=experiments.COIN_SAMPLES[0]), lambda: theory.sparsity_term(MANY, np.array(FEW_OF_MANY))
    )
    predict = staticmethod(lambda runs: 1.0)


@claim(
    "generalization.remark.factor-root-k",
    where="replaces the remark on sparsity awareness, last sentence",
    kind="identity",
    margin=1e-12,
)
class FactorRootK:
    """Going from k active experts to one lowers the term by a factor of at most sqrt(k), for every T up to 64."""

    formula = _TERM + r" \le \sqrt{k (1 + \log T)}, \quad 1 \le k \le T"
    experiment = experiments.COIN
    labels = named("largest excess")
    observe = computed(cell_name(m=experiments.COIN_SAMPLES[0]), _largest_excess)


@claim(
    "generalization.remark.fewer-experts",
    where="Remark on sparsity awareness: fewer active experts, smaller error",
    kind="ordering",
    replaced_by="generalization.remark.more-experts",
)
class FewerExperts:
    """With a given linear router, whose d_N is 0, linear experts are less complex the fewer of them are active."""

    formula = r"\mathcal{R}_m(\mathcal{F}(T, k)) < \mathcal{R}_m(\mathcal{F}(T, 2k))"
    experiment = experiments.LINEAR_ROUTER
    labels = _STEPS
    observe = _routed(experiments.ROUTER_ACTIVE[:-1])
    predict = _routed(experiments.ROUTER_ACTIVE[1:])


@claim(
    "generalization.remark.more-experts",
    where="replaces the remark on sparsity awareness, for a given router",
    kind="ordering",
)
class MoreExperts:
    """With a given linear router, linear experts are less complex the more of them are active."""

    formula = r"\mathcal{R}_m(\mathcal{F}(T, 2k)) < \mathcal{R}_m(\mathcal{F}(T, k))"
    experiment = experiments.LINEAR_ROUTER
    labels = _STEPS
    observe = _routed(experiments.ROUTER_ACTIVE[1:])
    predict = _routed(experiments.ROUTER_ACTIVE[:-1])


def _declare_learned(name: str, norm: float, *, is_replaced: bool) -> None:
    """The order of capacities over k when routers are learned too, at one norm: the paper's, and the other."""
    fewer, more = _learned(norm, FIT_ACTIVE[:-1]), _learned(norm, FIT_ACTIVE[1:])
    other = f"generalization.remark.more-experts-learned-{name}"
    gap = r"\mathbb{E} \left\lvert L_{\mathcal{S}}(\hat{f}_{%s}) - L_{\mathcal{D}}(\hat{f}_{%s}) \right\rvert"

    @claim(
        f"generalization.remark.fewer-experts-learned-{name}",
        where=f"Remark on sparsity awareness, learned routers with W = {norm:g}",
        kind="ordering",
        replaced_by=other if is_replaced else None,
    )
    class FewerExpertsLearned:
        __doc__ = (
            f"With router norms up to {norm:g}, training fits random labels less well the fewer experts are active."
        )
        formula = f"{gap % ('k', 'k')} < {gap % ('2k', '2k')}"
        experiment = experiments.FITS
        labels = _LEARNED_STEPS
        observe = fewer
        predict = more

    if not is_replaced:
        return

    @claim(
        other, where=f"replaces the remark on sparsity awareness, learned routers with W = {norm:g}", kind="ordering"
    )
    class MoreExpertsLearned:
        __doc__ = (
            f"With router norms up to {norm:g}, training fits random labels less well the more experts are active."
        )
        formula = f"{gap % ('2k', '2k')} < {gap % ('k', 'k')}"
        experiment = experiments.FITS
        labels = _LEARNED_STEPS
        observe = more
        predict = fewer


# What training reaches, not the supremum: there is no order at the largest norm, where every k can do nearly what k = 1
# can, and training does about as well for each.
for _name, _norm in zip(("tame", "middling", "sharp"), experiments.FIT_NORMS, strict=True):
    _declare_learned(_name, _norm, is_replaced=_norm < experiments.FIT_NORMS[-1])


@claim(
    "generalization.remark.log-experts",
    where="Remark on sparsity awareness: more experts harm by O(log T)",
    kind="rate",
    margin=0.1,
    replaced_by="generalization.remark.root-experts",
)
class LogExperts:
    """With one active expert of T fixed cells, complexity grows with T like 1 + log(T) at most."""

    formula = r"\mathcal{R}_m(\mathcal{F}(T, 1)) = \mathcal{O}(1 + \log T)"
    experiment = experiments.CELLS
    side = "at_most"
    abscissa = experiments.GROWING_EXPERTS
    observe = _growth(lambda experts: 1 + np.log(experts))
    predict = staticmethod(lambda runs: 0.0)


@claim(
    "generalization.remark.root-experts",
    where="replaces the remark on sparsity awareness, growth with T",
    kind="rate",
    margin=0.05,
)
class RootExperts:
    """With one active expert of T fixed cells, complexity grows like sqrt(T) as long as T is well below m."""

    formula = r"\mathcal{R}_m(\mathcal{F}(T, 1)) = \Theta(\sqrt{T})"
    experiment = experiments.CELLS
    side = "equal"
    abscissa = experiments.GROWING_EXPERTS
    observe = _growth(np.ones_like)
    predict = staticmethod(lambda runs: 0.5)
