"""Sentences about Fig. 2: termination, many experts against one, and more experts than needed."""

import numpy as np

from moe_theory.continual.claims.values import MANY, Values, at_rounds, metric, named
from moe_theory.continual.experiments import FIGURE_2, JUST_EXPLORED, cell_name
from moe_theory.verify.claim import claim

MOE_SIZES = (5, 10, 20)
ALMOST_ZERO = 0.05  # of a single expert's error: our reading of "almost zero"


def _final(name: str, terminate: bool, sizes: tuple[int, ...] = MOE_SIZES) -> Values:
    """A metric at the last round, one component a number of experts."""
    return lambda runs: np.concatenate(
        [metric(name, cell_name(size, terminate), (FIGURE_2.num_rounds,))(runs) for size in sizes], axis=1
    )


def _both_final(size: int, factor: float = 1.0) -> Values:
    """Forgetting and generalization error at the last round, with termination, times a factor."""
    names = ("forgetting", "generalization_error")
    return lambda runs: factor * np.concatenate([_final(name, True, (size,))(runs) for name in names], axis=1)


def _mean_error(size: int) -> Values:
    return lambda runs: metric("generalization_error", cell_name(size, True))(runs).mean(axis=1)


_BY_SIZE = named(*(f"M = {size}" for size in MOE_SIZES))


@claim("continual.figure-2.termination-forgetting", paper="continual", where="Sec. 6, Fig. 2 (a), (b)", kind="ordering")
class TerminationForgetting:
    """Terminating the gate updates ends in less forgetting than updating for ever, for every size of MoE."""

    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("forgetting", terminate=True)
    predict = _final("forgetting", terminate=False)


@claim(
    "continual.figure-2.termination-generalization",
    paper="continual",
    where="Sec. 6, Fig. 2 (c), (d)",
    kind="ordering",
)
class TerminationGeneralization:
    """Terminating the gate updates ends in less overall generalization error than updating for ever."""

    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("generalization_error", terminate=True)
    predict = _final("generalization_error", terminate=False)


@claim("continual.figure-2.moe-forgetting", paper="continual", where="Sec. 6, Fig. 2 (a)", kind="ordering")
class MoeForgetting:
    """A Mixture-of-Experts with termination forgets less than a single expert."""

    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("forgetting", terminate=True)
    predict = _final("forgetting", terminate=True, sizes=(1,))


@claim("continual.figure-2.moe-generalization", paper="continual", where="Sec. 6, Fig. 2 (c)", kind="ordering")
class MoeGeneralization:
    """A Mixture-of-Experts with termination generalizes better than a single expert."""

    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("generalization_error", terminate=True)
    predict = _final("generalization_error", terminate=True, sizes=(1,))


@claim("continual.figure-2.almost-zero", paper="continual", where="Sec. 6, Fig. 2 (a), (c)", kind="upper_bound")
class AlmostZero:
    """With termination both metrics end at almost zero, read as at most 5 % of a single expert's (M = 10)."""

    experiment = FIGURE_2
    labels = named("forgetting", "generalization error")
    observe = _both_final(10)
    predict = _both_final(1, factor=ALMOST_ZERO)


@claim("continual.figure-2.more-experts-slower", paper="continual", where="Sec. 6, Fig. 2 (c)", kind="ordering")
class MoreExpertsSlower:
    """Beyond M > N more experts delay convergence: the mean error over t = 20, 40, ... is less at M = 10 than 20."""

    experiment = FIGURE_2
    labels = named("mean over t")
    observe = _mean_error(10)
    predict = _mean_error(20)


@claim(
    "continual.figure-2.more-experts-no-better",
    paper="continual",
    where="Sec. 6, Fig. 2 (c)",
    kind="upper_bound",
    margin=0.05,
)
class MoreExpertsNoBetter:
    """Beyond M > N more experts do not improve the result: M = 10 ends no worse than M = 20, within 5 %."""

    experiment = FIGURE_2
    labels = at_rounds(FIGURE_2.num_rounds)
    observe = _final("generalization_error", terminate=True, sizes=(10,))
    predict = _final("generalization_error", terminate=True, sizes=(20,))


def _both_early(time: int) -> Values:
    """Forgetting and generalization error of M = 20 at a round of its exploration."""
    names = ("forgetting", "generalization_error")
    return lambda runs: np.concatenate([metric(name, MANY, (time,))(runs) for name in names], axis=1)


def _swings(terminate: bool) -> Values:
    """Mean size of the changes of forgetting between recorded rounds of the last half."""
    late = tuple(range(FIGURE_2.num_rounds // 2, FIGURE_2.num_rounds + 1, FIGURE_2.record_every))

    def swing(runs, size: int) -> np.ndarray:
        return np.mean(np.abs(np.diff(metric("forgetting", cell_name(size, terminate), late)(runs), axis=1)), axis=1)

    return lambda runs: np.stack([swing(runs, size) for size in MOE_SIZES], axis=1)


@claim("continual.figure-2.first-increase", paper="continual", where="Sec. 6, Fig. 2 (a), (c)", kind="ordering")
class FirstIncrease:
    """While experts are explored both metrics increase: they are larger at T1 = 40 than at t = 10, for M = 20."""

    formula = r"\mathbb{E}[F_{10}] < \mathbb{E}[F_{T_1}], \quad \mathbb{E}[G_{10}] < \mathbb{E}[G_{T_1}]"
    experiment = JUST_EXPLORED
    labels = named("forgetting", "generalization error")
    observe = _both_early(10)
    predict = _both_early(40)


@claim("continual.figure-2.oscillations", paper="continual", where="Sec. 6, Fig. 2 (a), (b)", kind="ordering")
class Oscillations:
    """Without termination forgetting oscillates more: its changes over 20 rounds of t = 1000 to 2000 are larger."""

    formula = r"\mathbb{E}|F_{t+20} - F_t|_{\text{terminated}} < \mathbb{E}|F_{t+20} - F_t|_{\text{endless}}"
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _swings(terminate=True)
    predict = _swings(terminate=False)
