"""Domains of closed forms, for every paper, from the constraints beside their arguments."""

import collections.abc
import importlib.util
import inspect
import math
from types import ModuleType
from typing import Any, get_origin

import jax
import numpy as np
import pytest

from moe_theory import merging
from moe_theory.continual import Pool, theory
from moe_theory.core.constraints import AtMost, OneOf, Whole, Within, axes_of, constraints_of, hints_of
from moe_theory.core.errors import InvalidValueError
from moe_theory.core.papers import all_papers

MODULES = {
    f"{paper.package.removeprefix('moe_theory.')}.{name}": importlib.import_module(f"{paper.package}.{name}")
    for paper in all_papers().values()
    for name in ("theory", "corrected")
    if importlib.util.find_spec(f"{paper.package}.{name}")
}
FORMS = {
    f"{path}.{name}": getattr(module, name)
    for path, module in MODULES.items()
    for name in module.__all__
    if inspect.isfunction(getattr(module, name))
}
CUBE = np.eye(2, 5)[:, :, None]
ROUTES = np.array([[0], [1]])
VALUES = {
    "bound": lambda num_samples: 10 / num_samples,
    "depth": 1,
    "errors": np.array([0.0, 3.0, 1.5]),
    "expert": np.zeros(5),
    "experts": ROUTES,
    "expert_norms": [1.0, 2.0],
    "explored_loads": np.array([1, 1]),
    "follows_truth": True,
    "gates": np.array([[0.1, 0.0], [-0.1, 0.0]]),
    "layer_norms": [1.0, 2.0],
    "loads": np.array([2, 1]),
    "mixes": np.eye(2),
    "num_active": 1,
    "num_features": 5,
    "num_rounds": 20,
    "num_samples": 1,
    "operator_norms": [1.0, 2.0],
    "others": np.eye(2, 5),
    "outputs": np.array([0.0, 0.5]),
    "params": merging.Params(),
    "points": np.eye(2),
    "pool": Pool(np.eye(2, 5), np.eye(2, 5), np.arange(2)),
    "pool_gaps": theory.Gaps(1.0, 3.0, 0.5, 3.5),
    "round": 3,
    "router_norms": [1.0, 2.0],
    "row_norms": [1.0, 2.0],
    "signal": np.eye(5)[0],
    "signals": CUBE,
    "tasks": ROUTES,
    "time": 20.0,
    "truth": np.eye(5)[0],
    "truths": CUBE,
    "width": 64.0,
    "widths": [2, 3],
}
OF_FORM = {"continual.corrected.given_routes": {"pool": Pool(CUBE, CUBE, np.arange(2)[:, None])}}
SMALLEST = 1e-150  # above an open 0: its square and quotients by it are still numbers
# Where a bound is open and the form takes ever longer towards it.
NEAREST = {"contraction": 0.9}


def arguments(path: str) -> dict[str, Any]:
    """Admissible arguments of a form."""
    function = FORMS[path]
    values = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in VALUES:
            values[name] = VALUES[name]
        elif parameter.default is not parameter.empty and parameter.default is not None:
            values[name] = parameter.default
        else:
            values[name] = middle(constraints_of(function)[name][0])
    return values | OF_FORM.get(path, {})


def middle(constraint: Any) -> float | int:
    if isinstance(constraint, Whole):
        return max(constraint.least, 2)
    return 0.5 if constraint.high == 1 else 1.0


def edges(name: str, constraint: Any) -> list[float]:
    """The smallest and the largest admissible value, where there is one; close to a bound that is open."""
    if isinstance(constraint, Whole):
        return [constraint.least]
    low = SMALLEST if constraint.low == 0 and constraint.open_low else constraint.low
    high = np.nextafter(constraint.high, 0) if constraint.open_high else constraint.high
    return [value for value in (low, NEAREST.get(name, float(high))) if math.isfinite(value)]


def outside(constraint: Any) -> list[float]:
    """Values just outside."""
    if isinstance(constraint, Whole):
        return [constraint.least - 1, constraint.least + 0.5]
    low = constraint.low if constraint.open_low else np.nextafter(constraint.low, -math.inf)
    high = constraint.high if constraint.open_high else np.nextafter(constraint.high, math.inf)
    return [float(value) for value in (low, high) if math.isfinite(value)]


def places(path: str) -> list[tuple[str, Any, str]]:
    """The constraints of a form's arguments, and of the fields of those that are named tuples."""
    found = []
    for name, hint in hints_of(FORMS[path]).items():
        is_tuple = isinstance(hint, type) and issubclass(hint, tuple)
        fields = constraints_of(hint) if is_tuple and name != "return" else {name: constraints_of(FORMS[path])[name]}
        for field, constraints in fields.items():
            found += [(field, each, name) for each in constraints if isinstance(each, Within | Whole)]
    return found


def changed(values: dict[str, Any], name: str, field: str, value: Any) -> dict[str, Any]:
    """Arguments with another value, or a value of another field."""
    return values | {name: value if name == field else values[name]._replace(**{field: value})}


def filled(values: dict[str, Any], name: str, value: Any) -> Any:
    """An argument of the same kind that holds the value: an array where it is one."""
    if np.ndim(values[name]):
        array = np.array(values[name], type(value))
        array.flat[0] = value
        return array
    return value


def refused(path: str, values: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValueError) as caught:
        pytest.fail(f"{path} takes {field} of {values}: {FORMS[path](**values)}")
    assert caught.value.argument == field, (path, caught.value)


PLACES = [(path, *place) for path in FORMS for place in places(path)]


def test_every_argument_has_a_domain():
    without = []
    for path, form in FORMS.items():
        for name in inspect.signature(form).parameters:
            hint = hints_of(form)[name]
            is_tuple = isinstance(hint, type) and issubclass(hint, tuple)
            is_function = get_origin(hint) is collections.abc.Callable
            without += (
                [] if constraints_of(form)[name] or is_tuple or is_function or hint is str else [f"{path}: {name}"]
            )
    assert not without


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # an infinite bound is an answer
def test_edges_are_admissible():
    wrong = []
    for path, field, constraint, name in PLACES:
        if name in ("loads", "explored_loads", "round"):
            continue  # loads add up to the rounds
        values = arguments(path)
        for value in edges(field, constraint):
            edge = filled(values, name, value) if name == field else value
            leaves = jax.tree.leaves(FORMS[path](**changed(values, name, field, edge)))
            wrong += [(path, field, value)] if any(np.any(np.isnan(leaf)) for leaf in leaves) else []
    assert not wrong


def test_what_is_just_outside_is_refused():
    for path, field, constraint, name in PLACES:
        values = arguments(path)
        for value in [*outside(constraint), math.nan, math.inf, -math.inf]:
            edge = filled(values, name, value) if name == field else value
            refused(path, changed(values, name, field, edge), field)
            if name == field and not np.ndim(edge):
                refused(path, values | {name: [values[name], value]}, name)


def test_what_is_no_number_is_refused():
    for path, field, _, name in PLACES:
        for value in ("0.5", "one", ["1", "2"], 1j, object(), [[1], [1, 2]], 10**400):
            refused(path, changed(arguments(path), name, field, value), field)


def test_what_is_no_choice_or_above_another_argument_is_refused():
    for path, form in FORMS.items():
        values = arguments(path)
        for name, constraints in constraints_of(form).items():
            for constraint in constraints:
                if isinstance(constraint, OneOf):
                    refused(path, values | {name: "neither"}, name)
                if isinstance(constraint, AtMost):
                    refused(path, values | {name: values[constraint.upper] + 1}, name)


def test_lists_are_as_arrays():
    for path, form in FORMS.items():
        values, lists = arguments(path), {}
        for name, constraints in constraints_of(form).items():
            if constraints and np.ndim(values[name]):
                lists[name] = np.asarray(values[name]).tolist()
            elif constraints and name != "form" and axes_of(hints_of(form)[name]) != []:
                values[name] = np.full(1, values[name])
                lists[name] = values[name].tolist()
        computed, expected = form(**values | lists), form(**values)
        for one, other in zip(jax.tree.leaves(computed), jax.tree.leaves(expected), strict=True):
            np.testing.assert_array_equal(one, other, err_msg=path)


def test_traced_values_are_passed_over():
    values = arguments("continual.theory.theorem_1")
    form = jax.jit(lambda ratio: theory.theorem_1(**values | {"ratio": ratio}).generalization_error)
    assert np.isfinite(form(1.5))


@pytest.mark.parametrize("path", MODULES)
def test_a_module_shows_its_forms_alone(path):
    module = MODULES[path]
    assert dir(module) == sorted(module.__all__)
    assert not [name for name in dir(module) if isinstance(getattr(module, name), ModuleType)]
