"""Reports as `moe_theory verify` makes them, without the runs: every kind, every status, every way to stop."""

import dataclasses
import json
import math
from collections.abc import Sequence
from html.parser import HTMLParser

import numpy as np
from matplotlib.axes import Axes

from moe_theory.plot import style
from moe_theory.report import pages, panels
from moe_theory.report.rendering import to_html
from moe_theory.verification import Claim
from moe_theory.verification.registry import all_claims
from moe_theory.verification.statement import statements_tested_by
from moe_theory.verification.verdict import Curve, Look, Report, Status, Stop, Verdict

READINGS = {
    "continual": ("unit-signal", "independent-signal"),
    "edge": ("orthogonal-signal", "sibling", "scaled-signal", "independent-signal"),
}
CLAIMS = """
    continual.lemma-3 continual.lemma-3.contraction continual.proposition-4.forgetting continual.exact.forgetting
    continual.theorem-1.forgetting continual.theorem-1.generalization-error continual.theorem-2.forgetting
    continual.figure-2.termination-forgetting continual.figure-2.almost-zero continual.lemma-2.constant
    edge.lemma-2.outputs edge.lemma-3.sum edge.lemma-3.others edge.lemma-5.lower edge.lemma-5.lower-of-the-smaller
    edge.lemma-6.order edge.proposition-2.exploration edge.proposition-1.normal-quantile
    edge.proposition-1.binomial-quantile edge.proposition-4.nearest edge.proposition-4.nearest-own-task
    edge.exact.nearest
    edge.theorem-1.generalization-error edge.figure-3.too-few edge.figure-3.decreases
    edge.figure-3.fastest-increases
"""  # of every kind
SIDES = {"probability": "at_most", "rate": "at_least"}
VOID = {"meta", "img", "input", "br", "link", "circle", "path", "rect", "use"}
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
        for claim in map(all_claims().__getitem__, CLAIMS.split()):
            for reading in READINGS[claim.paper]:
                about = {name: getattr(claim, name) for name in ("paper", "where", "kind", "statement", "replaced_by")}
                about["kind"] = claim.kind.removeprefix("limit_")  # the words of limits have tests of their own
                about["claim"] = claim.id if repeat == 0 else f"{claim.id}.{repeat}"
                about["formula"] = "" if "exact" in claim.id else claim.formula  # some have none
                verdicts.append(verdict(rng, reading=reading, error=error / num_verdicts, **about))
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
        statements=statements_tested_by(verdict.claim for verdict in verdicts),
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


def panel_of(verdict: Verdict) -> Axes:
    """The axes that a verdict is drawn on."""
    drawn = []

    def draw(canvas):
        drawn.append(canvas.add_subplot())
        panels.draw_curve(drawn[0], verdict, verdict.curve)

    style.render_as("svg", "title", (4, 3), draw)
    return drawn[0]


def sparing(report: Report) -> Report:
    """The same with pictures under the first reading of a paper alone: drawing is what costs."""
    first = {names[0] for names in READINGS.values()}
    shown = [each if each.reading in first else dataclasses.replace(each, curve=None) for each in report.verdicts]
    return dataclasses.replace(report, verdicts=shown)


class Page(HTMLParser):
    """What a page is made of: its elements with the sections they stand in, and its words."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.words, self.open, self.wrong = [], {}, [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        within = [name for _, name in self.open if name]
        self.elements.append((tag, dict(attributes), within[-1] if within else None))
        if tag not in VOID:
            self.open.append((tag, dict(attributes).get("id")))

    def handle_startendtag(self, tag, attributes):
        self.handle_starttag(tag, attributes)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open.pop()[0] != tag:
            self.wrong.append((tag, self.getpos()))

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.words[name] = self.words.get(name, "") + data

    def attributes(self, name):
        return [attributes[name] for _, attributes, _ in self.elements if name in attributes]

    def numbers(self, section):
        """The numbers of a section, at full precision."""
        return [at["value"] for tag, at, within in self.elements if tag == "data" and within == section]


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


def check_written_down(judged: Sequence[Verdict], claims: Sequence[Claim]) -> None:
    """Every claim has its verdict, with a curve and a place in it, and stands in the JSON document and on the page."""
    assert sorted(verdict.claim for verdict in judged) == sorted(claim.id for claim in claims)
    for verdict in judged:
        assert verdict.status not in (Status.ERROR, Status.INAPPLICABLE), f"{verdict.claim}: {verdict.reason}"
        assert verdict.curve is not None
        assert verdict.at in verdict.curve.labels or verdict.kind in ("rate", "limit_rate")
    report = Report(list(judged), "a command", 0, 0.01, {}, False, {})
    document = json.loads(pages.to_json(report))
    assert len(document["verdicts"]) == len(judged)
    page = to_html(report)
    assert all(f'<span class="id mono">{claim.id}</span>' in page for claim in claims)
