"""The bounds for one classifier: their values, whether they are informative, and from how many samples on.

The loss is in [0, 1], so that a bound is informative below 1. The paper's bounds stand beside those that hold; forms
that do not apply to the given experts or router are left out.
"""

import dataclasses
import itertools
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from moe_theory.core.constraints import (
    NonNegative,
    OpenProbability,
    Probability,
    Whole,
    Within,
    require,
    require_active,
)
from moe_theory.core.errors import InvalidValueError, shortened, unknown_name
from moe_theory.generalization import certificate, complexity, corrected, from_files, theory

DIMENSIONS = {"masks": "mask-dimension", "router": "router-dimension"}  # the readings of d_N
BOTH, OWN = "both", "own"  # both readings agree; d_N (or R_m(H)) is given by the user
ANY = "any"  # experts and router of which only the number of weights is known
FIXED, LINEAR, NETWORK, FREE = complexity.ROUTERS
HOLDS, CONDITIONAL, REFUTED = "holds", "conditional", "refuted"
LEMMA_2, LEMMA_3, NATARAJAN, RADEMACHER = "Lemma 2", "Lemma 3", "natarajan", "rademacher"
GAP, RISK = "gap", "risk"  # what is bounded: risk less training error, or the risk itself
# What a number needs to be quoted, besides what its form rests on.
LOSS, SAMPLES, ONE, LIPSCHITZ, NORMS, OUTPUT, LOGITS, GIVEN, SIZES, CODE, ERROR = (
    "loss", "samples", "one", "lipschitz", "norms", "output", "logits", "given", "sizes", "code", "error"
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Setting:
    """A classifier, its number of samples, and what counts as informative.

    Raises: InvalidValueError for values out of range or in contradiction; UnknownNameError for an unknown router or
        reading.
    """

    num_experts: int = 8  # T
    num_active: int = 2  # k
    num_samples: int = 60_000  # m
    num_features: int = 784  # d
    expert_norm: float = 1.0  # B: linear experts have |w| <= B; of networks each matrix has Frobenius norm <= B
    router_norm: float = 1.0  # W: rows of a linear router have |v| <= W
    feature_norm: float = 1.0  # c: |x| <= c
    lipschitz: float = 1.0  # C, of the loss in the model's output
    delta: float = 0.05  # the probability with which a bound may fail
    threshold: float = 1.0  # a bound below it is informative
    router: str | None = None  # one of natarajan.ROUTERS; what the other fields say unless given
    dimension: str | None = None  # one of DIMENSIONS; all of them unless given
    natarajan: float | None = None  # d_N, in place of what follows from the router's class
    rademacher: float | None = None  # R_m(H) at `num_samples`, taken to fall as 1/sqrt(m)
    is_uniform: bool = False  # whether R(H) <= A / sqrt(n) on any n inputs, with A = sqrt(m) times `rademacher`
    expert_widths: tuple[int, ...] = ()  # hidden units of expert networks, layer by layer
    router_widths: tuple[int, ...] = ()  # hidden units of a router network
    operator_norms: tuple[float, ...] = ()  # K_i of Lemma 3, layer by layer
    row_norms: tuple[float, ...] = ()  # b_i of Lemma 3
    num_weights: int | None = None  # of a whole classifier of which nothing else is known; else what sizes say
    bits: int = 32  # that a weight is stored in
    num_bits: int | None = None  # that all weights are stored in together, where they differ
    training_error: float | None = None  # mean loss on the samples, with which bounds are on the risk
    code_bits: int | None = None  # length of a prefix-free code of the trained weights
    num_choices: int = 1  # architectures or codes, fixed in advance, that one was chosen from after seeing the samples

    def __post_init__(self) -> None:
        _check_numbers(self)
        _check_names(self)
        _check_layers(self)

    @property
    def experts(self) -> str:
        """Class of the experts: LINEAR, NETWORK, OWN if only R_m(H) is given, or ANY if nothing is."""
        if self.num_weights is not None:
            return ANY
        if self.rademacher is not None:
            return OWN
        return NETWORK if self.expert_widths or self.operator_norms else LINEAR

    @property
    def router_kind(self) -> str:
        """Class of the router: one of `complexity.ROUTERS`, OWN if only d_N is given, or ANY if nothing is."""
        if self.num_weights is not None:
            return ANY
        if self.router is not None:
            return self.router
        if self.router_widths:
            return NETWORK
        return LINEAR if self.natarajan is None else OWN

    @property
    def num_parameters(self) -> int | None:
        """p of Lemma 2, of a router network without biases."""
        sizes = (self.num_features, *self.router_widths, self.num_experts)
        return _weights(sizes) if self.router_widths else None

    @property
    def stored_weights(self) -> int | None:
        """The weights that the samples decide, those of a router that is given not among them; None if not known."""
        if self.num_weights is not None:
            return self.num_weights
        if self.experts == OWN or (self.experts == NETWORK and not self.expert_widths):
            return None
        of_router = {FIXED: 0, LINEAR: self.num_experts * self.num_features, NETWORK: self.num_parameters}
        found = of_router.get(self.router_kind)
        experts = self.num_experts * _weights((self.num_features, *self.expert_widths, 1))
        return None if found is None else experts + found

    @property
    def stored_bits(self) -> int | None:
        """The bits of these weights, which no more classifiers have than they tell apart; None if not known."""
        if self.num_bits is not None or self.stored_weights is None:
            return self.num_bits
        return self.stored_weights * self.bits


def _weights(sizes: tuple[int, ...]) -> int:
    """Number of weights of a network without biases, from its inputs to its outputs."""
    return sum(map(math.prod, itertools.pairwise(sizes)))


class Form(NamedTuple):
    """A bound as a function of the number of samples."""

    name: str
    at: Callable[[int], float]  # of m
    needs: tuple[str, ...]  # its hypotheses, from LOSS to ERROR
    dimension: str = ""  # of DIMENSIONS, BOTH or OWN: whose d_N it uses; empty where it uses none
    natarajan: float | None = None  # d_N
    status: str = HOLDS  # of the statement, for all classifiers: HOLDS, CONDITIONAL or REFUTED
    rests_on: tuple[str, ...] = ()  # what it assumes: LEMMA_2, LEMMA_3, NATARAJAN or RADEMACHER
    bounds: str = GAP  # or RISK

    @property
    def id(self) -> str:
        return f"{self.name}.{self.dimension}" if self.dimension else self.name


class EvaluatedBound(NamedTuple):
    """A form in a setting."""

    form: Form
    value: float  # at the setting's m; dimensionless, infinite where it overflows
    is_informative: bool  # below the threshold
    smallest_num_samples: int | None  # m from which on it is informative; None where it is not up to 2^62
    is_best: bool  # the smallest of those that hold unconditionally
    is_implied: bool  # refuted as a statement, but implied in this setting by a smaller bound that holds


_OF_CLASS = (LOSS, SAMPLES, LIPSCHITZ, OUTPUT, NORMS, ONE)  # of a class that is bounded by its norms
_OVER_ROOT = re.compile(r"(.+?)\s*/\s*sqrt\(m\)")


def bound(
    *,
    checkpoint: Path | str | None = None,
    num_errors: int | None = None,
    losses: Path | str | None = None,
    **values: Any,
) -> list[EvaluatedBound]:
    """All bounds that apply to a classifier, those of the paper first, as `moe-theory bound` shows them.

    Args:
        checkpoint: weights in safetensors, a file or a folder, of which the headers alone are read. With `num_errors`
            or `losses` it is a model trained on the samples, and its weights are coded.
        num_errors: samples, of `num_samples`, that this trained model gets wrong; its bounds are on the risk.
        losses: its loss in [0, 1] on each sample instead: an .npy of m numbers, or text of one a line.
        values: fields of `calculator.Setting`; `rademacher` is a number, R_m(H) at this m, or text such as
            "2.5/sqrt(m)", which bounds it on any m inputs.
    Raises: InvalidValueError for values out of range or in contradiction, for files that say too little, or a router
        whose class has no finite d_N; DamagedError for weights that cannot be read; UnknownNameError for a
        name that is not known.

    Examples:
        The smallest of those that hold, of 8 linear experts of which one is active:

        >>> from moe_theory import generalization
        >>> found = generalization.bound(num_experts=8, num_active=1, num_samples=10**6)
        >>> [(bound.form.id, round(bound.value, 3)) for bound in found if bound.is_best]
        [('product', 0.331)]
    """
    there, _ = from_files.fields(
        None if checkpoint is None else Path(checkpoint),
        num_errors,
        None if losses is None else Path(losses),
        values,
        {name: name for name in values},
    )
    return calculate(setting_of(**(values | there)))


def setting_of(rademacher: float | str | None = None, **values: Any) -> Setting:
    """The setting of some fields; an R_m(H) as text such as "2.5/sqrt(m)". Raises: as `bound`."""
    known = [field.name for field in dataclasses.fields(Setting)]
    for name in values:
        if name not in known:
            raise unknown_name("setting", name, known)
    if not isinstance(rademacher, str):
        return Setting(rademacher=rademacher, **values)
    over_root = _OVER_ROOT.fullmatch(rademacher.strip())
    try:
        number = float(over_root[1] if over_root else rademacher)
    except ValueError:
        raise InvalidValueError(
            f"rademacher={shortened(rademacher)} must be a number, R_m(H) at this m, or a multiple such as "
            "'2.5/sqrt(m)'.",
            argument="rademacher",
        ) from None
    scale = math.sqrt(max(values.get("num_samples", Setting.num_samples), 1)) if over_root else 1.0
    return Setting(rademacher=number / scale, is_uniform=over_root is not None, **values)


def calculate(setting: Setting) -> list[EvaluatedBound]:
    """All applicable bounds, those of the paper first; on the risk where the training error is known, else on the gap.

    Raises: InvalidValueError where the router's class has no finite d_N under the given reading, or any.
    """
    forms = applicable_forms(setting)
    values = [form.at(setting.num_samples) for form in forms]
    holding = [value for form, value in zip(forms, values, strict=True) if form.status == HOLDS]
    best = min(holding, default=math.inf)
    return [
        EvaluatedBound(
            form,
            value,
            value < setting.threshold,
            theory.smallest_num_samples(form.at, setting.threshold),
            form.status == HOLDS and value == best,
            form.status == REFUTED and value >= best,
        )
        for form, value in zip(forms, values, strict=True)
    ]


def applicable_forms(setting: Setting) -> list[Form]:
    """The paper's bounds for each d_N, then the bounds that hold. Raises: as `calculate`."""
    forms = [*_stored(setting)] if setting.experts == ANY else [*_paper_forms(setting), *_corrected_forms(setting)]
    forms = [form._replace(at=_guarded(form.at)) for form in forms]
    if setting.training_error is None:
        return forms
    forms = [_of_risk(form, setting.training_error) for form in forms]
    if setting.code_bits is not None:
        code = (setting.code_bits, setting.training_error)

        def risk(num_samples: int) -> float:
            return certificate.certificate(*code, num_samples, setting.delta, setting.num_choices).risk

        forms.append(Form("certificate", risk, (LOSS, SAMPLES, CODE, ERROR, ONE), bounds=RISK))
    return forms


def _guarded(bound: Callable[[int], float]) -> Callable[[int], float]:
    """Return the bound, infinite where it overflows."""

    def at(num_samples: int) -> float:
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                value = float(bound(num_samples))
        except OverflowError:
            return math.inf
        return math.inf if math.isnan(value) else value

    return at


def _of_risk(form: Form, training_error: float) -> Form:
    """Return a bound on the gap with the training error added."""
    at = form.at
    return form._replace(
        at=lambda num_samples: at(num_samples) + training_error, needs=(*form.needs, ERROR), bounds=RISK
    )


def dimensions(setting: Setting) -> dict[str, float]:
    """d_N of the router for each reading under which its class has one.

    Raises: InvalidValueError where it has none under the given reading, or under any.
    """
    if setting.natarajan is not None:
        return {setting.dimension or OWN: setting.natarajan}
    if setting.router_kind == ANY:
        return {}
    found, refusals = {}, []
    for name in DIMENSIONS if setting.dimension is None else (setting.dimension,):
        try:
            found[name] = complexity.natarajan(
                setting.router_kind,
                setting.num_experts,
                setting.num_active,
                setting.num_features,
                DIMENSIONS[name],
                setting.num_parameters,
            )
        except InvalidValueError as refusal:
            refusals.append(refusal)
    if not found:
        raise refusals[0]
    return found


def missing_dimension(setting: Setting) -> str | None:
    """The reading under which the router has no finite d_N, if neither d_N nor a reading is given."""
    if setting.natarajan is not None or setting.dimension is not None or setting.router_kind == ANY:
        return None
    return next((name for name in DIMENSIONS if name not in dimensions(setting)), None)


def rademacher(setting: Setting, num_samples: int) -> float:
    """R_m(H): the user's; Lemma 3; or, by Jensen, B c / sqrt(m) for linear experts |w| <= B."""
    if setting.rademacher is not None:
        return setting.rademacher * math.sqrt(setting.num_samples / num_samples)
    if setting.experts == NETWORK:
        return float(theory.lemma_3(num_samples, setting.feature_norm, *layer_norms(setting)))
    return setting.expert_norm * setting.feature_norm / math.sqrt(num_samples)


def layer_norms(setting: Setting) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """K_i and b_i of Lemma 3, the largest possible where they are not given.

    A matrix of r rows with Frobenius norm F has a spectral norm of at most F, and row norms that sum to at most
    sqrt(r) F; of rank q and spectral norm K it has F <= sqrt(q) K.
    """
    sizes = (setting.num_features, *setting.expert_widths, 1)
    shapes = tuple(zip(sizes[1:], sizes, strict=False))
    operators = setting.operator_norms or (setting.expert_norm,) * len(shapes)
    if setting.row_norms:
        return operators, setting.row_norms
    ranks = [min(shape) for shape in shapes] if setting.operator_norms else [1] * len(shapes)
    layers = zip(shapes, ranks, operators, strict=True)
    return operators, tuple(math.sqrt(rows * rank) * norm for (rows, _), rank, norm in layers)


def frobenius_norms(setting: Setting) -> tuple[float, ...]:
    """Largest Frobenius norms of an expert's layers: B if it is given, sqrt(q) K at rank q and spectral norm K, or the
    sum of the row norms.
    """
    sizes = (setting.num_features, *setting.expert_widths, 1)
    if not setting.operator_norms:
        return (setting.expert_norm,) * (len(sizes) - 1)
    if not setting.expert_widths:
        return setting.row_norms
    shapes = zip(sizes[1:], sizes, strict=False)
    largest = tuple(math.sqrt(min(shape)) * norm for shape, norm in zip(shapes, setting.operator_norms, strict=True))
    return tuple(map(min, largest, setting.row_norms)) if setting.row_norms else largest


def _paper_forms(setting: Setting) -> Iterator[Form]:
    found = dimensions(setting)
    if len(found) > 1 and len(set(found.values())) == 1:
        found = {BOTH: next(iter(found.values()))}
    rests_on = (*([LEMMA_3] if setting.experts == NETWORK else []), *_of_router(setting))
    for name, dimension in found.items():
        for form in theory.FORMS:

            def theorem_1(num_samples: int, dimension: float = dimension, form: str = form) -> Any:
                sizes = (setting.num_experts, setting.num_active, num_samples)
                terms = (rademacher(setting, num_samples), dimension, setting.lipschitz, setting.delta, form)
                return theory.theorem_1(*sizes, *terms)

            yield Form(f"theorem-1.{form}", theorem_1, _OF_CLASS, name, dimension, REFUTED, rests_on)
    parameters = setting.num_parameters
    if setting.experts == NETWORK and parameters is not None:
        operators, rows = layer_norms(setting)

        def corollary_4(num_samples: int) -> Any:
            return theory.corollary_4(
                setting.num_experts,
                setting.num_active,
                num_samples,
                feature_norm=setting.feature_norm,
                operator_norms=operators,
                row_norms=rows,
                num_parameters=parameters,
                lipschitz=setting.lipschitz,
                delta=setting.delta,
            )

        dimension = float(theory.lemma_2(parameters, setting.num_experts))
        yield Form("corollary-4", corollary_4, _OF_CLASS, "", dimension, REFUTED, (LEMMA_3, LEMMA_2))


def _corrected_forms(setting: Setting) -> Iterator[Form]:
    """Bounds by complexities, where experts and router have them; by the number of weights, where that is known."""
    sizes = (setting.num_experts, setting.num_active)
    norms = (setting.expert_norm, setting.feature_norm)
    is_linear = setting.experts == LINEAR and setting.router_kind == LINEAR
    is_given = setting.experts == LINEAR and setting.router_kind == FIXED
    has_norms = setting.experts != OWN and setting.natarajan is None and setting.router_kind != FREE

    def given_router(num_samples: int) -> Any:
        return corrected.fixed_router_complexity(setting.num_experts, num_samples, 1.0, *norms)  # |a(x)|^2 <= 1

    def product(num_samples: int) -> Any:
        # A in place of B c: the proof needs R(H) <= A / sqrt(n) on any n inputs of an expert. R_m(H) = A / sqrt(m) at
        # one m is not enough: for the constants +1 and -1 it is 0.80 / sqrt(m) at m = 500, but 1 at m = 1, and with one
        # input per cell the gap exceeds the bound with A = 0.80.
        return corrected.product_complexity(setting.num_experts, num_samples, rademacher(setting, 1))

    def lipschitz(num_samples: int) -> Any:
        return corrected.lipschitz_complexity(*sizes, num_samples, *norms, setting.router_norm)

    def covering(num_samples: int) -> Any:
        terms = (setting.num_features, *norms, setting.router_norm, setting.lipschitz, setting.delta)
        return corrected.covering(*sizes, num_samples, *terms)

    if is_given:
        yield _uniform(setting, "given-router", given_router)
    elif setting.num_active == 1 and (setting.experts != OWN or setting.is_uniform):
        yield _uniform(setting, "product", product)
    elif is_linear:
        yield _uniform(setting, "lipschitz", lipschitz)
    if is_linear:
        yield Form("covering", covering, (*_OF_CLASS, LOGITS))
    elif has_norms and not is_given:
        yield Form("norms", lambda num_samples: _norms(setting, num_samples), (*_OF_CLASS, LOGITS))
    yield from _stored(setting)


def _stored(setting: Setting) -> Iterator[Form]:
    if (bits := setting.stored_bits) is not None:

        def stored(num_samples: int) -> Any:
            return corrected.stored(bits, 1, num_samples, setting.delta)

        yield Form("stored", stored, (LOSS, SAMPLES, SIZES, ONE))


def _norms(setting: Setting, num_samples: int) -> Any:
    """`corrected.uniform` for networks, by the Frobenius norms of their layers and patterns of their router's units."""
    sizes = (setting.num_experts, setting.num_active, num_samples)
    num_layers = {FIXED: 0, LINEAR: 1}.get(setting.router_kind, len(setting.router_widths) + 1)
    routers = (setting.router_norm,) * num_layers
    rho = corrected.network_complexity(*sizes, frobenius_norms(setting), routers, setting.feature_norm)
    if setting.router_kind == NETWORK:
        patterns = corrected.log_network_patterns(*sizes, setting.num_features, setting.router_widths)
    else:
        patterns = _log_patterns(setting, num_samples)
    return corrected.uniform(rho, patterns, num_samples, setting.lipschitz, setting.delta)


def _uniform(setting: Setting, name: str, complexity_at: Callable[[int], Any]) -> Form:
    """`corrected.uniform` with this complexity of a class whose masks are given."""

    def at(num_samples: int) -> Any:
        patterns = _log_patterns(setting, num_samples)
        return corrected.uniform(complexity_at(num_samples), patterns, num_samples, setting.lipschitz, setting.delta)

    of_experts = {LINEAR: (), NETWORK: (LEMMA_3,), OWN: (RADEMACHER,)}[setting.experts]
    rests_on = (*of_experts, *_of_router(setting))
    needs = {FIXED: (GIVEN,)}.get(setting.router_kind, (LOGITS,) if name == "lipschitz" else ())
    return Form(name, at, (*_OF_CLASS, *needs), status=CONDITIONAL if rests_on else HOLDS, rests_on=rests_on)


def _of_router(setting: Setting) -> tuple[str, ...]:
    """The source of d_N, where it does not follow from the router's class."""
    if setting.router_kind not in (NETWORK, OWN):
        return ()
    return (LEMMA_2,) if setting.natarajan is None else (NATARAJAN,)


def _log_patterns(setting: Setting, num_samples: int) -> float:
    """log Gamma(m), of the router's masks on a sample: by Lemma 6 where only d_N is known."""
    sizes = (setting.num_experts, setting.num_active, num_samples)
    if setting.router_kind == FIXED:
        return 0.0
    if setting.router_kind == LINEAR:
        return float(corrected.log_mask_patterns(*sizes, setting.num_features))
    masks = theory.log_masks(*sizes[:2])
    most = num_samples * float(masks)
    if setting.router_kind == FREE:
        return most
    dimension = next(iter(dimensions(setting).values()))
    return min(most, float(theory.log_labelings(num_samples, masks, dimension)))


def _check_numbers(setting: Setting) -> None:
    sizes = ("num_experts", "num_active", "num_samples", "num_features", "expert_widths", "router_widths")
    most = Whole(1, theory.MOST_SAMPLES, "no bound is looked for beyond 2^62")
    require(most, **{name: getattr(setting, name) for name in sizes})
    require_active(setting.num_experts, setting.num_active)
    amounts = ("expert_norm", "router_norm", "feature_norm", "lipschitz", "natarajan", "rademacher")
    require(NonNegative, **{name: getattr(setting, name) for name in amounts if getattr(setting, name) is not None})
    require(OpenProbability, delta=setting.delta)
    counts = {
        name: getattr(setting, name) for name in ("num_weights", "num_bits") if getattr(setting, name) is not None
    }
    require(most, bits=setting.bits, num_choices=setting.num_choices, **counts)
    if setting.training_error is not None:
        require(Probability, training_error=setting.training_error)
    if setting.code_bits is not None and (setting.training_error is None or setting.code_bits < 0):
        raise InvalidValueError(
            f"code_bits={setting.code_bits} must not be negative, and needs training_error beside it. Change one.",
            argument="code_bits",
        )
    require(Within(0, 1, open_low=True, why="the loss is in [0, 1]"), threshold=setting.threshold)


def _check_names(setting: Setting) -> None:
    if setting.router is not None and setting.router not in complexity.ROUTERS:
        raise unknown_name("router", setting.router, complexity.ROUTERS)
    if setting.dimension is not None and setting.dimension not in DIMENSIONS:
        raise unknown_name("dimension", setting.dimension, DIMENSIONS)
    if setting.router_widths and setting.router not in (None, NETWORK):
        raise InvalidValueError(
            f"router={setting.router} has no router_widths, which are of a network. Drop one of both.",
            argument="router",
        )
    if setting.router == NETWORK and not setting.router_widths and setting.natarajan is None:
        raise InvalidValueError(
            "router=network needs router_widths, which d_N depends on, or natarajan. Give one.", argument="router"
        )


def _check_layers(setting: Setting) -> None:
    others = ("expert_widths", "router_widths", "operator_norms", "row_norms", "rademacher", "natarajan", "router")
    known = [name for name in others if getattr(setting, name)]
    if setting.num_weights is not None and known:
        raise InvalidValueError(
            f"num_weights is for a classifier of which nothing else is known, not even {known[0]}. Drop one of both."
        )
    networks = setting.expert_widths or setting.operator_norms or setting.row_norms
    if setting.rademacher is not None and networks:
        raise InvalidValueError(
            "rademacher stands in for what follows from expert_widths, operator_norms and row_norms. Drop one of both."
        )
    if setting.row_norms and not setting.operator_norms:
        raise InvalidValueError("row_norms need operator_norms beside them, one for each layer. Give both.")
    if setting.operator_norms and not (setting.row_norms or setting.expert_widths):
        raise InvalidValueError(
            "operator_norms need row_norms beside them, or expert_widths that bound those. Give one."
        )
    layers = len(setting.expert_widths) + 1 if setting.expert_widths else len(setting.operator_norms)
    for name in ("operator_norms", "row_norms"):
        count = len(getattr(setting, name))
        if count not in (0, layers):
            raise InvalidValueError(
                f"{name} has {count} entries for experts of {layers} layers, the output's included. Give one a layer."
            )
    with np.errstate(over="ignore"):
        capacity = rademacher(setting, 1)
    if not math.isfinite(capacity):
        raise InvalidValueError("R_m(H) of experts with these norms is too large for a number. Lower the norms.")
