"""What a card says beside a status, and the mathematics of statements in Unicode and in HTML.

Catches a cause that is called isolated and is not, a competitor left out, and names of programs that are changed.
"""

import dataclasses
import re

import pytest

import moe_theory as mt
from moe_theory.plot.symbols import linear, marked, plain
from moe_theory.report.wording import beside
from moe_theory.verification.status import judged
from moe_theory.verification.verdict import Proof, Role, Statement, Status, Verdict


def verdict(id: str, status: Status, says: str) -> Verdict:
    return Verdict(id, "a", "", says, "probability", "loud", status, "", 64, "", observed=0.5, predicted=0.9)


@pytest.mark.parametrize(
    ("without", "other", "begins"),
    [
        (
            Status.SUPPORTED,
            Status.REFUTED,
            "Without x it is so: holds (32 of 64). Without y it is so: fails (32 of 64).",
        ),
        (Status.SUPPORTED, Status.SUPPORTED, "Not isolated. Without x"),
        (Status.REFUTED, Status.REFUTED, "Not the cause. Without x it is so: fails"),
        (Status.INCONCLUSIVE, Status.REFUTED, "Not isolated. Without x it is so: open"),
        (Status.INAPPLICABLE, Status.REFUTED, "Not isolated. Without y"),
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
    said = dict(beside(judged(about, found), found))
    assert said["isolated"].startswith(begins)
    assert said["competitor"] == "Blindly it is so: fails (32 of 64)."
    proved = dataclasses.replace(about, disproof=Proof("a:proofs/b.py", "It is not so.", ["As is seen."], "", "", ""))
    said = dict(beside(judged(proved, found), found))
    assert said["isolated"].startswith(begins.replace("Not isolated.", "Exhibited by the disproof."))
    assert dict(beside(judged(proved, found[:1]), found[:1])) == {}


@pytest.mark.parametrize(
    ("words", "shown", "tagged"),
    [
        ("O(sigma_0^2)", "O(σ₀²)", "O(σ<sub>0</sub><sup>2</sup>)"),
        ("sigma_0^1.5 / lambda", "σ₀^1.5 / λ", "σ<sub>0</sub><sup>1.5</sup> / λ"),
        ("|w_n - w_n'|^2 <= sqrt(T)", "|wₙ − wₙ'|² ≤ √T", "|w<sub>n</sub> − w<sub>n</sub>&#x27;|<sup>2</sup> ≤ √T"),
        ("sqrt(T (L_S - 1))", "√(T (L_S − 1))", "√(T (L<sub>S</sub> − 1))"),
        ("m^(d_N)", "m^(d_N)", "m<sup>d<sub>N</sub></sup>"),
        ("2^(1/(1-rho))", "2^(1/(1−ρ))", "2<sup>1/(1−ρ)</sup>"),
        ("E[F_T1] of <theta, v_n>", "E[F_T₁] of ⟨θ, vₙ⟩", "E[F<sub>T<sub>1</sub></sub>] of ⟨θ, v<sub>n</sub>⟩"),
        ("ln(2M/delta)", "ln(2M/δ)", "ln(2M/δ)"),
        ("num_experts and `sigma_0`", "num_experts and `sigma_0`", "num_experts and <code>sigma_0</code>"),
        ("--set eta=1", "--set eta=1", "--set eta=1"),
        ("0.5 +- 0.1 at 1e-04", "0.5 ± 0.1 at 10⁻⁴", "0.5 ± 0.1 at 10<sup>−4</sup>"),
        (
            ".12 to -.5 in [-1, 2], sigma_0^.5",
            "0.12 to −0.5 in [−1, 2], σ₀^0.5",
            "0.12 to −0.5 in [−1, 2], σ<sub>0</sub><sup>0.5</sup>",
        ),
        ("98% of 2024-11-2, Eq. (3)", "98\u00a0% of 2024-11-2, Eq. (3)", "98\u00a0% of 2024-11-2, Eq. (3)"),
        ("a < b & c", "a < b & c", "a &lt; b &amp; c"),
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
        (r"\log \frac{T}{k}", "log (T/k)"),
        (r"k^{2 d_N}", "k^(2d_N)"),
        (r"\log \binom{T}{k}", "log binom(T, k)"),
        (r"\begin{cases} 1 & x \\ 2 & y \end{cases}", r"\begin{cases} 1 & x \\ 2 & y \end{cases}"),
    ],
)
def test_a_formula_in_one_line_keeps_its_meaning(latex, shown):
    assert linear(latex) == shown


def test_no_statement_is_shown_with_mathematics_in_ascii():
    said = [
        str(getattr(each, part) or "") for each in mt.statements() for part in ("says", "why", "instance", "corrected")
    ]
    said += [claim.statement for claim in mt.claims()]
    left = r"sqrt|<=|>=|\b(?:sigma|lambda|delta|eta|Theta|Gamma|rho)(?:_|\b)"
    assert [words for words in said if re.search(left, re.sub("`[^`]*`", "", plain(words)))] == []
    assert [
        each.name for each in mt.statements() if "\\" in linear(each.formula) + linear(each.corrected_formula)
    ] == []
