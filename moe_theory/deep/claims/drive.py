"""Whether termination is necessary for networks depends on the drive kappa: how far one gate step moves the router."""

from collections.abc import Callable
from typing import Any

import numpy as np

from moe_theory.deep.experiments import DRIVE, DRIVE_EXPERTS, STRONG, WEAK, drive_cell, final
from moe_theory.deep.gate import FREEZING_DRIVES
from moe_theory.verify.claim import Runs, claim
from moe_theory.verify.components import Values, named, over

WHERE = "continual, Sec. 6: Key design II beyond linear models"
LOW_DRIVE, HIGH_DRIVE = FREEZING_DRIVES  # kappa below which a router does not freeze by itself, and above which it does
NECESSARY = 1.25  # our reading of "poor performance": an error 25 % larger


def _errors(scale: float, terminate: bool, factor: float = 1.0) -> Values:
    values = over([drive_cell(scale, terminate)], final("generalization_error"))
    return lambda runs: factor * values(runs)


def _has_drive(scale: float, words: str, holds: Callable[[float], bool]) -> Callable[[Any, Runs], list]:
    def check(dims: Any, runs: Runs) -> list[tuple[str, bool]]:
        del dims
        median = float(np.median(np.asarray(runs[drive_cell(scale, False)].records.drive)))
        return [(f"the median of kappa is {words}", holds(median))]

    return check


_HAS_LOW_DRIVE = _has_drive(WEAK, f"below {LOW_DRIVE:g}", lambda median: median < LOW_DRIVE)
_HAS_HIGH_DRIVE = _has_drive(STRONG, f"above {HIGH_DRIVE:g}", lambda median: median > HIGH_DRIVE)


@claim("deep.drive.weak", paper="deep", where=WHERE, kind="lower_bound")
class Weak:
    """Where gate steps move the router little (kappa below 10), never terminating costs at least 25 % more error."""

    formula = r"\mathbb{E}[G_T \mid \text{no termination}] \ge \frac{5}{4} \mathbb{E}[G_T \mid \text{terminate}]"
    experiment = DRIVE
    labels = named(f"M = {DRIVE_EXPERTS}")
    hypotheses = _HAS_LOW_DRIVE
    observe = _errors(WEAK, terminate=False)
    predict = _errors(WEAK, terminate=True, factor=NECESSARY)


@claim("deep.drive.strong", paper="deep", where=WHERE, kind="lower_bound", replaced_by="deep.drive.superfluous")
class Strong:
    """Where gate steps move the router far (kappa above 20), never terminating costs at least 25 % more error too."""

    formula = r"\mathbb{E}[G_T \mid \text{no termination}] \ge \frac{5}{4} \mathbb{E}[G_T \mid \text{terminate}]"
    experiment = DRIVE
    labels = named(f"M = {DRIVE_EXPERTS}")
    hypotheses = _HAS_HIGH_DRIVE
    observe = _errors(STRONG, terminate=False)
    predict = _errors(STRONG, terminate=True, factor=NECESSARY)


@claim("deep.drive.superfluous", paper="deep", where=f"replaces {WHERE}", kind="upper_bound", margin=0.1)
class Superfluous:
    """Where gate steps move the router far, it freezes by itself: never terminating costs at most 10 % more error."""

    formula = r"\mathbb{E}[G_T \mid \text{no termination}] \le 1.1\, \mathbb{E}[G_T \mid \text{terminate}]"
    experiment = DRIVE
    labels = named(f"M = {DRIVE_EXPERTS}")
    hypotheses = _HAS_HIGH_DRIVE
    observe = _errors(STRONG, terminate=False)
    predict = _errors(STRONG, terminate=True)
