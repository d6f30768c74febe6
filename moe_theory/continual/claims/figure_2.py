"""Sentences about Fig. 2: termination, many experts against one, and more experts than needed."""

from collections.abc import Callable

import numpy as np

from moe_theory.continual.claims.measurements import at_rounds, claim, metric
from moe_theory.continual.experiments import FIGURE_2, JUST_EXPLORED, MANY, cell_name
from moe_theory.runs import Run
from moe_theory.verify.claim import Values, named

MOE_SIZES = (5, 10, 20)
METRICS = ("forgetting", "generalization_error")
ALMOST_ZERO = 0.05  # of a single expert's error: our reading of "almost zero"


def _final(name: str, terminate: bool, sizes: tuple[int, ...] = MOE_SIZES) -> Values:
    return lambda runs: np.concatenate(
        [metric(name, cell_name(size, terminate), (FIGURE_2.num_rounds,))(runs) for size in sizes], axis=1
    )


def _both_final(sizes: tuple[int, ...], factor: float = 1.0) -> Values:
    return lambda runs: factor * np.concatenate([_final(name, True, sizes)(runs) for name in METRICS], axis=1)


def _over_sizes(measure: Callable[[Run], np.ndarray], terminate: bool) -> Values:
    return lambda runs: np.stack([measure(runs[cell_name(size, terminate)]) for size in MOE_SIZES], axis=1)


def _swing(name: str) -> Callable[[Run], np.ndarray]:
    """How far a metric goes up and down between records of the second half, beyond what it changes in all."""

    def swing(run: Run) -> np.ndarray:
        steps = np.diff(_second_half(run, name), axis=0)
        return np.abs(steps).sum(axis=0) - np.abs(steps.sum(axis=0))  # 0 for a metric that only falls

    return swing


def _second_half(run: Run, name: str) -> np.ndarray:
    return getattr(run.records, name)[run.rounds > FIGURE_2.num_rounds // 2].astype(np.float64)


def _mean_move(run: Run) -> np.ndarray:
    return _second_half(run, "update_norm").mean(axis=0)


def _early_rise(round: int) -> Values:
    return lambda runs: np.concatenate([metric(name, MANY, (round,))(runs) for name in METRICS], axis=1)


def _mean_error(size: int) -> Values:
    return lambda runs: metric("generalization_error", cell_name(size))(runs).mean(axis=1)


_BY_SIZE = named(*(f"M = {size}" for size in MOE_SIZES))


@claim("continual.figure-2.rise", where="Sec. 6, Fig. 2 (a), (c)", kind="ordering")
class Rise:
    """Both metrics first increase while experts explore: at M = 20, from t = 10 to the end of exploration, t = 40."""

    formula = r"\mathbb{E}[F_{10}] < \mathbb{E}[F_{T_1}], \quad \mathbb{E}[G_{10}] < \mathbb{E}[G_{T_1}]"
    experiment = JUST_EXPLORED
    labels = named("forgetting", "generalization error")
    observe = _early_rise(10)
    predict = _early_rise(40)


@claim("continual.figure-2.termination-forgetting", where="Sec. 6, Fig. 2 (a), (b)", kind="ordering")
class TerminationForgetting:
    """Terminating the gate updates ends in less forgetting than never terminating them, for every size of MoE."""

    formula = r"\mathbb{E}[F_T \mid \text{terminate}] < \mathbb{E}[F_T \mid \text{continue}], \quad M \in \{5, 10, 20\}"
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("forgetting", terminate=True)
    predict = _final("forgetting", terminate=False)


@claim("continual.figure-2.termination-generalization", where="Sec. 6, Fig. 2 (c), (d)", kind="ordering")
class TerminationGeneralization:
    """Terminating the gate updates ends in less overall generalization error than never terminating them."""

    formula = r"\mathbb{E}[G_T \mid \text{terminate}] < \mathbb{E}[G_T \mid \text{continue}], \quad M \in \{5, 10, 20\}"
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("generalization_error", terminate=True)
    predict = _final("generalization_error", terminate=False)


@claim("continual.figure-2.oscillation-forgetting", where="Sec. 6, Fig. 2 (b)", kind="ordering")
class OscillationForgetting:
    """Without termination forgetting oscillates more: ups and downs over t > 1000, less the net change."""

    formula = (
        r"\mathbb{E}[S \mid \text{terminate}] < \mathbb{E}[S \mid \text{continue}], \quad "
        r"S = \sum_{t=1000}^{1980} \left| F_{t+20} - F_t \right| - \left| F_{2000} - F_{1000} \right|"
    )
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _over_sizes(_swing("forgetting"), terminate=True)
    predict = _over_sizes(_swing("forgetting"), terminate=False)


@claim("continual.figure-2.oscillation-generalization", where="Sec. 6, Fig. 2 (d)", kind="ordering")
class OscillationGeneralization:
    """Without termination the generalization error oscillates more: ups and downs, less the net change."""

    formula = OscillationForgetting.formula.replace("F_", "G_")
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _over_sizes(_swing("generalization_error"), terminate=True)
    predict = _over_sizes(_swing("generalization_error"), terminate=False)


@claim("continual.figure-2.misrouting", where="Sec. 6, Fig. 2 (b), (d)", kind="ordering")
class Misrouting:
    """Without termination tasks reach less suitable experts: the chosen expert has to move farther, over t > 1000."""

    formula = (
        r"\mathbb{E}\left[\left\lVert w_t - w_{t-1} \right\rVert \mid \text{terminate}\right] < "
        r"\mathbb{E}\left[\left\lVert w_t - w_{t-1} \right\rVert \mid \text{continue}\right], \quad t > 1000"
    )
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _over_sizes(_mean_move, terminate=True)
    predict = _over_sizes(_mean_move, terminate=False)


@claim("continual.figure-2.moe-forgetting", where="Sec. 6, Fig. 2 (a)", kind="ordering")
class MoeForgetting:
    """A Mixture-of-Experts with termination forgets less than a single expert."""

    formula = r"\mathbb{E}[F_T \mid M] < \mathbb{E}[F_T \mid M = 1], \quad M \in \{5, 10, 20\}"
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("forgetting", terminate=True)
    predict = _final("forgetting", terminate=True, sizes=(1,))


@claim("continual.figure-2.moe-generalization", where="Sec. 6, Fig. 2 (c)", kind="ordering")
class MoeGeneralization:
    """A Mixture-of-Experts with termination generalizes better than a single expert."""

    formula = r"\mathbb{E}[G_T \mid M] < \mathbb{E}[G_T \mid M = 1], \quad M \in \{5, 10, 20\}"
    experiment = FIGURE_2
    labels = _BY_SIZE
    observe = _final("generalization_error", terminate=True)
    predict = _final("generalization_error", terminate=True, sizes=(1,))


@claim("continual.figure-2.almost-zero", where="Sec. 6, Fig. 2 (a), (c)", kind="upper_bound")
class AlmostZero:
    """With termination both metrics end at almost zero, read as at most 5 % of a single expert's."""

    formula = (
        r"\mathbb{E}[F_T \mid M = 10] \le 0.05\, \mathbb{E}[F_T \mid M = 1], \quad "
        r"\mathbb{E}[G_T \mid M = 10] \le 0.05\, \mathbb{E}[G_T \mid M = 1]"
    )
    experiment = FIGURE_2
    labels = named(*(f"{name}, M = {size}" for name in ("forgetting", "generalization error") for size in MOE_SIZES))
    observe = _both_final(MOE_SIZES)
    predict = _both_final((1,) * len(MOE_SIZES), factor=ALMOST_ZERO)


@claim("continual.figure-2.more-experts-slower", where="Sec. 6, Fig. 2 (c)", kind="ordering")
class MoreExpertsSlower:
    """Beyond M > N more experts delay convergence: the mean error over t = 20, 40, ... is less at M = 10 than 20."""

    formula = (
        r"\sum_{t = 20, 40, \ldots, T} \mathbb{E}[G_t \mid M = 10] < \sum_{t = 20, 40, \ldots, T} "
        r"\mathbb{E}[G_t \mid M = 20]"
    )
    experiment = FIGURE_2
    labels = named("mean over t")
    observe = _mean_error(10)
    predict = _mean_error(20)


@claim("continual.figure-2.more-experts-no-better", where="Sec. 6, Fig. 2 (c)", kind="upper_bound", margin=0.05)
class MoreExpertsNoBetter:
    """Beyond M > N more experts do not improve the result: M = 10 ends no worse than M = 20, within 5 %."""

    formula = r"\mathbb{E}[G_T \mid M = 10] \le 1.05\, \mathbb{E}[G_T \mid M = 20]"
    experiment = FIGURE_2
    labels = at_rounds(FIGURE_2.num_rounds)
    observe = _final("generalization_error", terminate=True, sizes=(10,))
    predict = _final("generalization_error", terminate=True, sizes=(20,))
