"""States, options and sizes at their extremes: no system gives a finite number for a run that has stopped to be one."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import moe_theory as mt
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.papers import all_papers
from moe_theory.sweep.systems import sweepable

from .cases import CASES, Case


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


def test_strict_promotion_is_refused() -> None:
    """Would catch JAX's traceback, a screen long, from the inside of a system."""
    with (
        jax.numpy_dtype_promotion("strict"),
        pytest.raises(InvalidValueError, match="jax_numpy_dtype_promotion=strict refuses sums"),
    ):
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
