"""Report on the bounds for one classifier."""

import dataclasses
import math
import string
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from moe_theory.generalization import calculator
from moe_theory.generalization.calculator import EvaluatedBound, Setting
from moe_theory.plot.document import Document
from moe_theory.plot.markdown import filled

SCHEMA = "moe-theory/bounds/1"
COLUMNS = ("bound", "d_N", "value", "below 1 from m =", "status")
MOST_DIGITS = 9  # largest count that is shown in full


class Words(NamedTuple):
    title: str
    remark: str


_REFUTED = "refuted, as shown by moe-theory verify 'generalization.theorem-1.*'"
WORDS = {
    "theorem-1.printed": Words("Theorem 1, (23)", _REFUTED),
    "theorem-1.binomial": Words("binomial form, (22)", _REFUTED),
    "given-router": Words("given router", "holds for linear experts and a router fixed before the samples are seen"),
    "product": Words("product", "holds at k = 1: each expert learns from its own inputs alone"),
    "lipschitz": Words("Lipschitz", "holds for linear experts and routers, as outputs are smooth"),
    "covering": Words("covering", "holds for linear experts and routers, by covers of both"),
    "norms": Words("norms", "holds for ReLU networks as experts, by their layers' Frobenius norms"),
    "stored": Words("stored weights", "holds for any classifier, as its bits allow only finitely many"),
    "certificate": Words("certificate", "holds for this trained model, by its weights' code and its training error"),
}
# Hypotheses in words. `{...}` are fields of the setting.
HYPOTHESES = {
    calculator.LOSS: "the loss of a sample is in [0, 1]. For other losses no number here holds",
    calculator.SAMPLES: "the m samples are independent and from one distribution. Tokens of a text and frames of a "
    "film are not, so for them no number here holds",
    calculator.LIPSCHITZ: "the loss is {lipschitz:g}-Lipschitz in the model's output, like the ramp loss and "
    "unlike the error",
    calculator.OUTPUT: "the model has one real output",
    calculator.NORMS: "inputs have |x| <= {feature_norm:g}, and norms of weights, sizes and d_N were fixed before the "
    "samples were seen. Norms of a trained model need a union bound over all norms that it might have had",
    calculator.LOGITS: "the gates are the softmax of the k largest logits",
    calculator.GIVEN: "the router was fixed before the samples were seen",
    calculator.SIZES: "the architecture, the number of weights and their bits were fixed before the samples were seen. "
    "Outputs may be any number",
    calculator.CODE: "how weights are coded and used was fixed before the samples were seen. The code includes levels, "
    "sizes and values. Outputs may be any number",
    calculator.ERROR: "the training error is the mean loss of the weights as they are stored, on all m samples by "
    "which they were trained and chosen",
    calculator.ONE: "each number alone fails with probability {delta:g}. A number chosen among several after seeing "
    "the samples fails with the sum of their probabilities",
}
BOUNDED = {
    calculator.GAP: "the gap |risk - mean loss on the m samples| of every classifier in the class",
    calculator.RISK: "the risk of the trained model, which for bounds on the gap is the training error plus the gap",
}
RESTS_ON = {calculator.LEMMA_3: "R_m(H) by Lemma 3 as printed. Its source has additional logarithms"}

EXPERTS = {  # kinds of experts in words. `{...}` are fields of the setting
    calculator.LINEAR: "linear, |w| <= {expert_norm:g}",
    calculator.NETWORK: "networks of hidden layers {expert_widths}, Frobenius norms of {expert_norm:g} each",
}
ROUTERS = {calculator.FIXED: "fixed before the samples are seen", calculator.LINEAR: "linear, |v| <= {router_norm:g}"}
LACKING = "no bound here applies to such experts and routers. Bounds need the norms of both, or the number of weights"


def document(setting: Setting, bounds: Sequence[EvaluatedBound], notes: Sequence[str] = ()) -> Document:
    return Document(lambda: _body(setting, bounds, notes), lambda _: _text(setting, bounds, notes), schema=SCHEMA)


def _text(setting: Setting, bounds: Sequence[EvaluatedBound], notes: Sequence[str]) -> str:
    rows = []
    for bound in bounds:
        smallest = bound.smallest_num_samples
        needed = "never" if smallest is None else count(smallest)
        rows.append((WORDS[bound.form.name].title, _dimension(bound), _value(bound.value), needed, status(bound)))
    return filled(
        Path(__file__).with_name("bound.md"),
        sentences=[*facts(setting), *notes],
        bounded=[BOUNDED[name] for name in sorted({bound.form.bounds for bound in bounds})],
        rows=rows,
        columns=COLUMNS,
        remarks=remarks(bounds),
        hypotheses=hypotheses(setting, bounds),
    )


def hypotheses(setting: Setting, bounds: Sequence[EvaluatedBound]) -> list[tuple[str, str]]:
    return [(letter, _words(setting, need)) for need, letter in _letters(bounds).items()]


def _letters(bounds: Sequence[EvaluatedBound]) -> dict[str, str]:
    needs = set().union(*map(_needs, bounds))
    ordered = [need for need in (*HYPOTHESES, *RESTS_ON) if need in needs]
    return dict(zip(ordered, string.ascii_lowercase, strict=False))  # there are fewer than 26


def _needs(bound: EvaluatedBound) -> tuple[str, ...]:
    return (*bound.form.needs, *bound.form.rests_on)


def _words(setting: Setting, need: str) -> str:
    return {**HYPOTHESES, **RESTS_ON}[need].format(**dataclasses.asdict(setting))


def facts(setting: Setting) -> list[str]:
    sizes = (
        f"T = {setting.num_experts:,} experts, k = {setting.num_active:,} active, m = {setting.num_samples:,} samples"
    )
    lines = [f"{sizes}, d = {setting.num_features:,} features; delta = {setting.delta:g}. Only bounds below 1 matter."]
    if setting.experts == calculator.ANY:
        weights = f"{setting.stored_weights:,} weights in {setting.stored_bits:,} bits"
        return [*lines, f"Experts and router are of any kind. The whole classifier has {weights}."]
    capacity = f"R_m(H) = {calculator.rademacher(setting, setting.num_samples):.3g}"
    natarajan = ", ".join(f"{count(value)} ({name})" for name, value in calculator.dimensions(setting).items())
    return [
        *lines,
        f"Experts: {EXPERTS[setting.experts].format(**dataclasses.asdict(setting))}, {capacity}.",
        f"Router: {ROUTERS[setting.router_kind].format(**dataclasses.asdict(setting))}, d_N = {natarajan}.",
    ]


def remarks(bounds: Sequence[EvaluatedBound]) -> list[tuple[str, str]]:
    lines = []
    letters = _letters(bounds)
    for bound in {bound.form.name: bound for bound in bounds}.values():  # the last bound of each name
        needs = ", ".join(sorted(letters[need] for need in _needs(bound)))
        lines.append((WORDS[bound.form.name].title, f"{WORDS[bound.form.name].remark}. Needs {needs}"))
    best = next((bound for bound in bounds if bound.is_best), None)
    if best is None:
        lines.append(("nothing holds", LACKING))
    else:
        lines.append(("best", f"{WORDS[best.form.name].title}: {_value(best.value)}"))
    return lines


def _body(setting: Setting, bounds: Sequence[EvaluatedBound], notes: Sequence[str]) -> dict[str, object]:
    rows = [
        {
            "id": bound.form.id,
            "name": bound.form.name,
            "dimension": bound.form.dimension or None,
            "natarajan": None if bound.form.natarajan is None else float(bound.form.natarajan),
            "value": bound.value,
            "bounds": bound.form.bounds,
            "hypotheses": [_words(setting, need) for need in _needs(bound)],
            "is_informative": bound.is_informative,
            "smallest_num_samples": bound.smallest_num_samples,
            "status": bound.form.status,
            "rests_on": list(bound.form.rests_on),
            "is_best": bound.is_best,
        }
        for bound in bounds
    ]
    is_any = setting.experts == calculator.ANY
    derived = {
        "experts": setting.experts,
        "router": setting.router_kind,
        "rademacher": None if is_any else calculator.rademacher(setting, setting.num_samples),
        "stored_weights": setting.stored_weights,
        "stored_bits": setting.stored_bits,
    }
    return {"setting": dataclasses.asdict(setting), "known": derived, "notes": notes, "bounds": rows}


def status(bound: EvaluatedBound) -> str:
    if bound.is_best:
        return f"{bound.form.status}, best"
    return bound.form.status


def count(value: float) -> str:
    """Return a count, to three digits if it is large or not whole."""
    is_shown_in_full = math.isfinite(value) and value == int(value) and abs(value) < 10**MOST_DIGITS
    if is_shown_in_full:
        return f"{int(value):,}"
    return f"{value:.3g}"


def _dimension(bound: EvaluatedBound) -> str:
    if bound.form.natarajan is None:
        return ""
    reading = f" ({bound.form.dimension})"
    if bound.form.dimension == calculator.BOTH:
        reading = ""
    return count(bound.form.natarajan) + reading


def _value(value: float) -> str:
    if 0.1 <= value < 10_000:
        return f"{value:,.3f}"
    return f"{value:.3g}"
