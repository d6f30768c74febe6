"""Sentences of the abstract: how the regret grows, and how much time and memory one merged expert saves.

Regret is on our rewards; time and memory are of our small transformer, on this machine.
"""

import dataclasses

import numpy as np

from moe_theory.merging.experiments import MERGES, ON_REWARDS, SERVING, TANBR_ON, TIMED, WORDS, is_faster, recorded
from moe_theory.merging.serving.methods import MERGED
from moe_theory.verify.statement import Declared, bound, probability, statement

SLOTS = (32, 64, 128, 256, 512)  # where growth is looked at
TOLERANCE = 0.1  # of an exponent that is fitted over so few slots
ROOT = r"R_T = \mathcal{O}(\sqrt{T} \log T)"
FASTER = r"\mathbb{P}(s_{\text{merged}} \le %.2g s_{\text{%s}}) \ge \frac{1}{2}"
BYTES = dataclasses.replace(SERVING, labels=("share of the bytes",))
SHARE = r"\frac{b_{\text{merged}}}{b_{\text{all}}}"
MOSTLY = probability(at_least=0.5)

SUBLINEAR = statement(
    "abstract-sublinear",
    where="Abstract and Section VI",
    says=f"The regret grows more slowly than T, like sqrt(T) log T. $${ROOT}$$",
    hypotheses=ON_REWARDS,
    note="Literal: on our rewards, over 512 slots against the paper's 5,000 and 10,000, with a tolerance of ours.",
)
SUBLINEAR.also("remark.bound", role="step")


def exponent(run, is_per_log: bool) -> np.ndarray:
    """Slope of log R_t over log t at `SLOTS`, in each world (B,); of R_t / log t where a logarithm is claimed too."""
    regret = recorded(run, "cumulative_regret")[np.searchsorted(run.rounds, SLOTS)]
    places = np.log(SLOTS)
    values = np.log(np.maximum(regret, 1e-9)) - (np.log(places)[:, None] if is_per_log else 0)
    centred = places - places.mean()
    return centred @ values / (centred @ centred)


for surface, words in WORDS.items():
    SUBLINEAR.literal(
        f"abstract.sublinear-root-{surface}",
        TANBR_ON[surface],
        MOSTLY,
        where=f"Abstract and remark on Theorem 1, on {words}",
        instead=f"abstract.sublinear-{surface}",
    ).says(
        f"On {words} the exponent of Tanbr's regret over log T, fitted over slots {SLOTS[0]} to {SLOTS[-1]}, is "
        f"at most 1/2, or {TOLERANCE:g} more, in most worlds. $${ROOT}$$"
    )(lambda run: exponent(run, is_per_log=True) <= 0.5 + TOLERANCE)
    SUBLINEAR.literal(
        f"abstract.sublinear-{surface}", TANBR_ON[surface], MOSTLY, where=f"Section VI: sublinear, on {words}"
    ).says(
        f"On {words} the exponent of Tanbr's regret, fitted over slots {SLOTS[0]} to {SLOTS[-1]}, is at most "
        rf"{1 - TOLERANCE:g} in most worlds. $$\frac{{\Delta \log R_t}}{{\Delta \log t}} \le 0.9$$"
    )(lambda run: exponent(run, is_per_log=False) <= 1 - TOLERANCE)


def claim_saving(of: Declared, id: str, where: str, rival: str, saving: float) -> None:
    """That one merged expert serves a batch in so much less time than a rival."""
    of.literal(f"{id}-{rival}", SERVING, MOSTLY, where=f"{where}, against `{rival}`, merging not counted").says(
        f"In most repetitions one merged expert serves a batch in at least {saving:.0%} less time than `{rival}`."
        f"$${FASTER % (1 - saving, rival)}$$"
    )(lambda run: is_faster(run, MERGED, rival, 1 - saving))


LATENCY = statement(
    "abstract-latency",
    where="Abstract and Section I",
    says="One merged expert takes at least 45 % less time for a batch than every rival.",
    hypotheses=[MERGES],
    note="Literal, one claim for each way of building a rival: the ratio depends on it, and on the sizes of layers, "
    "more than on what is computed.",
)
for rival in TIMED:
    claim_saving(LATENCY, "abstract.latency", "Abstract: at least 45 %", rival, 0.45)

MEMORY = statement(
    "abstract-memory",
    where="Abstract and Section I",
    says="Memory falls by up to 25 %.",
    hypotheses=[MERGES],
    note="That it falls by more on a small model refutes nothing.",
)


def share_of(run, field: str) -> np.ndarray:
    """Bytes with one merged expert as a share of those with all experts (B,)."""
    methods = (run.records[name] for name in (MERGED, "token-top-1-capacity"))
    merged, every = (np.asarray(getattr(method, field)[0], np.float64) for method in methods)
    return merged / every


MEMORY.ours(
    "abstract.memory-loaded-at-most",
    BYTES,
    bound(at_least=0.75),
    where="Abstract: up to 25 %, of parameters",
    exact=True,
).says(
    "One merged expert a layer takes no less than 75 % of the bytes of parameters of all experts. "
    f"$${SHARE} \\ge 0.75$$"
)(lambda run: share_of(run, "loaded_bytes"))
MEMORY.literal(
    "abstract.memory-loaded",
    BYTES,
    bound(at_most=0.8),
    where="Abstract and Section V-B: 20 to 25 %, of parameters",
    exact=True,
).says(
    f"One merged expert a layer takes at least 20 % fewer bytes of parameters than all experts. $${SHARE} \\le 0.8$$"
)(lambda run: share_of(run, "loaded_bytes"))
MEMORY.literal(
    "abstract.memory-peak",
    BYTES,
    bound(at_most=0.8),
    where="Abstract and Section V-B: 20 to 25 %, of the whole program that serves a batch",
).says(
    "The program that serves a batch by one merged expert needs at least 20 % fewer bytes than by all of them. "
    f"$${SHARE} \\le 0.8$$"
)(lambda run: share_of(run, "peak_bytes"))
