"""The bounds for one classifier: their values, and from how many samples on they are informative.

The loss is in [0, 1]. Forms that do not apply are left out.
"""

import dataclasses
import functools
import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.constraints import NonNegative, OpenProbability, Probability, Whole, require, require_active
from moe_theory.core.errors import InvalidValueError, unknown_name
from moe_theory.generalization import certificate, complexity, corrected, theory

DIMENSIONS = {"masks": "mask-dimension", "router": "router-dimension"}  # the readings of d_N
BOTH = "both"  # stands for both readings, where they agree
ANY = "any"  # experts or router, if only the number of weights is known
FIXED = "fixed"
LINEAR = "linear"
NETWORK = "network"
ROUTERS = (FIXED, LINEAR)
HOLDS = "holds"
CONDITIONAL = "conditional"
REFUTED = "refuted"
LEMMA_3 = "Lemma 3"
GAP = "gap"  # the bound is on the risk minus the training error
RISK = "risk"  # the bound is on the risk itself
# Hypotheses of a bound, besides those in `Form.rests_on`. Their sentences are in `report.HYPOTHESES`.
LOSS = "loss"
SAMPLES = "samples"
ONE = "one"
LIPSCHITZ = "lipschitz"
NORMS = "norms"
OUTPUT = "output"
LOGITS = "logits"
GIVEN = "given"
SIZES = "sizes"
CODE = "code"
ERROR = "error"


@dataclasses.dataclass(frozen=True)
class Setting:
    """A classifier and its number of samples."""

    num_experts: int = 8  # T
    num_active: int = 2  # k
    num_samples: int = 60_000  # m
    num_features: int = 784  # d
    expert_norm: float = 1.0  # B: linear experts have |w| <= B, and matrices of networks have Frobenius norms <= B
    router_norm: float = 1.0  # W: rows of a linear router have |v| <= W
    feature_norm: float = 1.0  # c: |x| <= c
    lipschitz: float = 1.0  # C, Lipschitz constant of the loss in the model's output
    delta: float = 0.05  # the probability with which a bound may fail
    router: str = LINEAR  # one of ROUTERS
    expert_widths: tuple[int, ...] = ()  # hidden units of expert networks, layer by layer
    num_weights: int | None = None  # set for a classifier of which nothing else is known. By default sizes decide
    bits: int = 32  # bits that store one weight
    training_error: float | None = None  # mean loss on the samples. If given, bounds are on the risk
    code_bits: int | None = None  # length of a prefix-free code of the trained weights

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_classes(self)

    @property
    def experts(self) -> str:
        """Class of the experts: LINEAR, NETWORK, or ANY if only the number of weights is known."""
        if self.num_weights is not None:
            return ANY
        if self.expert_widths:
            return NETWORK
        return LINEAR

    @property
    def router_kind(self) -> str:
        """Class of the router: one of ROUTERS, or ANY if only the number of weights is known."""
        if self.num_weights is None:
            return self.router
        return ANY

    @property
    def stored_weights(self) -> int:
        """Number of weights that the samples decide, without a given router's."""
        if self.num_weights is not None:
            return self.num_weights
        layers = itertools.pairwise((self.num_features, *self.expert_widths, 1))
        weights_per_expert = sum(map(math.prod, layers))
        if self.router == LINEAR:
            weights_per_expert += self.num_features
        return self.num_experts * weights_per_expert

    @property
    def stored_bits(self) -> int:
        """Number of bits that tell apart all classifiers with these weights."""
        return self.stored_weights * self.bits


class Form(NamedTuple):
    name: str  # a key of `report.WORDS`
    at: Callable[[int], float]  # the bound at m samples
    needs: tuple[str, ...]  # its hypotheses, from LOSS to ERROR
    dimension: str = ""  # reading of the d_N that it uses: a key of DIMENSIONS, or BOTH, empty if it uses none
    natarajan: float | None = None  # d_N
    status: str = HOLDS  # status of the statement in general: HOLDS, CONDITIONAL or REFUTED
    rests_on: tuple[str, ...] = ()  # what it assumes: LEMMA_3
    bounds: str = GAP  # or RISK

    @property
    def id(self) -> str:
        if self.dimension:
            return f"{self.name}.{self.dimension}"
        return self.name


class EvaluatedBound(NamedTuple):
    form: Form
    value: float  # the bound at the setting's m, dimensionless, infinite where it overflows
    is_informative: bool  # below 1
    smallest_num_samples: int | None  # smallest m at which it is below 1, None if there is none up to 2^62
    is_best: bool  # whether it is the smallest of those that hold unconditionally


_RESTS_ON = {NETWORK: (LEMMA_3,)}  # further assumptions, by the class of the experts
_CLASS_NEEDS = (LOSS, SAMPLES, LIPSCHITZ, OUTPUT, NORMS, ONE)  # hypotheses for a class with bounded norms


def bound(**values: Any) -> list[EvaluatedBound]:
    """Return all bounds that apply to a classifier, the paper's first.

    Args:
        values: fields of `calculator.Setting`.
    Raises: InvalidValueError for values that are out of range or contradict each other, or UnknownNameError for another
        field.

    Examples:
        >>> from moe_theory import generalization
        >>> bounds = generalization.bound(num_experts=8, num_active=1, num_samples=10**6)
        >>> [(bound.form.id, round(bound.value, 3)) for bound in bounds if bound.is_best]
        [('product', 0.331)]
    """
    names = [field.name for field in dataclasses.fields(Setting)]
    for name in values:
        if name not in names:
            raise unknown_name("setting", name, names)
    return calculate(Setting(**values))


def calculate(setting: Setting) -> list[EvaluatedBound]:
    """Return all applicable bounds, the paper's first: on the risk with a training error, else on the gap."""
    forms = applicable_forms(setting)
    values = [form.at(setting.num_samples) for form in forms]
    best = min((value for form, value in zip(forms, values, strict=True) if form.status == HOLDS), default=math.inf)
    bounds = []
    for form, value in zip(forms, values, strict=True):
        smallest = theory.smallest_num_samples(form.at)
        is_best = form.status == HOLDS and value == best
        bounds.append(EvaluatedBound(form, value, value < 1, smallest_num_samples=smallest, is_best=is_best))
    return bounds


def applicable_forms(setting: Setting) -> list[Form]:
    """Return the paper's bounds for each d_N, then those that hold."""
    forms = [_stored_form(setting)] if setting.experts == ANY else [*_paper_forms(setting), *_corrected_forms(setting)]
    forms = [form._replace(at=_infinite_at_overflow(form.at)) for form in forms]
    training_error = setting.training_error
    if training_error is None:
        return forms
    forms = [_bound_on_risk(form, training_error) for form in forms]
    num_bits = setting.code_bits
    if num_bits is not None:

        def largest_risk(num_samples: int) -> float:
            return certificate.certificate(num_bits, training_error, num_samples, setting.delta)

        forms.append(Form("certificate", largest_risk, (LOSS, SAMPLES, CODE, ERROR, ONE), bounds=RISK))
    return forms


def _infinite_at_overflow(bound: Callable[[int], float]) -> Callable[[int], float]:
    def finite_or_infinite(num_samples: int) -> float:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(bound(num_samples))
        except OverflowError:
            return math.inf
        if math.isnan(value):
            return math.inf
        return value

    return finite_or_infinite


def _bound_on_risk(form: Form, training_error: float) -> Form:
    def risk_at(num_samples: int) -> float:
        return form.at(num_samples) + training_error

    return form._replace(at=risk_at, needs=(*form.needs, ERROR), bounds=RISK)


def dimensions(setting: Setting) -> dict[str, float]:
    """Return d_N of the router's class under each reading, if known."""
    if setting.router_kind == ANY:
        return {}
    sizes = (setting.num_experts, setting.num_active, setting.num_features)
    return {name: complexity.natarajan(setting.router_kind, *sizes, reading) for name, reading in DIMENSIONS.items()}


def rademacher(setting: Setting, num_samples: int) -> float:
    """Return R_m(H): Lemma 3, or, by Jensen, B c / sqrt(m) for linear experts |w| <= B."""
    if setting.experts == NETWORK:
        return float(theory.lemma_3(num_samples, setting.feature_norm, *layer_norms(setting)))
    return setting.expert_norm * setting.feature_norm / math.sqrt(num_samples)


def layer_norms(setting: Setting) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return K_i and b_i of Lemma 3, the largest possible.

    A matrix of r rows and Frobenius norm B has a spectral norm of at most B, and row norms of sum at most sqrt(r) B.
    """
    num_rows = (*setting.expert_widths, 1)
    operator_norms = (setting.expert_norm,) * len(num_rows)
    return operator_norms, tuple(math.sqrt(rows) * setting.expert_norm for rows in num_rows)


def _paper_forms(setting: Setting) -> Iterator[Form]:
    natarajan_by_reading = dimensions(setting)
    if len(set(natarajan_by_reading.values())) == 1:
        natarajan_by_reading = {BOTH: next(iter(natarajan_by_reading.values()))}
    rests_on = _RESTS_ON.get(setting.experts, ())
    for reading, natarajan in natarajan_by_reading.items():
        for form in theory.FORMS:
            bound_at = functools.partial(_theorem_1, setting, natarajan=natarajan, form=form)
            name = f"theorem-1.{form}"
            yield Form(name, bound_at, _CLASS_NEEDS, reading, natarajan, status=REFUTED, rests_on=rests_on)


def _theorem_1(setting: Setting, num_samples: int, natarajan: float, form: str) -> Any:
    return theory.theorem_1(
        setting.num_experts,
        setting.num_active,
        num_samples,
        rademacher=rademacher(setting, num_samples),
        natarajan=natarajan,
        lipschitz=setting.lipschitz,
        delta=setting.delta,
        form=form,
    )


def _corrected_forms(setting: Setting) -> Iterator[Form]:
    sizes = (setting.num_experts, setting.num_active)
    norms = (setting.expert_norm, setting.feature_norm)
    is_linear = setting.experts == LINEAR and setting.router_kind == LINEAR
    has_given_router = setting.experts == LINEAR and setting.router_kind == FIXED

    def given_router(num_samples: int) -> Any:
        mean_square_gate = 1.0  # the largest possible value, because |a(x)|^2 <= 1
        return corrected.fixed_router_complexity(setting.num_experts, num_samples, mean_square_gate, *norms)

    def product(num_samples: int) -> Any:
        # A replaces B c, because the proof only needs R(H) <= A / sqrt(n) on any n inputs of an expert.
        return corrected.product_complexity(setting.num_experts, num_samples, rademacher(setting, 1))

    def lipschitz(num_samples: int) -> Any:
        return corrected.lipschitz_complexity(*sizes, num_samples, *norms, setting.router_norm)

    def covering(num_samples: int) -> Any:
        norms_and_loss = (*norms, setting.router_norm, setting.lipschitz)
        return corrected.covering(*sizes, num_samples, setting.num_features, *norms_and_loss, delta=setting.delta)

    if has_given_router:
        yield _uniform_form(setting, "given-router", given_router)
    elif setting.num_active == 1:
        yield _uniform_form(setting, "product", product)
    elif is_linear:
        yield _uniform_form(setting, "lipschitz", lipschitz)
    if is_linear:
        yield Form("covering", covering, (*_CLASS_NEEDS, LOGITS))
    elif not has_given_router:
        yield Form("norms", functools.partial(_norms_bound, setting), (*_CLASS_NEEDS, LOGITS))
    yield _stored_form(setting)


def _stored_form(setting: Setting) -> Form:
    def stored(num_samples: int) -> Any:
        return corrected.stored(setting.stored_bits, bits=1, num_samples=num_samples, delta=setting.delta)

    return Form("stored", stored, (LOSS, SAMPLES, SIZES, ONE))


def _norms_bound(setting: Setting, num_samples: int) -> Any:
    sizes = (setting.num_experts, setting.num_active, num_samples)
    expert_norms = (setting.expert_norm,) * (len(setting.expert_widths) + 1)
    router_norms = (setting.router_norm,)
    if setting.router == FIXED:
        router_norms = ()
    rho = corrected.network_complexity(*sizes, expert_norms, router_norms, setting.feature_norm)
    patterns = _log_patterns(setting, num_samples)
    return corrected.uniform(rho, patterns, num_samples, setting.lipschitz, setting.delta)


def _uniform_form(setting: Setting, name: str, complexity_at: Callable[[int], Any]) -> Form:
    def bound_at(num_samples: int) -> Any:
        patterns = _log_patterns(setting, num_samples)
        return corrected.uniform(complexity_at(num_samples), patterns, num_samples, setting.lipschitz, setting.delta)

    needs = _CLASS_NEEDS
    if setting.router_kind == FIXED:
        needs = (*needs, GIVEN)
    elif name == "lipschitz":
        needs = (*needs, LOGITS)
    rests_on = _RESTS_ON.get(setting.experts, ())
    return Form(name, bound_at, needs, status=CONDITIONAL if rests_on else HOLDS, rests_on=rests_on)


def _log_patterns(setting: Setting, num_samples: int) -> float:
    if setting.router == FIXED:
        return 0.0
    sizes = (setting.num_experts, setting.num_active, num_samples, setting.num_features)
    return float(corrected.log_mask_patterns(*sizes))


def _check_numbers(setting: Setting) -> None:
    values = {name: value for name, value in dataclasses.asdict(setting).items() if value is not None}
    counts = ("num_experts", "num_active", "num_samples", "num_features", "expert_widths", "num_weights", "bits")
    amounts = ("expert_norm", "router_norm", "feature_norm", "lipschitz")
    count = Whole(1, theory.MOST_SAMPLES, "bounds are computed only up to 2^62")
    require(count, **{name: values[name] for name in counts if name in values})
    require_active(setting.num_experts, setting.num_active)
    require(NonNegative, **{name: values[name] for name in amounts if name in values})
    require(OpenProbability, delta=setting.delta)
    if setting.training_error is not None:
        require(Probability, training_error=setting.training_error)
    if setting.code_bits is not None and (setting.training_error is None or setting.code_bits < 0):
        raise InvalidValueError(
            f"code_bits={setting.code_bits} must be at least 0 and needs training_error. Change one of the two.",
            argument="code_bits",
        )


def _check_classes(setting: Setting) -> None:
    if setting.router not in ROUTERS:
        raise unknown_name("router", setting.router, ROUTERS)
    if setting.num_weights is not None and (setting.expert_widths or setting.router != LINEAR):
        raise InvalidValueError(
            "num_weights is for a classifier of which nothing else is known, so it excludes expert_widths and a "
            "router. Leave out num_weights, or leave out expert_widths and the router.",
            argument="num_weights",
        )
    with np.errstate(over="ignore"):
        capacity = rademacher(setting, 1)
    if not math.isfinite(capacity):
        raise InvalidValueError("R_m(H) of experts with these norms is too large for a number. Lower the norms.")
