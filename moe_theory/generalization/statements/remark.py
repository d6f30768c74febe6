"""The remark on sparsity awareness: how its term grows, and how the capacity of sparse MoE does."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import CELLS, FITS, LINEAR_ROUTER, cell_name, gap_of, shows
from moe_theory.runs import Run
from moe_theory.verify.claim import Runs, Selection
from moe_theory.verify.statement import alike, identity, ordering, rate, statement

LARGEST = 64  # largest T at which the term is evaluated
MANY, FEW_OF_MANY = 4096, (1, 2, 4, 8, 16, 32, 64)  # T, and k
FIT_ACTIVE = (1, 2, 4, 8)
FIT_SAMPLES, FIT_EXPERTS = 128, 8
ANY = Selection(experiments.COIN, (cell_name(m=experiments.COIN_SAMPLES[0]),), is_computed=True)
REMARK, FLAT = "Remark on sparsity awareness", identity(within=1e-12)

TERM = statement(
    "remark-term",
    where="Section 1 and the remark on sparsity awareness",
    says="The bound grows with k, up to k = T, through its term in k and T, and falls by a factor of O(k) with fewer."
    r"$$\sqrt{k \left( 1 + \log \frac{T}{k} \right)}$$",
    why="The term does grow with k, and the bound at a fixed d_N; that of the k-sparse masks changes with k, and is 0 "
    "at k = T, where the bound is least: Section 1 has it tighter than that of a model that selects all experts. Read "
    "as a gain of order k, the factor is too large: it is at most sqrt(k).",
    amendment="at a d_N that is the same for all k, and with sqrt(k) for k",
    instance="Of 4096 experts, 64 active ones have a term 6.0 times that of a single one, not 64 times.",
    corrected=r"""Going from k active experts to one lowers the term by a factor of at most sqrt(k). Linear routers need
    no k: what holds instead of Theorem 1 has log Gamma(m) <= (T - 1) d log(e m T/(2 d)), m T >= 2 d, whatever k is.
    Others do: there are some with d_N = 1 where nothing of lower order can take its place.
    $$\sqrt{k \left( 1 + \log \frac{T}{k} \right)} \le \sqrt{k (1 + \log T)}, \quad 1 \le k \le T$$""",
    proof="remark_term.py",
    derivation="remark_masks.py",
)
FEWER_ACTIVE = statement(
    "remark-fewer-active",
    where="Section 1, the remark on sparsity awareness and Section 4",
    says="Selecting fewer experts can help sparse MoE generalize better, and the bound, tighter with fewer, tells why.",
    why="""The paper says it of its bound, and so read it holds at a fixed d_N. Of the gap it holds where router weights
    are free: softmax then tends to picking one expert, so that a class with one active expert is within the closure of
    that with k. With a given router, or one of small weights, it is the other way round: experts that share an input
    average out, and the capacity falls with k like the root of the mean square gate. The bound has neither.""",
    instance="""Two constant experts, +1 and -1, a router of any weight on one coordinate, 1 or 100, and two samples:
    the mean of the largest gap is 1/4 for one active expert and .310 for both. But of 8 linear experts in 8 dimensions
    behind a given linear router, 128 samples, the complexity is .239 for one active expert and .171 for two.""",
    corrected=r"""For a given router and linear experts |w| <= B, |x| <= c, complexity is at most B c sqrt(T A/m), with
    A the mean of |a(x)|^2, between 1/k and 1. $$\mathcal{R}_m(\mathcal{F}_a) \le B c \sqrt{\frac{T A}{m}}$$""",
    amendment="for one active expert against k at the same d_N, where router weights are free",
    proof="one_active.py",
    derivation="fixed_router.py",
)


def largest_over_sizes(fall: Callable[[np.ndarray], np.ndarray]) -> float:
    """Of what `fall` makes of the term over all k, for every T."""
    sizes = (np.arange(1, experts + 1) for experts in range(2, LARGEST + 1))
    terms = [np.asarray(theory.sparsity_term(active[-1], active)) for active in sizes]
    return max(float(np.max(fall(term), initial=0.0)) for term in terms)


@TERM.charitable("remark.monotone", ANY, FLAT, where=REMARK, labels=["largest fall"])
def largest_fall(run) -> np.ndarray:
    r"""The term that is to explain sparsity never falls as k grows, for every T up to 64.
    $$\sqrt{k \left( 1 + \log \frac{T}{k} \right)} \le \sqrt{(k + 1) \left( 1 + \log \frac{T}{k + 1} \right)},
    \quad 1 \le k < T$$"""
    return alike(run, largest_over_sizes(lambda term: -np.diff(term)))


@TERM.literal(
    "remark.factor-k",
    dataclasses.replace(ANY, abscissa=FEW_OF_MANY),
    rate(at_least=1.0),
    where=f"{REMARK}, last sentence, read as a gain of order k",
    instead="remark.factor-root-k",
)
def term_of_few(run) -> np.ndarray:
    r"""Of 4096 experts, the term with k of them active is k times that with one, up to a constant.
    $$\sqrt{k \left( 1 + \log \frac{T}{k} \right)} = \Omega(k)$$"""
    return alike(run, theory.sparsity_term(MANY, np.array(FEW_OF_MANY)))


@TERM.replacement(
    "remark.factor-root-k",
    ANY,
    FLAT,
    where="replaces the remark on sparsity awareness, last sentence",
    labels=["largest excess"],
)
def largest_excess(run) -> np.ndarray:
    """Going from k active experts to one lowers the term by a factor of at most sqrt(k), for every T up to 64."""
    return alike(run, largest_over_sizes(lambda term: term - np.sqrt(np.arange(1, len(term) + 1)) * term[0]))


def each_of(cells: Sequence[str], measure: Callable[[Run], np.ndarray]) -> Callable[[Runs], np.ndarray]:
    """A measurement of several cells, a component each."""
    return lambda runs: np.stack([measure(runs[cell]) for cell in cells])


STEPS, NORMS = list(itertools.pairwise(experiments.ROUTER_ACTIVE)), experiments.ROUTER_NORMS
FEWER, MORE = (
    [experiments.router_name(experiments.SPARSE_EXPERTS, step[side], norm) for norm in NORMS for step in STEPS]
    for side in range(2)
)
LABELS = [f"k = {few} and {more}, W = {norm:g}" for norm in NORMS for few, more in STEPS]
FEWER_ACTIVE.literal(
    "remark.fewer-experts",
    LINEAR_ROUTER,
    ordering(below=each_of(MORE, shows("routed"))),
    where=f"{REMARK}: fewer active experts, smaller error",
    labels=LABELS,
    instead="remark.more-experts",
).says(r"""With a given linear router, whose d_N is 0, linear experts are less complex the fewer of them are active.
    $$\mathcal{R}_m(\mathcal{F}(T, k)) < \mathcal{R}_m(\mathcal{F}(T, 2k))$$""")(each_of(FEWER, shows("routed")))
FEWER_ACTIVE.replacement(
    "remark.more-experts",
    LINEAR_ROUTER,
    ordering(below=each_of(FEWER, shows("routed"))),
    where="replaces the remark on sparsity awareness, for a given router",
    labels=LABELS,
).says(r"""With a given linear router, linear experts are less complex the more of them are active.
    $$\mathcal{R}_m(\mathcal{F}(T, 2k)) < \mathcal{R}_m(\mathcal{F}(T, k))$$""")(each_of(MORE, shows("routed")))


FEWER_ACTIVE.also("remark.monotone", role="step")
NEAR, FAR = 1.0, 100.0  # the router's coordinate
WEIGHTS = np.geomspace(1e-3, 1e3, 2001)


def gap_of_two_samples(num_active: int) -> float:
    """Mean of sup_f |L_S(f) - 1/2| over two samples with fair labels, at `NEAR` and `FAR` with equal chances.

    Experts are any of +1 and -1, so that k = 1 leaves constants, as all coordinates have one sign, and k = 2 adds
    tanh(v x / 2); supremum over `WEIGHTS`, a lower bound.
    """
    apart = 0.0 if num_active == 1 else float(np.max(np.tanh(WEIGHTS * FAR / 2) - np.tanh(WEIGHTS * NEAR / 2)))
    return (1 / 2) * (1 / 2) + (1 / 2) * (1 / 2) * apart / 4  # labels alike; labels and coordinates both different


@FEWER_ACTIVE.charitable(
    "remark.fewer-free-weights",
    experiments.FORMULA,
    ordering(below=lambda run: alike(run, gap_of_two_samples(2))),
    where=f"{REMARK}, where the router may have any weights",
    labels=["T = 2"],
)
def gap_of_one(run) -> np.ndarray:
    r"""Of two constant experts behind a router with any weights, one active has a smaller gap than both.
    $$\mathbb{E} \sup_{f \in \mathcal{F}(2, 1)} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert <
    \mathbb{E} \sup_{f \in \mathcal{F}(2, 2)} \left\lvert L_{\mathcal{S}}(f) - L_{\mathcal{D}}(f) \right\rvert$$"""
    return alike(run, gap_of_two_samples(1))


# What training reaches, not the supremum; at large norms, where every k can do what k = 1 can, there is no order.
GAP = r"\mathbb{E} \left\lvert L_{\mathcal{S}}(\hat{f}_{%s}) - L_{\mathcal{D}}(\hat{f}_{%s}) \right\rvert"
LOW, HIGH = GAP % ("k", "k"), GAP % ("2k", "2k")
for name, norm in zip(("tame", "middling"), experiments.FIT_NORMS[:2], strict=True):
    cells = [cell_name(T=FIT_EXPERTS, k=number, m=FIT_SAMPLES, W=norm) for number in FIT_ACTIVE]
    FEWER_ACTIVE.literal(
        f"remark.fewer-experts-learned-{name}",
        FITS,
        ordering(below=each_of(cells[1:], gap_of)),
        where=f"{REMARK}, learned routers with W = {norm:g}",
        labels=[f"k = {few} and {many}" for few, many in itertools.pairwise(FIT_ACTIVE)],
        instead="remark.more-experts",
    ).says(
        f"With router norms up to {norm:g}, training fits random labels less well the fewer experts are active."
        f"$${LOW} < {HIGH}$$"
    )(each_of(cells[:-1], gap_of))

MORE_EXPERTS = statement(
    "remark-more-experts",
    where="Remark on sparsity awareness",
    says="More experts in parallel cost no more than a factor that is logarithmic in T.",
    why="""The logarithm counts masks, and the bound forgets that T experts fit more than one does: Theorem 1 lost the
    factor where gates that depend on the input became one convex combination. With one active expert in each of T
    fixed cells the class is a product of T classes, and its capacity grows like sqrt(T).""",
    instance="""Experts +1 or -1 in T cells and <1024> samples with random labels: from T = 4 to 64 the complexity grows
    like T^0.49, <3.9>-fold, and 1 + log(T) only <2.2>-fold.""",
    corrected=r"""For k = 1, a given router with T equally likely cells and experts +1 or -1 the cost is a factor of
    sqrt(T), as long as T is below m. For other classes it is up to T, which experts that are +1 or -1 at will in one
    cell, and 0 in others, come to as m grows.
    $$\mathcal{R}_m(\mathcal{F}(T, 1)) = \Theta(\sqrt{T/m})$$""",
    note="""Said of the bound it is right at a fixed d_N, whose term grows like the root of a logarithm. The remark
    speaks of harm to generalization, which the bound does not see.""",
    disproof="fixed_cells_more_experts.py",
    derivation="root_experts.py",
)
SAMPLES = experiments.GROWING_SAMPLES[-1]
GROWING = CELLS.over({cell_name(T=number, m=SAMPLES): number for number in experiments.GROWING_EXPERTS})


@MORE_EXPERTS.charitable(
    "remark.log-experts",
    GROWING,
    rate(at_most=0.0),
    where="Remark on sparsity awareness: more experts harm by O(log T)",
    instead="remark.root-experts",
)
def complexity_over_logarithm(run) -> np.ndarray:
    r"""With one active expert of T fixed cells, complexity grows with T like 1 + log(T) at most.
    $$\mathcal{R}_m(\mathcal{F}(T, 1)) = \mathcal{O}(1 + \log T)$$"""
    return shows("masked")(run) / (1 + np.log(int(run.params.num_experts)))


MORE_EXPERTS.replacement(
    "remark.root-experts",
    GROWING,
    rate(equal=0.5, margin=0.05),
    where="replaces the remark on sparsity awareness, growth with T",
).says("With one active expert of T fixed cells, complexity grows like sqrt(T) as long as T is well below m.")(
    shows("masked")
)
