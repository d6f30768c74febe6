"""What a peer is given and what it returns, whatever it is written in."""

import math
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from benchmarks.contenders import Run, Setting
from moe_theory.continual import Params
from moe_theory.core.machine import available_cores

# Runs replicates `first` up to `last`, and writes their G_T into the errors (B,).
RunPart = Callable[[int, int, np.ndarray], None]


class Trajectory(NamedTuple):
    """A run, round by round: leaves (T, B), or (T,) of one replicate."""

    experts: Any  # m_t, the expert that the task went to; in `edge` -1 where nobody was idle
    generalization_error: Any  # G_t, squared model distance
    forgetting: Any = None  # F_t, squared model distance; `edge` has none


class Constants(NamedTuple):
    """What `continual.Params` holds of numbers that a peer's rounds need, as plain Python ones: q = 1, v = c w."""

    num_experts: int  # M
    learning_rate: float  # eta of (9)
    balance_weight: float  # alpha of (7)
    perturbation_scale: float  # lambda of (1)
    termination_threshold: float  # Gamma
    terminate: bool
    truth_scale: float  # sigma_0, a deviation
    signal_scale: float  # c of v_n = c w_n
    min_strength: float  # beta_t is uniform between these
    max_strength: float
    noise_scale: float  # sigma_t
    cluster_spread: float
    num_clusters: int  # K

    @property
    def exploration_rounds(self) -> int:
        """T1 = ceil(M / eta), in rounds."""
        return math.ceil(self.num_experts / self.learning_rate)


def constants_of(params: Params) -> Constants:
    """The numbers in `params`, none of them traced."""
    return Constants(*(np.asarray(getattr(params, name)).item() for name in Constants._fields))


def draw_truths(generator: np.random.Generator, setting: Setting, constants: Constants) -> Float[np.ndarray, "B N d"]:
    """Ground truths w_n of all replicates: clusters n mod K around N(0, sigma_0^2) centres, if there are fewer than N.

    Source: Section 3.1 and Appendix A.2 of `continual`.
    """
    num_tasks, num_clusters = setting.num_tasks, min(constants.num_clusters, setting.num_tasks)
    shape = (setting.batch, num_clusters, setting.num_features)
    truths = (constants.truth_scale * generator.standard_normal(shape))[:, np.arange(num_tasks) % num_clusters]
    if num_clusters < num_tasks:
        truths += constants.cluster_spread * generator.standard_normal(truths.shape)
    return truths.astype(setting.precision)


def in_parts(setting: Setting, tile: int, prepare_part: Callable[[Constants, np.ndarray], RunPart]) -> Run:
    """All replicates of a setting, each with a pool of its own, in equal parts of whole tiles on the cores of the
    process: `prepare_part` of the constants and truths (B, N, d) gives what runs a part.
    """
    constants = constants_of(Params(num_experts=setting.num_experts))
    share = tile * math.ceil(setting.batch / (tile * available_cores()))
    threads = ThreadPoolExecutor(available_cores())

    def run() -> np.ndarray:
        truths = np.ascontiguousarray(draw_truths(np.random.default_rng(setting.seed), setting, constants))
        run_part = prepare_part(constants, truths)
        errors = np.empty(setting.batch, truths.dtype)
        starts = range(0, setting.batch, share)
        ends = [min(first + share, setting.batch) for first in starts]
        list(threads.map(lambda first, last: run_part(first, last, errors), starts, ends))  # waits for all
        return errors

    return run
