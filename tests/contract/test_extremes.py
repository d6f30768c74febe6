"""Parameters, options and sizes at their extremes: a run in float32 gives what float64 gives, says that it has none, or
is refused. What has overflowed is seen: no system gives a finite number for a run that has stopped to be one.
"""

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core import random
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.papers import all_papers
from moe_theory.core.system import check_system
from moe_theory.sweep.systems import sweepable

from .cases import CASES, Case, papers_own


def headline(name: str) -> Any:
    """Of (state, info), what the paper is about: what a sweep keeps by default."""
    systems = {name: paper for paper in all_papers().values() for name in paper.systems}
    if name not in systems:
        return lambda state, info: {"generalization_error": info.generalization_error, "accuracy": info.accuracy}
    sweepable = systems[name].import_system(name)
    return sweepable.observe(sweepable.default_observables)


def half(case: Case) -> int:
    """Half of the rounds that there is memory for."""
    shapes = jax.eval_shape(case.build().init, mt.root_key(0), case.params)
    return min(getattr(shapes, "max_rounds", 8), 8) // 2


def shown_rounds(case: Case) -> Callable[[Any, Any, Any], Any]:
    """(key, state, params) -> the headline of each round, by the system's own step."""
    system, observe = case.build(), headline(case.name)

    def run(key: Any, state: Any, params: Any) -> Any:
        def one(state: Any, time: Any) -> Any:
            state, info = system.step(jax.random.fold_in(key, time), state, params)
            return state, observe(state, info)

        return jax.lax.scan(one, state, jnp.arange(1, half(case) + 1))[1]

    return run


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=case.name, marks=[pytest.mark.thorough] * (case.name != "generalization"))
        for case in CASES
    ],
)
def test_a_state_that_is_no_number_gives_no_number(case):
    """Would catch a NaN gate that sends every task nowhere, or to the first expert, under an error that looks sound."""
    run = jax.jit(functools.partial(shown_rounds(case), mt.root_key(1)))
    state, _ = mt.simulate(case.build(), mt.root_key(0), case.params, half(case))
    sound = jax.device_get(run(state, case.params))
    leaves, structure = jax.tree.flatten_with_path(state)
    wrong = []
    for place, (path, leaf) in enumerate(leaves):
        if not jnp.issubdtype(leaf.dtype, jnp.floating):
            continue
        ruined = [np.full_like(each, np.nan) if index == place else each for index, (_, each) in enumerate(leaves)]
        seen = jax.device_get(run(jax.tree.unflatten(structure, ruined), case.params))
        for name, values in seen.items():
            if not np.all(np.isnan(values) | (values == sound[name])):
                wrong.append(f"{jax.tree_util.keystr(path)}: {name} = {values}, not {sound[name]}")
    assert not wrong, "\n".join(wrong)


REPLICATES = 16
MOST_OFF = 0.2  # share of replicates whose roundings may send a task elsewhere
EXTREMES = (0.0, 1e-38, 1e-30, 1e-20, 1e-12, 1e-6, 1e-3, 1.0, 1e3, 1e6, 1e12, 1e20, 1e30, 3e38, -1.0)
COUNTS = (0, 1, 2, 3, 10**3, 10**6, 2**31 - 1, 2**31, 10**12, -1)
SLOW, STRICT = "jax_disable_jit", "jax_numpy_dtype_promotion"
NUDGE = 1 + 1e-6  # of a parameter: where this changes what float64 gives, roundings may


def settings(params: Any) -> Iterator[tuple[str, Any]]:
    for name, value in params._asdict().items():
        values = (True, False) if isinstance(value, bool) else COUNTS if isinstance(value, int) else EXTREMES
        yield from ((name, each) for each in values)


@contextlib.contextmanager
def drawn_in_float32() -> Iterator[None]:
    """Float64 runs that draw what float32 runs draw."""
    made = {name: getattr(jax.random, name) for name in ("normal", "uniform", "exponential")}

    def narrow(draw: Callable[..., Any]) -> Callable[..., Any]:
        def drawn(key: Any, shape: Any = (), dtype: Any = None) -> Any:
            return draw(key, shape, jnp.float32).astype(jnp.float64)

        return drawn

    def draws(key: Any, num_uniforms: int, num_normals: int, dtype: Any) -> tuple[Any, ...]:
        return tuple(part.astype(dtype) for part in own(key, num_uniforms, num_normals, jnp.float32))

    own = random.draws
    using = [
        module for name, module in sys.modules.items() if name.startswith("moe_theory.") and hasattr(module, "draws")
    ]
    with contextlib.ExitStack() as stack:
        for module in using:
            if module.draws is own:
                stack.enter_context(mock.patch.object(module, "draws", draws))
        for name, draw in made.items():
            stack.enter_context(mock.patch.object(jax.random, name, narrow(draw)))
        yield
    jax.clear_caches()  # of what was traced meanwhile


def outcomes(case: Case, given: list[Any]) -> list[dict[str, np.ndarray] | None]:
    """Of each setting, what some replicates' rounds show; None where it is refused."""
    system, rounds = case.build(), shown_rounds(case)

    def replicate(number: Any, params: Any) -> Any:
        key = jax.random.fold_in(mt.root_key(1), number)
        return rounds(key, system.init(key, params), params)

    @jax.jit
    def run(params: Any) -> Any:
        return jax.vmap(replicate, in_axes=(0, None))(jnp.arange(REPLICATES), params)

    shown = []
    for params in given:
        try:
            check_system(system, params)
        except InvalidValueError:
            shown.append(None)
        else:
            found = jax.device_get(run(jax.tree.map(jnp.asarray, params)))
            shown.append({name: np.asarray(each, float).reshape(REPLICATES, -1) for name, each in found.items()})
    return shown


def are_close(one: dict[str, np.ndarray], other: dict[str, np.ndarray]) -> np.ndarray:
    """Of each replicate, whether all its numbers are, as far as float32 tells: some are differences of others."""
    size = max(np.nanmax(np.abs(each), where=np.isfinite(each), initial=0) for each in other.values())
    near = [np.isclose(one[name], other[name], rtol=1e-3, atol=1e-5 * size, equal_nan=True) for name in other]
    return np.all(near, axis=(0, 2))


@pytest.mark.thorough
@papers_own
def test_a_parameter_at_its_extremes_is_right_or_refused(case: Case) -> None:
    """Would catch squares that underflow to a noise of 0, steps that swallow what they are added to, and rewards that
    overflow and are left out, all under numbers that look sound."""
    known = list(settings(case.params))
    given = [case.params._replace(**{name: value}) for name, value in known]
    narrow = outcomes(case, given)
    accepted = [params for params, found in zip(given, narrow, strict=True) if found is not None]
    nudged = [
        params._replace(**{name: value * NUDGE}) if isinstance(value, float) else params
        for (name, value), params, found in zip(known, given, narrow, strict=True)
        if found is not None
    ]
    with jax.enable_x64(True), drawn_in_float32():
        wide = outcomes(case, accepted + nudged)
    wrong, pairs = [], iter(zip(wide[: len(accepted)], wide[len(accepted) :], strict=True))
    for (name, value), found in zip(known, narrow, strict=True):
        if found is None:
            continue
        sound, near = next(pairs)
        assert sound is not None, f"{name}={value} is refused in float64 and not in float32"
        is_told = np.any([np.isnan(each).any(axis=1) for each in found.values()], axis=0)
        is_steady = near is None or are_close(near, sound)
        is_off = ~are_close(found, sound) & ~is_told & is_steady
        if np.mean(is_off) > MOST_OFF or any(np.isinf(each).any() for each in found.values()):
            told = [{what: each[is_off][:1, -1] for what, each in given.items()} for given in (found, sound)]
            wrong.append(f"{name}={value}: {told[0]}, not {told[1]}")
    assert not wrong, "\n".join(wrong)
    assert len(accepted) > len(case.params)  # not all is refused


# All others that decide numbers are in the fingerprint of what is kept: `tests/runs/test_key.py`.
OPTIONS = {"jax_debug_nans": True, "jax_default_prng_impl": "rbg", "jax_disable_jit": True}


@pytest.fixture
def options() -> Iterator[dict[str, Any]]:
    """Set options of JAX, and restore them afterwards."""
    before = {name: jax.config.values[name] for name in (*OPTIONS, STRICT)}
    yield OPTIONS
    for name, value in before.items():
        jax.config.update(name, value)


@papers_own
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name == SLOW)) for name in OPTIONS]
)
def test_a_user_s_options_of_jax_change_no_number(case: Case, name: str, options: dict[str, Any]) -> None:
    """Would catch draws by JAX's default generator, a NaN on the way, and a loop that only compiles."""

    def run() -> Any:  # the engine's own programs are compiled whatever the options say
        return mt.simulate(case.build(), mt.root_key(3), case.params, half(case), plain=name == SLOW)

    expected = jax.device_get(run())
    jax.config.update(name, options[name])
    tolerance = 1e-4 if name == SLOW else 0
    chex.assert_trees_all_close(jax.device_get(run()), expected, rtol=tolerance, atol=tolerance)


def test_strict_promotion_is_refused(options: dict[str, Any]) -> None:
    """Would catch JAX's traceback, a screen long, from the inside of a system."""
    jax.config.update(STRICT, "strict")
    with pytest.raises(InvalidValueError, match="jax_numpy_dtype_promotion=strict refuses sums"):
        mt.simulate(CASES[0].build(), mt.root_key(0), CASES[0].params, 1)


SMALLEST = {
    "continual": {"max_experts": 1, "num_tasks": 1, "num_features": 2, "num_samples": 1},
    "edge": {"max_experts": 1, "num_tasks": 1, "num_features": 2, "num_samples": 1},
    "generalization": {"max_experts": 1, "num_features": 1, "max_samples": 1},
    "merging": {"max_experts": 2, "num_tasks": 1, "max_rounds": 1, "max_leaves": 1, "width": 2, "num_steps": 1},
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.thorough] * (name != "continual")) for name in SMALLEST]
)
def test_the_smallest_of_all_sizes(name: str) -> None:
    """Would catch a division by M - 1, an empty array, and the last of the names that a replicate may have."""
    kind = sweepable(name)
    given = {"num_experts": SMALLEST[name]["max_experts"], "max_active": 2, "num_active": 1, "num_samples": 1}
    defaults = kind.readings[kind.default_reading].params()
    params = defaults._replace(**{key: value for key, value in given.items() if key in defaults._fields})
    system = kind.system(kind.dims(**SMALLEST[name]), {})
    _, shown = mt.simulate_batch(
        system, mt.root_key(2**32 - 1), [0, 2**32 - 1], params, 1, observe=kind.observe(kind.default_observables)
    )
    assert all(np.isfinite(numbers).all() for numbers in shown.values())
    assert any(numbers[0, 0] != numbers[0, 1] for numbers in shown.values())
