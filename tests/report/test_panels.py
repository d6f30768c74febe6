"""Verdicts as pictures, what a card says beside a status, and the mathematics of statements in Unicode and in HTML.

What is drawn is what the verdict says, for every kind and whatever is missing. Catches a cause that is called isolated
and is not, a competitor left out, and names of programs that are changed.
"""

import dataclasses
import math
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import samples
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure
from samples import panel_of

from moe_theory.plot.symbols import linear, marked, plain
from moe_theory.report import panels
from moe_theory.report.cards import evidence
from moe_theory.verification import criteria
from moe_theory.verification.status import judged
from moe_theory.verification.verdict import Curve, Proof, Role, Statement, Status, Verdict

NOT_ISOLATED = "No ablation isolates the cause."


def bars_of(panel):
    (container,) = panel.containers
    return np.array(container.lines[2][0].get_segments())[:, :, 1]


def bound(**fields):
    """An upper bound with two components, decided at the second."""
    curve = Curve(["t = 1", "t = 2"], [1.0, 2.0], [1.5, 1.6], [0.2, -0.8], [0.8, math.inf], [0.25, 0.5])
    chosen = {"curve": curve, "predicted": 2.0, "observed": 1.6, "interval": (-0.8, 0.0), "margin": 0.5}
    return samples.verdict(**(chosen | fields))


def test_bars_are_intervals_around_what_was_observed():
    """From predicted + low to predicted + high; no bar on a side where the interval is open."""
    np.testing.assert_allclose(bars_of(panel_of(bound())), [[1.2, 1.8], [1.2, 1.6]])


@pytest.mark.parametrize(
    ("kind", "below", "above"),
    [("upper_bound", None, 0.25), ("ordering", None, 0.25), ("lower_bound", -0.25, None), ("equality", -0.25, 0.25)],
)
def test_shade_is_what_the_claim_allows(kind, below, above):
    """Catches shading on the wrong side of the prediction, and a margin left out or put on the wrong side."""
    panel = panel_of(bound(kind=kind))
    (shade,) = (drawn for drawn in panel.collections if isinstance(drawn, PolyCollection))
    points = shade.get_paths()[0].vertices
    at_first = points[np.isclose(points[:, 0], 0.0)][:, 1]
    bottom, top = panel.get_ylim()
    expected = (bottom if below is None else 1 + below, top if above is None else 1 + above)
    np.testing.assert_allclose((at_first.min(), at_first.max()), expected)


@pytest.mark.parametrize("hostile", ["$\\frac{", "a $ b $ c", "<b>&", "_^\\"])
def test_labels_and_reasons_are_no_mathematics(hostile):
    curve = Curve([hostile], [0.0], [1.0], [0.5], [1.5], [0.0])
    picture = panels.svg_of(samples.verdict(curve=curve), Figure())
    ElementTree.fromstring(picture)


def test_labels_have_a_line_for_each_part():
    def labelled(*labels):
        none = [0.0] * len(labels)
        return panels.tick_labels(Curve(list(labels), none, none, none, none, none))

    assert labelled("M = 5, sigma_0 = 0.1", "M = 9, sigma_0 = 0.2").words == ["M = 5\nσ₀ = 0.1", "M = 9\nσ₀ = 0.2"]
    assert labelled(*(f"t = {place}" for place in range(1, 200))).words[1] == "t = 41"  # five of them


def test_numbers_that_do_not_exist_are_left_out():
    """As they come back from JSON, where infinities are null."""
    missing = [math.nan]
    curve = Curve(["mean"], missing, missing, missing, missing, missing)
    for kind in {kind.kind for kind in vars(criteria).values() if hasattr(kind, "kind")}:
        if kind != "rate":
            picture = panels.svg_of(samples.verdict(kind=kind, curve=curve, at="mean"), Figure())
            ElementTree.fromstring(picture)
    grid = Curve(["x = 1", "x = 2"], [1.0, 2.0], *([math.nan] * 2 for _ in range(4)), abscissa=[1.0, 2.0])
    picture = panels.svg_of(samples.verdict(kind="rate", curve=grid), Figure())
    ElementTree.fromstring(picture)


def verdict(id: str, status: Status, says: str) -> Verdict:
    return Verdict(id, "a", "", says, "probability", "loud", status, "", 64, "", observed=0.5, predicted=0.9)


@pytest.mark.parametrize(
    ("without", "other", "begins"),
    [
        (
            Status.SUPPORTED,
            Status.REFUTED,
            "Tested: Without x it is so. Result: holds (32 of 64). Tested: Without y it is so. Result: fails (32 of",
        ),
        (Status.SUPPORTED, Status.SUPPORTED, f"{NOT_ISOLATED} Tested: Without x"),
        (Status.REFUTED, Status.REFUTED, "The failure has another cause. Tested: Without x it is so. Result: fails"),
        (Status.INCONCLUSIVE, Status.REFUTED, f"{NOT_ISOLATED} Tested: Without x it is so. Result: is undecided"),
        (Status.INAPPLICABLE, Status.REFUTED, f"{NOT_ISOLATED} Tested: Without y"),
    ],
)
def test_a_card_says_what_happens_without_the_cause_and_without_others(without, other, begins):
    roles = {"a.b": Role.CHARITABLE, "a.x": Role.INTERVENTION, "a.y": Role.SUSPECT, "a.z": Role.COMPETITOR}
    found = [
        verdict("a.b", Status.REFUTED, "It is so."),
        verdict("a.x", without, "Without x it is so."),
        verdict("a.y", other, "Without y it is so."),
        verdict("a.z", Status.REFUTED, "Blindly it is so."),
    ]
    about = Statement("b", "a", "Lemma 1", "It is so.", roles=roles)
    said = dict(evidence(judged(about, found), found, verdict=found[0]))
    assert said["Ablation"].startswith(begins)
    assert said["Baseline"] == "Tested: Blindly it is so. Result: fails (32 of 64)."
    proved = dataclasses.replace(about, disproof=Proof("a:proofs/b.py", "It is not so.", ["As is seen."], "", "", ""))
    said = dict(evidence(judged(proved, found), found, verdict=found[0]))
    assert said["Ablation"].startswith(begins.replace(NOT_ISOLATED, "The counterexample shows the cause directly."))
    assert list(dict(evidence(judged(proved, found[:1]), found[:1], verdict=found[0]))) == ["Simulation"]


@pytest.mark.parametrize(
    ("words", "shown", "tagged"),
    [
        ("O(sigma_0^2)", "O(σ₀²)", "O(σ<sub>0</sub><sup>2</sup>)"),
        ("sigma_0^1.5 / lambda", "σ₀^1.5 / λ", "σ<sub>0</sub><sup>1.5</sup> / λ"),
        ("|w_n - w_n'|^2 <= sqrt(T)", "|wₙ − wₙ'|² ≤ √T", "|w<sub>n</sub> − w<sub>n</sub>&#x27;|<sup>2</sup> ≤ √T"),
        ("m^(d_N)", "m^(d_N)", "m<sup>d<sub>N</sub></sup>"),
        ("2^(1/(1-rho))", "2^(1/(1−ρ))", "2<sup>1/(1−ρ)</sup>"),
        ("E[F_T1] of <theta, v_n>", "E[F_T₁] of ⟨θ, vₙ⟩", "E[F<sub>T<sub>1</sub></sub>] of ⟨θ, v<sub>n</sub>⟩"),
        ("num_experts and `sigma_0`", "num_experts and `sigma_0`", "num_experts and <code>sigma_0</code>"),
        ("0.5 +- 0.1 at 1e-04", "0.5 ± 0.1 at 10⁻⁴", "0.5 ± 0.1 at 10<sup>−4</sup>"),
        (
            ".12 to -.5 in [-1, 2], sigma_0^.5",
            "0.12 to −0.5 in [−1, 2], σ₀^0.5",
            "0.12 to −0.5 in [−1, 2], σ<sub>0</sub><sup>0.5</sup>",
        ),
        ("98% of 2024-11-2, Eq. (3)", "98\u00a0% of 2024-11-2, Eq. (3)", "98\u00a0% of 2024-11-2, Eq. (3)"),
        ("<script>", "<script>", "&lt;script&gt;"),
        (r"with $1 - \delta < x_1$", "with 1 − δ < x₁", "with 1 − δ &lt; x₁"),
    ],
)
def test_words(words, shown, tagged):
    assert plain(words) == shown
    assert marked(words) == tagged


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\sigma_0^{1.5}", "σ₀^1.5"),
        (r"1 - \frac{T_1 - 1}{2m} \le \sqrt{T} \log T", "1 − (T₁ − 1)/(2m) ≤ √T log T"),
        (r"k^{2 d_N}", "k^(2d_N)"),
        (r"\log \binom{T}{k}", "log binom(T, k)"),
        (r"\begin{cases} 1 & x \\ 2 & y \end{cases}", r"\begin{cases} 1 & x \\ 2 & y \end{cases}"),
    ],
)
def test_a_formula_in_one_line_keeps_its_meaning(latex, shown):
    assert linear(latex) == shown


def test_the_tolerance_of_an_identity_is_drawn_and_no_interval():
    panel = panel_of(bound(kind="identity"))
    np.testing.assert_allclose(panel.lines[0].get_ydata(), [1.25, 2.5])
    np.testing.assert_allclose(bars_of(panel), [[1.5, 1.5], [1.6, 1.6]])
