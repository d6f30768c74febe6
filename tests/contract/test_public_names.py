"""Public names: each is documented, typed and shown at work; symbols of papers are named wherever parameters are."""

import ast
import collections
import doctest
import functools
import importlib
import inspect
from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import pytest
from public import PACKAGES, assigned, defining_module, imported_from, public_names, tree

import moe_theory as mt
from moe_theory.core.errors import MoeTheoryError
from moe_theory.core.papers import all_papers
from moe_theory.verification.settings import with_settings

NAMES = public_names()
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
# Whose functions are statements of papers, or run their algorithms.
OF_PAPERS = {"theory", "exact", "corrected", "tree", "complexity", "counterexamples"}
ALGORITHMS = {"system", "begin", "learn", "on_pool"}


class Definition(NamedTuple):
    """A public name's definition, or that of a method of a public class."""

    name: str
    module: ModuleType
    node: ast.stmt | ast.Module
    comment: str  # on the lines of a constant or a field

    @property
    def docstring(self) -> str:
        return ast.get_docstring(self.node) or "" if isinstance(self.node, FUNCTION | ast.ClassDef | ast.Module) else ""


def is_module(value: Any) -> bool:
    return isinstance(value, ModuleType)


def definitions() -> Iterator[Definition]:
    for path, value in NAMES.items():
        module = importlib.import_module(defining_module(path))
        if is_module(value):
            yield Definition(path, module, tree(value), "")
            continue
        node = top_level(module)[path.rpartition(".")[2]]
        yield Definition(path, module, node, comment_of(module, node))
        if isinstance(node, ast.ClassDef):
            for method in node.body:
                if isinstance(method, FUNCTION) and not method.name.startswith("_"):
                    yield Definition(f"{path}.{method.name}", module, method, "")


@functools.cache
def top_level(module: ModuleType) -> dict[str, ast.stmt]:
    defined = {node.name: node for node in tree(module).body if isinstance(node, FUNCTION | ast.ClassDef)}
    return {**assigned(module), **defined}


def comment_of(module: ModuleType, node: ast.stmt) -> str:
    """The comment behind a statement, or else right above it, or the string below it."""
    lines = lines_of(module)
    own = " ".join(lines[node.lineno - 1 : node.end_lineno])
    above = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("#"):
            break
        above.insert(0, line.strip(" #"))
    body = tree(module).body
    below = body[body.index(node) + 1] if node in body and body[-1] is not node else None
    is_text = isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant)
    behind = own.partition("  # ")[2]
    return " ".join([behind, *above, str(below.value.value) if is_text else ""]).strip()


@functools.cache
def lines_of(module: ModuleType) -> list[str]:
    return inspect.getsource(module).splitlines()


DEFINITIONS = list(definitions())
BY_NAME = {each.name: each for each in DEFINITIONS}
FUNCTIONS = [each for each in DEFINITIONS if isinstance(each.node, FUNCTION)]


def test_public_names_are_where_they_say():
    """Each path leads to its object, and nothing that a package's `__init__` re-exports is left out."""
    listed = {id(value) for value in NAMES.values()}
    for path, value in NAMES.items():
        parent, _, name = path.rpartition(".")
        assert value is (importlib.import_module(path) if is_module(value) else vars_of(parent)[name])
    for package in PACKAGES:
        exported = imported_from(importlib.import_module(package))
        missing = [name for name in exported if id(vars_of(package)[name]) not in listed]
        assert not missing, f"{package}: {missing}"


def vars_of(module: str) -> dict[str, Any]:
    """A module's names, those that are loaded on first use included."""
    loaded = importlib.import_module(module)
    return {name: getattr(loaded, name) for name in dir(loaded)}


def test_every_public_name_says_what_it_is():
    silent = []
    for each in DEFINITIONS:
        text = each.docstring or each.comment
        first = text.split("\n\n")[0]
        is_constant = not isinstance(each.node, FUNCTION | ast.ClassDef | ast.Module)
        if not first or (not is_constant and not first.rstrip().endswith((".", ":"))):
            silent.append(each.name)
    assert not silent, "\n".join(silent)


def test_every_argument_and_result_has_a_type():
    untyped = []
    for each in FUNCTIONS:
        arguments = each.node.args
        listed = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg]
        bare = [one.arg for one in listed if one and one.annotation is None and one.arg not in ("self", "cls")]
        bare += ["return"] if each.node.returns is None else []
        untyped += [f"{each.name}: {name}" for name in bare]
    assert not untyped, "\n".join(untyped)


def resolved(node: ast.expr, scope: dict[str, Any]) -> Any:
    """The object of a dotted name; None if it is not known."""
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    if isinstance(node, ast.Attribute):
        owner = resolved(node.value, scope)
        return getattr(owner, node.attr, None) if is_module(owner) else None
    return None


def test_every_formula_has_its_source():
    unsourced = []
    for each in FUNCTIONS:
        parent, _, name = each.name.rpartition(".")
        of_paper = parent.rpartition(".")[2] in OF_PAPERS
        if (of_paper or name in ALGORITHMS) and "Source:" not in each.docstring:
            unsourced.append(each.name)
    assert not unsourced, "\n".join(unsourced)


GROUPS: dict[str, list[Definition]] = {}
for _each in DEFINITIONS:
    _owner = next(path for path in sorted(NAMES, key=len, reverse=True) if f"{_each.name}.".startswith(f"{path}."))
    _is_module = isinstance(_each.node, ast.Module)
    GROUPS.setdefault(_each.name if _is_module else _owner.rpartition(".")[0], []).append(_each)


# Their examples take seconds each.
LONG = {"moe_theory"} | {
    f"moe_theory.{name}"
    for name in (
        "continual continual.reduced deep deep.continual deep.edge deep.networks edge edge.reduced generalization "
        "generalization.counterexamples generalization.model merging merging.policies merging.rewards merging.tree"
    ).split()
}


@pytest.mark.parametrize(
    "group", [pytest.param(name, marks=[pytest.mark.thorough] * (name in LONG)) for name in GROUPS]
)
def test_examples_run_and_show_every_public_name(group, within_folder, forgotten):
    """Each function is called, and of each class there is an instance, in an example of its module's names."""
    shown: set[int] = set()
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    failures: list[str] = []
    for each in GROUPS[group]:
        found = doctest.DocTestParser().get_doctest(each.docstring, {}, each.name, each.module.__name__, 0)
        runner.run(found, out=failures.append, clear_globs=False)
        shown |= used(found)
    assert not failures, "".join(failures)
    wanted = [
        path
        for path in NAMES
        if path.rpartition(".")[0] == group and isinstance(BY_NAME[path].node, FUNCTION | ast.ClassDef)
    ]
    unseen = [path for path in wanted if id(NAMES[path]) not in shown and not is_error(NAMES[path])]
    assert not unseen, "\n".join(unseen)


def is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, MoeTheoryError)


def used(test: doctest.DocTest) -> set[int]:
    """Functions that an example calls or passes on, and classes that it names or has instances of."""
    nodes = [node for example in test.examples for node in ast.walk(ast.parse(example.source))]
    calls = [node for node in nodes if isinstance(node, ast.Call)]
    passed = [part for call in calls for part in (call.func, *call.args, *(each.value for each in call.keywords))]
    shown = {id(resolved(part, test.globs)) for part in passed}
    named = [resolved(node, test.globs) for node in nodes if isinstance(node, ast.Name | ast.Attribute)]
    values = list(test.globs.values())
    for value in values:
        named.append(type(value))
        if isinstance(value, tuple | list) and len(value) < 100:
            values += value
    return shown | {id(value) for value in named if isinstance(value, type)}


Counted = collections.namedtuple("Counted", "round")
# As the papers write them.
NOTATION = {
    "continual": {
        "M": "num_experts", "k": "num_active", "eta": "learning_rate", "alpha": "balance_weight",
        "lambda": "perturbation_scale", "Gamma": "termination_threshold", "sigma_0": "truth_scale",
        "C": "max_strength", "sigma_t": "noise_scale", "K": "num_clusters",
        "N": "num_tasks", "d": "num_features", "s": "num_samples", "c": "signal_scale",
    },
    "edge": {
        "M": "num_experts", "eta": "learning_rate", "lambda": "perturbation_scale", "sigma_0": "truth_scale",
        "C": "max_strength", "sigma_t": "noise_scale", "d_l^tr": "min_transfer_delay",
        "d_u^tr": "max_transfer_delay", "d_l^ex": "min_execution_delay", "d_u^ex": "max_execution_delay",
        "d_u": "max_delay", "N": "num_tasks", "p": "num_features", "s": "num_samples",
    },
    "generalization": {
        "T": "num_experts", "k": "num_active", "m": "num_samples", "B": "expert_norm", "delta": "delta",
        "d": "num_features",
    },
    "merging": {
        "K": "num_experts", "B": "max_active", "nu_1": "smoothness", "rho": "smoothness_ratio", "C": "split_constant",
        "delta": "confidence", "gamma": "exploration", "lambda": "regularization",
        "eta": "learning_rate", "V": "num_tasks", "T": "max_rounds", "w": "width", "J": "num_steps",
    },
}  # fmt: skip
COUNTING = mt.System(
    lambda key, params: Counted(jnp.int32(0)), lambda key, state, params: (Counted(state.round + 1),) * 2
)


def refusal(call, *arguments, **named) -> str:
    with pytest.raises(MoeTheoryError) as failure:
        call(*arguments, **named)
    assert "\n" not in str(failure.value)
    return str(failure.value)


def test_a_symbol_is_named_wherever_a_parameter_is():
    assert {name for name, paper in all_papers().items() if paper.citation} == NOTATION.keys()
    pairs = [(paper, *pair) for paper, symbols in NOTATION.items() for pair in symbols.items() if len(set(pair)) == 2]
    wrong = []
    for paper, symbol, field in pairs:
        reading = next(iter(all_papers()[paper].readings.values()))
        messages = [
            refusal(reading.params, **{symbol: 1}),
            refusal(with_settings, reading, {symbol: "1"}),
            refusal(mt.Sweep, system=paper, rounds=2, replicates=2, axes={symbol: [1, 2]}),
            refusal(mt.Sweep, system=paper, rounds=2, replicates=2, params={symbol: 1}),
            refusal(mt.vary, COUNTING, reading.params(), 1, 1, **{symbol: [1]}),
        ]
        wrong += [message for message in messages if field not in message or "Did you mean" in message]
    assert not wrong


def test_a_symbol_is_named_to_a_figure_in_an_exploration_and_over_the_cells_of_an_experiment():
    from moe_theory.continual.experiments import FIGURE_2
    from moe_theory.verification.explore import plan_search

    for message in (
        refusal(mt.figure, "continual.figure-2", settings={"eta": 1}),
        refusal(plan_search, "continual.lemma-4", ["eta=0.1,0.5"]),
    ):
        assert "is called learning_rate" in message
    assert "is called num_experts" in refusal(FIGURE_2.over, "M")


def test_axes_of_a_dataset_have_long_names():
    data = mt.vary(COUNTING, mt.continual.Params(), 2, 2, num_experts=[2, 3], truth_scale=[0.2, 0.4])
    assert data.num_experts.long_name == "number of experts, M"
    assert data.truth_scale.long_name == "truth scale, sigma_0 of N(0, sigma_0)"
    assert np.array_equal(data.num_experts, [2, 3])


def test_a_name_that_is_no_symbol_has_the_nearest_suggested():
    assert "Did you mean 'learning_rate'?" in refusal(mt.continual.reading("unit-signal").params, learning_rat=1)
