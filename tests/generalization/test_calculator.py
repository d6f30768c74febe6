"""The calculator of bounds against plain Python, and the certificate of a trained model."""

import itertools
import math

import numpy as np
import pytest
from scipy import optimize, special

from moe_theory import generalization
from moe_theory.core.errors import InvalidValueError
from moe_theory.generalization import calculator, certificate, corrected
from moe_theory.generalization.calculator import Setting, calculate
from moe_theory.generalization.certificate import divergence_of, largest_risk
from tests.continual.cases import find_unrefused, list_pairs, loop_over

from .formulas import log_patterns, relu, stored, theorem_1, uniform


def found(**settings):
    return {bound.form.id: bound for bound in calculate(Setting(**settings))}


def lipschitz(T, k, m, d, B, W, c, C, delta):
    spread = math.sqrt(k * min(T, k * m) / m)
    both = (B * c * spread) ** (2 / 3) + (B * c * W * c * spread / math.sqrt(2)) ** (2 / 3)
    return uniform(min(math.sqrt(2) * both**1.5, B * c), log_patterns(T, k, m, d), m, C, delta)


def covering(T, k, m, d, B, W, c, C, delta):
    values = []
    for epsilon in np.geomspace(1e-9 * B * c, 2 * B * c, 4001):
        cover = math.log(1 + 2 * B * c / epsilon)
        if k > 1:
            cover = math.log(1 + 4 * B * c / epsilon) + math.log(1 + 4 * B * c**2 * W / epsilon)
        patterns = log_patterns(T, k, m, d) + T * d * cover
        values.append(uniform(epsilon, patterns, m, C, delta))
    return min(values)


NORMS = {"expert_norm": 1.5, "router_norm": 3.0, "feature_norm": 0.8, "lipschitz": 0.5, "delta": 0.01}
B, W, c, C, DELTA = NORMS.values()


@loop_over(("T", "k", "m", "d"), [(8, 2, 60_000, 784), (5, 3, 40, 2), (4, 4, 1000, 7), (2, 2, 1, 1)])
def test_several_active_experts(T, k, m, d):
    bounds = found(num_experts=T, num_active=k, num_samples=m, num_features=d, **NORMS)
    bounds = {name: bound for name, bound in bounds.items() if not name.endswith(".router")}
    reading = "masks" if k == T else "both"
    dimension, capacity = (0 if k == T else (T - 1) * d), B * c / math.sqrt(m)
    expected = {
        f"theorem-1.printed.{reading}": theorem_1(T, k, m, capacity, dimension, C, DELTA),
        f"theorem-1.binomial.{reading}": theorem_1(T, k, m, capacity, dimension, C, DELTA, math.log(math.comb(T, k))),
        "lipschitz": lipschitz(T, k, m, d, B, W, c, C, DELTA),
        "covering": covering(T, k, m, d, B, W, c, C, DELTA),
        "stored": stored(2 * T * d, 32, m, DELTA),
    }
    assert {name: bound.value for name, bound in bounds.items()} == pytest.approx(expected, rel=1e-4)
    for bound in bounds.values():
        assert bound.is_informative == (expected[bound.form.id] < 1)


@loop_over(("T", "m", "d"), [(8, 60_000, 784), (6, 3, 2), (1, 50, 4)])
def test_one_active_expert(T, m, d):
    bounds = found(num_experts=T, num_active=1, num_samples=m, num_features=d, **NORMS)
    product = uniform(B * c * math.sqrt(min(T, m) / m), log_patterns(T, 1, m, d), m, C, DELTA)
    printed = theorem_1(T, 1, m, B * c / math.sqrt(m), (T - 1) * d, C, DELTA)
    assert bounds["product"].value == pytest.approx(product)
    assert bounds["covering"].value == pytest.approx(covering(T, 1, m, d, B, W, c, C, DELTA), rel=1e-4)
    assert bounds["theorem-1.printed.both"].value == pytest.approx(printed)
    assert "lipschitz" not in bounds


def test_a_router_that_is_given():
    bounds = found(num_experts=5, num_active=3, num_samples=200, router="fixed", **NORMS)
    assert bounds["given-router"].value == pytest.approx(uniform(B * c * math.sqrt(5 / 200), 0, 200, C, DELTA))
    assert bounds["theorem-1.printed.both"].form.natarajan == 0
    assert bounds["stored"].value == pytest.approx(stored(5 * 784, 32, 200, DELTA))  # experts alone
    assert set(bounds) == {"given-router", "stored", "theorem-1.printed.both", "theorem-1.binomial.both"}


SMALL = {"num_experts": 3, "num_features": 1, "expert_norm": 0.5, "delta": 0.5}
SCANNED = {
    "theorem-1.printed.both": lambda m, k: theorem_1(3, k, m, 0.5 / math.sqrt(m), 2, delta=0.5),
    "product": lambda m, k: uniform(0.5 * math.sqrt(min(3, m) / m), log_patterns(3, k, m, 1), m, delta=0.5),
    "lipschitz": lambda m, k: lipschitz(3, k, m, 1, 0.5, 1, 1, 1, 0.5),
}


@loop_over("k", [1, 2])
def test_samples_to_inform_are_those_of_a_scan(k):
    bounds = found(num_active=k, **SMALL)
    compared = SCANNED.keys() & bounds.keys()
    assert len(compared) == 2
    for name in compared:
        informative = [m for m in range(1, 1200) if SCANNED[name](m, k) < 1]
        assert bounds[name].smallest_num_samples == informative[0]
        assert informative == list(range(informative[0], 1200))


def test_the_best_is_the_least_that_holds():
    bounds = found(num_active=8)
    assert bounds["theorem-1.printed.masks"].value < bounds["lipschitz"].value < bounds["covering"].value
    assert [name for name, bound in bounds.items() if bound.is_best] == ["lipschitz"]


def test_the_product_covers_every_way_to_share_the_samples_out():
    m, T, A = 12, 3, 0.7
    product = found(num_experts=T, num_active=1, num_samples=m, num_features=5, expert_norm=A)["product"]
    shares = (share for share in itertools.product(range(m + 1), repeat=T) if sum(share) == m)
    most = max(sum(n / m * A / math.sqrt(n) for n in share if n) for share in shares)
    assert product.value == pytest.approx(uniform(most, log_patterns(T, 1, m, 5), m))


def test_networks_take_lemma_3():
    sizes = {"num_experts": 4, "num_active": 2, "num_samples": 10**9, "num_features": 6}
    bounds = found(**sizes, expert_widths=(5,), expert_norm=2.0, feature_norm=0.5)
    capacity = 0.5 / math.sqrt(10**9) * 4 * (5 ** (1 / 3) + 1) ** 1.5
    assert bounds["theorem-1.printed.both"].value == pytest.approx(theorem_1(4, 2, 10**9, capacity, 3 * 6))
    assert bounds["theorem-1.printed.both"].form.rests_on == (calculator.LEMMA_3,)
    assert bounds["stored"].value < bounds["norms"].value < 1


def mixed(T, k, m, experts, logits, largest):
    spread = math.sqrt(k * min(T, k * m) / m)
    if k == 1 or logits == 0:
        return min(experts * spread, largest)
    both = (experts * spread) ** (2 / 3) + (largest * logits * spread / math.sqrt(2)) ** (2 / 3)
    return min(math.sqrt(2) * both**1.5, largest)


@loop_over("k", [1, 2])
@loop_over("router", ["linear", "fixed"])
def test_networks_by_their_norms(router, k):
    """Experts 6-5-1 with Frobenius norms of 1.5, against plain Python."""
    T, m, d = 4, 10**6, 6
    bounds = found(
        num_experts=T, num_active=k, num_samples=m, num_features=d, expert_widths=(5,), router=router, **NORMS
    )
    logits = {"linear": W * c, "fixed": 0.0}[router]
    patterns = {"linear": log_patterns(T, k, m, d), "fixed": 0.0}
    rho = mixed(T, k, m, relu([B, B], c), logits, B * B * c)
    assert bounds["norms"].value == pytest.approx(uniform(rho, patterns[router], m, C, DELTA))
    assert bounds["norms"].form.status == calculator.HOLDS
    routers = {"linear": T * d, "fixed": 0}[router]
    assert bounds["stored"].value == pytest.approx(stored(T * (d * 5 + 5) + routers, 32, m, DELTA))


def test_a_classifier_of_which_only_the_weights_are_known():
    (bound,) = calculate(Setting(num_weights=10**9, bits=16, num_samples=10**11))
    assert (bound.form.id, bound.is_best) == ("stored", True)
    assert bound.value == pytest.approx(stored(10**9, 16, 10**11))
    assert stored(10**9, 16, bound.smallest_num_samples) < 1 <= stored(10**9, 16, bound.smallest_num_samples - 1)


def test_numbers_too_large_say_nothing_and_raise_nothing():
    most = 2**62
    extremes = {"num_experts": most, "num_active": 2, "num_samples": most, "num_features": most, "router_norm": 1e300}
    for bound in found(**extremes).values():
        assert bound.value > 1
        assert bound.smallest_num_samples is None
    overflown = found(num_active=1, expert_norm=1e300, lipschitz=1e20)["theorem-1.printed.both"]
    assert (overflown.value, overflown.is_informative) == (math.inf, False)


REFUSED = {  # values of an argument, and what belongs to each
    "num_active": ({"num_experts": 2, "num_active": 3}, {"num_active": 0}),
    "num_samples": ({"num_samples": 0}, {"num_samples": 2.5}),
    "num_features": ({"num_features": 0},),
    "num_experts": ({"num_experts": 10**400},),
    "expert_widths": ({"expert_widths": (2**70,)}, {"expert_widths": (0,)}),
    "delta": ({"delta": 0.0}, {"delta": 1.0}, {"delta": math.nan}),
    "expert_norm": ({"expert_norm": -1.0},),
    "num_weights": ({"num_weights": 0}, {"num_weights": 10, "expert_widths": (3,)}),
    "bits": ({"bits": 0},),
    "code_bits": ({"code_bits": 7},),  # without a training error
    "training_error": ({"training_error": 1.5},),
    "": ({"expert_norm": 1e200, "feature_norm": 1e200},),
}


def test_what_no_classifier_has_is_refused():
    assert not find_unrefused(list_pairs(REFUSED), lambda argument, choices: Setting(**choices))


def test_a_trained_model_has_a_bound_on_its_risk():
    trained = {"training_error": 0.05, "code_bits": 700, "num_samples": 2000}
    bounds = {bound.form.id: bound for bound in generalization.bound(**trained, num_weights=340)}
    assert bounds["certificate"].value == certificate.certificate(700, 0.05, 2000)
    assert bounds["stored"].value == pytest.approx(0.05 + corrected.stored(340, 32, 2000))
    assert {bound.form.bounds for bound in bounds.values()} == {"risk"}
    sizes = {"num_experts": 2, "num_active": 1, "num_samples": 2000}
    bounds = {bound.form.id: bound for bound in generalization.bound(**sizes, training_error=0.49)}
    assert bounds["product"].value == pytest.approx(0.49 + found(**sizes)["product"].value)


@loop_over("error", [0.0, 1e-6, 0.1, 0.25, 0.5, 0.9, 1.0])
@loop_over("divergence", [0.0, 1e-9, 1e-3, 0.1, 1.0, 30.0])
def test_the_inversion_is_the_root_of_the_divergence(error, divergence):
    found = largest_risk(error, divergence)
    assert error <= found <= 1
    if divergence > 0 and error < 1:

        def excess(p):
            return special.rel_entr(error, p) + special.rel_entr(1 - error, 1 - p) - divergence  # fmt: skip

        root = optimize.brentq(excess, error, 1 - 1e-15, xtol=1e-15) if excess(1 - 1e-15) > 0 else 1.0
        assert found == pytest.approx(root, abs=1e-7)
    assert found >= 1 or divergence_of(error, found) >= divergence - 1e-12  # rounded up, if at all


def test_known_cases_of_the_bound():
    assert certificate.certificate(0, 0.0, 50, delta=0.2) == pytest.approx(1 - 0.2 ** (1 / 50))
    assert certificate.certificate(10, 0.0, 50, delta=0.2) == pytest.approx(1 - (0.2 / 2**10) ** (1 / 50))
    assert certificate.certificate(0, 1.0, 10) == 1.0
    for given in ({"training_error": 1.1}, {"num_samples": 0}, {"num_bits": -1}, {"delta": 0.0}):
        with pytest.raises(InvalidValueError):
            certificate.certificate(**{"num_bits": 1, "training_error": 0.1, "num_samples": 10} | given)
