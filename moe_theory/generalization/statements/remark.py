"""The remark on sparsity awareness: growth of its term, and of sparse MoE's capacity."""

import dataclasses
import itertools
from collections.abc import Callable, Sequence

import numpy as np

from moe_theory.generalization import experiments, theory
from moe_theory.generalization.experiments import CELLS, FITS, LINEAR_ROUTER, cell_name, gap_of, measure_of
from moe_theory.generalization.statements.setting import statement
from moe_theory.runs import Run
from moe_theory.verification.claim import Runs, Selection
from moe_theory.verification.statement import alike, identity, ordering, rate

LARGEST = 64  # largest T at which the term is evaluated
MANY = 4096  # T
FEW_OF_MANY = (1, 2, 4, 8, 16, 32, 64)  # k
FIT_SAMPLES = 128
FIT_EXPERTS = 8
FIT_ACTIVE = experiments.FIT_ACTIVE[FIT_EXPERTS]  # k
ANY_RUN = Selection(experiments.COIN, cells=(cell_name({"m": experiments.COIN_SAMPLES[0]}),), is_computed=True)
BY_ACTIVE = dataclasses.replace(ANY_RUN, abscissa=FEW_OF_MANY)
TO_DOUBLE_ROUNDING = identity(within=1e-12)

TERM = statement("remark-term", module=__name__)
FEWER_ACTIVE = statement("remark-fewer-active", module=__name__)


def largest_over_sizes(measure: Callable[[np.ndarray], np.ndarray]) -> float:
    """Return the largest value that `measure` gives for any T, or 0. It receives the term over all k."""
    sizes = (np.arange(1, experts + 1) for experts in range(2, LARGEST + 1))
    terms = [np.asarray(theory.sparsity_term(active[-1], active)) for active in sizes]
    return max(float(np.max(measure(term), initial=0.0)) for term in terms)


@TERM.charitable("remark.monotone", ANY_RUN, TO_DOUBLE_ROUNDING, labels=["largest fall"])
def largest_fall(run) -> np.ndarray:
    return alike(run, largest_over_sizes(lambda term: -np.diff(term)))


@TERM.ours("remark.factor-k", BY_ACTIVE, rate(at_least=1.0), instead="remark.factor-root-k")
def term_of_few(run) -> np.ndarray:
    return alike(run, theory.sparsity_term(MANY, np.array(FEW_OF_MANY)))


@TERM.replacement("remark.factor-root-k", ANY_RUN, TO_DOUBLE_ROUNDING, labels=["largest excess"])
def largest_excess(run) -> np.ndarray:
    return alike(run, largest_over_sizes(lambda term: term - np.sqrt(np.arange(1, len(term) + 1)) * term[0]))


def for_each(cells: Sequence[str], measure: Callable[[Run], np.ndarray]) -> Callable[[Runs], np.ndarray]:
    return lambda runs: np.stack([measure(runs[cell]) for cell in cells])


NEIGHBOURS = list(itertools.pairwise(experiments.ROUTER_ACTIVE))
PAIRS = list(itertools.product(experiments.ROUTER_NORMS, NEIGHBOURS))
FEWER = [experiments.router_name(experiments.SPARSE_EXPERTS, few, norm) for norm, (few, _) in PAIRS]
MORE = [experiments.router_name(experiments.SPARSE_EXPERTS, more, norm) for norm, (_, more) in PAIRS]
LABELS = [f"k = {few} and {more}, W = {norm:g}" for norm, (few, more) in PAIRS]
with_fewer = for_each(FEWER, measure_of("routed"))
with_more = for_each(MORE, measure_of("routed"))
test_printed_order = FEWER_ACTIVE.literal(
    "remark.fewer-experts", LINEAR_ROUTER, ordering(below=with_more), labels=LABELS, instead="remark.more-experts"
)
test_printed_order(with_fewer)
test_reverse = FEWER_ACTIVE.replacement("remark.more-experts", LINEAR_ROUTER, ordering(below=with_fewer), labels=LABELS)
test_reverse(with_more)

FEWER_ACTIVE.cite("remark.monotone", role="step")
NEAR = 1.0  # smaller coordinate of an input
FAR = 100.0  # larger coordinate of an input
WEIGHTS = np.geomspace(1e-3, 1e3, 2001)


def gap_of_two_samples(num_active: int) -> float:
    """Return the mean of sup_f |L_S(f) - 1/2| for two fair labels at `NEAR` or `FAR`, each with probability 1/2.

    Experts are +1 or -1. With k = 1 there are only constants, because all coordinates have one sign. With k = 2 there
    is also tanh(v x / 2). The supremum over `WEIGHTS` is a lower bound.
    """
    distance = 0.0
    if num_active == 2:
        distance = float(np.max(np.tanh(WEIGHTS * FAR / 2) - np.tanh(WEIGHTS * NEAR / 2)))
    return (1 / 2) * (1 / 2) + (1 / 2) * (1 / 2) * distance / 4  # equal labels; different labels and coordinates


@FEWER_ACTIVE.charitable(
    "remark.fewer-free-weights",
    experiments.FORMULA,
    ordering(below=lambda run: alike(run, gap_of_two_samples(2))),
    labels=["T = 2"],
)
def gap_of_one(run) -> np.ndarray:
    return alike(run, gap_of_two_samples(1))


# Training finds these gaps, not the supremum. At large norms there is no order, because every k can do what k = 1 can.
for name, norm in zip(("tame", "middling"), experiments.FIT_NORMS[:2], strict=True):
    cells = [cell_name({"T": FIT_EXPERTS, "k": number, "m": FIT_SAMPLES, "W": norm}) for number in FIT_ACTIVE]
    test_learned_order = FEWER_ACTIVE.literal(
        f"remark.fewer-experts-learned-{name}",
        FITS,
        ordering(below=for_each(cells[1:], gap_of)),
        labels=[f"k = {few} and {many}" for few, many in itertools.pairwise(FIT_ACTIVE)],
        instead="remark.more-experts",
    )
    test_learned_order(for_each(cells[:-1], gap_of))

MORE_EXPERTS = statement("remark-more-experts", module=__name__)
SAMPLES = experiments.GROWING_SAMPLES[-1]
GROWING = CELLS.over({cell_name({"T": number, "m": SAMPLES}): number for number in experiments.GROWING_EXPERTS})


@MORE_EXPERTS.charitable("remark.log-term", ANY_RUN, TO_DOUBLE_ROUNDING, labels=["largest excess"])
def largest_excess_over_logarithm(run) -> np.ndarray:
    num_active, num_experts = np.array(np.triu_indices(LARGEST)) + 1  # all 1 <= k <= T <= LARGEST
    factors = theory.sparsity_term(num_experts, num_active) / theory.sparsity_term(num_active, num_active)
    return alike(run, max(0.0, float(np.max(factors - 1 - np.log(num_experts)))))


@MORE_EXPERTS.literal("remark.log-experts", GROWING, rate(at_most=0.0), instead="remark.root-experts")
def complexity_over_logarithm(run) -> np.ndarray:
    return measure_of("masked")(run) / (1 + np.log(int(run.params.num_experts)))


MORE_EXPERTS.replacement("remark.root-experts", GROWING, rate(equal=0.5, margin=0.05))(measure_of("masked"))
