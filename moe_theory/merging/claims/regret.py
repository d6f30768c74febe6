"""Regret on rewards whose best weights are known: Tanbr against every rival, and how it grows."""

import numpy as np

from moe_theory.merging import policies
from moe_theory.merging.claims.values import claim, final, half, in_most, mean_value, recorded
from moe_theory.merging.experiments import NUM_ROUNDS, RIVALS, SURFACE, WARM, WARMED
from moe_theory.verify.claim import Runs, Values

SLOTS = (32, 64, 128, 256, 512)  # where growth is looked at
LEAST_LOSS = 1e-3  # of a sum of slots' regrets: what rounding may make of 0
TOLERANCE = 0.1  # of an exponent that is fitted over so few slots
_REGRET = r"\mathbb{P}\left( R_T^{\text{%s}} < R_T^{\text{%s}} \right) \ge \frac{1}{2}"
_WORDS = {
    "peaked": "a reward with one peak for all tasks",
    "flat": "a flat reward of many tasks",
    "shares": "tasks that each want an expert of their own",
    "drifting": "tasks that each want an expert of their own, in a mix that drifts",
}
# Rivals that Tanbr was not seen to beat: each such claim has its reverse beside it.
_AHEAD = {
    "peaked": (),
    "flat": (policies.NUCB, policies.UNIFORM, policies.AVERAGE, policies.MIX),
    "shares": (policies.NUCB, policies.AVERAGE, policies.MIX),
    "drifting": (policies.MIX,),
}


def _declare_order(id: str, where: str, winner: str, loser: str, surface: str, replaced_by: str | None = None) -> None:
    """In most worlds one policy's regret is below another's."""

    @claim(id, where=where, kind="probability", replaced_by=replaced_by)
    class Order:
        __doc__ = (
            f"On {_WORDS[surface]} the regret of `{winner}` over {NUM_ROUNDS} slots is below that of `{loser}` in most "
            "worlds."
        )
        formula = _REGRET % (winner, loser)
        experiment = SURFACE[surface]
        side = "at_least"
        observe = in_most(final(winner, "cumulative_regret"), final(loser, "cumulative_regret"))
        predict = half


def _declare_rival(surface: str, rival: str) -> None:
    id, other = f"merging.figure-4.{rival}-{surface}", f"merging.figure-4.{rival}-ahead-{surface}"
    is_ahead = rival in _AHEAD[surface]
    where = f"Fig. 4 and Section V-C, on {_WORDS[surface]}"
    _declare_order(id, where, policies.TANBR, rival, surface, other if is_ahead else None)
    if is_ahead:
        _declare_order(other, f"replaces {where}", rival, policies.TANBR, surface)


def _earned(policy: str, first: int, last: int) -> Values:
    """Mean value of slots `first` + 1 to `last` (B,)."""
    return lambda runs: mean_value(runs[policy], first, last)


def _exponent(runs: Runs, is_per_log: bool) -> np.ndarray:
    """Slope of log R_t over log t at `SLOTS`, in each world (B,); of R_t / log t where a logarithm is claimed too."""
    run = runs[policies.TANBR]
    regret = recorded(run, "cumulative_regret")[np.searchsorted(run.rounds, SLOTS)]
    places = np.log(SLOTS)
    values = np.log(np.maximum(regret, 1e-9)) - (np.log(places)[:, None] if is_per_log else 0)
    centred = places - places.mean()
    return centred @ values / (centred @ centred)


def _declare_growth(surface: str) -> None:
    """Whether regret grows like sqrt(T) log T, and whether it grows more slowly than T."""
    right = f"merging.abstract.sublinear-{surface}"

    @claim(
        f"merging.abstract.sublinear-root-{surface}",
        where=f"Abstract and remark on Theorem 1, on {_WORDS[surface]}",
        kind="probability",
        replaced_by=right,
    )
    class Root:
        __doc__ = (
            f"On {_WORDS[surface]} the exponent of Tanbr's regret over log T, fitted over slots {SLOTS[0]} to "
            f"{SLOTS[-1]}, is at most 1/2, or {TOLERANCE:g} more, in most worlds."
        )
        formula = r"R_T = \mathcal{O}(\sqrt{T} \log T)"
        experiment = SURFACE[surface]
        side = "at_least"
        observe = staticmethod(lambda runs: _exponent(runs, True) <= 0.5 + TOLERANCE)
        predict = half

    @claim(right, where=f"Section VI: sublinear, on {_WORDS[surface]}", kind="probability")
    class Sublinear:
        __doc__ = (
            f"On {_WORDS[surface]} the exponent of Tanbr's regret, fitted over slots {SLOTS[0]} to {SLOTS[-1]}, is at "
            f"most {1 - TOLERANCE:g} in most worlds."
        )
        formula = r"\frac{\Delta \log R_t}{\Delta \log t} \le 0.9"
        experiment = SURFACE[surface]
        side = "at_least"
        observe = staticmethod(lambda runs: _exponent(runs, False) <= 1 - TOLERANCE)
        predict = half


@claim(
    "merging.figure-4.behind-nucb-early",
    where="Figs. 2 and 4 (a): worse at first, on a reward with one peak",
    kind="probability",
)
class BehindEarly:
    """Over the first 64 slots Tanbr earns less than NUCB in most worlds."""

    formula = (
        r"\mathbb{P}\left( \sum_{t \le 64} f^*(x_t) < \sum_{t \le 64} f^*(x_t^{\text{NUCB}}) \right) \ge \frac{1}{2}"
    )
    experiment = SURFACE["peaked"]
    side = "at_least"
    observe = in_most(_earned(policies.TANBR, 0, 64), _earned(policies.NUCB, 0, 64))
    predict = half


@claim(
    "merging.figure-4.ahead-of-nucb-late",
    where="Figs. 2 and 4 (a): better in the end, on a reward with one peak",
    kind="probability",
)
class AheadLate:
    """Over the last 128 slots Tanbr earns more than NUCB in most worlds."""

    formula = (
        r"\mathbb{P}\left( \sum_{t > 384} f^*(x_t^{\text{NUCB}}) < \sum_{t > 384} f^*(x_t) \right) \ge \frac{1}{2}"
    )
    experiment = SURFACE["peaked"]
    side = "at_least"
    observe = in_most(_earned(policies.NUCB, 384, 512), _earned(policies.TANBR, 384, 512))
    predict = half


for _surface in SURFACE:
    for _rival in RIVALS:
        _declare_rival(_surface, _rival)
    _declare_growth(_surface)
for _surface in WARMED:
    _declare_order(
        f"merging.figure-4.warm-start-{_surface}",
        f"beside Fig. 4, a variant that is not in the paper, on {_WORDS[_surface]}",
        WARM,
        policies.TANBR,
        _surface,
    )


@claim(
    "merging.regret.mean-of-bests",
    where="Section IV-D, definition of the regret",
    kind="counterexample",
    replaced_by="merging.regret.best-weights",
)
class MeanOfBests:
    """No weights earn more than the tasks' own best weights, averaged with the task mix."""

    formula = r"x_t^* = \psi_t \mathrm{argmax}_x f^*(x)"
    experiment = SURFACE["shares"]
    # On this reward the tasks' own best weights are the experts, and their mean with the mix is what `mix` plays.
    observe = staticmethod(lambda runs: recorded(runs[policies.MIX], "cumulative_regret")[-1] > LEAST_LOSS)


@claim(
    "merging.regret.best-weights",
    where="replaces the definition of the regret: the weights that are best for the mix",
    kind="identity",
    margin=1e-5,
)
class BestWeights:
    """No weights that a policy here tried in a recorded slot earn more than those that maximise psi' f*."""

    formula = r"x_t^* = \mathrm{argmax}_x \psi_t' f^*(x)"
    experiment = SURFACE["shares"]
    observe = staticmethod(
        lambda runs: np.max([np.maximum(-recorded(run, "regret"), 0).max(axis=0) for run in runs.values()], axis=0)
    )
