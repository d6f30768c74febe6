"""How regret grows over 50,000 slots: Tanbr's exponent, and that of a bandit whose regret is linear.

Tasks each want an expert of their own, so that the best weights are inside the simplex and a bandit over single experts
loses something in every slot for ever. The exponent of a world is the slope of log R_T over log T, by least squares at
five T from 500 to 50,000; its interval is Student's, over worlds.

    python -m benchmarks.regret_exponent [WORLDS]    # 16 worlds: ten minutes on two idle cores
"""

import dataclasses
import math
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from moe_theory.core.system import fields
from moe_theory.merging import policies, rewards
from moe_theory.merging.experiments import DIMS
from moe_theory.merging.params import Params
from moe_theory.merging.system import system
from moe_theory.runs import Run, run_cells
from moe_theory.runs.cells import Cell
from moe_theory.verification import intervals

SLOTS = 50_000
WORLDS = 16
SEED = 1
ERROR = 0.05  # of the intervals
PLACES = np.round(500 * 10 ** np.arange(0, 2.1, 0.5)).astype(int)  # T
LONGEST = dataclasses.replace(DIMS, max_rounds=SLOTS, max_leaves=512)


def exponents(policy: str, worlds: int) -> tuple[np.ndarray, int]:
    """The exponent of each world, and splits that the tree had no room for."""
    observe = fields("info.pick.left_out", regret="state.regret")
    cell = Cell(policy, system(LONGEST, rewards.SHARES, policy), Params(), SLOTS, 1, observe, None, keeps_state=False)
    half = math.ceil(worlds / 2)

    def run_half(first: int) -> Run:
        return run_cells([cell], half, first=first, seed=SEED)[policy]

    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(run_half, (0, half)))
    regret = np.concatenate([np.asarray(run.records.regret, np.float64)[PLACES - 1] for run in runs], axis=1)
    left_out = max(int(np.max(run.records.left_out)) for run in runs)
    return np.polyfit(np.log(PLACES), np.log(regret), 1)[0], left_out


def main() -> None:
    worlds = int(sys.argv[1]) if sys.argv[1:] else WORLDS
    for policy in (policies.BEST_EXPERT, policies.TANBR):
        slopes, left_out = exponents(policy, worlds)
        mean, error = intervals.mean_and_error(slopes[:, None])
        half_width = intervals.student_tail(ERROR / 2, len(slopes) - 1) * error[0]
        print(
            f"{policy}: exponent {mean[0]:.3f} ± {half_width:.3f} ({1 - ERROR:.0%}), from {slopes.min():.2f} to "
            f"{slopes.max():.2f} in {len(slopes)} worlds, {left_out} splits left out",
            flush=True,
        )


if __name__ == "__main__":
    main()
