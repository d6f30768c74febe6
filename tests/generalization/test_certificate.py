"""The certificate of a trained model.

Catches lengths that no prefix-free code has, a kl that is inverted to the wrong side, and a bound that fails more often
than it says once the samples chose the model.
"""

import itertools
import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import save_file
from scipy import optimize, special

from moe_theory.core.errors import InvalidValueError
from moe_theory.generalization.certificate import (
    _estimate_length,
    certificate,
    code_length,
    code_of,
    divergence_of,
    largest_risk,
)


@pytest.mark.parametrize("error", [0.0, 1e-6, 0.1, 0.25, 0.5, 0.9, 1.0])
@pytest.mark.parametrize("divergence", [0.0, 1e-9, 1e-3, 0.1, 1.0, 30.0])
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
    assert certificate(0, 0.0, 50, delta=0.2) == pytest.approx(1 - 0.2 ** (1 / 50))
    assert certificate(10, 0.0, 50, delta=0.2) == pytest.approx(1 - (0.2 / 2**10) ** (1 / 50))
    assert certificate(0, 1.0, 10) == 1.0
    for given in ({"training_error": 1.1}, {"num_samples": 0}, {"num_bits": -1}, {"delta": 0.0}):
        with pytest.raises(InvalidValueError):
            certificate(**{"num_bits": 1, "training_error": 0.1, "num_samples": 10} | given)


CHANCE = np.random.default_rng(0)
TENSORS = {
    "ternary": CHANCE.choice([-1.0, 0.0, 1.0], (40, 30), p=[0.1, 0.8, 0.1]).astype(np.float32),
    "scaled": (0.37 * CHANCE.choice([-1, 0, 1], (7, 5, 3))).astype(np.float32),
    "many levels": CHANCE.integers(-120, 120, 2000).astype(np.float64),
    "half": CHANCE.normal(size=(9,)).astype(np.float16),
    "brain": np.asarray(jnp.asarray(CHANCE.choice([0.1, -0.3], 50), jnp.bfloat16)),
    "noise": CHANCE.normal(size=(4, 25)).astype(np.float32),
    "constant": np.full((6, 6), -2.5, np.float32),
    "far apart": np.array([-(2.0**30), 5.0, 5.0, 2.0**30], np.float32),
    "infinite": np.array([np.inf, 0.0, -np.inf, 1e-300]),
    "scalar": np.float32(3),
    "empty": np.zeros((0, 4), np.float32),
    "runs": np.repeat([1.0, -1.0], 3000).astype(np.float32),
}


# Lengths of an arithmetic code of the same weights, which was also decoded again.
ARITHMETIC = {
    "ternary": 1114,
    "scaled": 301,
    "many levels": 16466,
    "half": 164,
    "brain": 113,
    "noise": 3226,
    "constant": 39,
    "far apart": 145,
    "infinite": 273,
    "scalar": 15,
    "empty": 18,
    "runs": 6052,
}


@pytest.mark.parametrize("name", TENSORS)
def test_the_length_is_within_two_bits_of_an_arithmetic_code(name):
    assert abs(code_length({"a": TENSORS[name]}) - ARITHMETIC[name]) <= 2


def test_lengths_of_tensors_add_up():
    """Elias's code has 4 bits for 2, of one tensor, and 8 for 13, of all twelve."""
    alone = [code_length({"a": array}) - 4 for array in TENSORS.values()]
    assert code_length(TENSORS) == 8 + sum(alone)
    assert code_length(dict(reversed(TENSORS.items()))) == code_length(TENSORS)


def test_lengths_fit_into_the_unit_interval():
    """Kraft's inequality, over all tensors of up to 5 weights of up to 3 levels, alone or two at a time."""
    arrays = [
        np.array(values, np.float32).reshape(shape)
        for size in range(6)
        for values in itertools.product((-1, 0, 0.5), repeat=size)
        for shape in ((size,), (size, 1))
    ]
    lengths = [code_length({"a": array}) for array in arrays]
    lengths += [code_length({"a": a, "b": b}) for a, b in itertools.product(arrays[:24], repeat=2)]
    assert math.fsum(2.0**-length for length in lengths) <= 1


@pytest.mark.parametrize("sequence", ["", "0", "01", "0011", "0000011111", "0120120", "2" * 40, "0123456789"])
def test_the_length_is_that_of_krichevsky_and_trofimov(sequence):
    """Against the probability of one symbol after another, in exact arithmetic."""
    symbols = list(map(int, sequence))
    levels = sorted(set(symbols)) or [0]
    counts, probability = dict.fromkeys(levels, 0), Fraction(1)
    for place, symbol in enumerate(symbols):
        probability *= Fraction(2 * counts[symbol] + 1, 2 * place + len(levels))
        counts[symbol] += 1
    length = _estimate_length(list(counts.values()))
    assert Fraction(1, 2) ** (length - 1) <= probability <= Fraction(1, 2) ** (length - 2)


def test_weights_of_other_kinds_are_refused():
    for array in (np.arange(3), np.array([np.nan], np.float32), np.array(["a"])):
        with pytest.raises(InvalidValueError):
            code_length({"a": array})


RUNS, SAMPLES, DELTA = 2000, 60, 0.2
HYPOTHESES = [np.array(values, np.float32) for values in itertools.product((-1, 0, 1), repeat=5)]
LENGTHS = np.array([code_length({"a": weights}) for weights in HYPOTHESES])


@pytest.mark.parametrize("is_binary", [True, False])
def test_it_fails_as_rarely_as_it_says_when_the_samples_choose_the_model(is_binary):
    """Of 243 models of risk 1/2 the one with the smallest bound, which without paying for the choice mostly fails."""
    chance, fails = np.random.default_rng(1), np.zeros(2)
    shape = (SAMPLES, len(HYPOTHESES))
    for _ in range(RUNS):
        losses = (chance.integers(0, 2, shape) if is_binary else chance.beta(0.2, 0.2, shape)).mean(axis=0)
        divergence = special.rel_entr(losses, 0.5) + special.rel_entr(1 - losses, 0.5)
        for which, bits in enumerate((LENGTHS, 0 * LENGTHS)):
            fails[which] += np.any((losses < 0.5) & (SAMPLES * divergence > bits * math.log(2) + math.log(1 / DELTA)))
        best = np.argmin(losses)
        paid = certificate(int(LENGTHS[best]), float(losses[best]), SAMPLES, DELTA)
        assert (paid < 0.5) == (SAMPLES * divergence[best] > LENGTHS[best] * math.log(2) + math.log(1 / DELTA))
    assert fails[0] <= DELTA * RUNS
    assert fails[1] > 0.9 * RUNS


def test_a_checkpoint_s_weights_are_coded(tmp_path):
    path = tmp_path / "model.safetensors"
    arrays = {name: TENSORS[name] for name in ("ternary", "scaled", "noise")}
    save_file(arrays, path)
    found = code_of(path)
    size = sum(array.size for array in arrays.values())
    assert found == (size, 32 * size, code_length(arrays))
    save_file({"packed": np.zeros(4, np.uint8)}, path)
    with pytest.raises(InvalidValueError, match="U8"):
        code_of(path)
