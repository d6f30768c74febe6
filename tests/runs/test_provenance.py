"""What decides numbers is named: an option of JAX is in the fingerprint of what is kept, or changes no draw."""

import jax
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.runs.provenance import fingerprint

OPTIONS = {
    "jax_threefry_partitionable": False,
    "jax_default_matmul_precision": "highest",
    "jax_numpy_dtype_promotion": "strict",
    "jax_random_seed_offset": 5,
    "jax_default_prng_impl": "rbg",
    "jax_disable_jit": True,
    "jax_optimization_level": "O0",
}


@pytest.fixture(params=OPTIONS)
def option(request):
    name, before = request.param, jax.config.values[request.param]
    yield name
    jax.config.update(name, before)


def test_a_changed_option_is_a_changed_fingerprint_and_the_same_root_key(option):
    """Would catch kept samples that another configuration of JAX would not have given, and seeds that are shifted."""
    before, key = fingerprint(), jax.random.key_data(mt.root_key(3))
    jax.config.update(option, OPTIONS[option])
    assert fingerprint() != before
    np.testing.assert_array_equal(jax.random.key_data(mt.root_key(3)), key)


def test_the_order_of_compiler_flags_counts(monkeypatch):
    """Would catch samples of one instruction set taken for those of another: of two flags the later one wins."""
    flags = [f"--xla_cpu_max_isa={name}" for name in ("AVX2", "SSE4_2")]
    known = []
    for given in (flags, flags[::-1]):
        monkeypatch.setenv("XLA_FLAGS", " ".join(["--xla_dump_to=/nowhere", *given]))
        known.append(fingerprint())
    assert known[0]["processor"] != known[1]["processor"]
    assert known[0]["configuration"] != known[1]["configuration"]
    assert "xla_dump" not in str(known)
