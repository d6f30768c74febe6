"""The calculator of bounds against plain Python: catches a constant, a sample count or a verdict that is not so."""

import itertools
import math

import numpy as np
import pytest
from safetensors.numpy import save_file

from moe_theory import generalization
from moe_theory.core.errors import InvalidValueError
from moe_theory.generalization import calculator, certificate, corrected
from moe_theory.generalization.calculator import Setting, calculate

from .formulas import log_network_patterns, log_patterns, relu, stored, theorem_1, uniform


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


@pytest.mark.parametrize(("T", "k", "m", "d"), [(8, 2, 60_000, 784), (5, 3, 40, 2), (4, 4, 1000, 7), (2, 2, 1, 1)])
def test_several_active_experts(T, k, m, d):
    bounds = found(num_experts=T, num_active=k, num_samples=m, num_features=d, dimension="masks", **NORMS)
    dimension, capacity = (0 if k == T else (T - 1) * d), B * c / math.sqrt(m)
    expected = {
        "theorem-1.printed.masks": theorem_1(T, k, m, capacity, dimension, C, DELTA),
        "theorem-1.binomial.masks": theorem_1(T, k, m, capacity, dimension, C, DELTA, math.log(math.comb(T, k))),
        "lipschitz": lipschitz(T, k, m, d, B, W, c, C, DELTA),
        "covering": covering(T, k, m, d, B, W, c, C, DELTA),
        "stored": stored(2 * T * d, 32, m, DELTA),
    }
    assert {name: bound.value for name, bound in bounds.items()} == pytest.approx(expected, rel=1e-4)
    for bound in bounds.values():
        assert bound.is_informative == (expected[bound.form.id] < 1)


@pytest.mark.parametrize(("T", "m", "d"), [(8, 60_000, 784), (6, 3, 2), (1, 50, 4)])
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


@pytest.mark.parametrize(("k", "threshold"), [(1, 1.0), (2, 1.0), (2, 0.6)])
def test_samples_to_inform_are_those_of_a_scan(k, threshold):
    bounds = found(num_active=k, threshold=threshold, **SMALL)
    compared = SCANNED.keys() & bounds.keys()
    assert len(compared) == 2
    for name in compared:
        informative = [m for m in range(1, 1200) if SCANNED[name](m, k) < threshold]
        assert bounds[name].smallest_num_samples == informative[0]
        assert informative == list(range(informative[0], 1200))


def test_readings_of_the_dimension_are_told_apart_where_they_differ():
    sparse, dense = found(num_active=3), found(num_active=8)
    assert {name.split(".")[-1] for name in sparse if "theorem" in name} == {"both"}
    assert dense["theorem-1.printed.masks"].form.natarajan == 0
    assert dense["theorem-1.printed.router"].form.natarajan == 784
    assert set(found(num_active=8, router="free")) == {"theorem-1.printed.masks", "theorem-1.binomial.masks"}
    assert calculator.missing_dimension(Setting(num_active=8, router="free")) == "router"
    assert calculator.missing_dimension(Setting(num_active=8)) is None


def test_the_best_is_the_least_that_holds_and_settles_what_is_above_it():
    bounds = found(num_active=8)
    assert bounds["theorem-1.printed.masks"].value < bounds["lipschitz"].value < bounds["covering"].value
    assert [name for name, bound in bounds.items() if bound.is_best] == ["lipschitz"]
    implied = {name for name, bound in bounds.items() if bound.is_implied}
    assert implied == {"theorem-1.printed.router", "theorem-1.binomial.router"}
    for setting in ({"num_active": 8, "router": "free"}, {"natarajan": 1e308}):
        assert not any(bound.is_best for bound in found(**setting).values())


def test_what_informs_is_below_the_threshold():
    bounds = found(num_active=1, num_samples=1_000_000, threshold=0.45)
    assert {name: bound.is_informative for name, bound in bounds.items()} == {
        name: bound.value < 0.45 for name, bound in bounds.items()
    }
    assert {bound.is_informative for bound in bounds.values() if bound.value < 1} == {True, False}


def test_own_complexities_fall_with_the_samples_and_settle_nothing_else():
    own = {"num_active": 1, "num_samples": 10_000, "rademacher": 0.03, "natarajan": 20.0, "is_uniform": True}
    bounds = found(**own)
    at = bounds["theorem-1.printed.own"].form.at
    for m in (100, 10_000, 1_000_000):
        assert at(m) == pytest.approx(theorem_1(8, 1, m, 3 / math.sqrt(m), 20))
        natarajan = min(m * math.log(8), 20 * (math.log(m) + 2 * math.log(8)))
        assert bounds["product"].form.at(m) == pytest.approx(uniform(3 * math.sqrt(8 / m), natarajan, m))
    assert bounds["product"].form.status == calculator.CONDITIONAL
    assert set(bounds["product"].form.rests_on) == {calculator.RADEMACHER, calculator.NATARAJAN}
    assert set(found(**{**own, "num_active": 2})) == {"theorem-1.printed.own", "theorem-1.binomial.own"}
    assert not bounds["product"].is_best
    assert "product" not in found(**{**own, "is_uniform": False})
    assert not found(num_active=1, natarajan=20.0, router="linear")["product"].form.rests_on


def test_the_product_covers_every_way_to_share_the_samples_out():
    m, T, A = 12, 3, 0.7
    (product,) = (bound for name, bound in found(
        num_experts=T, num_active=1, num_samples=m, rademacher=A / math.sqrt(m), router="fixed", is_uniform=True
    ).items() if name == "product")  # fmt: skip
    shares = (share for share in itertools.product(range(m + 1), repeat=T) if sum(share) == m)
    most = max(sum(n / m * A / math.sqrt(n) for n in share if n) for share in shares)
    assert product.value == pytest.approx(uniform(most, 0, m))


def test_networks_take_lemmas_2_and_3():
    sizes = {"num_experts": 4, "num_active": 2, "num_samples": 10**9, "num_features": 6}
    norms = {"expert_widths": (5,), "operator_norms": (2.0, 3.0), "row_norms": (4.0, 5.0), "feature_norm": 0.5}
    bounds = found(**sizes, **norms, router_widths=(7,))
    capacity = 0.5 / math.sqrt(10**9) * 6 * ((4 / 2) ** (2 / 3) + (5 / 3) ** (2 / 3)) ** 1.5
    dimension = 4 * (6 * 7 + 7 * 4) ** 2
    assert bounds["corollary-4"].value == pytest.approx(theorem_1(4, 2, 10**9, capacity, dimension))
    assert bounds["corollary-4"].value == bounds["theorem-1.printed.both"].value
    assert bounds["corollary-4"].form.status == calculator.REFUTED
    assert [bound.form.id for bound in bounds.values() if bound.is_best] == ["stored"]
    assert bounds["stored"].value < bounds["norms"].value < 1
    assert "corollary-4" not in found(**sizes, **norms)


def mixed(T, k, m, experts, logits, largest):
    spread = math.sqrt(k * min(T, k * m) / m)
    if k == 1 or logits == 0:
        return min(experts * spread, largest)
    both = (experts * spread) ** (2 / 3) + (largest * logits * spread / math.sqrt(2)) ** (2 / 3)
    return min(math.sqrt(2) * both**1.5, largest)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("router", ["linear", "network", "fixed"])
def test_networks_by_their_norms(router, k):
    """Experts 6-5-1 with Frobenius norms of 1.5, against plain Python."""
    T, m, d = 4, 10**6, 6
    widths = {"router_widths": (7,)} if router == "network" else {"router": router}
    bounds = found(num_experts=T, num_active=k, num_samples=m, num_features=d, expert_widths=(5,), **widths, **NORMS)
    logits = {"linear": W * c, "network": relu([W, W], c), "fixed": 0.0}[router]
    patterns = {"linear": log_patterns(T, k, m, d), "network": log_network_patterns(T, k, m, d, [7]), "fixed": 0.0}
    rho = mixed(T, k, m, relu([B, B], c), logits, B * B * c)
    assert bounds["norms"].value == pytest.approx(uniform(rho, patterns[router], m, C, DELTA))
    assert bounds["norms"].form.status == calculator.HOLDS
    routers = {"linear": T * d, "network": d * 7 + 7 * T, "fixed": 0}[router]
    assert bounds["stored"].value == pytest.approx(stored(T * (d * 5 + 5) + routers, 32, m, DELTA))


def test_linear_experts_behind_a_network():
    bounds = found(num_experts=4, num_active=2, num_samples=10**6, num_features=6, router_widths=(7,), **NORMS)
    rho = mixed(4, 2, 10**6, B * c, relu([W, W], c), B * c)
    expected = uniform(rho, log_network_patterns(4, 2, 10**6, 6, [7]), 10**6, C, DELTA)
    assert bounds["norms"].value == pytest.approx(expected)


def test_spectral_norms_bound_frobenius_norms():
    """sqrt(rank) K, the sum of row norms, and the smaller of both; on matrices that attain the first."""
    setting = Setting(num_features=4, expert_widths=(3,), operator_norms=(2.0, 5.0))
    assert calculator.frobenius_norms(setting) == pytest.approx((np.linalg.norm(2 * np.eye(3, 4)), 5.0))
    setting = Setting(num_features=4, expert_widths=(3,), operator_norms=(2.0, 5.0), row_norms=(2.5, 6.0))
    assert calculator.frobenius_norms(setting) == pytest.approx((2.5, 5.0))
    assert calculator.frobenius_norms(Setting(operator_norms=(2.0, 5.0), row_norms=(2.5, 6.0))) == (2.5, 6.0)


def test_a_classifier_of_which_only_the_weights_are_known():
    (bound,) = calculate(Setting(num_weights=10**9, bits=16, num_samples=10**11))
    assert (bound.form.id, bound.is_best) == ("stored", True)
    assert bound.value == pytest.approx(stored(10**9, 16, 10**11))
    assert stored(10**9, 16, bound.smallest_num_samples) < 1 <= stored(10**9, 16, bound.smallest_num_samples - 1)


def test_row_norms_that_are_not_given_are_the_largest_there_are():
    random = np.random.default_rng(0)
    frobenius = Setting(num_features=4, expert_widths=(3,), expert_norm=1.7)
    spectral = Setting(num_features=4, expert_widths=(3,), operator_norms=(1.7, 1.7))
    for setting, norm in ((frobenius, "fro"), (spectral, 2)):
        operators, limits = calculator.layer_norms(setting)
        assert operators == (1.7, 1.7)
        layers = [random.normal(size=(3, 4)) for _ in range(50)] + [np.ones((3, 4)), np.eye(3, 4)]
        sums = [np.linalg.norm(layer, axis=1).sum() * 1.7 / np.linalg.norm(layer, norm) for layer in layers]
        assert max(sums) == pytest.approx(limits[0])
        assert limits[1] == pytest.approx(1.7)


def test_numbers_too_large_say_nothing_and_raise_nothing():
    most = 2**62
    extremes = {"num_experts": most, "num_active": 2, "num_samples": most, "num_features": most, "router_norm": 1e300}
    for bound in found(**extremes).values():
        assert bound.value > 1
        assert bound.smallest_num_samples is None
    overflown = found(num_active=1, natarajan=1e308)["theorem-1.printed.own"]
    assert (overflown.value, overflown.is_informative) == (math.inf, False)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"num_experts": 2, "num_active": 3}, "num_active=3"),
        ({"num_active": 0}, "num_active=0"),
        ({"num_samples": 0}, "num_samples=0"),
        ({"num_samples": 2.5}, "num_samples=2.5"),
        ({"num_features": 0}, "num_features=0"),
        ({"num_experts": 10**400}, "is too large. Lower num_experts"),
        ({"router_widths": (2**70,)}, "no bound is looked for beyond 2^62. Lower router_widths"),
        ({"delta": 0.0}, "delta=0.0"),
        ({"delta": 1.0}, "delta=1.0"),
        ({"delta": math.nan}, "delta=nan"),
        ({"threshold": 1.5}, "threshold=1.5"),
        ({"expert_norm": -1.0}, "expert_norm=-1.0"),
        ({"expert_norm": 1e200, "feature_norm": 1e200}, "Lower the norms"),
        ({"natarajan": -1.0}, "natarajan=-1.0"),
        ({"rademacher": math.inf}, "rademacher=inf"),
        ({"rademacher": 0.1, "expert_widths": (3,)}, "Drop one of both"),
        ({"expert_widths": (0,)}, "expert_widths=0"),
        ({"row_norms": (1.0,)}, "row_norms need operator_norms"),
        ({"operator_norms": (1.0,)}, "operator_norms need row_norms"),
        ({"operator_norms": (1.0,), "expert_widths": (3,)}, "operator_norms has 1 entries for experts of 2 layers"),
        ({"operator_norms": (1.0,), "row_norms": (1.0, 2.0)}, "row_norms has 2 entries"),
        ({"operator_norms": (0.0,), "row_norms": (1.0,)}, "above 0"),
        ({"router": "network"}, "needs router_widths"),
        ({"router": "linear", "router_widths": (3,)}, "router=linear has no router_widths"),
        ({"num_weights": 0}, "num_weights=0"),
        ({"num_weights": 10, "expert_widths": (3,)}, "not even expert_widths"),
        ({"bits": 0}, "bits=0"),
        ({"num_bits": 0}, "num_bits=0"),
        ({"code_bits": 7}, "needs training_error"),
        ({"training_error": 1.5}, "training_error=1.5"),
        ({"num_choices": 0}, "num_choices=0"),
    ],
)
def test_what_no_classifier_has_is_refused(settings, said):
    with pytest.raises(InvalidValueError) as refusal:
        Setting(**settings)
    assert said in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_trained_model_has_a_bound_on_its_risk(tmp_path):
    """By files: weights of three levels, and what the model gets wrong or its loss on each sample."""
    weights = np.random.default_rng(0).choice([-1, 0, 1], (20, 17)).astype(np.float32)
    path = tmp_path / "model.safetensors"
    save_file({"experts": weights}, path)
    bits = certificate.code_length({"experts": weights})
    rows = {each.form.id: each for each in generalization.bound(checkpoint=path, num_errors=100, num_samples=2000)}
    assert rows["certificate"].value == certificate.certificate(bits, 0.05, 2000).risk
    assert rows["stored"].value == pytest.approx(0.05 + corrected.stored(340, 32, 2000))
    assert {each.form.bounds for each in rows.values()} == {"risk"}
    losses = np.random.default_rng(1).random(2000)
    np.save(tmp_path / "losses.npy", losses)
    options = {"checkpoint": str(path), "losses": tmp_path / "losses.npy", "num_choices": 16}
    rows = {each.form.id: each for each in generalization.bound(**options, num_experts=2, num_active=1)}
    assert rows["certificate"].value == pytest.approx(certificate.certificate(bits + 4, losses.mean(), 2000).risk)
    product = found(num_experts=2, num_active=1, num_samples=2000)["product"]
    assert rows["product"].value == pytest.approx(losses.mean() + product.value)
    with pytest.raises(InvalidValueError, match="num_weights is what --checkpoint"):
        generalization.bound(checkpoint=path, num_weights=5)
