"""Reports as `moe_theory verify` makes them, without the runs: every kind, every status, every way to stop."""

import dataclasses
import math
from collections.abc import Sequence

import numpy as np

from moe_theory.verify.verdict import Curve, Look, Report, Status, Stop, Verdict

READINGS = {
    "continual": ("unit-signal", "independent-signal"),
    "edge": ("orthogonal-signal", "sibling", "scaled-signal", "independent-signal"),
}
CLAIMS: tuple[tuple[str, str, str, str, str, str | None], ...] = (  # id, source, kind, statement, LaTeX, right one
    ("continual.lemma-3", "Lemma 3", "identity", "An expert whose last task comes again does not change; its largest "
     "move, over the truths' root mean square.", r"\|w_t^{(m)} - w_{t-1}^{(m)}\|_\infty = 0",
     "continual.lemma-3.contraction"),
    ("continual.lemma-3.contraction", "replaces Lemma 3", "equality", "A repeat multiplies an expert's expected "
     "squared error by (d - s)/(d - 1).", r"\mathbb{E}\|w_t - w\|^2 = \frac{d-s}{d-1}\,\mathbb{E}\|w_{t-1} - w\|^2",
     None),
    ("continual.proposition-4.forgetting", "Proposition 4, Eq. (17)", "equality", "A single expert's expected "
     "forgetting is (W - Delta) times the mean of r^t - r^tau, and so vanishes.",
     r"\mathbb{E}[F_t] = \frac{1}{t-1}\sum_{\tau=1}^{t-1}(r^t - r^\tau)\left(\frac{1}{N}\sum_{n=1}^N\|w_n\|^2 - "
     r"\frac{1}{N^2}\sum_{n \ne n'}\|w_n - w_{n'}\|^2\right)", "continual.exact.forgetting"),
    ("continual.exact.forgetting", "replaces Proposition 4, Eq. (17)", "equality", "A single expert's expected "
     "forgetting is what the exact moment recursion gives.", "", None),
    ("continual.theorem-1.forgetting", "Theorem 1, Eq. (19)", "upper_bound", "With more experts than tasks, expected "
     "forgetting during exploration is below the load bound of (19).",
     r"\mathbb{E}[F_t] < \frac{\sum_{\tau=1}^{t-1}\mathbb{E}[L_t^{(m_\tau)} - 1]}{t-1}\,\bar\Delta", None),
    ("continual.theorem-1.generalization-error", "Theorem 1, Eq. (20)", "upper_bound", "With more experts than tasks, "
     "the expected overall generalization error is below (20), for T from 100 to 2000.", "", None),
    ("continual.theorem-2.forgetting", "Theorem 2, Eq. (21)", "upper_bound", "With fewer experts than tasks, expected "
     "forgetting is below (21) as printed, for t from 100 to 2000.", "", None),
    ("continual.figure-2.termination-forgetting", "Sec. 6, Fig. 2 (a), (b)", "ordering", "Terminating the gate "
     "updates ends in less forgetting than updating for ever, for every size of MoE.", "", None),
    ("continual.figure-2.almost-zero", "Sec. 6, Fig. 2 (a), (c)", "upper_bound", "With termination both metrics end "
     "at almost zero, read as at most 5 % of a single expert's (M = 10).", "", None),
    ("edge.lemma-2.outputs", "Lemma 2, Eq. (14)", "rate", "Two tasks of one cluster have gate outputs within "
     "O(sigma_0) of each other, in root mean square.",
     r"|h_m(X_t, \theta_t) - h_m(\tilde X_t, \theta_t)| = \mathcal{O}(\sigma_0)", None),
    ("edge.lemma-3.sum", "Lemma 3, proof", "identity", "Gate steps sum to zero over the experts, and so in every "
     "round do the gates, relative to their largest entry.", r"\sum_{m=1}^M \nabla_{\theta^{(m)}} \mathcal{L} = 0",
     None),
    ("edge.lemma-3.others", "Lemma 3, second case", "rate", "It raises every other expert's output <theta, v_n> by "
     "O(1/M), in all rounds up to T1.", "", None),
    ("edge.lemma-5.lower", "Lemma 5, proof of the second case", "identity", "|pi_m - pi_m'| is at least pi_m' |h_m - "
     "h_m'|, for all ordered pairs of experts.", r"|\pi_m - \pi_{m'}| \ge \pi_{m'} |h_m - h_{m'}|",
     "edge.lemma-5.lower-of-the-smaller"),
    ("edge.lemma-5.lower-of-the-smaller", "replaces Lemma 5, second case", "identity", "|pi_m - pi_m'| is at least "
     "min(pi_m, pi_m') |h_m - h_m'|, for all pairs of experts.", "", None),
    ("edge.lemma-6.order", "Lemma 6, Eq. (27)", "probability", "At T1 an expert whose output is largest for kind n has "
     "its largest probability there, but for chance delta.", "", None),
    ("edge.lemma-7.hoeffding", "Lemma 7, proof: 1 - 2 M exp(-2 eps^2 T1)", "probability", "At T1 every expert's share "
     "is within Hoeffding's eps = (ln(2M/delta) / (2 T1))^(1/2), but for chance delta.",
     r"\Pr\left(\left|\frac{L_{T_1}^{(m)}}{T_1} - \frac{1}{M}\right| \ge \epsilon\right) \le 2M e^{-2\epsilon^2 T_1}",
     None),
    ("edge.proposition-1.normal-quantile", "Proposition 1, Eq. (16), and Appendix B", "probability", "A kind of task "
     "arrives more than M_th times in d_u rounds with probability at most delta, with (16) as it is.", "",
     "edge.proposition-1.binomial-quantile"),
    ("edge.proposition-1.binomial-quantile", "replaces Proposition 1, Eq. (16)", "probability", "A kind of task "
     "arrives more than M_th times in d_u rounds with probability at most delta, M_th binomial.", "", None),
    ("edge.proposition-1.converse", "Proposition 1, in reverse", "counterexample", "With fewer experts than M_th some "
     "arrival finds no idle specialist.", "", None),
    ("edge.proposition-4.nearest", "Proposition 4, Eq. (22)", "equality", "Under the nearest-server strategy the "
     "expected error is (22), a mixture of |w|^2 and the task gap by loads.", "", "edge.exact.nearest"),
    ("edge.proposition-4.nearest-own-task", "Lemma 9, Eq. (34), summed", "equality", "The same with the own-task term "
     "of (34), which (22) forgets.", "", "edge.exact.nearest"),
    ("edge.exact.nearest", "replaces Proposition 4, Eq. (22)", "equality", "Under the nearest-server strategy the "
     "expected error given the loads is the exact moment recursion's.", "", None),
    ("edge.theorem-1.generalization-error", "Theorem 1, Eq. (23)", "upper_bound", "With M = 30 or 50 the expected "
     "error is below (23), with the gap inside a cluster for its O(sigma_0^2).", "", None),
    ("edge.figure-3.too-few", "Sec. VI, Fig. 3 (a), G / p", "lower_bound", "With M = 10 servers the error per "
     "coordinate stays above sigma_0^2 = 0.36.", "", None),
    ("edge.figure-3.decreases", "Sec. VI, Fig. 3 (a)", "ordering", "With M = 30, 50 or 70 servers the error is lower "
     "at the end than after 300 rounds.", "", None),
    ("edge.figure-3.fastest-increases", "Sec. VI, Fig. 3 (b)", "ordering", "Under the most-powerful-server strategy "
     "the error is higher at the end than after 100 rounds, for every M.", "", None),
)  # fmt: skip
SIDES = {"probability": "at_most", "rate": "at_least"}
EXACT = {
    "identity": "exact (largest error seen)",
    "probability": "exact (Clopper-Pearson, Bonferroni)",
    "counterexample": "exact (Clopper-Pearson)",
}


def report(num_verdicts: int = 90, error: float = 0.01) -> Report:
    """A report of about as many verdicts: more claims than there are in `CLAIMS` come from repeating them."""
    verdicts: list[Verdict] = []
    rng = np.random.default_rng(0)
    repeat = 0
    while len(verdicts) < num_verdicts:
        for id, where, kind, statement, formula, right in CLAIMS:
            paper = id.split(".")[0]
            for reading in READINGS[paper]:
                name = id if repeat == 0 else f"{id}.{repeat}"
                about = {"claim": name, "where": where, "kind": kind, "statement": statement, "formula": formula}
                made = verdict(
                    rng, reading=reading, paper=paper, replaced_by=right, error=error / num_verdicts, **about
                )
                verdicts.append(made)
        repeat += 1
    verdicts = _special(verdicts[:num_verdicts])
    return Report(
        verdicts=verdicts,
        command="moe-theory verify 'continual.*' edge --reading all --out runs/all",
        seed=0,
        error=error,
        versions={"moe-theory": "0.1.0", "python": "3.12.3", "jax": "0.10.2", "numpy": "2.3.0", "scipy": "1.16.0"},
        is_x64=False,
        readings={
            f"{paper}.{name}": f"the choices called {name}: signals of length one, clusters apart"
            for paper, names in READINGS.items()
            for name in names
        },
        budget=900.0,
        finished="2026-11-22T08:00:00+00:00",
    )


def verdict(rng: np.random.Generator | None = None, **fields) -> Verdict:
    """A verdict of a kind, with numbers that look like a run's; `fields` override what is drawn."""
    rng = np.random.default_rng(1) if rng is None else rng
    kind = fields.setdefault("kind", "upper_bound")
    curve = _curve(rng, kind, right=fields.get("replaced_by") is None)
    place = int(np.argmax(np.abs(np.array(curve.observed) - np.array(curve.predicted))))
    difference = curve.observed[place] - curve.predicted[place]
    interval = (curve.low[place], curve.high[place])
    status = _status(kind, interval, curve.margin[place], difference)
    made = {
        "claim": "continual.a",
        "paper": "continual",
        "where": "Lemma 1",
        "statement": "What is claimed.",
        "reading": "unit-signal",
        "status": status,
        "reason": f"at {curve.labels[place]} observed - predicted = {difference:.4g}, in [{interval[0]:.4g}, "
        f"{interval[1]:.4g}]",
        "replicates": int(2 ** rng.integers(7, 16)),
        "at": curve.labels[place],
        "predicted": curve.predicted[place],
        "observed": curve.observed[place],
        "standard_error": math.nan if kind == "identity" else (interval[1] - interval[0]) / 8,
        "interval": (0.0, difference) if kind == "identity" else interval,
        "interval_kind": EXACT.get(kind, "asymptotic (Student's t, Bonferroni)"),
        "is_exact": kind in EXACT,
        "margin": curve.margin[place],
        "error": 1e-4,
        "smallest_discrepancy": (interval[1] - interval[0]) * 1.2 if kind != "identity" else 0.0021,
        "stopped": Stop.REPLICATES if status is Status.INCONCLUSIVE else Stop.DECIDED,
        "curve": curve,
        "side": SIDES.get(kind),
    } | fields
    made.setdefault("command", _command(made))
    made.setdefault("looks", _looks(made))
    return Verdict(**made)


def _command(made: dict) -> str:
    return (
        f"moe-theory verify {made['claim']} --reading {made['reading']} --replicates {made['replicates']} --seed 0 "
        f"--error {made['error']:.6g}"
    )


def _curve(rng: np.random.Generator, kind: str, right: bool) -> Curve:
    if kind == "identity":
        return Curve(["M = 5"], [0.0], [1.8e-7 if right else 1.31], [0.0], [1.8e-7 if right else 1.31], [1e-5])
    if kind in ("probability", "counterexample"):
        seen = rng.beta(1, 60) if right else rng.beta(6, 40)
        claimed = 0.05 if kind == "probability" else 0.0
        ends = [seen - claimed - 0.8 * seen * 0.3, seen - claimed + 0.02]
        return Curve(["mean"], [claimed], [seen], ends[:1], ends[1:], [0.0])
    if kind == "rate":
        grid = np.geomspace(0.01, 0.3, 6)
        observed = 0.4 * grid ** (1.02 if rng.random() < 0.7 else 0.6)
        predicted = 0.4 * grid
        half = 0.06 * observed
        difference = observed - predicted
        columns = [predicted, observed, difference - half, difference + half, 0 * grid, grid]
        return Curve([f"x = {place:.2g}" for place in grid], *(column.tolist() for column in columns))
    times = np.array([20, 40, 60, 100, 150, 200, 300, 500, 1000, 2000]) if kind != "ordering" else np.array([5, 10, 20])
    scale = rng.lognormal(0, 1)
    predicted = scale * (1 + 6 / np.sqrt(times))
    side = {"lower_bound": 1, "equality": 0}.get(kind, -1)
    off = (0.25 * side if right else 0.6) if rng.random() < 0.75 else -0.2 * side
    observed = predicted * (1 + off) + 0.01 * scale * rng.standard_normal(len(times))
    half = scale * rng.choice([0.05, 0.2, 0.9]) * np.ones(len(times))
    difference = observed - predicted
    margin = 0.12 * predicted if kind == "equality" else 0 * predicted
    columns = [predicted, observed, difference - half, difference + half, margin]
    unit = "M" if kind == "ordering" else "t"
    return Curve([f"{unit} = {time}" for time in times], *(column.tolist() for column in columns))


def _status(kind: str, interval: Sequence[float], margin: float, difference: float) -> Status:
    low, high = interval
    if kind == "identity":
        return Status.SUPPORTED if difference <= margin else Status.REFUTED
    if kind == "equality":
        low, high = (low, high) if difference > 0 else (-high, -low)
    if kind == "lower_bound":
        low, high = -high, -low
    if high <= margin and kind != "counterexample":
        return Status.SUPPORTED
    return Status.REFUTED if low > margin else Status.INCONCLUSIVE


def _looks(made: dict) -> list[Look]:
    count, (low, high) = made["replicates"], made["interval"]
    middle = (low + high) / 2
    sizes = [size for size in (count // 4, count // 2, count) if size >= 32]
    return [
        Look(
            size,
            made["at"],
            middle,
            middle - (middle - low) * math.sqrt(count / size),
            middle + (high - middle) * math.sqrt(count / size),
            made["error"] / 4,
        )
        for size in sizes
    ]


def _special(verdicts: list[Verdict]) -> list[Verdict]:
    """The same, with a few of the rarer statuses and one stopped by the budget."""
    numbers = ("predicted", "observed", "standard_error", "margin", "smallest_discrepancy")
    nothing = dict.fromkeys(numbers, math.nan) | {"interval": (math.nan, math.nan), "interval_kind": ""}
    nothing |= {"is_exact": False, "curve": None, "looks": [], "at": ""}
    changes: dict[int, dict] = {
        3: {"status": Status.VACUOUS, "trivial": 1.0,
            "reason": "holds, but the bound 1.35 says no more than the trivial 1"},
        5: nothing | {"status": Status.INAPPLICABLE, "reason": "M > N (M = 5, N = 6)"},
        9: nothing | {"status": Status.ERROR, "reason": "ValueError: observe gave 3 values that are not finite",
                      "stopped": Stop.FAILED, "error": math.nan},
        12: {"status": Status.INCONCLUSIVE, "stopped": Stop.BUDGET},
        21: {"status": Status.VACUOUS, "trivial": 0.8, "reason": "holds, but says no more than the trivial 0.8"},
    }  # fmt: skip
    return [
        dataclasses.replace(each, **changes[place]) if place in changes else each for place, each in enumerate(verdicts)
    ]
